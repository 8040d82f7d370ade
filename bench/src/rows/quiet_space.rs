//! What a space suffers from another on the same node: the p99 of stamped drafts in a space with one watcher, 50 a second,
//! while another space streams turns without a pause, against the same node with nothing else to do.
//!
//! Everything is as shipped, limits included: they are what keeps spaces apart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::latency::Percentiles;
use super::{median_of, values};
use crate::database::Database;
use crate::driver::{WatchedPlace, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::spread;
use crate::node_place::NodePlace;
use crate::process::Server;
use crate::space_client::SpaceClient;
use crate::table::Figure;

const EVERY: Duration = Duration::from_millis(20);
const WARM_UP: u32 = 25;
/// Of one turn of the space that floods; another follows.
const FLOOD_DELTAS: u64 = 20_000;
/// A turn of the flood takes a few seconds, on a slow machine more.
const TURN_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Until the flood flows.
const FLOOD_BEGINS: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbour {
    Nobody,
    Flood,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let Some(mut database) = Database::start()? else { return Ok(Vec::new()) };
    let node = NodePlace::make(harness, &database, "a", "")?.start(harness)?;
    let neighbours = [Neighbour::Nobody, Neighbour::Flood];
    let results = harness.shuffled(&neighbours, |harness, neighbour| {
        let tokens = database.make_spaces(2)?;
        let [quiet, loud] = &tokens[..] else {
            bail!("two spaces were to be made");
        };
        match neighbour {
            Neighbour::Nobody => measure(harness, &node, quiet),
            Neighbour::Flood => measure_beside(harness, &node, quiet, loud),
        }
    })?;
    drop(node);
    let of = |who, value: fn(&Percentiles) -> f64| median_of(&results, who, value);
    let rounds = |who| spread(&values(&results, who, |times| times.p99));
    Ok(vec![
        Figure::at_most(
            "p99 of a quiet space beside a flooding one, against alone",
            "us",
            of(Neighbour::Flood, |times| times.p99),
            of(Neighbour::Nobody, |times| times.p99),
            2.0,
        )
        .note(format!(
            "p50: beside {:.0} us, alone {:.0} us",
            of(Neighbour::Flood, |times| times.p50),
            of(Neighbour::Nobody, |times| times.p50),
        ))
        .note(format!(
            "rounds: beside {}, alone {}",
            rounds(Neighbour::Flood),
            rounds(Neighbour::Nobody)
        )),
    ])
}

fn measure(harness: &mut Harness, node: &Server, token: &String) -> Result<Percentiles> {
    let count = u32::try_from(harness.seconds(10.0).as_millis() / EVERY.as_millis())?;
    let mut client = SpaceClient::create(&node.address, token)?;
    let mut watchers = watch(harness, node, &client, token, &WatcherOptions::stamped(1))?;
    watchers.mark(u64::from(WARM_UP))?;
    client.stamp(WARM_UP, EVERY)?;
    watchers.wait()?;
    watchers.mark(u64::from(count))?;
    client.stamp(count, EVERY)?;
    watchers.wait()?;
    Ok(Percentiles::of(&watchers.latencies_us()?))
}

fn watch(
    harness: &mut Harness,
    node: &Server,
    client: &SpaceClient,
    token: &String,
    options: &WatcherOptions,
) -> Result<Watchers> {
    let place = WatchedPlace {
        address: &node.address,
        chats: std::slice::from_ref(&client.chat),
        tokens: std::slice::from_ref(token),
    };
    Watchers::join_at(harness, place, options)
}

fn measure_beside(
    harness: &mut Harness,
    node: &Server,
    quiet: &String,
    loud: &String,
) -> Result<Percentiles> {
    let mut client = SpaceClient::create(&node.address, loud)?;
    let options = WatcherOptions { count: 1, name: "loud", ..WatcherOptions::default() };
    let mut watchers = watch(harness, node, &client, loud, &options)?;
    let ends = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let flooding = threads.spawn(|| flood(&mut client, &ends));
        std::thread::sleep(FLOOD_BEGINS);
        let before = watchers.sample();
        let measured = measure(harness, node, quiet);
        let after = watchers.sample();
        ends.store(true, Ordering::Relaxed);
        let flooded = flooding.join();
        let Ok(flooded) = flooded else {
            bail!("the flood panicked");
        };
        flooded.context("the flood failed")?;
        let frames = after?.frames.saturating_sub(before?.frames);
        ensure!(frames > 100, "{frames} frames are no flood");
        measured
    })
}

/// Turn after turn, until it is to end. The last one has ended when this returns.
fn flood(client: &mut SpaceClient, ends: &AtomicBool) -> Result<()> {
    while !ends.load(Ordering::Relaxed) {
        client.stream(FLOOD_DELTAS, 0)?;
        let until = Instant::now() + TURN_MAX;
        loop {
            // Seldom: the turn is sent whole to whoever looks.
            std::thread::sleep(LOOK_EVERY);
            if client.is_idle()? {
                break;
            }
            ensure!(Instant::now() < until, "a turn does not end");
        }
    }
    Ok(())
}
