//! What the journal costs a delta that comes alone, ten a second: CPU of the host with its journal on disk against the
//! same host with its journal in memory.
//!
//! The floor is one record in one transaction of plain SQLite with FULL durability, at the same pace: the CPU of the
//! thread that does it. At this pace nothing can be batched, so it is what a commit costs at least.

use std::time::Duration;

use anyhow::Result;

use super::journal::PlainSqlite;
use super::{median_of, values};
use crate::driver::{Driver, Load, LoadResult, Subject, WatcherOptions, Watchers};
use crate::harness::{Harness, JournalKind};
use crate::measure::{median, now_ns, spread, thread_cpu_ns};
use crate::table::Figure;

const EVERY_MS: u64 = 100;
/// What the journal may add to a delta.
const ADDED_US: f64 = 150.0;
const OFF: Subject = Subject::Host(JournalKind::Memory);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Host(Subject),
    Commit,
}

/// Microseconds for each delta or commit.
#[derive(Debug, Clone, Copy)]
struct Cost {
    cpu_us: f64,
    /// Of a commit; not a number for a host.
    wall_us: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let (on, off) = (Who::Host(Subject::HOST), Who::Host(OFF));
    let results = harness.shuffled(&[on, off, Who::Commit], measure)?;
    let cpu = |who| median_of(&results, who, |cost: &Cost| cost.cpu_us);
    let rounds = |who| spread(&values(&results, who, |cost: &Cost| cost.cpu_us));
    let added = cpu(on) - cpu(off);
    Ok(vec![
        Figure::within(
            "CPU the journal adds to a lone delta, against a bare commit",
            "us",
            added,
            cpu(Who::Commit),
            ADDED_US,
            "150 us",
        )
        .note(format!(
            "a delta: journal on {:.0} us, off {:.0} us; a bare commit takes {:.0} us",
            cpu(on),
            cpu(off),
            median_of(&results, Who::Commit, |cost| cost.wall_us),
        ))
        .note(format!(
            "rounds: on {}, off {}, commit {}",
            rounds(on),
            rounds(off),
            rounds(Who::Commit),
        )),
    ])
}

fn measure(harness: &mut Harness, who: Who) -> Result<Cost> {
    let load = Load {
        every_ms: EVERY_MS,
        window_ms: None,
        seconds: harness.seconds(3.0),
    };
    match who {
        Who::Host(subject) => {
            let LoadResult { us_per_frame, .. } = stream(harness, subject, load)?;
            Ok(Cost {
                cpu_us: us_per_frame,
                wall_us: f64::NAN,
            })
        }
        Who::Commit => commit(harness, load.seconds),
    }
}

fn stream(harness: &mut Harness, subject: Subject, load: Load) -> Result<LoadResult> {
    let mut driver = Driver::on(subject.start(harness)?)?;
    let options = WatcherOptions {
        count: 1,
        ..WatcherOptions::default()
    };
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    driver.stream(load.deltas()?, load.every_ms)?;
    load.measure(&driver, &mut watchers)
}

fn commit(harness: &mut Harness, length: Duration) -> Result<Cost> {
    let mut sqlite = PlainSqlite::open(&harness.directory()?)?;
    let (mut cpu, mut wall) = (Vec::new(), Vec::new());
    for _ in 0..length.as_millis() / u128::from(EVERY_MS) {
        std::thread::sleep(Duration::from_millis(EVERY_MS));
        let (began, cpu_before) = (now_ns(), thread_cpu_ns());
        sqlite.commit(1)?;
        cpu.push((thread_cpu_ns() - cpu_before) as f64 / 1_000.0);
        wall.push((now_ns() - began) as f64 / 1_000.0);
    }
    Ok(Cost {
        cpu_us: median(&cpu),
        wall_us: median(&wall),
    })
}
