//! 100 clients come back at once, each having missed 1,000 actions of a chat: CPU of the host for all of them.
//!
//! From the tail in memory, against a server that sends as many bytes it has ready; after a restart, against a server
//! that does one indexed scan for each client and sends what it found. Each is measured on a short log and on one ten
//! times as long, of the same chat. Connections are made before the measuring begins; the restarted host has just
//! become ready and has nothing in memory.
//!
//! A floor with one scan for all clients together would be lower; it stands in a note.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{median_of, values};
use crate::driver::{Driver, WATCHERS, WatcherOptions, Watchers};
use crate::harness::{Harness, HostSetup};
use crate::measure::{Cpu, median, spread};
use crate::process::Server;
use crate::protocol;
use crate::seed_data::{Seeder, Shape};
use crate::table::Figure;

const MISSED: u64 = 1_000;
const SHORT_LOG: u32 = 10_000;
const LONG_LOG: u32 = 100_000;
/// Times that all come back in one round; the median counts.
const BURSTS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Tail(u32),
    Restarted(u32),
    Cached,
    Scanned,
}

/// A journal whose clients have missed something.
struct Past {
    data: PathBuf,
    chat: String,
    chat_id: u64,
    last_seen: u64,
}

/// What 100 reconnects cost.
struct Back {
    us: f64,
    reply_bytes: f64,
}

/// What the subjects come back to.
struct Pasts {
    /// Hosts that still have everything in memory.
    tails: Vec<(u32, Past, Server)>,
    /// Journals whose host was killed.
    stopped: Vec<(u32, Past)>,
    reply_bytes: usize,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let mut pasts = Pasts { tails: Vec::new(), stopped: Vec::new(), reply_bytes: 0 };
    for log in [SHORT_LOG, LONG_LOG] {
        let (past, server) = prepare(harness, log)?;
        let reply = come_back(harness, &past, &server)?.reply_bytes;
        pasts.reply_bytes = reply as usize;
        pasts.tails.push((log, past, server));
        let (past, server) = prepare(harness, log)?;
        drop(server);
        pasts.stopped.push((log, past));
    }
    let subjects = [
        Who::Tail(SHORT_LOG),
        Who::Tail(LONG_LOG),
        Who::Restarted(SHORT_LOG),
        Who::Restarted(LONG_LOG),
        Who::Cached,
        Who::Scanned,
    ];
    let results = harness.shuffled(&subjects, |harness, who| {
        let mut backs = Vec::new();
        for _ in 0..BURSTS {
            backs.push(pasts.once(harness, who)?);
        }
        let of = |value: fn(&Back) -> f64| median(&backs.iter().map(value).collect::<Vec<_>>());
        Ok(Back { us: of(|back| back.us), reply_bytes: of(|back| back.reply_bytes) })
    })?;
    Ok(figures(&results))
}

impl Pasts {
    fn once(&self, harness: &mut Harness, who: Who) -> Result<Back> {
        let stopped = |log: u32| self.stopped.iter().find(|past| past.0 == log);
        match who {
            Who::Tail(log) => {
                let tail = self.tails.iter().find(|tail| tail.0 == log);
                let (_, past, server) = tail.context("no such log")?;
                come_back(harness, past, server)
            }
            Who::Restarted(log) => {
                let (_, past) = stopped(log).context("no such log")?;
                let server = harness.host(&past.data, HostSetup::SHIPPED)?;
                come_back(harness, past, &server)
            }
            Who::Cached => {
                let (_, past) = stopped(SHORT_LOG).context("no such log")?;
                let server = harness.bare(&[format!("--replay-bytes={}", self.reply_bytes)])?;
                come_back(harness, past, &server)
            }
            Who::Scanned => {
                let (_, past) = stopped(SHORT_LOG).context("no such log")?;
                let scan = format!("--scan={}", past.data.display());
                let server = harness.bare(&[scan, format!("--chat-id={}", past.chat_id)])?;
                come_back(harness, past, &server)
            }
        }
    }
}

fn figures(results: &[(Who, Back)]) -> Vec<Figure> {
    let of = |who| median_of(results, who, |back| back.us);
    let rounds = |who| spread(&values(results, who, |back| back.us / 1_000.0));
    let (tail, restarted) = (Who::Tail(SHORT_LOG), Who::Restarted(SHORT_LOG));
    let (long_tail, long_restarted) = (Who::Tail(LONG_LOG), Who::Restarted(LONG_LOG));
    let bytes = median_of(results, tail, |back| back.reply_bytes);
    let figure = |what: &str, who: Who, floor: Who, factor: f64| {
        let (host, least) = (of(who) / 1_000.0, of(floor) / 1_000.0);
        Figure::at_most(what, "ms", host, least, factor).note(format!(
            "rounds: {} against {}",
            rounds(who),
            rounds(floor)
        ))
    };
    vec![
        figure("100 reconnects from the tail, against cached bytes", tail, Who::Cached, 2.0)
            .note(format!("{bytes:.0} bytes a reply")),
        figure("100 reconnects after a restart, against scans", restarted, Who::Scanned, 2.0).note(
            format!("against one scan for all, nearly: {:.2}", of(restarted) / of(Who::Cached)),
        ),
        figure("from the tail, log ten times longer", long_tail, tail, 1.1),
        figure("after a restart, log ten times longer", long_restarted, restarted, 1.1),
    ]
}

/// A chat with a log; 100 clients watch it and leave; then a turn of 1,000 actions happens without them.
fn prepare(harness: &mut Harness, log: u32) -> Result<(Past, Server)> {
    let data = harness.directory()?;
    let mut seeder = Seeder::open(&data)?;
    let seeded = seeder.session("past", Shape { turns: 5, turn_bytes: 400, actions: log })?;
    seeder.finish()?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    let mut driver = Driver::of(server, &seeded.chat)?;
    let options = WatcherOptions { root: true, name: "r", ..WatcherOptions::default() };
    drop(Watchers::join(harness, &driver, &options)?);
    let last_seen = driver.seq()?;
    let mut witness = Watchers::join(
        harness,
        &driver,
        &WatcherOptions { count: 1, ..WatcherOptions::default() },
    )?;
    witness.mark(MISSED)?;
    // The turn, its part, and its end are actions too.
    driver.stream(MISSED - 3, 0)?;
    witness.wait()?;
    let past = Past { data, chat: seeded.chat, chat_id: seeded.chat_id, last_seen };
    Ok((past, driver.server))
}

fn come_back(harness: &mut Harness, past: &Past, server: &Server) -> Result<Back> {
    let subscriptions = [protocol::root(), past.chat.clone()];
    let mut options = harness.child(&[
        "askers".to_owned(),
        format!("--address={}", server.address),
        format!("--count={WATCHERS}"),
        format!("--request={}", protocol::reconnect("r{n}", past.last_seen, &subscriptions)),
    ])?;
    options.line()?;
    std::thread::sleep(Duration::from_millis(50));
    let before = Cpu::of(server.pid())?;
    let answer = options.ask("go")?;
    std::thread::sleep(Duration::from_millis(10));
    let used = Cpu::of(server.pid())?.since(before);
    let replays = answer["replays"].as_u64();
    if server.data.is_some() && replays != Some(WATCHERS as u64) {
        bail!("{replays:?} of {WATCHERS} reconnects were answered by a replay");
    }
    let bytes = answer["bytes"].as_f64().unwrap_or(0.0) / WATCHERS as f64;
    drop(options);
    // The host notices that they are gone before they come again.
    std::thread::sleep(Duration::from_millis(200));
    Ok(Back { us: used.total_ns as f64 / 1_000.0, reply_bytes: bytes })
}
