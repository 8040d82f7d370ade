//! What the journal costs a delta that is committed alone: CPU of the host with its journal on disk against the same host
//! with its journal in memory.
//!
//! The floor is one record in one transaction of plain SQLite with FULL durability, at the same pace: the CPU of the
//! thread that does it. It is what a commit costs at least. At ten deltas a second most of it is waking an idle machine; at
//! 500 a second, with nothing waiting for what comes after it, it is the work itself.

use std::time::Duration;

use anyhow::Result;

use super::journal::PlainSqlite;
use super::{median_of, values};
use crate::driver::{Driver, Load, LoadResult, WatcherOptions, Watchers};
use crate::harness::{Harness, HostSetup, JournalKind};
use crate::measure::{median, now_ns, spread, thread_cpu_ns};
use crate::table::Figure;

/// What the journal may add to a delta.
const ADDED_US: f64 = 150.0;

const PACES: [Pace; 2] = [
    Pace {
        what: "CPU the journal adds to a delta committed alone, 500/s, against a bare commit",
        every_ms: 2,
    },
    Pace { what: "the same, 10/s", every_ms: 100 },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    what: &'static str,
    every_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Host(JournalKind),
    Commit,
}

const ON: Who = Who::Host(JournalKind::Sqlite);
const OFF: Who = Who::Host(JournalKind::Memory);

/// Microseconds for each delta or commit.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_us: f64,
    /// Of a commit; not a number for a host.
    wall_us: f64,
    /// Deltas in a transaction; not a number without a journal on disk.
    batch: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let subjects: Vec<(Who, Pace)> =
        PACES.iter().flat_map(|pace| [ON, OFF, Who::Commit].map(|who| (who, *pace))).collect();
    let results =
        harness.shuffled(&subjects, |harness, (who, pace)| measure(harness, who, pace))?;
    Ok(PACES.iter().map(|pace| figure(*pace, &results)).collect())
}

fn figure(pace: Pace, results: &[((Who, Pace), Cost)]) -> Figure {
    let of = |who, value: fn(&Cost) -> f64| median_of(results, (who, pace), value);
    let cpu = |who| of(who, |cost| cost.cpu_us);
    let rounds = |who| spread(&values(results, (who, pace), |cost: &Cost| cost.cpu_us));
    Figure::within(
        pace.what,
        "us",
        cpu(ON) - cpu(OFF),
        cpu(Who::Commit),
        ADDED_US,
        "150 us",
    )
    .note(format!(
        "a delta: journal on {:.0} us, off {:.0} us, {:.2} deltas a commit; a bare commit takes {:.0} us",
        cpu(ON),
        cpu(OFF),
        of(ON, |cost| cost.batch),
        of(Who::Commit, |cost| cost.wall_us),
    ))
    .note(format!(
        "rounds: on {}, off {}, commit {}",
        rounds(ON),
        rounds(OFF),
        rounds(Who::Commit),
    ))
}

fn measure(harness: &mut Harness, who: Who, pace: Pace) -> Result<Cost> {
    let load = Load { every_ms: pace.every_ms, window_ms: None, seconds: harness.seconds(3.0) };
    match who {
        Who::Host(journal) => {
            let loaded = stream(harness, journal, load)?;
            Ok(Cost { cpu_us: loaded.us_per_frame, wall_us: f64::NAN, batch: loaded.batch })
        }
        Who::Commit => commit(harness, load),
    }
}

fn stream(harness: &mut Harness, journal: JournalKind, load: Load) -> Result<LoadResult> {
    let data = harness.directory()?;
    let setup = HostSetup { journal, coalesce_ms: Some(0), ..HostSetup::SHIPPED };
    let mut driver = Driver::on(harness.host(&data, setup)?)?;
    let options = WatcherOptions { count: 1, ..WatcherOptions::default() };
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    driver.stream(load.deltas()?, load.every_ms)?;
    load.measure(&driver, &mut watchers)
}

fn commit(harness: &mut Harness, load: Load) -> Result<Cost> {
    let mut sqlite = PlainSqlite::open(&harness.directory()?)?;
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    for _ in 0..load.seconds.as_millis() / u128::from(load.every_ms) {
        std::thread::sleep(Duration::from_millis(load.every_ms));
        let (began, cpu_before) = (now_ns(), thread_cpu_ns());
        sqlite.commit(1)?;
        cpu.push((thread_cpu_ns() - cpu_before) as f64 / 1_000.0);
        wall.push((now_ns() - began) as f64 / 1_000.0);
    }
    Ok(Cost { cpu_us: median(&cpu), wall_us: median(&wall), batch: f64::NAN })
}
