//! A server, somebody who drives it, and those who watch: what most rows need, the same for the host and for the
//! bare server.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::dial::{self, Stamp};
use crate::lab::{self, HostSetup, JournalKind, Lab};
use crate::measure::{Cpu, commits, now_ns};
use crate::process::{Process, Server};
use crate::socket::Socket;

/// Bytes of text in each delta.
pub const DELTA_BYTES: u64 = 40;
/// Watchers, where a row does not say otherwise.
pub const WATCHERS: usize = 100;

/// A stream flows for so long before it is measured, and after.
const WARM_UP: Duration = Duration::from_millis(600);

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Host(JournalKind),
    Bare,
}

impl Subject {
    pub const HOST: Self = Self::Host(JournalKind::Sqlite);

    /// A fresh server; the host on an empty data directory.
    pub fn start(self, lab: &mut Lab) -> Result<Server> {
        match self {
            Self::Host(journal) => {
                let data = lab.directory()?;
                lab.host(
                    &data,
                    HostSetup {
                        journal,
                        ..HostSetup::SHIPPED
                    },
                )
            }
            Self::Bare => lab.bare(&[]),
        }
    }

    /// The same with a model behind it: the host's native agent asks it, the bare server only relays.
    pub fn start_with_model(self, lab: &mut Lab, port: u16) -> Result<Server> {
        match self {
            Self::Host(journal) => {
                let data = lab.directory()?;
                let setup = HostSetup {
                    journal,
                    model_port: Some(port),
                    ..HostSetup::SHIPPED
                };
                lab.host(&data, setup)
            }
            Self::Bare => lab.bare(&[format!("--relay={}", lab::model_url(port))]),
        }
    }
}

pub struct Stage {
    pub server: Server,
    pub driver: Socket,
    pub chat: String,
    /// Of all sessions that were created.
    pub chats: Vec<String>,
    client_seq: u64,
}

impl Stage {
    /// Creates a session on a server.
    pub fn on(server: Server) -> Result<Self> {
        Self::with(server, "scripted", 1)
    }

    /// Creates so many sessions of an agent; the first one's chat is the one that is driven.
    pub fn with(server: Server, provider: &str, sessions: usize) -> Result<Self> {
        let mut driver = Socket::join(&server.address, "driver")?;
        let mut chats = Vec::new();
        for number in 1..=sessions {
            let session = format!("{provider}:/01900000-0000-7000-8000-{number:012}");
            let params = json!({"channel": session, "provider": provider});
            driver.request(3, "createSession", &params)?;
            chats.push(dial::chat_of(&session));
        }
        Ok(Self {
            server,
            driver,
            chat: chats.first().cloned().unwrap_or_default(),
            chats,
            client_seq: 0,
        })
    }

    /// Drives a chat that is there already.
    pub fn of(server: Server, chat: &str) -> Result<Self> {
        let driver = Socket::join(&server.address, "driver")?;
        Ok(Self {
            server,
            driver,
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
    pub fn say(&mut self, text: &str) -> Result<()> {
        self.say_in(&self.chat.clone(), text)
    }

    pub fn say_in(&mut self, chat: &str, text: &str) -> Result<()> {
        let seq = self.next_seq();
        let turn_id = format!("01900000-0000-7000-9000-{:012}-{}", seq, now_ns());
        let message = dial::turn_started(chat, seq, &turn_id, text);
        self.driver.send(&message)
    }

    pub fn stream(&mut self, chunks: u64, every_ms: u64) -> Result<()> {
        self.say(&format!("stream {chunks} {DELTA_BYTES} {every_ms}"))
    }

    /// Sends stamped drafts at a steady pace.
    pub fn stamp(&mut self, count: u32, every: Duration) -> Result<()> {
        let began = now_ns();
        let every = u64::try_from(every.as_nanos())?;
        for index in 0..count {
            let due = began + u64::from(index) * every;
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
            let seq = self.next_seq();
            let stamp = Stamp {
                index,
                sent_ns: now_ns(),
            };
            let draft = dial::stamped_draft(&self.chat, seq, stamp);
            self.driver.send(&draft)?;
        }
        self.driver.drain()
    }

    /// The seq a client has seen that has seen everything.
    pub fn seq(&mut self) -> Result<u64> {
        let params = json!({"channel": self.chat, "view": {"turns": 1}});
        let answer = self.driver.request(4, "subscribe", &params)?;
        let seq = answer["snapshot"]["fromSeq"]
            .as_u64()
            .context("no `fromSeq`")?;
        let gone = dial::notification("unsubscribe", &json!({"channel": self.chat}));
        self.driver.send(&gone)?;
        Ok(seq)
    }
}

/// How a crowd watches.
#[derive(Debug, Clone)]
pub struct Crowd {
    pub count: usize,
    pub window_ms: Option<u32>,
    pub root: bool,
    pub stamped: bool,
    /// What counts is not a frame but each of these words in it.
    pub word: Option<&'static str>,
    /// Spread over all chats of the stage instead of all watching the one that is driven.
    pub apart: bool,
    pub name: &'static str,
    pub read_bytes: usize,
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            count: WATCHERS,
            window_ms: None,
            root: false,
            stamped: false,
            word: None,
            apart: false,
            name: "w",
            read_bytes: 64 * 1_024,
        }
    }
}

/// A process full of watchers.
pub struct Watchers {
    process: Process,
    count: usize,
}

/// What all watchers together have had so far.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub frames: u64,
    pub bytes: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

impl Watchers {
    /// All of them have joined when this returns.
    pub fn join(lab: &mut Lab, stage: &Stage, crowd: &Crowd) -> Result<Self> {
        let mut arguments = vec![
            "watchers".to_owned(),
            format!("--address={}", stage.server.address),
            format!("--count={}", crowd.count),
            format!("--name={}", crowd.name),
            format!("--read-bytes={}", crowd.read_bytes),
        ];
        let chats = match crowd.apart {
            true => &stage.chats[..],
            false => std::slice::from_ref(&stage.chat),
        };
        arguments.extend(chats.iter().map(|chat| format!("--channel={chat}")));
        arguments.extend(crowd.window_ms.map(|ms| format!("--window-ms={ms}")));
        arguments.extend(crowd.root.then(|| "--root".to_owned()));
        arguments.extend(crowd.stamped.then(|| "--stamped".to_owned()));
        arguments.extend(crowd.word.map(|word| format!("--word={word}")));
        let mut process = lab.helper(&arguments)?;
        process.line().context("the watchers did not join")?;
        Ok(Self {
            process,
            count: crowd.count,
        })
    }

