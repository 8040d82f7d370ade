//! Opening with `view.turns: 20`, cold: a chat of 10,000 turns against one of 100, turns of equal bytes. Both
//! subjects are the same host on the same journal.

use std::time::Duration;

use anyhow::Result;

use super::open::openings;
use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::measure::spread;
use crate::seed_data::{Seeder, Shape};
use crate::table::Figure;

const SHORT: u32 = 100;
const LONG: u32 = 10_000;
const TURN_BYTES: usize = 2_000;
const VIEW: u32 = 20;
const IDLE_MS: u64 = 100;
const UNTIL_COLD: Duration = Duration::from_millis(220);

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let data = harness.directory()?;
    let mut seeder = Seeder::open(&data)?;
    let shape = |turns| Shape { turns, turn_bytes: TURN_BYTES, actions: 0 };
    let short = seeder.session("short", shape(SHORT))?;
    let long = seeder.session("long-", shape(LONG))?;
    seeder.finish()?;
    let server = harness.host(&data, HostSetup { idle_ms: Some(IDLE_MS), ..HostSetup::SHIPPED })?;
    let results = harness.shuffled(&[SHORT, LONG], |harness, turns| {
        let chat = if turns == SHORT { &short.chat } else { &long.chat };
        let count = if harness.quick { 8 } else { 20 };
        let least = VIEW as usize * TURN_BYTES;
        openings(&server, chat, Some(VIEW), count, UNTIL_COLD, least)
    })?;
    let cost = |us: &f64| *us;
    let figures = (median_of(&results, LONG, cost), median_of(&results, SHORT, cost));
    let what = "view of 20 turns, cold: 10,000 turns against 100";
    Ok(vec![Figure::at_most(what, "us", figures.0, figures.1, 1.1).note(format!(
        "rounds: 10,000 turns {}, 100 turns {}",
        spread(&values(&results, LONG, cost)),
        spread(&values(&results, SHORT, cost)),
    ))])
}
