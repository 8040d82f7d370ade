//! How late an agent's words are, from its write until a watcher has them, at 50 updates a second, against a bare relay of its lines;
//! and how soon it hears of a cancel.
//!
//! Updates carry the moment of their sending; those of the first half second are left out. A commit is an append to a journal on the
//! same disk at the same pace, with nothing else going on (see `latency`). A cancel is a client's action: it is recorded, and the
//! agent notes when `session/cancel` has come through its pipe.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::acp::{await_first_update, counting, start, start_host};
use super::latency::{Percentiles, commits};
use super::{median_of, values};
use crate::driver::{Driver, Subject, WatcherOptions, Watchers};
use crate::harness::{AcpSetup, Harness};
use crate::measure::{now_ns, spread};
use crate::table::Figure;

const EVERY: Duration = Duration::from_millis(20);
const UPDATE_BYTES: u64 = 100;
const WARM_UP: usize = 25;

/// In the working directory of the host's sessions, which is the agent's.
const CANCELS: &str = "cancels";
/// The same for the agent, which runs in the project beside it.
const CANCELS_OF_AGENT: &str = "../cancels";
const WAIT_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
    Of(Subject),
    Cancel,
    Commit,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let subjects = [Timed::Of(Subject::HOST), Timed::Of(Subject::Bare), Timed::Commit];
    let results = harness.shuffled(&subjects, |harness, who| {
        let count = usize::try_from(harness.seconds(4.0).as_millis() / EVERY.as_millis())?;
        match who {
            Timed::Of(subject) => measure(harness, subject, WARM_UP + count),
            Timed::Cancel | Timed::Commit => commits(harness, u32::try_from(count)?, EVERY),
        }
    })?;
    let of = |who, value: fn(&Percentiles) -> f64| median_of(&results, who, value);
    let figure = |what: &str, value: fn(&Percentiles) -> f64, added_us: f64, times: f64, words| {
        let host = of(Timed::Of(Subject::HOST), value);
        let relay = of(Timed::Of(Subject::Bare), value);
        let commit = of(Timed::Commit, value);
        let bound = relay + added_us + times * commit;
        Figure::within(what, "us", host, relay, bound, words).note(format!(
            "a commit: {commit:.0} us; rounds: host {}, relay {}",
            spread(&values(&results, Timed::Of(Subject::HOST), value)),
            spread(&values(&results, Timed::Of(Subject::Bare), value)),
        ))
    };
    Ok(vec![
        figure(
            "an agent's update to its watcher, 50/s, p50",
            |times| times.p50,
            1_000.0,
            1.0,
            "relay + 1 ms + 1 commit",
        ),
        figure("the same, p99", |times| times.p99, 5_000.0, 2.0, "relay + 5 ms + 2 commits"),
    ])
}

fn measure(harness: &mut Harness, subject: Subject, updates: usize) -> Result<Percentiles> {
    let mut driver = Driver::with(start(harness, subject)?, "acp", 1)?;
    let mut watchers = Watchers::join(harness, &driver, &WatcherOptions::stamped(1))?;
    watchers.mark(updates as u64)?;
    let every_ms = EVERY.as_millis();
    driver.send_message(&format!("stamped {updates} {UPDATE_BYTES} {every_ms}"))?;
    watchers.wait()?;
    let latencies = watchers.latencies_us()?;
    ensure!(latencies.len() == updates, "{} of {updates} updates came", latencies.len());
    Ok(Percentiles::of(&latencies[WARM_UP..]))
}

pub(super) fn cancel(harness: &mut Harness) -> Result<Vec<Figure>> {
    let cancels = if harness.quick { 10 } else { 30 };
    let results = harness.shuffled(&[Timed::Cancel, Timed::Commit], |harness, who| match who {
        Timed::Cancel => Ok(Percentiles::of(&time_cancels(harness, cancels)?)),
        Timed::Of(_) | Timed::Commit => commits(harness, cancels, Duration::from_millis(100)),
    })?;
    let p50 = |times: &Percentiles| times.p50;
    let commit = median_of(&results, Timed::Commit, p50);
    let figure = Figure::within(
        "a client's cancel until `session/cancel` has come through the agent's pipe",
        "us",
        median_of(&results, Timed::Cancel, p50),
        commit,
        2_000.0 + commit,
        "2 ms + 1 commit",
    );
    Ok(vec![figure.note(format!(
        "rounds: {}; p99 {:.0} us",
        spread(&values(&results, Timed::Cancel, p50)),
        median_of(&results, Timed::Cancel, |times| times.p99),
    ))])
}

/// Microseconds from the sending of each cancel until the agent has it.
fn time_cancels(harness: &mut Harness, count: u32) -> Result<Vec<f64>> {
    let noted = harness.scratch().join(CANCELS);
    if noted.exists() {
        std::fs::remove_file(&noted)?;
    }
    let acp = AcpSetup { options: &["--cancels", CANCELS_OF_AGENT], ..AcpSetup::default() };
    let mut driver = Driver::with(start_host(harness, acp)?, "acp", 1)?;
    let mut watchers = Watchers::join(harness, &driver, &counting(1))?;
    let mut times = Vec::new();
    for number in 1..=count as usize {
        let before = watchers.sample()?.frames;
        let turn = driver
            .start_turn_in(&driver.chat.clone(), &format!("stream 10000 {UPDATE_BYTES} 20"))?;
        await_first_update(&mut watchers, before)?;
        let sent_ns = now_ns();
        driver.cancel_turn(&turn)?;
        let heard_ns = await_note(&noted, number)?;
        times.push(heard_ns.saturating_sub(sent_ns) as f64 / 1_000.0);
        driver.socket.drain()?;
    }
    Ok(times)
}

/// The moment of a cancel, once the agent has noted so many.
fn await_note(noted: &Path, count: usize) -> Result<u64> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        // Not there before the first one.
        let text = std::fs::read_to_string(noted).unwrap_or_default();
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        if let Some(line) = lines.nth(count - 1) {
            return line.trim().parse().context("the note of a cancel");
        }
        ensure!(Instant::now() < deadline, "the agent hears of no cancel");
        std::thread::sleep(Duration::from_millis(1));
    }
}
