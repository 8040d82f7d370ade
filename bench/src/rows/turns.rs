//! A hundred turns at once: the host's anonymous memory, and how long a piece takes from the model server's write to its
//! watcher. It has no bound; beside it the bare relay with as many streams.
//!
//! Each turn is in a session of its own, has one watcher and streams 20 pieces a second. Pieces carry the moment of
//! their sending; those of the first second are left out. Memory is the most that was seen, every 100 ms.

use std::time::Duration;

use anyhow::{Result, bail};

use super::latency::Percentiles;
use super::{median_of, values};
use crate::driver::{Driver, Subject, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::{Cpu, now_ns, rss_anon_kib, spread};
use crate::table::Figure;

const TURNS: usize = 100;
const PIECE_BYTES: usize = 40;
const EVERY_MS: u64 = 50;
const LOOK_EVERY: Duration = Duration::from_millis(100);

struct TurnsResult {
    percentiles: Percentiles,
    /// Before the turns, and the most while they ran.
    kib: [f64; 2],
    us_per_piece: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let subjects = [Subject::HOST, Subject::Bare];
    let results = harness.shuffled(&subjects, measure)?;
    let of = |subject, value: fn(&TurnsResult) -> f64| median_of(&results, subject, value);
    let rounds = |value: fn(&TurnsResult) -> f64| {
        format!(
            "rounds: host {}, bare {}",
            spread(&values(&results, Subject::HOST, value)),
            spread(&values(&results, Subject::Bare, value)),
        )
    };
    let reported = |what: &str, unit, value: fn(&TurnsResult) -> f64| {
        Figure::reported(what, unit, of(Subject::HOST, value), of(Subject::Bare, value))
            .note(rounds(value))
    };
    Ok(vec![
        reported("100 turns at once, 20 pieces/s each: RssAnon", "KiB", |t| t.kib[1]).note(
            format!(
                "before the turns, 100 sessions and watchers: host {:.0} KiB, bare {:.0} KiB",
                of(Subject::HOST, |t| t.kib[0]),
                of(Subject::Bare, |t| t.kib[0]),
            ),
        ),
        reported("the same, from the model to the watcher, p99", "us", |t| t.percentiles.p99).note(
            format!(
                "p50: host {:.0} us, bare {:.0} us; CPU a piece: {:.1} us, {:.1} us",
                of(Subject::HOST, |t| t.percentiles.p50),
                of(Subject::Bare, |t| t.percentiles.p50),
                of(Subject::HOST, |t| t.us_per_piece),
                of(Subject::Bare, |t| t.us_per_piece),
            ),
        ),
    ])
}

fn measure(harness: &mut Harness, subject: Subject) -> Result<TurnsResult> {
    // Stamps are numbered from the start of a model server: each run has its own.
    let (_model, port) = harness.model_server()?;
    let mut driver = Driver::with(subject.start_with_model(harness, port)?, "native", TURNS)?;
    let options =
        WatcherOptions { count: TURNS, stamped: true, apart: true, ..WatcherOptions::default() };
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    let pid = driver.server.pid();
    let before = rss_anon_kib(pid)? as f64;
    let a_second = 1_000 / EVERY_MS;
    let length = harness.seconds(3.0);
    let pieces = a_second + u64::try_from(length.as_millis())? / EVERY_MS;
    watchers.mark(pieces)?;
    let cpu_before = Cpu::of(pid)?;
    for chat in driver.chats.clone() {
        let message = format!("stamped {pieces} {PIECE_BYTES} {EVERY_MS}");
        driver.send_message_in(&chat, &message)?;
    }
    let over = now_ns() + u64::try_from((length + Duration::from_secs(1)).as_nanos())?;
    let mut most = 0;
    while now_ns() < over {
        std::thread::sleep(LOOK_EVERY);
        most = most.max(rss_anon_kib(pid)?);
    }
    watchers.wait()?;
    let used = Cpu::of(pid)?.since(cpu_before);
    let latencies = watchers.latencies_us()?;
    let all = usize::try_from(pieces)? * TURNS;
    if latencies.len() != all {
        bail!("{} of {all} pieces reached their watchers", latencies.len());
    }
    // In the order of their sending.
    let steady = &latencies[usize::try_from(a_second)? * TURNS..];
    Ok(TurnsResult {
        percentiles: Percentiles::of(steady),
        kib: [before, most as f64],
        us_per_piece: used.total_ns as f64 / 1_000.0 / all as f64,
    })
}
