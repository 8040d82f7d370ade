//! `bench askers`: many connections that ask the same thing at the same moment, read the answer and discard it.
//!
//! All connect first; `go` on standard input makes them ask; one line of JSON says when the last had its answer.
//! They stay connected until standard input ends.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Result, bail};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};

use crate::frames::{Scanner, Seen};
use crate::measure::now_ns;
use crate::protocol;
use crate::watcher::{commands, connect};

const READ_BYTES: usize = 64 * 1_024;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RequestOptions {
    #[arg(long)]
    pub address: String,
    #[arg(long)]
    pub count: usize,
    /// What each asks, with the id 2; `{n}` stands for its number.
    #[arg(long)]
    pub request: String,
    /// Introduce themselves by `initialize` first, under this and their number.
    #[arg(long)]
    pub name: Option<String>,
}

#[derive(Default)]
struct Shared {
    ready: Cell<usize>,
    answered: Cell<usize>,
    failed: Cell<usize>,
    replays: Cell<usize>,
    bytes: Cell<u64>,
    last_ns: Cell<u64>,
    changed: Notify,
}

pub(crate) fn run(options: &RequestOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, attend(options))
}

async fn attend(options: &RequestOptions) -> Result<()> {
    let shared = Rc::new(Shared::default());
    let (go, gone) = watch::channel(());
    for number in 0..options.count {
        let (options, shared, gone) = (options.clone(), shared.clone(), gone.clone());
        tokio::task::spawn_local(async move {
            if let Err(error) = ask(&options, number, &shared, gone).await {
                eprintln!("asker {number}: {error:#}");
                shared.failed.set(shared.failed.get() + 1);
                shared.changed.notify_one();
            }
        });
    }
    until(&shared, options.count, &shared.ready).await?;
    println!("{}", json!({"ready": options.count}));
    let mut commands = commands();
    if commands.recv().await.is_none() {
        return Ok(());
    }
    let began = now_ns();
    go.send(())?;
    until(&shared, options.count, &shared.answered).await?;
    println!(
        "{}",
        json!({
            "bytes": shared.bytes.get(),
            "replays": shared.replays.get(),
            "ns": shared.last_ns.get() - began,
        })
    );
    while commands.recv().await.is_some() {}
    Ok(())
}

async fn until(shared: &Shared, expected: usize, counter: &Cell<usize>) -> Result<()> {
    while counter.get() < expected {
        if shared.failed.get() > 0 {
            bail!("{} of those who ask failed", shared.failed.get());
        }
        shared.changed.notified().await;
    }
    Ok(())
}

async fn ask(
    options: &RequestOptions,
    number: usize,
    shared: &Shared,
    mut gone: watch::Receiver<()>,
) -> Result<()> {
    let (mut stream, mut buffer) = connect(&options.address, None).await?;
    let mut scanner = Scanner::new(128);
    let advance = |counter: &Cell<usize>| {
        counter.set(counter.get() + 1);
        shared.changed.notify_one();
    };
    let mut waits_for_hello = options.name.is_some();
    if let Some(name) = &options.name {
        let hello = protocol::initialize(&format!("{name}{number}"), &[]);
        stream.write_all(&protocol::frame(&hello)).await?;
    } else {
        advance(&shared.ready);
    }
    let request = options.request.replace("{n}", &number.to_string());
    let mut asked = false;
    loop {
        if !waits_for_hello && !asked {
            gone.changed().await?;
            stream.write_all(&protocol::frame(&request)).await?;
            asked = true;
        }
        let (mut closed, mut answer) = (false, None);
        let mut greeted = false;
        scanner.feed(&buffer, |seen| match seen {
            Seen::Message { head, bytes } if head.starts_with(protocol::ANSWERED) => {
                let replay = br#""result":{"type":"replay""#;
                answer = Some((bytes, head[protocol::ANSWERED.len()..].starts_with(replay)));
            }
            Seen::Message { .. } => greeted = true,
            Seen::Ping => {}
            Seen::Close => closed = true,
        });
        if std::mem::take(&mut greeted) && std::mem::take(&mut waits_for_hello) {
            advance(&shared.ready);
            buffer.clear();
            continue;
        }
        if let Some((bytes, replay)) = answer {
            shared.bytes.set(shared.bytes.get() + bytes as u64);
            shared.replays.set(shared.replays.get() + usize::from(replay));
            shared.last_ns.set(now_ns());
            advance(&shared.answered);
        }
        buffer.resize(READ_BYTES, 0);
        let count = stream.read(&mut buffer).await?;
        if count == 0 || closed {
            bail!("the server closed the connection");
        }
        buffer.truncate(count);
    }
}
