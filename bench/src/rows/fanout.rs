//! CPU per delivered delta: the host against the bare server on the same schedule, with and without a window.

use anyhow::Result;

use super::{median_of, values};
use crate::driver::{Load, LoadResult, Subject};
use crate::harness::Harness;
use crate::measure::spread;
use crate::table::Figure;

const SUBJECTS: [Subject; 2] = [Subject::HOST, Subject::Bare];

pub(super) fn steady(harness: &mut Harness) -> Result<Vec<Figure>> {
    let load = Load { every_ms: 5, window_ms: None, seconds: harness.seconds(2.0) };
    let results = harness.shuffled(&SUBJECTS, |harness, subject| load.run(harness, subject))?;
    Ok(vec![figure("CPU per delivered delta, 100 watchers, 200/s", &results)])
}

pub(super) fn windowed(harness: &mut Harness) -> Result<Vec<Figure>> {
    let load = Load { every_ms: 1, window_ms: Some(5), seconds: harness.seconds(2.0) };
    let results = harness.shuffled(&SUBJECTS, |harness, subject| load.run(harness, subject))?;
    Ok(vec![figure("CPU per delivered delta, 1,000/s, 5 ms window", &results)])
}

fn figure(what: &str, results: &[(Subject, LoadResult)]) -> Figure {
    let cost = |loaded: &LoadResult| loaded.us_per_frame;
    let host = median_of(results, Subject::HOST, cost);
    let bare = median_of(results, Subject::Bare, cost);
    Figure::at_most(what, "us", host, bare, 1.5)
        .note(format!(
            "journal {:.0} % of the host's CPU, {:.1} deltas a commit",
            median_of(results, Subject::HOST, |loaded| loaded.kernel_share),
            median_of(results, Subject::HOST, |loaded| loaded.batch),
        ))
        .note(format!(
            "delivered a second: host {:.0}, bare {:.0}; bytes a frame: {:.0}, {:.0}",
            median_of(results, Subject::HOST, |loaded| loaded.rate),
            median_of(results, Subject::Bare, |loaded| loaded.rate),
            median_of(results, Subject::HOST, |loaded| loaded.frame_bytes),
            median_of(results, Subject::Bare, |loaded| loaded.frame_bytes),
        ))
        .note(format!(
            "rounds: host {}, bare {}",
            spread(&values(results, Subject::HOST, cost)),
            spread(&values(results, Subject::Bare, cost)),
        ))
}
