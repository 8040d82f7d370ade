//! CPU per delivered delta with clients of nine versions in one chat, against as many of 1.0; and what older clients elsewhere
//! cost a chat that only clients of 1.0 watch.

use anyhow::Result;

use super::{median_of, values};
use crate::driver::{Driver, Load, LoadResult, Subject, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::spread;
use crate::protocol;
use crate::table::Figure;

const VERSIONS: [&str; 9] =
    ["0.4.0", "0.5.0", "0.5.1", "0.5.2", "0.6.0", "0.7.0", "0.8.0", "0.9.0", protocol::VERSION];
/// As many of each version.
const WATCHERS: usize = 99;
/// At most so much more with all versions.
const MIXED_MAX: f64 = 2.0;
/// Nothing, but for what two runs differ by.
const ELSEWHERE_MAX: f64 = 1.1;

/// Who is there beside the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Company {
    /// Watchers of 1.0 alone.
    Newest,
    /// As many of each version.
    Mixed,
    /// Watchers of 1.0 alone; clients of older versions watch another chat.
    OlderElsewhere,
}

const COMPANIES: [Company; 3] = [Company::Newest, Company::Mixed, Company::OlderElsewhere];

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let load = Load { every_ms: 5, window_ms: None, seconds: harness.seconds(2.0) };
    let results =
        harness.shuffled(&COMPANIES, |harness, company| measure(harness, load, company))?;
    let cost = |loaded: &LoadResult| loaded.us_per_frame;
    let of = |company| median_of(&results, company, cost);
    let rounds = |company| spread(&values(&results, company, cost));
    let newest = of(Company::Newest);
    let mixed = Figure::at_most(
        "CPU per delivered delta, nine versions against 1.0 alone",
        "us",
        of(Company::Mixed),
        newest,
        MIXED_MAX,
    );
    let elsewhere = Figure::at_most(
        "the same, 1.0 alone, older clients in another chat",
        "us",
        of(Company::OlderElsewhere),
        newest,
        ELSEWHERE_MAX,
    );
    Ok(vec![
        mixed.note(format!(
            "rounds: nine versions {}, 1.0 {}",
            rounds(Company::Mixed),
            rounds(Company::Newest)
        )),
        elsewhere.note(format!("rounds: {}", rounds(Company::OlderElsewhere))),
    ])
}

fn measure(harness: &mut Harness, load: Load, company: Company) -> Result<LoadResult> {
    let mut driver = Driver::with(Subject::HOST.start(harness)?, "scripted", 2)?;
    let options = WatcherOptions {
        count: WATCHERS,
        versions: match company {
            Company::Mixed => &VERSIONS,
            Company::Newest | Company::OlderElsewhere => &[protocol::VERSION],
        },
        ..WatcherOptions::default()
    };
    let driven = driver.chat.clone();
    let elsewhere = match company {
        Company::OlderElsewhere => {
            driver.chat = driver.chats.last().cloned().unwrap_or_default();
            let options = WatcherOptions {
                count: VERSIONS.len(),
                versions: &VERSIONS,
                name: "elsewhere",
                ..WatcherOptions::default()
            };
            Some(Watchers::join(harness, &driver, &options)?)
        }
        Company::Newest | Company::Mixed => None,
    };
    driver.chat = driven;
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    driver.stream(load.deltas()?, load.every_ms)?;
    let loaded = load.measure(&driver, &mut watchers);
    drop(elsewhere);
    loaded
}
