//! A live stream's p99 while others come, open a 5 MB chat in full and leave, ten a second.
//!
//! The stream is that of `latency`: stamped drafts, 200 a second, 100 watchers. The bare server answers the same
//! openings with bytes it has ready.

use anyhow::Result;

use super::latency::{EVERY, Percentiles, time_drafts};
use super::{median_of, values};
use crate::driver::{Driver, Subject, WATCHERS, WatcherOptions, Watchers};
use crate::harness::{Harness, HostSetup};
use crate::measure::spread;
use crate::rows::open::{CHAT_BYTES, big_chat};
use crate::seed_data::Seeded;
use crate::table::Figure;

const OPEN_EVERY_MS: u64 = 100;

struct LiveResult {
    percentiles: Percentiles,
    opened_per_s: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Subject::HOST, Subject::Bare], measure)?;
    let of = |subject, value: fn(&LiveResult) -> f64| median_of(&results, subject, value);
    let p99 = |lived: &LiveResult| lived.percentiles.p99;
    let figure = Figure::at_most(
        "p99 while others open 5 MB, 10 a second",
        "us",
        of(Subject::HOST, p99),
        of(Subject::Bare, p99),
        1.3,
    );
    Ok(vec![
        figure
            .note(format!(
                "p50: host {:.0} us, bare {:.0} us; openings a second: {:.1}, {:.1}",
                of(Subject::HOST, |lived| lived.percentiles.p50),
                of(Subject::Bare, |lived| lived.percentiles.p50),
                of(Subject::HOST, |lived| lived.opened_per_s),
                of(Subject::Bare, |lived| lived.opened_per_s),
            ))
            .note(format!(
                "rounds: host {}, bare {}",
                spread(&values(&results, Subject::HOST, p99)),
                spread(&values(&results, Subject::Bare, p99)),
            )),
    ])
}

fn measure(harness: &mut Harness, subject: Subject) -> Result<LiveResult> {
    let (server, big) = match subject {
        Subject::Host(_) => {
            let data = harness.directory()?;
            let Seeded { chat, .. } = big_chat(&data)?;
            (harness.host(&data, HostSetup::SHIPPED)?, chat)
        }
        Subject::Bare => {
            let chat = "ahp-chat:/big".to_owned();
            let options = [format!("--big-bytes={CHAT_BYTES}"), format!("--big={chat}")];
            (harness.bare(&options)?, chat)
        }
    };
    let mut driver = Driver::on(server)?;
    let mut watchers = Watchers::join(harness, &driver, &WatcherOptions::stamped(WATCHERS))?;
    let mut opener = harness.child(&[
        "opener".to_owned(),
        format!("--address={}", driver.server.address),
        format!("--channel={big}"),
        format!("--every-ms={OPEN_EVERY_MS}"),
    ])?;
    opener.line()?;
    opener.send_line("go")?;
    let seconds = harness.seconds(4.0);
    let count = u32::try_from(seconds.as_millis() / EVERY.as_millis())?;
    let percentiles = time_drafts(&mut driver, &mut watchers, count)?;
    let opened = opener.ask("enough")?["opened"].as_f64().unwrap_or(0.0);
    // The warm-up of the drafts is half a second in which there are openings too.
    Ok(LiveResult { percentiles, opened_per_s: opened / (seconds.as_secs_f64() + 0.5) })
}
