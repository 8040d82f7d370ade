//! Opening a chat of 5 MB in full: warm, cold, and by fifty at once.
//!
//! An opening is one `subscribe` and the reading of its answer, on a connection that is there already: what both
//! sides would pay alike for connecting is left out. "Cold" means that the chat is not in the host's memory (it is
//! configured to let channels go after a moment); the file is in the system's cache for both sides, so that reading
//! costs the same CPU each time. Both sides of a pair pause equally between openings: after a pause the same work
//! costs a processor more.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use super::{median_of, values};
use crate::affinity::SeparateProcessors;
use crate::harness::{Harness, HostSetup};
use crate::measure::{Cpu, median, rss_anon_kib, spread};
use crate::process::Server;
use crate::protocol;
use crate::seed_data::{Seeded, Seeder, Shape};
use crate::socket::Socket;
use crate::table::Figure;

const TURNS: u32 = 250;
const TURN_BYTES: usize = 20_000;
pub(super) const CHAT_BYTES: usize = TURNS as usize * TURN_BYTES;

const AT_ONCE: usize = 50;
const IDLE_MS: u64 = 100;
/// Longer than the host takes to let go of a channel.
const UNTIL_COLD: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    Warm,
    Cached,
    Cold,
    FromRows,
}

/// A journal that holds a chat of 5 MB.
pub(super) fn big_chat(data: &Path) -> Result<Seeded> {
    let mut seeder = Seeder::open(data)?;
    let shape = Shape { turns: TURNS, turn_bytes: TURN_BYTES, actions: 0 };
    let seeded = seeder.session("big", shape)?;
    seeder.finish()?;
    Ok(seeded)
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let data = harness.directory()?;
    let seeded = big_chat(&data)?;
    let subjects = [Opened::Warm, Opened::Cached, Opened::Cold, Opened::FromRows];
    let results =
        harness.shuffled(&subjects, |harness, who| measure(harness, who, &data, &seeded))?;
    let figure = |what: &str, host: Opened, floor: Opened| {
        let (cost, least) = (|us: &f64| *us, |us: &f64| *us);
        let figures = (median_of(&results, host, cost), median_of(&results, floor, least));
        Figure::at_most(what, "us", figures.0, figures.1, 2.0).note(format!(
            "rounds: host {}, floor {}",
            spread(&values(&results, host, cost)),
            spread(&values(&results, floor, least)),
        ))
    };
    let warm = figure("5 MB warm: CPU against sending cached bytes", Opened::Warm, Opened::Cached);
    let cold = figure("5 MB cold: CPU against reading the rows", Opened::Cold, Opened::FromRows);
    Ok(vec![warm, cold, at_once(harness, &data, &seeded)?])
}

/// Microseconds of CPU for one opening.
fn measure(harness: &mut Harness, who: Opened, data: &Path, seeded: &Seeded) -> Result<f64> {
    let big = format!("--big={}", seeded.chat);
    let setup =
        HostSetup { idle_ms: (who == Opened::Cold).then_some(IDLE_MS), ..HostSetup::SHIPPED };
    let server = match who {
        Opened::Warm | Opened::Cold => harness.host(data, setup)?,
        Opened::Cached => harness.bare(&[format!("--big-bytes={CHAT_BYTES}"), big])?,
        Opened::FromRows => {
            let rows = format!("--rows={}", data.display());
            harness.bare(&[rows, format!("--chat-id={}", seeded.chat_id), big])?
        }
    };
    let (count, pause) = match who {
        Opened::Warm | Opened::Cached => (if harness.quick { 20 } else { 60 }, Duration::ZERO),
        Opened::Cold | Opened::FromRows => (if harness.quick { 5 } else { 12 }, UNTIL_COLD),
    };
    openings(&server, &seeded.chat, None, count, pause, CHAT_BYTES)
}

/// Opens a chat some times on one connection and says what an opening cost, in microseconds of CPU: the median of
/// single ones if there is a pause between them, else all together. The first two are not counted.
pub(super) fn openings(
    server: &Server,
    chat: &str,
    view_turns: Option<u32>,
    count: usize,
    pause: Duration,
    bytes_least: usize,
) -> Result<f64> {
    let _apart = SeparateProcessors::from(server.pid())?;
    let mut socket = Socket::join(&server.address, "opener")?;
    let request = protocol::subscribe(chat, view_turns, None);
    let mut open = || -> Result<()> {
        let bytes = socket.ask_and_discard(&request)?;
        if bytes < bytes_least {
            bail!("an opening brought {bytes} bytes");
        }
        Ok(())
    };
    // What is still done after the last byte was handed over belongs to an opening.
    let settle = || std::thread::sleep(Duration::from_millis(5));
    let us_since = |before: Cpu| -> Result<f64> {
        Ok(Cpu::of(server.pid())?.since(before).total_ns as f64 / 1_000.0)
    };
    for _ in 0..2 {
        open()?;
    }
    settle();
    if pause.is_zero() {
        let before = Cpu::of(server.pid())?;
        for _ in 0..count {
            open()?;
        }
        settle();
        return Ok(us_since(before)? / count as f64);
    }
    let mut costs = Vec::new();
    for _ in 0..count {
        std::thread::sleep(pause);
        let before = Cpu::of(server.pid())?;
        open()?;
        settle();
        costs.push(us_since(before)?);
    }
    Ok(median(&costs))
}

/// The most memory that fifty openings of a cold chat at the same moment add, in KiB.
fn at_once(harness: &mut Harness, data: &Path, seeded: &Seeded) -> Result<Figure> {
    let results = harness.shuffled(&[()], |harness, ()| {
        let server = harness.host(data, HostSetup::SHIPPED)?;
        let pid = server.pid();
        let mut options = harness.child(&[
            "askers".to_owned(),
            format!("--address={}", server.address),
            format!("--count={AT_ONCE}"),
            "--name=o".to_owned(),
            format!("--request={}", protocol::subscribe(&seeded.chat, None, None)),
        ])?;
        options.line()?;
        let before = rss_anon_kib(pid)?;
        let (over, most) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| -> Result<()> {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    most.fetch_max(rss_anon_kib(pid).unwrap_or(0), Ordering::AcqRel);
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
            let answered = options.ask("go");
            over.store(true, Ordering::Release);
            answered.map(|_| ())
        })?;
        Ok(most.into_inner().saturating_sub(before) as f64)
    })?;
    let added: Vec<f64> = results.iter().map(|(_, added)| *added).collect();
    let snapshot = CHAT_BYTES as f64 / 1_024.0;
    let bound = 2.0 * snapshot + AT_ONCE as f64 * 256.0;
    let what = "50 open 5 MB at once: memory added";
    let words = "2 snapshots + 256 KiB each";
    Ok(Figure::within(what, "KiB", median(&added), snapshot, bound, words)
        .note("the floor column is one snapshot")
        .note(format!("rounds: {}", spread(&added))))
}
