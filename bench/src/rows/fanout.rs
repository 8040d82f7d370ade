//! CPU per delivered delta: the host against the bare server on the same schedule, with and without a window.

use anyhow::Result;

use super::{median_of, values};
use crate::lab::Lab;
use crate::measure::spread;
use crate::stage::{Load, Loaded, Subject};
use crate::table::Figure;

const SUBJECTS: [Subject; 2] = [Subject::HOST, Subject::Bare];

pub fn steady(lab: &mut Lab) -> Result<Vec<Figure>> {
    let load = Load {
        every_ms: 5,
        window_ms: None,
        seconds: lab.seconds(3.0),
    };
    let results = lab.shuffled(&SUBJECTS, |lab, subject| load.run(lab, subject))?;
    Ok(vec![figure(
        "CPU per delivered delta, 100 watchers, 200/s",
        &results,
    )])
}

pub fn windowed(lab: &mut Lab) -> Result<Vec<Figure>> {
    let load = Load {
        every_ms: 1,
        window_ms: Some(5),
        seconds: lab.seconds(3.0),
    };
    let results = lab.shuffled(&SUBJECTS, |lab, subject| load.run(lab, subject))?;
    Ok(vec![figure(
        "CPU per delivered delta, 1,000/s, 5 ms window",
        &results,
    )])
}

fn figure(what: &str, results: &[(Subject, Loaded)]) -> Figure {
    let cost = |loaded: &Loaded| loaded.us_per_frame;
    let host = median_of(results, Subject::HOST, cost);
    let bare = median_of(results, Subject::Bare, cost);
    Figure::at_most(what, "us", host, bare, 1.5)
        .note(format!(
            "journal {:.0} % of the host's CPU, {:.1} deltas a commit",
            median_of(results, Subject::HOST, |loaded| loaded.journal_share),
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