    /// Counts anew; [`Watchers::wait`] then waits until each has had `frames`.
    pub fn mark(&mut self, frames: u64) -> Result<Sample> {
        let answer = self.process.ask(&format!("mark {frames}"))?;
        self.sample_of(&answer)
    }

    pub fn sample(&mut self) -> Result<Sample> {
        let answer = self.process.ask("sample")?;
        self.sample_of(&answer)
    }

    pub fn wait(&mut self) -> Result<Sample> {
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
    pub fn latencies_us(&mut self) -> Result<Vec<f64>> {
        let answer = self.process.ask("stamps")?;
        self.sample_of(&answer)?;
        let partial = answer["partial"].as_u64().unwrap_or(0);
        if partial > 0 {
            bail!("{partial} stamped frames did not reach every watcher");
        }
        let latencies = answer["latencies"].as_array().context("no latencies")?;
        Ok(latencies
            .iter()
            .filter_map(Value::as_f64)
            .map(|ns| ns / 1_000.0)
            .collect())
    }
}

/// A paced stream under watch.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub every_ms: u64,
    pub window_ms: Option<u32>,
    pub seconds: Duration,
}

#[derive(Debug, Clone, Copy)]
pub struct Loaded {
    /// CPU for each frame that reached a watcher.
    pub us_per_frame: f64,
    pub journal_share: f64,
    /// Deltas a second that each watcher got.
    pub rate: f64,
    /// Deltas in a transaction; not a number where there is no journal on disk.
    pub batch: f64,
    pub frame_bytes: f64,
}

impl Load {
    /// Starts the subject, lets 100 watchers join, streams, and measures in the middle of the stream.
    pub fn run(self, lab: &mut Lab, subject: Subject) -> Result<Loaded> {
        let mut stage = Stage::on(subject.start(lab)?)?;
        let crowd = Crowd {
            window_ms: self.window_ms,
            ..Crowd::default()
        };
        let mut watchers = Watchers::join(lab, &stage, &crowd)?;
        stage.stream(self.deltas()?, self.every_ms)?;
        self.measured(&stage, &mut watchers)
    }

    /// How long a stream must be for [`Load::measured`].
    pub fn deltas(self) -> Result<u64> {
        let length = WARM_UP * 2 + self.seconds;
        Ok(u64::try_from(length.as_millis())? / self.every_ms)
    }

    /// Measures in the middle of a stream that has just been asked for.
    pub fn measured(self, stage: &Stage, watchers: &mut Watchers) -> Result<Loaded> {
        std::thread::sleep(WARM_UP);
        Loaded::during(stage, watchers, |_| {
            std::thread::sleep(self.seconds);
            Ok(())
        })
    }
}

impl Loaded {
    /// Measures while a stream flows and something passes.
    pub fn during(
        stage: &Stage,
        watchers: &mut Watchers,
        pass: impl FnOnce(&mut Watchers) -> Result<()>,
    ) -> Result<Self> {
        let data = stage.server.data.clone();
        let commits_so_far = || data.as_deref().and_then(commits);
        let (began, first, commits_before) = (now_ns(), watchers.sample()?, commits_so_far());
        let before = Cpu::of(stage.server.pid())?;
        pass(watchers)?;
        let used = Cpu::of(stage.server.pid())?.since(before);
        let (ended, last, commits_after) = (now_ns(), watchers.sample()?, commits_so_far());
        let (frames, each) = ((last.frames - first.frames) as f64, watchers.count as f64);
        let commits = match (commits_before, commits_after) {
            (Some(before), Some(after)) => f64::from(after.wrapping_sub(before)),
            _ => f64::NAN,
        };
        Ok(Self {
            us_per_frame: used.total_ns as f64 / 1_000.0 / frames,
            journal_share: used.journal_share(),
            rate: frames / each / ((ended - began) as f64 / 1e9),
            batch: frames / each / commits,
            frame_bytes: (last.bytes - first.bytes) as f64 / frames,
        })
    }
}
