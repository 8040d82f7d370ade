//! A live stream's p99 while others come, open a 5 MB chat in full and leave, ten a second.
//!
//! The stream is that of `latency`: stamped drafts, 200 a second, 100 watchers. The bare server answers the same
//! openings with bytes it has ready.

use anyhow::Result;

use super::latency::{EVERY, Tiles, timed};
use super::{median_of, values};
use crate::lab::{HostSetup, Lab};
use crate::measure::spread;
use crate::rows::open::{CHAT_BYTES, big_chat};
use crate::seed_data::Seeded;
use crate::stage::{Crowd, Stage, Subject, Watchers};
use crate::table::Figure;

const OPEN_EVERY_MS: u64 = 100;

struct Lived {
    tiles: Tiles,
    opened_per_s: f64,
}

pub fn run(lab: &mut Lab) -> Result<Vec<Figure>> {
    let results = lab.shuffled(&[Subject::HOST, Subject::Bare], measured)?;
    let of = |subject, value: fn(&Lived) -> f64| median_of(&results, subject, value);
    let p99 = |lived: &Lived| lived.tiles.p99;
    let figure = Figure::at_most(
        "p99 while others open 5 MB, 10 a second",
        "us",
        of(Subject::HOST, p99),
        of(Subject::Bare, p99),
        1.5,
    );
    Ok(vec![
        figure
            .note(format!(
                "p50: host {:.0} us, bare {:.0} us; openings a second: {:.1}, {:.1}",
                of(Subject::HOST, |lived| lived.tiles.p50),
                of(Subject::Bare, |lived| lived.tiles.p50),
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

fn measured(lab: &mut Lab, subject: Subject) -> Result<Lived> {
    let (server, big) = match subject {
        Subject::Host(_) => {
            let data = lab.directory()?;
            let Seeded { chat, .. } = big_chat(&data)?;
            (lab.host(&data, HostSetup::SHIPPED)?, chat)
        }
        Subject::Bare => {
            let chat = "ahp-chat:/big".to_owned();
            let options = [format!("--big-bytes={CHAT_BYTES}"), format!("--big={chat}")];
            (lab.bare(&options)?, chat)
        }
    };
    let mut stage = Stage::on(server)?;
    let mut watchers = Watchers::join(
        lab,
        &stage,
        &Crowd {
            stamped: true,
            ..Crowd::default()
        },
    )?;
    let mut opener = lab.helper(&[
        "opener".to_owned(),
        format!("--address={}", stage.server.address),
        format!("--channel={big}"),
        format!("--every-ms={OPEN_EVERY_MS}"),
    ])?;
    opener.line()?;
    opener.tell("go")?;
    let seconds = lab.seconds(5.0);
    let count = u32::try_from(seconds.as_millis() / EVERY.as_millis())?;
    let tiles = timed(&mut stage, &mut watchers, count)?;
    let opened = opener.ask("enough")?["opened"].as_f64().unwrap_or(0.0);
    // The warm-up of the drafts is half a second in which there are openings too.
    Ok(Lived {
        tiles,
        opened_per_s: opened / (seconds.as_secs_f64() + 0.5),
    })
}
