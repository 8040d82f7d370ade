//! From the start of the process to the line that says it is ready: 10,000 sessions of 20 turns on disk against none.
//!
//! The empty directory is one that a host has used before: making the journal's file is not part of the floor.

use anyhow::Result;

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::measure::{median, spread};
use crate::table::Figure;

const NONE: u32 = 0;
const MANY: u32 = 10_000;

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let starts = if harness.quick { 3 } else { 7 };
    let data = [(NONE, harness.sessions(NONE)?), (MANY, harness.sessions(MANY)?)];
    let results = harness.shuffled(&[NONE, MANY], |harness, sessions| {
        let mut times = Vec::new();
        for (_, data) in data.iter().filter(|(held, _)| *held == sessions) {
            for _ in 0..starts {
                let server = harness.host(data, HostSetup::SHIPPED)?;
                times.push(server.ready_after_ns as f64 / 1e6);
                server.stop()?;
            }
        }
        Ok(median(&times))
    })?;
    let time = |ms: &f64| *ms;
    let (many, none) = (median_of(&results, MANY, time), median_of(&results, NONE, time));
    let bound = (1.2 * none).max(none + 5.0);
    let what = "start to ready, 10,000 sessions against none";
    Ok(vec![Figure::within(what, "ms", many, none, bound, "1.2 x or 5 ms more").note(format!(
        "rounds: 10,000 sessions {}, none {}",
        spread(&values(&results, MANY, time)),
        spread(&values(&results, NONE, time)),
    ))])
}
