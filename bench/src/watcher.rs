//! `bench watchers`: many connections that subscribe, read and discard. One thread, one process for all of them.
//!
//! Standard input takes `mark N` (count anew, and take the time when each watcher has N frames), `sample`, `wait`
//! (until all have N), `stamps`; each is answered by one line of JSON. The end of standard input is the end of the
//! process. Where frames carry a [`Stamp`], the moment at which the last watcher
//! had it is recorded; time is then taken when a frame is found in the bytes, so that waiting behind the other watchers
//! of this process counts, for every server alike.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use crate::frames::{Scanner, Seen};
use crate::measure::now_ns;
use crate::protocol::{self, STAMP_BYTES, Stamp};

const READ_BYTES: usize = 64 * 1_024;
/// What is looked at of a message, where something is looked for: a host may send several pieces in one frame.
const LOOK_BYTES: usize = 64 * 1_024;
const WAIT_MAX: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct WatchOptions {
    #[arg(long)]
    pub address: String,
    #[arg(long)]
    pub count: usize,
    /// What to watch; if it is several, each is watched by as many of them.
    #[arg(long = "channel", required = true)]
    pub channels: Vec<String>,
    /// What lets them in; if it is several, the first is for the first channel, and so on.
    #[arg(long = "token")]
    pub tokens: Vec<String>,
    /// The version they speak; if it is several, each is spoken by as many of them.
    #[arg(long = "speak", default_value = protocol::VERSION)]
    pub versions: Vec<String>,
    /// Watch the root channel too.
    #[arg(long)]
    pub root: bool,
    #[arg(long)]
    pub window_ms: Option<u32>,
    /// Client ids are this and a number.
    #[arg(long, default_value = "w")]
    pub name: String,
    /// Frames carry stamps; only those that do are counted for `mark` and `wait`.
    #[arg(long)]
    pub stamped: bool,
    /// What counts is not a frame but each of these words in it.
    #[arg(long)]
    pub word: Option<String>,
    /// What is read at a time: small where the number of watchers is large.
    #[arg(long, default_value_t = READ_BYTES)]
    pub read_bytes: usize,
}

/// What is known of one stamped frame.
#[derive(Debug, Clone, Copy, Default)]
struct Arrival {
    sent_ns: u64,
    last_ns: u64,
    seen: usize,
}

#[derive(Default)]
struct Shared {
    joined: Cell<usize>,
    closed: Cell<usize>,
    frames: Cell<u64>,
    bytes: Cell<u64>,
    /// Since the last mark.
    counts: RefCell<Vec<u64>>,
    first_ns: Cell<u64>,
    last_ns: Cell<u64>,
    target: Cell<u64>,
    reached: Cell<usize>,
    stamps: RefCell<Vec<Arrival>>,
    changed: Notify,
}

pub(crate) fn run(options: &WatchOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, attend(options))
}

async fn attend(options: &WatchOptions) -> Result<()> {
    let shared = Rc::new(Shared::default());
    shared.counts.borrow_mut().resize(options.count, 0);
    shared.target.set(u64::MAX);
    for number in 0..options.count {
        let (options, shared) = (options.clone(), shared.clone());
        tokio::task::spawn_local(async move {
            if let Err(error) = watch(&options, number, &shared).await {
                eprintln!("watcher {number}: {error:#}");
            }
            shared.closed.set(shared.closed.get() + 1);
            shared.changed.notify_one();
        });
    }
    while shared.joined.get() < options.count {
        if shared.closed.get() > 0 {
            bail!("a watcher could not join");
        }
        shared.changed.notified().await;
    }
    println!("{}", json!({"joined": options.count}));
    let mut commands = commands();
    while let Some(command) = commands.recv().await {
        println!("{}", shared.answer(&command, options).await?);
    }
    Ok(())
}

/// Lines of standard input, read by a thread that does nothing else.
pub(crate) fn commands() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(|line| line.ok()) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Connects and upgrades; also says what came behind the head of the answer.
pub(crate) async fn connect(address: &str, token: Option<&str>) -> Result<(TcpStream, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    stream.write_all(protocol::upgrade(address, token).as_bytes()).await?;
    let mut head = Vec::with_capacity(1_024);
    loop {
        if stream.read_buf(&mut head).await? == 0 {
            bail!("no answer to the upgrade");
        }
        if let Some(end) = protocol::head_end(&head) {
            if !head.starts_with(b"HTTP/1.1 101") {
                let head = String::from_utf8_lossy(&head);
                let status = head.lines().next().unwrap_or_default();
                bail!("the upgrade was refused: {status}");
            }
            return Ok((stream, head.split_off(end)));
        }
    }
}

