//! A client that drives a server, and those who watch it: what most rows need, the same for the host and for the bare
//! server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::harness::{self, Harness, HostSetup, JournalKind};
use crate::measure::{Cpu, commits, now_ns};
use crate::process::{Process, Server};
use crate::protocol::{self, Stamp};
use crate::socket::Socket;
use crate::wire_format::WireFormat;

/// Bytes of text in each delta.
pub(crate) const DELTA_BYTES: u64 = 40;
/// Watchers, where a row does not say otherwise.
pub(crate) const WATCHERS: usize = 100;

/// A stream flows for so long before it is measured, and after.
const WARM_UP: Duration = Duration::from_millis(600);

/// Longer than the end of a turn takes that has said all.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Host(JournalKind),
    Bare,
}

impl Subject {
    pub(crate) const HOST: Self = Self::Host(JournalKind::Sqlite);

    /// A fresh server; the host on an empty data directory.
    pub(crate) fn start(self, harness: &mut Harness) -> Result<Server> {
        match self {
            Self::Host(journal) => {
                let data = harness.directory()?;
                harness.host(&data, HostSetup { journal, ..HostSetup::SHIPPED })
            }
            Self::Bare => harness.bare(&[]),
        }
    }

    /// The same with a model behind it: the host's native agent asks it, the bare server only relays.
    pub(crate) fn start_with_model(self, harness: &mut Harness, port: u16) -> Result<Server> {
        self.start_with_model_over(harness, port, WireFormat::Chat)
    }

    /// The same in a wire format.
    pub(crate) fn start_with_model_over(
        self,
        harness: &mut Harness,
        port: u16,
        wire: WireFormat,
    ) -> Result<Server> {
        match self {
            Self::Host(journal) => {
                let data = harness.directory()?;
                let setup =
                    HostSetup { journal, model_port: Some(port), wire, ..HostSetup::SHIPPED };
                harness.host(&data, setup)
            }
            Self::Bare => {
                let (wire, url) = (wire.name(), harness::model_url(port));
                harness.bare(&[format!("--relay={wire}+{url}")])
            }
        }
    }
}

/// What the sessions of a driver are called, from 1 on.
pub(crate) fn session_of(provider: &str, number: usize) -> String {
    format!("{provider}:/01900000-0000-7000-8000-{number:012}")
}

pub(crate) struct Driver {
    pub server: Server,
    pub socket: Socket,
    pub chat: String,
    /// Of all sessions that were created.
    pub chats: Vec<String>,
    client_seq: u64,
}

impl Driver {
    /// Creates a session on a server.
    pub(crate) fn on(server: Server) -> Result<Self> {
        Self::with(server, "scripted", 1)
    }

    /// Creates so many sessions of an agent; the first one's chat is the one that is driven.
    pub(crate) fn with(server: Server, provider: &str, sessions: usize) -> Result<Self> {
        let mut socket = Socket::join(&server.address, "driver")?;
        let mut chats = Vec::new();
        for number in 1..=sessions {
            let session = session_of(provider, number);
            let params = json!({"channel": session, "provider": provider});
            socket.request(3, "createSession", &params)?;
            chats.push(protocol::chat_of(&session));
        }
        Ok(Self {
            server,
            socket,
            chat: chats.first().cloned().unwrap_or_default(),
            chats,
            client_seq: 0,
        })
    }

    /// Drives a chat that is there already.
    pub(crate) fn of(server: Server, chat: &str) -> Result<Self> {
        let socket = Socket::join(&server.address, "driver")?;
        Ok(Self {
            server,
            socket,
            chat: chat.to_owned(),
            chats: vec![chat.to_owned()],
            client_seq: 0,
        })
    }

    fn next_seq(&mut self) -> u64 {
        self.client_seq += 1;
        self.client_seq
    }

    /// Starts a turn.
    pub(crate) fn send_message(&mut self, text: &str) -> Result<()> {
        self.send_message_in(&self.chat.clone(), text)
    }

    pub(crate) fn send_message_in(&mut self, chat: &str, text: &str) -> Result<()> {
        self.start_turn_in(chat, text).map(drop)
    }

    /// Starts a turn; its id.
    pub(crate) fn start_turn_in(&mut self, chat: &str, text: &str) -> Result<String> {
        let seq = self.next_seq();
        let turn_id = format!("01900000-0000-7000-9000-{:012}-{}", seq, now_ns());
        let message = protocol::turn_started(chat, seq, &turn_id, text);
        self.socket.send(&message)?;
        Ok(turn_id)
    }

