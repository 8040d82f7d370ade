//! What it costs that a client came to the wrong node: CPU of both nodes for each frame that reaches a watcher, with one watcher
//! and with a hundred, and the p50 of a stamped draft, against clients on the node that serves the space.
//!
//! With one watcher a frame has a whole commit in it; with a hundred it is nearly the relay alone.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::latency::{EVERY, Percentiles};
use super::{median_of, values};
use crate::database::Database;
use crate::driver::{WATCHERS, WatchedPlace, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::{Cpu, spread};
use crate::node_place::NodePlace;
use crate::process::Server;
use crate::space_client::SpaceClient;
use crate::table::Figure;

const WARM_UP: Duration = Duration::from_millis(600);
/// Deltas, 200 a second.
const EVERY_MS: u64 = 5;
const STAMPS_BEFORE: u32 = 100;
/// What is left of a turn when nobody measures any more is less.
const TURN_ENDS: Duration = Duration::from_secs(60);
/// Until a node has heard of the other.
const BEATS: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Relayed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// CPU a frame with so many watchers.
    Cpu(usize),
    /// The p50 of a draft.
    Latency,
}

/// The node that serves all spaces, and one that serves none.
struct Nodes {
    owner: Server,
    other: Server,
}

impl Nodes {
    fn cpu_ns(&self) -> Result<u64> {
        Ok(Cpu::of(self.owner.pid())?.total_ns + Cpu::of(self.other.pid())?.total_ns)
    }

    fn address(&self, way: Way) -> &str {
        match way {
            Way::Direct => &self.owner.address,
            Way::Relayed => &self.other.address,
        }
    }
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let Some(mut database) = Database::start()? else { return Ok(Vec::new()) };
    let nodes = Nodes {
        owner: NodePlace::make(harness, &database, "a", "")?.start(harness)?,
        other: NodePlace::make(harness, &database, "b", "")?.start(harness)?,
    };
    std::thread::sleep(BEATS);
    let subjects = [What::Cpu(1), What::Cpu(WATCHERS), What::Latency]
        .map(|what| [(what, Way::Direct), (what, Way::Relayed)]);
    let results = harness.shuffled(subjects.as_flattened(), |harness, (what, way)| {
        let token = database.make_spaces(1)?.pop().context("a space")?;
        // Who comes first decides which node serves the space.
        let mut first = SpaceClient::create(&nodes.owner.address, &token)?;
        match what {
            What::Cpu(watchers) => cpu_a_frame(harness, &nodes, way, watchers, &mut first, &token),
            What::Latency => p50(harness, nodes.address(way), &token),
        }
    })?;
    drop(nodes);
    let figure = |what: What, words: &str, factor: f64| {
        let of = |way| median_of(&results, (what, way), |value| *value);
        let rounds = |way| spread(&values(&results, (what, way), |value| *value));
        Figure::at_most(words, "us", of(Way::Relayed), of(Way::Direct), factor).note(format!(
            "rounds: relayed {}, direct {}",
            rounds(Way::Relayed),
            rounds(Way::Direct)
        ))
    };
    Ok(vec![
        figure(
            What::Cpu(1),
            "CPU of both nodes a frame, relayed against direct, 200/s, 1 watcher",
            1.4,
        ),
        figure(What::Cpu(WATCHERS), "the same, 100 watchers", 1.4),
        figure(What::Latency, "p50 of a draft to 1 watcher, 200/s, relayed against direct", 1.3),
    ])
}

fn watch(
    harness: &mut Harness,
    address: &str,
    chat: &String,
    token: &String,
    options: &WatcherOptions,
) -> Result<Watchers> {
    let place = WatchedPlace {
        address,
        chats: std::slice::from_ref(chat),
        tokens: std::slice::from_ref(token),
    };
    Watchers::join_at(harness, place, options)
}

/// The stream is asked for by a client on the node that serves the space; what differs is where the watchers are.
fn cpu_a_frame(
    harness: &mut Harness,
    nodes: &Nodes,
    way: Way,
    count: usize,
    client: &mut SpaceClient,
    token: &String,
) -> Result<f64> {
    let seconds = harness.seconds(3.0);
    let options = WatcherOptions { count, ..WatcherOptions::default() };
    let chat = client.chat.clone();
    let mut watchers = watch(harness, nodes.address(way), &chat, token, &options)?;
    let length = WARM_UP * 2 + seconds;
    let deltas = u64::try_from(length.as_millis())? / EVERY_MS;
    client.stream(deltas, EVERY_MS)?;
    std::thread::sleep(WARM_UP);
    let (before, first) = (nodes.cpu_ns()?, watchers.sample()?);
    std::thread::sleep(seconds);
    let (after, last) = (nodes.cpu_ns()?, watchers.sample()?);
    let frames = last.frames.saturating_sub(first.frames);
    ensure!(frames > 0, "no frame came");
    drop(watchers);
    let until = Instant::now() + TURN_ENDS;
    while !client.is_idle()? {
        ensure!(Instant::now() < until, "a turn does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(after.saturating_sub(before) as f64 / 1_000.0 / frames as f64)
}

/// Both who writes and who watches come by the same way.
fn p50(harness: &mut Harness, address: &str, token: &String) -> Result<f64> {
    let count = u32::try_from(harness.seconds(5.0).as_millis() / EVERY.as_millis())?;
    let mut client = SpaceClient::open(address, token, "writer")?;
    let chat = client.chat.clone();
    let mut watchers = watch(harness, address, &chat, token, &WatcherOptions::stamped(1))?;
    watchers.mark(u64::from(STAMPS_BEFORE))?;
    client.stamp(STAMPS_BEFORE, EVERY)?;
    watchers.wait()?;
    watchers.mark(u64::from(count))?;
    client.stamp(count, EVERY)?;
    watchers.wait()?;
    Ok(Percentiles::of(&watchers.latencies_us()?).p50)
}