async fn watch(options: &WatchOptions, number: usize, shared: &Shared) -> Result<()> {
    let token = options.tokens.iter().cycle().nth(number).map(String::as_str);
    let (mut stream, early) = connect(&options.address, token).await?;
    let root = if options.root { vec![protocol::root()] } else { Vec::new() };
    let version = &options.versions[number % options.versions.len()];
    let mut hello = protocol::frame(&protocol::initialize_as(
        version,
        &format!("{}{number}", options.name),
        &root,
    ));
    hello.extend(protocol::frame(&protocol::subscribe(
        &options.channels[number % options.channels.len()],
        None,
        options.window_ms,
    )));
    stream.write_all(&hello).await?;
    let mut scanner = Scanner::new(64);
    let (mut joined, mut announced) = (false, false);
    let mut stamp_at = 0;
    let mut buffer = early;
    loop {
        let (mut closed, mut pinged, mut frames, mut bytes) = (false, false, 0, 0);
        scanner.feed(&buffer, |seen| match seen {
            Seen::Message { head, .. } if !joined => joined = head.starts_with(protocol::ANSWERED),
            Seen::Message { head, bytes: size } => {
                let count = match &options.word {
                    _ if options.stamped => shared.stamp(head, &mut stamp_at),
                    Some(word) => occurrences(head, word.as_bytes()),
                    None => 1,
                };
                if count > 0 {
                    frames += count;
                    bytes += size as u64;
                }
            }
            Seen::Ping => pinged = true,
            Seen::Close => closed = true,
        });
        if joined && !announced {
            announced = true;
            shared.join();
            let looks = options.stamped || options.word.is_some();
            scanner.set_head_max(if looks { LOOK_BYTES } else { 0 });
        }
        if frames > 0 {
            shared.count(number, frames, bytes);
        }
        if closed {
            return Ok(());
        }
        if pinged {
            stream.write_all(protocol::PONG).await?;
        }
        buffer.resize(options.read_bytes, 0);
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        buffer.truncate(count);
    }
}

fn occurrences(message: &[u8], word: &[u8]) -> u64 {
    let windows = message.windows(word.len().max(1));
    windows.filter(|window| *window == word).count() as u64
}

impl Shared {
    fn join(&self) {
        self.joined.set(self.joined.get() + 1);
        self.changed.notify_one();
    }

    fn count(&self, number: usize, frames: u64, bytes: u64) {
        self.frames.set(self.frames.get() + frames);
        self.bytes.set(self.bytes.get() + bytes);
        let mut counts = self.counts.borrow_mut();
        let (before, target) = (counts[number], self.target.get());
        counts[number] += frames;
        if self.first_ns.get() == 0 {
            self.first_ns.set(now_ns());
        }
        if before < target && counts[number] >= target {
            self.reached.set(self.reached.get() + 1);
            self.last_ns.set(now_ns());
            self.changed.notify_one();
        }
    }

    /// How many stamps are in it; the first one is looked for where it was in the message before.
    fn stamp(&self, message: &[u8], at: &mut usize) -> u64 {
        let stamp = Stamp::at(message, *at).or_else(|| {
            *at = Stamp::position(message)?;
            Stamp::at(message, *at)
        });
        let Some(stamp) = stamp else { return 0 };
        self.note(stamp);
        let mut count = 1;
        let mut rest = &message[*at + STAMP_BYTES..];
        while let Some(next) = Stamp::position(rest)
            && let Some(stamp) = Stamp::at(rest, next)
        {
            self.note(stamp);
            count += 1;
            rest = &rest[next + STAMP_BYTES..];
        }
        count
    }

    fn note(&self, stamp: Stamp) {
        let mut stamps = self.stamps.borrow_mut();
        let index = stamp.index as usize;
        if stamps.len() <= index {
            stamps.resize(index + 1, Arrival::default());
        }
        let arrival = &mut stamps[index];
        arrival.sent_ns = stamp.sent_ns;
        arrival.last_ns = now_ns();
        arrival.seen += 1;
    }

    async fn answer(&self, command: &str, options: &WatchOptions) -> Result<Value> {
        let (word, number) = command.split_once(' ').unwrap_or((command, ""));
        Ok(match word {
            "mark" => {
                self.counts.borrow_mut().fill(0);
                self.first_ns.set(0);
                self.last_ns.set(0);
                self.reached.set(0);
                self.target.set(number.parse()?);
                self.stamps.borrow_mut().clear();
                self.sample()
            }
            "sample" => self.sample(),
            "wait" => {
                let all = async {
                    while self.reached.get() + self.closed.get() < options.count {
                        self.changed.notified().await;
                    }
                };
                let in_time = tokio::time::timeout(WAIT_MAX, all).await.is_ok();
                let mut sample = self.sample();
                sample["complete"] = json!(in_time && self.closed.get() == 0);
                sample
            }
            "stamps" => {
                let stamps = self.stamps.borrow();
                let each = options.count / options.channels.len();
                let whole = stamps.iter().filter(|arrival| arrival.seen == each);
                let latencies: Vec<u64> =
                    whole.map(|arrival| arrival.last_ns.saturating_sub(arrival.sent_ns)).collect();
                let partial = stamps.len() - latencies.len();
                json!({"latencies": latencies, "partial": partial, "closed": self.closed.get()})
            }
            _ => bail!("unknown command `{command}`"),
        })
    }

    fn sample(&self) -> Value {
        json!({
            "frames": self.frames.get(),
            "bytes": self.bytes.get(),
            "firstNs": self.first_ns.get(),
            "lastNs": self.last_ns.get(),
            "closed": self.closed.get(),
        })
    }
}
