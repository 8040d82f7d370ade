//! How many deltas a second a node delivers when one space streams without a pause, and when eight do: spaces share no lock, so
//! a node should use all its cores.
//!
//! Each space has one watcher, all of them in one other process. The watchers and the server of the database run on the same
//! cores, and on a machine with few of them take what the node could use: the notes say how much. The bound on bytes recorded
//! is switched off; it is there to keep one space from doing this.

use anyhow::Result;

use super::{median_of, values};
use crate::database::Database;
use crate::driver::{WatchedPlace, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::{Cpu, now_ns, spread};
use crate::node_place::NodePlace;
use crate::process::Server;
use crate::space_client::SpaceClient;
use crate::table::Figure;

const MANY: usize = 8;
const LIMITS: &str = "space_record_bytes_per_s = 0\nappend_slow_ms = 60000";
/// What a watcher hears when all deltas of a turn are behind it. Deltas that come while a commit is under way may be joined, so
/// frames are not counted.
const TURN_ENDS: &str = "chat/turnComplete";
const WARM_UP: u64 = 1_000;

struct Peak {
    rate: f64,
    /// How many cores were busy with the node, and with the server of the database.
    node_cores: f64,
    server_cores: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let Some(mut database) = Database::start()? else { return Ok(Vec::new()) };
    let node = NodePlace::make(harness, &database, "a", LIMITS)?.start(harness)?;
    let results = harness
        .shuffled(&[1, MANY], |harness, spaces| measure(harness, &mut database, &node, spaces))?;
    drop(node);
    let of = |spaces, value: fn(&Peak) -> f64| median_of(&results, spaces, value);
    let rounds = |spaces| spread(&values(&results, spaces, |peak| peak.rate));
    let busy = |spaces| {
        format!(
            "{:.1} busy with the node, {:.1} with the database",
            of(spaces, |peak| peak.node_cores),
            of(spaces, |peak| peak.server_cores)
        )
    };
    let cores = std::thread::available_parallelism()?.get();
    Ok(vec![
        Figure::at_least(
            "peak deltas/s of a node with 8 spaces, against 1",
            "/s",
            of(MANY, |peak| peak.rate),
            of(1, |peak| peak.rate),
            0.7 * cores as f64,
        )
        .note(format!("0.7 x {cores} cores; with 1 space {}; with 8 {}", busy(1), busy(MANY)))
        .note(format!("rounds: 8 spaces {}, 1 {}", rounds(MANY), rounds(1))),
    ])
}

fn measure(
    harness: &mut Harness,
    database: &mut Database,
    node: &Server,
    spaces: usize,
) -> Result<Peak> {
    let deltas: u64 = if harness.quick { 5_000 } else { 20_000 };
    let tokens = database.make_spaces(spaces)?;
    let mut clients = Vec::new();
    for token in &tokens {
        clients.push(SpaceClient::create(&node.address, token)?);
    }
    let chats: Vec<String> = clients.iter().map(|client| client.chat.clone()).collect();
    let place = WatchedPlace { address: &node.address, chats: &chats, tokens: &tokens };
    let options =
        WatcherOptions { count: spaces, word: Some(TURN_ENDS), ..WatcherOptions::default() };
    let mut watchers = Watchers::join_at(harness, place, &options)?;
    watchers.mark(1)?;
    for client in &mut clients {
        client.stream(WARM_UP, 0)?;
    }
    watchers.wait()?;
    watchers.mark(1)?;
    let (node_before, server_before) = (Cpu::of(node.pid())?, database.cpu_ns()?);
    let began = now_ns();
    for client in &mut clients {
        client.stream(deltas, 0)?;
    }
    let sample = watchers.wait()?;
    let ns = sample.last_ns.saturating_sub(began) as f64;
    let node_used = Cpu::of(node.pid())?.since(node_before);
    let server_used = database.cpu_ns()?.saturating_sub(server_before);
    let all = deltas as f64 * spaces as f64;
    Ok(Peak {
        rate: all / (ns / 1e9),
        node_cores: node_used.total_ns as f64 / ns,
        server_cores: server_used as f64 / ns,
    })
}
