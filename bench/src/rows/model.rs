//! What the host costs between a model and those who watch: CPU for each piece of an answer, from the provider's bytes
//! to the watchers' sockets, against a bare relay of the same stream.
//!
//! The model server sends 200 pieces a second of 16 bytes, about four tokens. The host decodes, decides, records with
//! full durability and encodes; the relay reads with the same HTTP library and hands each piece on as it is, through
//! the same WebSocket code. With so few watchers nearly every piece is a commit of its own.

use anyhow::Result;

use super::{median_of, values};
use crate::lab::{JournalKind, Lab};
use crate::measure::spread;
use crate::stage::{Crowd, Load, Loaded, Stage, Subject, Watchers};
use crate::table::Figure;

const PIECE_BYTES: u64 = 16;
const PIECE_TOKENS: f64 = 4.0;
const EVERY_MS: u64 = 5;

/// Who is measured, and with how many watchers.
type Who = (Subject, usize);

const IN_MEMORY: Subject = Subject::Host(JournalKind::Memory);

pub fn run(lab: &mut Lab) -> Result<Vec<Figure>> {
    let (_model, port) = lab.model_server()?;
    let subjects = [
        (Subject::HOST, 1),
        (IN_MEMORY, 1),
        (Subject::Bare, 1),
        (Subject::HOST, 10),
        (IN_MEMORY, 10),
        (Subject::Bare, 10),
    ];
    let load = Load {
        every_ms: EVERY_MS,
        window_ms: None,
        seconds: lab.seconds(3.0),
    };
    let results = lab.shuffled(&subjects, |lab, who| measured(lab, who, port, load))?;
    Ok(vec![
        figure("CPU per piece of an answer, 1 watcher", &results, 1),
        figure("CPU per piece of an answer, 10 watchers", &results, 10),
    ])
}

fn figure(what: &str, results: &[(Who, Loaded)], watchers: usize) -> Figure {
    // What was delivered to several watchers was one piece.
    let cost = |loaded: &Loaded| loaded.us_per_frame * watchers as f64;
    let of =
        |subject, value: &dyn Fn(&Loaded) -> f64| median_of(results, (subject, watchers), value);
    let (host, bare) = (of(Subject::HOST, &cost), of(Subject::Bare, &cost));
    let rounds = |subject| spread(&values(results, (subject, watchers), cost));
    Figure::at_most(what, "us", host, bare, 2.0)
        .note(format!(
            "a token: host {:.1} us, bare {:.1} us; without a journal on disk {:.1} us a piece",
            host / PIECE_TOKENS,
            bare / PIECE_TOKENS,
            of(IN_MEMORY, &cost),
        ))
        .note(format!(
            "journal {:.0} % of the host's CPU, {:.1} pieces a commit",
            of(Subject::HOST, &|loaded| loaded.journal_share),
            of(Subject::HOST, &|loaded| loaded.batch),
        ))
        .note(format!(
            "delivered a second: host {:.0}, bare {:.0}; bytes a frame: {:.0}, {:.0}",
            of(Subject::HOST, &|loaded| loaded.rate),
            of(Subject::Bare, &|loaded| loaded.rate),
            of(Subject::HOST, &|loaded| loaded.frame_bytes),
            of(Subject::Bare, &|loaded| loaded.frame_bytes),
        ))
        .note(format!(
            "rounds: host {}, bare {}",
            rounds(Subject::HOST),
            rounds(Subject::Bare),
        ))
}

fn measured(lab: &mut Lab, (subject, count): Who, port: u16, load: Load) -> Result<Loaded> {
    let mut stage = Stage::with(subject.start_with_model(lab, port)?, "native", 1)?;
    let crowd = Crowd {
        count,
        ..Crowd::default()
    };
    let mut watchers = Watchers::join(lab, &stage, &crowd)?;
    stage.say(&format!(
        "answer {} {PIECE_BYTES} {EVERY_MS}",
        load.deltas()?
    ))?;
    load.measured(&stage, &mut watchers)
}