    /// Waits until no turn runs in a chat of the host.
    pub(crate) fn await_idle(&mut self, chat: &str) -> Result<()> {
        let deadline = std::time::Instant::now() + IDLE_MAX;
        loop {
            if is_idle(&mut self.socket, chat)? {
                return self.socket.drain();
            }
            if std::time::Instant::now() > deadline {
                bail!("a turn does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Cancels a turn of the chat that is driven.
    pub(crate) fn cancel_turn(&mut self, turn_id: &str) -> Result<()> {
        let seq = self.next_seq();
        let action = json!({"type": "chat/turnCancelled", "turnId": turn_id, "duration": 1});
        let message = protocol::dispatch(&self.chat.clone(), seq, &action);
        self.socket.send(&message)
    }

    pub(crate) fn stream(&mut self, chunks: u64, every_ms: u64) -> Result<()> {
        self.send_message(&format!("stream {chunks} {DELTA_BYTES} {every_ms}"))
    }

    /// Sends stamped drafts at a steady pace.
    pub(crate) fn stamp(&mut self, count: u32, every: Duration) -> Result<()> {
        send_stamps(&mut self.socket, &self.chat, &mut self.client_seq, count, every)
    }

    /// The seq a client has seen that has seen everything.
    pub(crate) fn seq(&mut self) -> Result<u64> {
        let params = json!({"channel": self.chat, "view": {"turns": 1}});
        let answer = self.socket.request(4, "subscribe", &params)?;
        let seq = answer["snapshot"]["fromSeq"].as_u64().context("no `fromSeq`")?;
        let gone = protocol::notification("unsubscribe", &json!({"channel": self.chat}));
        self.socket.send(&gone)?;
        Ok(seq)
    }
}

/// Whether no turn runs in a chat.
pub(crate) fn is_idle(socket: &mut Socket, chat: &str) -> Result<bool> {
    let params = json!({"channel": chat, "view": {"turns": 1}});
    let answer = socket.request(4, "subscribe", &params)?;
    let gone = protocol::notification("unsubscribe", &json!({"channel": chat}));
    socket.send(&gone)?;
    Ok(answer["snapshot"]["state"]["activeTurn"].is_null())
}

/// Sends so many stamped drafts at a steady pace, and counts them.
pub(crate) fn send_stamps(
    socket: &mut Socket,
    chat: &str,
    client_seq: &mut u64,
    count: u32,
    every: Duration,
) -> Result<()> {
    let began = now_ns();
    let every = u64::try_from(every.as_nanos())?;
    for index in 0..count {
        let due = began + u64::from(index) * every;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
        *client_seq += 1;
        let stamp = Stamp { index, sent_ns: now_ns() };
        socket.send(&protocol::stamped_draft(chat, *client_seq, stamp))?;
    }
    socket.drain()
}

/// Where watchers connect, and what they watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchedPlace<'a> {
    pub address: &'a str,
    /// If it is several, each is watched by as many of them.
    pub chats: &'a [String],
    /// What lets them in: none, or one for each chat.
    pub tokens: &'a [String],
}

/// How watchers watch.
#[derive(Debug, Clone)]
pub(crate) struct WatcherOptions {
    pub count: usize,
    pub window_ms: Option<u32>,
    pub root: bool,
    pub stamped: bool,
    /// What counts is not a frame but each of these words in it.
    pub word: Option<&'static str>,
    /// Spread over all chats of the driver instead of all watching the one that is driven.
    pub apart: bool,
    pub name: &'static str,
    /// Spoken by as many of them each.
    pub versions: &'static [&'static str],
    pub read_bytes: usize,
}

impl WatcherOptions {
    /// So many watchers of frames that carry stamps.
    pub(crate) fn stamped(count: usize) -> Self {
        Self { count, stamped: true, ..Self::default() }
    }
}

impl Default for WatcherOptions {
    fn default() -> Self {
        Self {
            count: WATCHERS,
            window_ms: None,
            root: false,
            stamped: false,
            word: None,
            apart: false,
            name: "w",
            versions: &[protocol::VERSION],
            read_bytes: 64 * 1_024,
        }
    }
}

/// A process full of watchers.
pub(crate) struct Watchers {
    process: Process,
    count: usize,
}

/// What all watchers together have had so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub frames: u64,
    pub bytes: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Watchers {
    /// All of them have joined when this returns.
    pub(crate) fn join(
        harness: &mut Harness,
        driver: &Driver,
        options: &WatcherOptions,
    ) -> Result<Self> {
        let chats =
            if options.apart { &driver.chats[..] } else { std::slice::from_ref(&driver.chat) };
        let place = WatchedPlace { address: &driver.server.address, chats, tokens: &[] };
        Self::join_at(harness, place, options)
    }

    /// The same at any place.
    pub(crate) fn join_at(
        harness: &mut Harness,
        place: WatchedPlace<'_>,
        options: &WatcherOptions,
    ) -> Result<Self> {
        let mut arguments = vec![
            "watchers".to_owned(),
            format!("--address={}", place.address),
            format!("--count={}", options.count),
            format!("--name={}", options.name),
            format!("--read-bytes={}", options.read_bytes),
        ];
        let (chats, tokens) = (place.chats.iter(), place.tokens.iter());
        arguments.extend(chats.map(|chat| format!("--channel={chat}")));
        arguments.extend(tokens.map(|token| format!("--token={token}")));
        let versions = options.versions.iter();
        arguments.extend(versions.map(|version| format!("--speak={version}")));
        arguments.extend(options.window_ms.map(|ms| format!("--window-ms={ms}")));
        arguments.extend(options.root.then(|| "--root".to_owned()));
        arguments.extend(options.stamped.then(|| "--stamped".to_owned()));
        arguments.extend(options.word.map(|word| format!("--word={word}")));
        let mut process = harness.child(&arguments)?;
        process.line().context("the watchers did not join")?;
        Ok(Self { process, count: options.count })
    }

    /// Counts anew; [`Watchers::wait`] then waits until each has had `frames`.
    pub(crate) fn mark(&mut self, frames: u64) -> Result<Sample> {
        let answer = self.process.ask(&format!("mark {frames}"))?;
        self.sample_of(&answer)
    }

    pub(crate) fn sample(&mut self) -> Result<Sample> {
        let answer = self.process.ask("sample")?;
        self.sample_of(&answer)
    }

    pub(crate) fn wait(&mut self) -> Result<Sample> {
        let answer = self.process.ask("wait")?;
        let sample = self.sample_of(&answer)?;
        if answer["complete"] != true {
            bail!("the watchers did not get all they were waiting for");
        }
        Ok(sample)
    }

    fn sample_of(&self, answer: &Value) -> Result<Sample> {
        let closed = answer["closed"].as_u64().unwrap_or(0);
        if closed > 0 {
            bail!("{closed} of {} watchers were cut", self.count);
        }
        let number = |name: &str| answer[name].as_u64().unwrap_or(0);
        Ok(Sample {
            frames: number("frames"),
            bytes: number("bytes"),
            first_ns: number("firstNs"),
            last_ns: number("lastNs"),
        })
    }

    /// Microseconds from the sending of each stamped frame until the last watcher had it.
    pub(crate) fn latencies_us(&mut self) -> Result<Vec<f64>> {
        let answer = self.process.ask("stamps")?;
        self.sample_of(&answer)?;
        let partial = answer["partial"].as_u64().unwrap_or(0);
        if partial > 0 {
            bail!("{partial} stamped frames did not reach every watcher");
        }
        let latencies = answer["latencies"].as_array().context("no latencies")?;
        Ok(latencies.iter().filter_map(Value::as_f64).map(|ns| ns / 1_000.0).collect())
    }
}

/// A paced stream under watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub every_ms: u64,
    pub window_ms: Option<u32>,
    pub seconds: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadResult {
    /// CPU for each frame that reached a watcher.
    pub us_per_frame: f64,
    pub kernel_share: f64,
    /// Deltas a second that each watcher got.
    pub rate: f64,
    /// Deltas in a transaction; not a number where there is no journal on disk.
    pub batch: f64,
    pub frame_bytes: f64,
}

impl Load {
    /// Starts the subject, lets 100 watchers join, streams, and measures in the middle of the stream.
    pub(crate) fn run(self, harness: &mut Harness, subject: Subject) -> Result<LoadResult> {
        let mut driver = Driver::on(subject.start(harness)?)?;
        let options = WatcherOptions { window_ms: self.window_ms, ..WatcherOptions::default() };
        let mut watchers = Watchers::join(harness, &driver, &options)?;
        driver.stream(self.deltas()?, self.every_ms)?;
        self.measure(&driver, &mut watchers)
    }

    /// How long a stream must be for [`Load::measure`].
    pub(crate) fn deltas(self) -> Result<u64> {
        let length = WARM_UP * 2 + self.seconds;
        Ok(u64::try_from(length.as_millis())? / self.every_ms)
    }

    /// Measures in the middle of a stream that has just been asked for.
    pub(crate) fn measure(self, driver: &Driver, watchers: &mut Watchers) -> Result<LoadResult> {
        std::thread::sleep(WARM_UP);
        LoadResult::measure_during(driver, watchers, |_| {
            std::thread::sleep(self.seconds);
            Ok(())
        })
    }
}

impl LoadResult {
    /// Measures while a stream flows and something passes.
    pub(crate) fn measure_during(
        driver: &Driver,
        watchers: &mut Watchers,
        pass: impl FnOnce(&mut Watchers) -> Result<()>,
    ) -> Result<Self> {
        let data = driver.server.data.clone();
        let commits_so_far = || data.as_deref().and_then(commits);
        let (began, first, commits_before) = (now_ns(), watchers.sample()?, commits_so_far());
        let before = Cpu::of(driver.server.pid())?;
        pass(watchers)?;
        let used = Cpu::of(driver.server.pid())?.since(before);
        let (ended, last, commits_after) = (now_ns(), watchers.sample()?, commits_so_far());
        let (frames, each) = ((last.frames - first.frames) as f64, watchers.count as f64);
        let commits = match (commits_before, commits_after) {
            (Some(before), Some(after)) => f64::from(after.wrapping_sub(before)),
            _ => f64::NAN,
        };
        Ok(Self {
            us_per_frame: used.total_ns as f64 / 1_000.0 / frames,
            kernel_share: used.kernel_share(),
            rate: frames / each / ((ended - began) as f64 / 1e9),
            batch: frames / each / commits,
            frame_bytes: (last.bytes - first.bytes) as f64 / frames,
        })
    }
}
