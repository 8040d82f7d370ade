//! What the host costs between a model and those who watch: CPU for each piece of an answer, from the provider's bytes
//! to the watchers' sockets, against a bare relay of the same stream.
//!
//! The model server sends pieces of 16 bytes, about four tokens. The host decodes, decides, records with full durability
//! and encodes; the relay reads with the same HTTP library and hands each piece on as it is, through the same WebSocket
//! code. The host may send several pieces in one frame and one commit; what is counted are the pieces that reached the
//! watchers, not the frames. The relay commits nothing, so each case has a second floor: a relay that commits the pieces as
//! they are batched (see `recorder`), which is the same work.

use anyhow::{Context, Result};

use super::{median_of, values};
use crate::driver::{Driver, Load, LoadResult, Subject, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::spread;
use crate::table::Figure;
use crate::wire_format::WireFormat;

const PIECE_BYTES: u64 = 16;
const PIECE_TOKENS: f64 = 4.0;
/// A word of which each piece has one: the host may send several pieces in one frame, and pieces are what is counted.
const PIECE_WORD: &str = "quick";
/// Without a pause: pieces at the beginning and at the end that are not measured. A relay sends 200 in a millisecond, and some time passes between
/// the last one of the beginning and the first that is counted.
const APART: u64 = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    what: &'static str,
    watchers: usize,
    every_ms: u64,
    window_ms: Option<u32>,
    wire: WireFormat,
}

const CASES: [Case; 9] = [
    Case {
        what: "CPU per piece of an answer, 200/s, 1 watcher",
        watchers: 1,
        every_ms: 5,
        window_ms: None,
        wire: WireFormat::Chat,
    },
    Case {
        what: "the same, 10 watchers",
        watchers: 10,
        every_ms: 5,
        window_ms: None,
        wire: WireFormat::Chat,
    },
    Case {
        what: "the same, 50 watchers",
        watchers: 50,
        every_ms: 5,
        window_ms: None,
        wire: WireFormat::Chat,
    },
    Case {
        what: "the same, 1 watcher, 20 ms window",
        watchers: 1,
        every_ms: 5,
        window_ms: Some(20),
        wire: WireFormat::Chat,
    },
    Case {
        what: "the same, 1,000/s, 1 watcher, 5 ms window",
        watchers: 1,
        every_ms: 1,
        window_ms: Some(5),
        wire: WireFormat::Chat,
    },
    Case {
        what: "the same without a pause, 1 watcher",
        watchers: 1,
        every_ms: 0,
        window_ms: None,
        wire: WireFormat::Chat,
    },
    over("the same over Anthropic Messages, 200/s, 1 watcher", WireFormat::Anthropic),
    over("the same over OpenAI Responses", WireFormat::Responses),
    over("the same over Gemini", WireFormat::Gemini),
];

/// The first case in another wire format.
const fn over(what: &'static str, wire: WireFormat) -> Case {
    Case { what, watchers: 1, every_ms: 5, window_ms: None, wire }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Host,
    Relay,
    /// A relay that commits what it passes on first.
    RecordingRelay,
}

const SERVERS: [Server; 3] = [Server::Host, Server::Relay, Server::RecordingRelay];

/// A server and the case it is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Measured {
    server: Server,
    case: Case,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let (_model, port) = harness.model_server()?;
    let seconds = harness.seconds(2.0);
    let subjects: Vec<Measured> = CASES
        .iter()
        .flat_map(|case| SERVERS.map(|server| Measured { server, case: *case }))
        .collect();
    let results = harness.shuffled(&subjects, |harness, measured| {
        let Measured { server, case } = measured;
        let load = Load { every_ms: case.every_ms, window_ms: case.window_ms, seconds };
        measure(harness, measured, port, load).with_context(|| format!("{server:?}: {}", case.what))
    })?;
    let figures =
        CASES.iter().flat_map(|case| [figure(*case, &results), against_recording(*case, &results)]);
    Ok(figures.collect())
}

fn figure(case: Case, results: &[(Measured, LoadResult)]) -> Figure {
    // What was delivered to several watchers was one piece.
    let cost = |loaded: &LoadResult| loaded.us_per_frame * case.watchers as f64;
    let of = |server, value: &dyn Fn(&LoadResult) -> f64| {
        median_of(results, Measured { server, case }, value)
    };
    let (host, bare) = (of(Server::Host, &cost), of(Server::Relay, &cost));
    let rounds = |server| spread(&values(results, Measured { server, case }, cost));
    Figure::at_most(case.what, "us", host, bare, 2.0)
        .note(format!(
            "a token: host {:.1} us, bare {:.1} us",
            host / PIECE_TOKENS,
            bare / PIECE_TOKENS,
        ))
        .note(format!(
            "kernel's thread {:.0} % of the host's CPU, {:.1} pieces a commit",
            of(Server::Host, &|loaded| loaded.kernel_share),
            of(Server::Host, &|loaded| loaded.batch),
        ))
        .note(format!(
            "pieces delivered a second: host {:.0}, bare {:.0}; bytes a piece: {:.0}, {:.0}",
            of(Server::Host, &|loaded| loaded.rate),
            of(Server::Relay, &|loaded| loaded.rate),
            of(Server::Host, &|loaded| loaded.frame_bytes),
            of(Server::Relay, &|loaded| loaded.frame_bytes),
        ))
        .note(format!("rounds: host {}, bare {}", rounds(Server::Host), rounds(Server::Relay),))
}

/// The same against a relay that is as durable.
fn against_recording(case: Case, results: &[(Measured, LoadResult)]) -> Figure {
    let cost = |loaded: &LoadResult| loaded.us_per_frame * case.watchers as f64;
    let of = |server| median_of(results, Measured { server, case }, cost);
    let what = format!("{}: against a relay that records", case.what);
    let relay = Measured { server: Server::RecordingRelay, case };
    let rounds = spread(&values(results, relay, cost));
    Figure::at_most(&what, "us", of(Server::Host), of(Server::RecordingRelay), 2.0)
        .note(format!("rounds: recording relay {rounds}"))
}

fn measure(harness: &mut Harness, measured: Measured, port: u16, load: Load) -> Result<LoadResult> {
    let case = measured.case;
    let server = match measured.server {
        Server::Host => Subject::HOST.start_with_model_over(harness, port, case.wire)?,
        Server::Relay => Subject::Bare.start_with_model_over(harness, port, case.wire)?,
        Server::RecordingRelay => harness.recording_relay(port, case.wire)?,
    };
    let mut driver = Driver::with(server, "native", 1)?;
    let options = WatcherOptions {
        count: case.watchers,
        window_ms: case.window_ms,
        word: Some(PIECE_WORD),
        ..WatcherOptions::default()
    };
    let mut watchers = Watchers::join(harness, &driver, &options)?;
    let every_ms = case.every_ms;
    if every_ms > 0 {
        let pieces = load.deltas()?;
        driver.send_message(&format!("answer {pieces} {PIECE_BYTES} {every_ms}"))?;
        return load.measure(&driver, &mut watchers);
    }
    let measured = if harness.quick { 10_000 } else { 30_000 };
    let pieces = measured + 2 * APART;
    watchers.mark(APART)?;
    driver.send_message(&format!("answer {pieces} {PIECE_BYTES} {every_ms}"))?;
    watchers.wait()?;
    LoadResult::measure_during(&driver, &mut watchers, |watchers| {
        watchers.mark(measured)?;
        watchers.wait().map(drop)
    })
}
