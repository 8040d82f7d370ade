//! Opening a chat of 5 MB in full: warm, cold, and by fifty at once.
//!
//! An opening is one `subscribe` and the reading of its answer, on a connection that is there already: what both
//! sides would pay alike for connecting is left out. "Cold" means that the chat is not in the host's memory (it is
//! configured to let channels go after a moment); the file is in the system's cache for both sides, so that reading
//! costs the same CPU each time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use super::{median_of, values};
use crate::dial;
use crate::lab::{HostSetup, Lab};
use crate::measure::{Cpu, median, rss_anon_kib, spread};
use crate::process::Server;
use crate::seed_data::{Seeded, Seeder, Shape};
use crate::socket::Socket;
use crate::table::Figure;

const TURNS: u32 = 250;
const TURN_BYTES: usize = 20_000;
pub const CHAT_BYTES: usize = TURNS as usize * TURN_BYTES;

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
pub fn big_chat(data: &Path) -> Result<Seeded> {
    let mut seeder = Seeder::open(data)?;
    let shape = Shape {
        turns: TURNS,
        turn_bytes: TURN_BYTES,
        actions: 0,
    };
    let seeded = seeder.session("big", shape)?;
    seeder.finish()?;
    Ok(seeded)
}

pub fn run(lab: &mut Lab) -> Result<Vec<Figure>> {
    let data = lab.directory()?;
    let seeded = big_chat(&data)?;
    let subjects = [Opened::Warm, Opened::Cached, Opened::Cold, Opened::FromRows];
    let results = lab.shuffled(&subjects, |lab, who| measured(lab, who, &data, &seeded))?;
    let figure = |what: &str, host: Opened, floor: Opened| {
        let (cost, least) = (|us: &f64| *us, |us: &f64| *us);
        let figures = (
            median_of(&results, host, cost),
            median_of(&results, floor, least),
        );
        Figure::at_most(what, "us", figures.0, figures.1, 2.0).note(format!(
            "rounds: host {}, floor {}",
            spread(&values(&results, host, cost)),
            spread(&values(&results, floor, least)),
        ))
    };
    let warm = figure(
        "5 MB warm: CPU against sending cached bytes",
        Opened::Warm,
        Opened::Cached,
    );
    let cold = figure(
        "5 MB cold: CPU against reading the rows",
        Opened::Cold,
        Opened::FromRows,
    );
    Ok(vec![warm, cold, at_once(lab, &data, &seeded)?])
}

/// Microseconds of CPU for one opening.
fn measured(lab: &mut Lab, who: Opened, data: &Path, seeded: &Seeded) -> Result<f64> {
    let big = format!("--big={}", seeded.chat);
    let setup = HostSetup {
        idle_ms: (who == Opened::Cold).then_some(IDLE_MS),
        ..HostSetup::SHIPPED
    };
    let server = match who {
        Opened::Warm | Opened::Cold => lab.host(data, setup)?,
        Opened::Cached => lab.bare(&[format!("--big-bytes={CHAT_BYTES}"), big])?,
        Opened::FromRows => {
            let rows = format!("--rows={}", data.display());
            lab.bare(&[rows, format!("--chat-id={}", seeded.chat_id), big])?
        }
    };
    let count = if lab.quick { 5 } else { 12 };
    let pause = if who == Opened::Cold {
        UNTIL_COLD
    } else {
        Duration::from_millis(20)
    };
    let costs = openings(&server, &seeded.chat, None, count, pause, CHAT_BYTES)?;
    Ok(median(&costs))
}

/// Opens a chat some times on one connection and says what each opening cost, in microseconds of CPU. The first two
/// are not counted.
pub fn openings(
    server: &Server,
    chat: &str,
    view_turns: Option<u32>,
    count: usize,
    pause: Duration,
    bytes_least: usize,
) -> Result<Vec<f64>> {
    let mut socket = Socket::join(&server.address, "opener")?;
    let request = dial::subscribe(chat, view_turns, None);
    let mut costs = Vec::new();
    for number in 0..count + 2 {
        std::thread::sleep(pause);
        let before = Cpu::of(server.pid())?;
        socket.send(&request)?;
        std::thread::sleep(Duration::from_millis(4));
        let bytes = socket.discard_answer()?;
        if bytes < bytes_least {
            bail!("an opening brought {bytes} bytes");
        }
        // What is still done after the last byte was handed over belongs to it.
        std::thread::sleep(Duration::from_millis(5));
        let used = Cpu::of(server.pid())?.since(before);
        if number >= 2 {
            costs.push(used.total_ns as f64 / 1_000.0);
        }
    }
    Ok(costs)
}

/// The most memory that fifty openings of a cold chat at the same moment add, in KiB.
fn at_once(lab: &mut Lab, data: &Path, seeded: &Seeded) -> Result<Figure> {
    let results = lab.shuffled(&[()], |lab, ()| {
        let server = lab.host(data, HostSetup::SHIPPED)?;
        let pid = server.pid();
        let mut crowd = lab.helper(&[
            "burst".to_owned(),
            format!("--address={}", server.address),
            format!("--count={AT_ONCE}"),
            "--name=o".to_owned(),
            format!("--request={}", dial::subscribe(&seeded.chat, None, None)),
        ])?;
        crowd.line()?;
        let before = rss_anon_kib(pid)?;
        let (over, most) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| -> Result<()> {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    most.fetch_max(rss_anon_kib(pid).unwrap_or(0), Ordering::AcqRel);
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
            let answered = crowd.ask("go");
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
    Ok(
        Figure::within(what, "KiB", median(&added), snapshot, bound, words)
            .note("the floor column is one snapshot")
            .note(format!("rounds: {}", spread(&added))),
    )
}
