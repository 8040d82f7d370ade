//! The stdio client in memory.

use std::sync::Arc;

use crate::limits::ServerLimits;
use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use kernel::Frame;

use super::*;
use crate::kernel_queue::QueuedInput;
use crate::net::Link;

struct World {
    stdin: DuplexStream,
    stdout: BufReader<DuplexStream>,
    inbox: mpsc::Receiver<QueuedInput>,
    link: Arc<Link>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

async fn start(frame_in_bytes: usize) -> World {
    let (stdin, input) = duplex(64);
    let (output, stdout) = duplex(64);
    let (queue, mut inbox) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let limits = ServerLimits { frame_in_bytes, ..ServerLimits::default() };
    let admission = Admission::new(limits, None, Vec::new(), Vec::new());
    let stopping = stop.clone();
    let task = tokio::spawn(async move { serve(input, output, &admission, queue, stopping).await });
    let Some(QueuedInput::Connected { link, .. }) = inbox.recv().await else {
        panic!("joins first")
    };
    World { stdin, stdout: BufReader::new(stdout), inbox, link, stop, task }
}

impl World {
    async fn receive(&mut self) -> String {
        let Some(item) = self.inbox.recv().await else { return "nothing".to_owned() };
        match item.into_input() {
            Some(Input::Received { received, .. }) => {
                let wire::Incoming::Notification { method, .. } = received.message else {
                    panic!()
                };
                format!("{method} {}", received.bytes)
            }
            Some(Input::Malformed { malformed, .. }) => malformed.error.code.to_string(),
            Some(Input::Disconnected { .. }) => "gone".to_owned(),
            Some(_) | None => "?".to_owned(),
        }
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).await.unwrap();
        line
    }
}

fn notification_line(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

#[tokio::test(start_paused = true)]
async fn one_line_is_one_message_in_both_directions() {
    let mut world = start(1_000).await;
    let lines =
        format!("{}\r\n\n  \n{}\nnot json\n\n", notification_line("one"), notification_line("two"));
    let bytes = notification_line("one").len();
    world.stdin.write_all(lines.as_bytes()).await.unwrap();
    assert_eq!(world.receive().await, format!("one {}", bytes + 1));
    assert_eq!(world.receive().await, format!("two {bytes}"));
    assert_eq!(world.receive().await, "-32700");
    world.link.push(Frame::Text(Bytes::from_static(b"{\"a\":1}")), 0);
    world.link.push(Frame::Text(Bytes::from(vec![b'x'; 500])), 0);
    assert_eq!(world.line().await, "{\"a\":1}\n");
    assert_eq!(world.line().await, format!("{}\n", "x".repeat(500)));
}

#[tokio::test(start_paused = true)]
async fn a_line_over_the_bound_and_one_that_is_not_text_are_answered_and_skipped() {
    let mut world = start(50).await;
    let writes = async {
        world.stdin.write_all(&[b'x'; 5_000]).await.unwrap();
        world.stdin.write_all(b"\n\xFF\xFE\n").await.unwrap();
        world
            .stdin
            .write_all(format!("{}\n", notification_line("after")).as_bytes())
            .await
            .unwrap();
        world.stdin
    };
    let (reads, _stdin) = tokio::join!(
        async {
            let mut inputs = Vec::new();
            for _ in 0..3 {
                let item = world.inbox.recv().await;
                inputs.push(match item.and_then(QueuedInput::into_input) {
                    Some(Input::Malformed { malformed, .. }) => malformed.error.code,
                    Some(Input::Received { .. }) => 0,
                    _ => 1,
                });
            }
            inputs
        },
        writes
    );
    assert_eq!(reads, [-32600, -32700, 0]);
}

#[tokio::test(start_paused = true)]
async fn requests_before_the_end_of_input_are_still_answered() {
    let mut world = start(1_000).await;
    world.stdin.write_all(notification_line("last").as_bytes()).await.unwrap();
    world.stdin.shutdown().await.unwrap();
    assert!(world.receive().await.starts_with("last"), "the last line needs no newline");
    assert_eq!(world.receive().await, "gone");
    world.link.push(Frame::Text(Bytes::from_static(b"the answer")), 1_000);
    let World { mut stdout, mut inbox, link, task, .. } = world;
    drop(link);
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    assert_eq!(line, "the answer\n");
    task.await.unwrap();
    assert_eq!(stdout.read_line(&mut line).await.unwrap(), 0);
    assert!(inbox.recv().await.is_none(), "it left once");
}

#[tokio::test(start_paused = true)]
async fn a_stop_writes_pushed_frames_and_returns() {
    let mut world = start(1_000).await;
    world.link.push(Frame::Text(Bytes::from_static(b"bye")), 60_000);
    world.stop.cancel();
    assert_eq!(world.receive().await, "gone");
    assert_eq!(world.line().await, "bye\n");
    world.task.await.unwrap();
}
