//! How late the words of a model are: from the model server's write until the last of 50 watchers has the piece, at 100
//! and at 200 pieces a second, against a bare relay of the same stream.
//!
//! Pieces carry the moment of their sending; those of the first half second are left out. The relay decides and
//! records nothing, so the bound is the relay's own p50 and what may be added to it.

use anyhow::{Result, ensure};

use super::latency::Percentiles;
use super::{median_of, values};
use crate::driver::{Driver, Subject, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::spread;
use crate::table::Figure;

const WATCHERS: usize = 50;
const PIECE_BYTES: usize = 40;
const WARM_UP_MS: u64 = 500;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    what: &'static str,
    every_ms: u64,
    /// What the host may add to the relay's p50.
    added_us: f64,
    bound: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        what: "words of a model to the last of 50, 100/s, p50",
        every_ms: 10,
        added_us: 700.0,
        bound: "relay + 0.7 ms",
    },
    Case { what: "the same, 200/s, p50", every_ms: 5, added_us: 5_000.0, bound: "relay + 5 ms" },
];

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let subjects = CASES.map(|case| [(Subject::HOST, case), (Subject::Bare, case)]);
    let results = harness
        .shuffled(&subjects.concat(), |harness, (subject, case)| measure(harness, subject, case))?;
    let figure = |case: Case| {
        let of =
            |subject, value: fn(&Percentiles) -> f64| median_of(&results, (subject, case), value);
        let rounds =
            |subject| spread(&values(&results, (subject, case), |times: &Percentiles| times.p50));
        let relay = of(Subject::Bare, |times| times.p50);
        let host = of(Subject::HOST, |times| times.p50);
        Figure::within(case.what, "us", host, relay, relay + case.added_us, case.bound)
            .note(format!(
                "p99: host {:.0} us, relay {:.0} us",
                of(Subject::HOST, |times| times.p99),
                of(Subject::Bare, |times| times.p99),
            ))
            .note(format!(
                "rounds: host {}, relay {}",
                rounds(Subject::HOST),
                rounds(Subject::Bare),
            ))
    };
    Ok(CASES.map(figure).to_vec())
}

fn measure(harness: &mut Harness, subject: Subject, case: Case) -> Result<Percentiles> {
    // Stamps are numbered from the start of a model server: each run has its own.
    let (_model, port) = harness.model_server()?;
    let mut driver = Driver::with(subject.start_with_model(harness, port)?, "native", 1)?;
    let options = WatcherOptions::stamped(WATCHERS);
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    let warm_up = usize::try_from(WARM_UP_MS / case.every_ms)?;
    let length = harness.seconds(2.0);
    let pieces = warm_up + usize::try_from(u64::try_from(length.as_millis())? / case.every_ms)?;
    watchers.mark(pieces as u64)?;
    driver.send_message(&format!("stamped {pieces} {PIECE_BYTES} {}", case.every_ms))?;
    watchers.wait()?;
    let latencies = watchers.latencies_us()?;
    ensure!(
        latencies.len() == pieces,
        "{} of {pieces} pieces reached all watchers",
        latencies.len()
    );
    Ok(Percentiles::of(&latencies[warm_up..]))
}
