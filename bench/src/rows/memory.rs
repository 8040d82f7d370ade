//! Anonymous memory of the host: after its start, for each watcher, and what twenty long turns leave behind.
//!
//! A watcher watches the root channel and one chat; the larger of two values counts: after all have joined, and after
//! a stream has gone through all of them. Turns are measured with a host that lets channels go after a second; the
//! baseline is taken after one turn has come and its chat has gone.

use std::time::Duration;

use anyhow::Result;

use crate::driver::{Driver, WatcherOptions, Watchers};
use crate::harness::{Harness, HostSetup};
use crate::measure::{median, rss_anon_kib, spread};
use crate::table::Figure;

const SESSIONS: u32 = 10_000;
const MANY: usize = 1_000;
const TURNS: u32 = 20;
const DELTAS: u64 = 2_000;
const IDLE_MS: u64 = 1_000;
const UNTIL_GONE: Duration = Duration::from_millis(2_500);

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let after_start = repeated(harness, started)?;
    let per_watcher = repeated(harness, watched)?;
    let turns = repeated(harness, turned)?;
    let column = |rounds: &[[f64; 2]], n: usize| -> Vec<f64> {
        rounds.iter().map(|round| round[n]).collect()
    };
    let starts = column(&after_start, 0);
    let each = column(&per_watcher, 0);
    let (before, after) = (median(&column(&turns, 0)), median(&column(&turns, 1)));
    let bound = (before * 1.1).max(before + 3_072.0);
    Ok(vec![
        Figure::within(
            "RssAnon after start, 10,000 sessions on disk",
            "KiB",
            median(&starts),
            f64::NAN,
            15.0 * 1_024.0,
            "15 MB",
        )
        .note(format!("rounds: {}", spread(&starts))),
        Figure::within(
            "a watcher of root and one chat, over 1,000",
            "KiB",
            median(&each),
            f64::NAN,
            16.0,
            "16 KB",
        )
        .note(format!("idle: {:.2} KiB", median(&column(&per_watcher, 1))))
        .note(format!("rounds: {}", spread(&each))),
        Figure::within(
            "20 turns of 2,000 deltas and unload, against one turn",
            "KiB",
            after,
            before,
            bound,
            "10 % or 3 MB more",
        )
        .note(format!("rounds after: {}", spread(&column(&turns, 1)))),
    ])
}

fn repeated(
    harness: &mut Harness,
    run: fn(&mut Harness) -> Result<[f64; 2]>,
) -> Result<Vec<[f64; 2]>> {
    let results = harness.shuffled(&[()], |harness, ()| run(harness))?;
    Ok(results.into_iter().map(|(_, value)| value).collect())
}

fn started(harness: &mut Harness) -> Result<[f64; 2]> {
    let data = harness.sessions(SESSIONS)?;
    let server = harness.host(&data, HostSetup::SHIPPED)?;
    std::thread::sleep(Duration::from_millis(300));
    let kib = rss_anon_kib(server.pid())? as f64;
    server.stop()?;
    Ok([kib, kib])
}

/// KiB a watcher: after a stream to all of them, or after they joined, whichever is more; and after they joined.
fn watched(harness: &mut Harness) -> Result<[f64; 2]> {
    let data = harness.directory()?;
    let mut driver = Driver::on(harness.host(&data, HostSetup::SHIPPED)?)?;
    let one = WatcherOptions { count: 1, root: true, name: "first", ..WatcherOptions::default() };
    let mut first = Watchers::join(harness, &driver, &one)?;
    first.mark(103)?;
    driver.stream(100, 0)?;
    first.wait()?;
    let before = rss_anon_kib(driver.server.pid())?;
    let options =
        WatcherOptions { count: MANY, root: true, read_bytes: 4_096, ..WatcherOptions::default() };
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    std::thread::sleep(Duration::from_millis(500));
    let each = |now: u64| now.saturating_sub(before) as f64 / MANY as f64;
    let idle = each(rss_anon_kib(driver.server.pid())?);
    watchers.mark(103)?;
    driver.stream(100, 5)?;
    watchers.wait()?;
    std::thread::sleep(Duration::from_millis(500));
    let used = each(rss_anon_kib(driver.server.pid())?);
    Ok([used.max(idle), idle])
}

/// KiB after one turn and after twenty more, each time with the chat gone from memory.
fn turned(harness: &mut Harness) -> Result<[f64; 2]> {
    let data = harness.directory()?;
    let setup = HostSetup { idle_ms: Some(IDLE_MS), ..HostSetup::SHIPPED };
    let mut driver = Driver::on(harness.host(&data, setup)?)?;
    let options = WatcherOptions { count: 1, window_ms: Some(5), ..WatcherOptions::default() };
    let mut turns = |driver: &mut Driver, count: u32| -> Result<f64> {
        let mut watchers = Watchers::join(harness, driver, &options)?;
        for _ in 0..count {
            watchers.mark(DELTAS + 3)?;
            driver.stream(DELTAS, 0)?;
            watchers.wait()?;
        }
        drop(watchers);
        std::thread::sleep(UNTIL_GONE);
        Ok(rss_anon_kib(driver.server.pid())? as f64)
    };
    Ok([turns(&mut driver, 1)?, turns(&mut driver, TURNS)?])
}
