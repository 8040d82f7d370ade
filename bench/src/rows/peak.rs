//! How many deltas a second reach 100 watchers when the agent does not pause.
//!
//! The rate is taken by the watchers, from the first frame any of them got until the last had all. The bare server
//! pushes as fast as its writers drain (see `bare`), and nothing there waits for a disk.

use anyhow::Result;

use super::{median_of, values};
use crate::driver::{Driver, Subject, WATCHERS, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::{Cpu, commits, spread};
use crate::table::Figure;

struct Peak {
    rate: f64,
    batch: f64,
    us_per_frame: f64,
    kernel_share: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Subject::HOST, Subject::Bare], measure)?;
    let of = |subject, value: fn(&Peak) -> f64| median_of(&results, subject, value);
    let figure = Figure::at_least(
        "peak deltas/s to 100 watchers",
        "/s",
        of(Subject::HOST, |peak| peak.rate),
        of(Subject::Bare, |peak| peak.rate),
        0.75,
    );
    Ok(vec![
        figure
            .note(format!(
                "journal {:.0} % of the host's CPU, {:.0} deltas a commit",
                of(Subject::HOST, |peak| peak.kernel_share),
                of(Subject::HOST, |peak| peak.batch),
            ))
            .note(format!(
                "CPU per delivered delta: host {:.2} us, bare {:.2} us",
                of(Subject::HOST, |peak| peak.us_per_frame),
                of(Subject::Bare, |peak| peak.us_per_frame),
            ))
            .note(format!(
                "rounds: host {}, bare {}",
                spread(&values(&results, Subject::HOST, |peak| peak.rate)),
                spread(&values(&results, Subject::Bare, |peak| peak.rate)),
            )),
    ])
}

fn measure(harness: &mut Harness, subject: Subject) -> Result<Peak> {
    let deltas: u64 = if harness.quick { 10_000 } else { 30_000 };
    let mut driver = Driver::on(subject.start(harness)?)?;
    let mut watchers = Watchers::join(harness, &driver, &WatcherOptions::default())?;
    // The turn and its part begin, the turn ends: three frames more than deltas.
    watchers.mark(1_003)?;
    driver.stream(1_000, 0)?;
    watchers.wait()?;
    watchers.mark(deltas + 3)?;
    let data = driver.server.data.clone();
    let commits_so_far = || data.as_deref().and_then(commits).unwrap_or(0);
    let (before, commits_before) = (Cpu::of(driver.server.pid())?, commits_so_far());
    driver.stream(deltas, 0)?;
    let sample = watchers.wait()?;
    let used = Cpu::of(driver.server.pid())?.since(before);
    let commits = commits_so_far().wrapping_sub(commits_before);
    Ok(Peak {
        rate: deltas as f64 / ((sample.last_ns - sample.first_ns) as f64 / 1e9),
        batch: deltas as f64 / f64::from(commits.max(1)),
        us_per_frame: used.total_ns as f64 / 1_000.0 / (deltas as f64 * WATCHERS as f64),
        kernel_share: used.kernel_share(),
    })
}
