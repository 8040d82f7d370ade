//! One client on standard input and output: one JSON-RPC message a line.
//!
//! Promises: no line in the output holds another; an input line over `frame_in_bytes` is answered and skipped, not
//! buffered; the end of the input is a graceful stop: what was asked before it is still answered (G-31).
//! Must not know: what messages mean. There is no token here: who started the process is the client.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kernel::{Input, PeerId, Role};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wire::rpc::{Malformed, code};
use wire::{Id, RpcError};

use super::admission::Admission;
use super::inbound::InboundPermit;
use super::outbox::{CloseUrgency, Outbox, ReadDecision};
use super::read_buffer::READ_BUFFER_BYTES;
use super::reader::{decode_input, measure};
use super::registration::{KernelGone, PeerRegistration};
use super::text_run::LinkItem;
use super::ws::frame::close;
use crate::kernel_queue::KernelQueue;

/// What is written at a time, so that the progress of a large message shows.
const WRITE_BYTES: usize = 64 * 1_024;

/// Serves the one client until its input ends, the host closes it or `stop`; then what was pushed to it is written,
/// for at most `shutdown_ms`.
pub async fn serve<R, W>(
    input: R,
    output: W,
    admission: &Admission,
    queue: KernelQueue,
    stop: CancellationToken,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let limits = &admission.limits;
    let outbox = Arc::new(Outbox::new(limits.outbox_frames_max, limits.outbox_bytes_max));
    let peer = admission.next_peer();
    let registered = PeerRegistration::register(queue, peer, Role::Owner, &outbox, None).await;
    let Ok(mut registration) = registered else {
        return; // the host is going down
    };
    let mut writing = pin!(write(output, &outbox));
    let reading = async {
        let read = read(input, admission, &outbox, &registration).await;
        registration.unregister().await;
        read
    };
    tokio::select! {
        () = stop.cancelled() => {
            outbox.end(close::GOING_AWAY, "", CloseUrgency::AfterQueue);
        }
        _ = reading => {}
        _ = &mut writing => return,
    }
    registration.unregister().await;
    // The kernel's task drops its link when it learns of the end, and that ends the outbox behind the answers. A
    // client that does not read them in time goes without.
    let _ = timeout(Duration::from_millis(limits.shutdown_ms), writing).await;
}

async fn write<W: AsyncWrite + Unpin>(mut output: W, outbox: &Outbox) -> io::Result<()> {
    let mut timer = None;
    loop {
        let mut items: Vec<LinkItem> = Vec::new();
        let taken = poll_fn(|context| outbox.poll_take(context, &mut items, &mut timer)).await;
        let mut progress = WriteProgress { outbox, left: items.iter().map(LinkItem::bytes).sum() };
        for item in items {
            match item {
                LinkItem::Frame(frame) => {
                    write_line(&mut output, &frame.pieces(), &mut progress).await?;
                }
                LinkItem::Run(run) => {
                    for text in run.texts() {
                        let pieces = std::slice::from_ref(text);
                        write_line(&mut output, pieces, &mut progress).await?;
                    }
                }
            }
        }
        output.flush().await?;
        if taken.ending.is_some() {
            return Ok(());
        }
    }
}

/// What is left of what the writer took.
struct WriteProgress<'a> {
    outbox: &'a Outbox,
    left: usize,
}

async fn write_line<W: AsyncWrite + Unpin>(
    output: &mut W,
    pieces: &[Bytes],
    progress: &mut WriteProgress<'_>,
) -> io::Result<()> {
    for chunk in pieces.iter().flat_map(|piece| piece.chunks(WRITE_BYTES)) {
        output.write_all(chunk).await?;
        progress.left = progress.left.saturating_sub(chunk.len());
        progress.outbox.record_progress(progress.left);
    }
    output.write_all(b"\n").await
}

async fn read<R: AsyncRead + Unpin>(
    mut input: R,
    admission: &Admission,
    outbox: &Outbox,
    registration: &PeerRegistration,
) -> Result<(), KernelGone> {
    let mut lines = LineSplitter::new(admission.limits.frame_in_bytes);
    let mut chunk = vec![0; READ_BUFFER_BYTES];
    let take = async |line: StdioLine| match line.into_input(registration.peer(), admission).await {
        Some(input) => registration.send(input).await,
        None => Ok(()),
    };
    loop {
        if poll_fn(|context| outbox.poll_may_read(context)).await == ReadDecision::Stop {
            return Ok(());
        }
        let count = input.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return take(lines.finish()).await;
        }
        let mut bytes = &chunk[..count];
        while let Some(line) = lines.next(&mut bytes) {
            take(line).await?;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum StdioLine {
    Whole(Vec<u8>),
    TooLong,
}

impl StdioLine {
    /// `None` for a line of nothing.
    async fn into_input(self, peer: PeerId, admission: &Admission) -> Option<Input> {
        let refuse = |code, message: String| {
            let malformed = Malformed { id: Id::Null, error: RpcError::new(code, message) };
            Some(Input::Malformed { peer, malformed })
        };
        let limits = &admission.limits;
        match self {
            Self::Whole(bytes) if bytes.trim_ascii().is_empty() => None,
            Self::Whole(bytes) => match String::from_utf8(bytes) {
                Ok(text) => {
                    let (text, measure) = measure(text).await;
                    let room = InboundPermit::default();
                    let room = admission.room.inbound.admit(room, text.len(), measure).await;
                    Some(decode_input(peer, text, measure, room, admission).await)
                }
                Err(_) => refuse(code::PARSE_ERROR, "not UTF-8".to_owned()),
            },
            Self::TooLong => {
                let message = format!("a message has at most {} bytes", limits.frame_in_bytes);
                refuse(code::INVALID_REQUEST, message)
            }
        }
    }
}

/// Cuts bytes into lines and buffers at most one unfinished line within the bound.
struct LineSplitter {
    bytes_max: usize,
    line: Vec<u8>,
    too_long: bool,
}

impl LineSplitter {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, line: Vec::new(), too_long: false }
    }

    fn next(&mut self, bytes: &mut &[u8]) -> Option<StdioLine> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if self.too_long || self.line.len() + part.len() > self.bytes_max {
            self.too_long = true;
            self.line = Vec::new();
        } else {
            self.line.extend_from_slice(part);
        }
        *bytes = rest.get(1..).unwrap_or(&[]);
        end.map(|_| self.finish())
    }

    fn finish(&mut self) -> StdioLine {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.too_long) { StdioLine::TooLong } else { StdioLine::Whole(line) }
    }
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
