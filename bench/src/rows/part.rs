//! CPU of a delta into the 10,000th part of a turn against one into the 10th.
//!
//! One watcher with a 5 ms window, deltas without a pause, so that as little as possible is spent on sockets and
//! commits and as much as possible on the kernel. Both subjects are the host.

use std::time::Duration;

use anyhow::Result;

use super::{median_of, values};
use crate::driver::{DELTA_BYTES, Driver, Subject, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::{Cpu, spread};
use crate::table::Figure;

/// Parts before the one the deltas go into.
const FEW: u64 = 9;
const MANY: u64 = 9_999;

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[FEW, MANY], measure)?;
    let cost = |cost: &f64| *cost;
    let figure = Figure::at_most(
        "delta into the 10,000th part, against the 10th",
        "us",
        median_of(&results, MANY, cost),
        median_of(&results, FEW, cost),
        1.2,
    );
    Ok(vec![figure.note(format!(
        "rounds: 10,000th {}, 10th {}",
        spread(&values(&results, MANY, cost)),
        spread(&values(&results, FEW, cost)),
    ))])
}

fn measure(harness: &mut Harness, parts: u64) -> Result<f64> {
    let deltas: u64 = if harness.quick { 10_000 } else { 30_000 };
    let mut driver = Driver::on(Subject::HOST.start(harness)?)?;
    let options = WatcherOptions { count: 1, window_ms: Some(5), ..WatcherOptions::default() };
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    // The beginning of the turn, and the parts; then the script waits.
    watchers.mark(1 + parts)?;
    driver.send_message(&format!("parts {parts} {deltas} {DELTA_BYTES}"))?;
    watchers.wait()?;
    // The part the deltas go into, and the deltas; then the script waits again, so that the end of the turn, which
    // may cost what the turn holds, is not in the figure.
    watchers.mark(1 + deltas)?;
    std::thread::sleep(Duration::from_millis(200));
    let before = Cpu::of(driver.server.pid())?;
    watchers.wait()?;
    let used = Cpu::of(driver.server.pid())?.since(before);
    Ok(used.total_ns as f64 / 1_000.0 / deltas as f64)
}
