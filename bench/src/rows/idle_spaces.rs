//! What a node has for spaces that are loaded while nobody does anything in them: anonymous memory, and statements.
//!
//! A client comes into each space and leaves. What one space takes is what the node grew by from one to all of them. Statements
//! are counted by the server, each kind apart, with one space and with all, for the same time: what a kind was run oftener with
//! all of them, they have caused. A heartbeat may fall into the one time and not into the other, so [`SLACK`] of a kind are no
//! difference; a thousand spaces that ask anything at all make many more.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::database::Database;
use crate::harness::Harness;
use crate::measure::{median, rss_anon_kib, spread};
use crate::node_place::NodePlace;
use crate::space_client::join_space;
use crate::table::Figure;

/// They stay loaded as long as the row takes.
const LIMITS: &str = "space_idle_s = 3600";
const SLACK: u64 = 2;
/// What is still to be written after the last client has gone is written by then.
const SETTLE_MAX: Duration = Duration::from_secs(240);
const SETTLE_LOOK: Duration = Duration::from_secs(6);
/// A kernel sweeps twice after the last thing it wrote, `sweep_ms` (30 s) apart: a shorter silence is not its last.
const SWEEP_LOOK: Duration = Duration::from_secs(40);

/// What one node took.
struct NodeUse {
    kib_with_one: f64,
    kib_with_all: f64,
    each_kib: f64,
    /// A minute.
    statements_of_one: f64,
    statements_of_all: f64,
}

type Calls = BTreeMap<String, u64>;

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let (spaces, rounds) = if harness.quick { (300, 1) } else { (1_000, 3) };
    let mut uses = Vec::new();
    for _ in 0..rounds {
        let Some(mut database) = Database::start_counting()? else { return Ok(Vec::new()) };
        uses.push(measure(harness, &mut database, spaces)?);
    }
    let column = |value: fn(&NodeUse) -> f64| uses.iter().map(value).collect::<Vec<f64>>();
    let of = |value: fn(&NodeUse) -> f64| median(&column(value));
    Ok(vec![
        Figure::within(
            &format!("memory of an idle loaded space, over {spaces}"),
            "KiB",
            of(|used| used.each_kib),
            f64::NAN,
            12.0,
            "12 KiB",
        )
        .note(format!(
            "the node: {:.0} KiB with one space, {:.0} KiB with all",
            of(|used| used.kib_with_one),
            of(|used| used.kib_with_all)
        ))
        .note(format!("rounds: {}", spread(&column(|it| it.each_kib)))),
        Figure::within(
            &format!(
                "statements a minute for {spaces} idle spaces, beside those of a node with one"
            ),
            "/min",
            of(|used| used.statements_of_all),
            of(|used| used.statements_of_one),
            0.0,
            "none",
        )
        .note("the floor is what the node asks for itself: heartbeats, and what others want of it"),
    ])
}

fn measure(harness: &mut Harness, database: &mut Database, spaces: usize) -> Result<NodeUse> {
    let node = NodePlace::make(harness, database, "a", LIMITS)?.start(harness)?;
    let tokens = database.make_spaces(spaces + 1)?;
    let (first, others) = tokens.split_first().context("a space")?;
    let window = harness.seconds(60.0);
    let minutes = window.as_secs_f64() / 60.0;

    drop(join_space(&node.address, first, "visitor")?);
    settle(database, None)?;
    // Its sweeps are none of what a node asks for itself.
    std::thread::sleep(2 * SWEEP_LOOK);
    let kib_with_one = rss_anon_kib(node.pid())? as f64;
    let of_one = count_during(database, window)?;

    for token in others {
        drop(join_space(&node.address, token, "visitor")?);
    }
    settle(database, Some((&of_one, window)))?;
    let kib_with_all = rss_anon_kib(node.pid())? as f64;
    let of_all = count_during(database, window)?;
    let loaded = "SELECT count(*) FROM greenroom.lease WHERE node IS NOT NULL";
    let loaded: usize = database.sql(loaded)?.parse()?;
    ensure!(loaded > spaces, "only {loaded} spaces are loaded");
    Ok(NodeUse {
        kib_with_one,
        kib_with_all,
        each_kib: (kib_with_all - kib_with_one) / spaces as f64,
        statements_of_one: of_one.values().sum::<u64>() as f64 / minutes,
        statements_of_all: excess(&of_all, &of_one) as f64 / minutes,
    })
}

/// How often each kind of statement is run meanwhile.
fn count_during(database: &Database, time: Duration) -> Result<Calls> {
    let before = database.statements()?;
    std::thread::sleep(time);
    let after = database.statements()?;
    let since = |(id, calls): (String, u64)| {
        let earlier = before.get(&id).copied().unwrap_or(0);
        (id, calls.saturating_sub(earlier))
    };
    let counted = after.into_iter().map(since);
    Ok(counted.filter(|(_, calls)| *calls > 0).collect())
}

/// By how much each kind was run oftener, all together.
fn excess(of_all: &Calls, of_one: &Calls) -> u64 {
    let each = of_all.iter().map(|(id, calls)| {
        let usual = of_one.get(id).copied().unwrap_or(0);
        let more = calls.saturating_sub(usual);
        if more > SLACK { more } else { 0 }
    });
    each.sum()
}

/// Waits until nobody counts a client any more, and until nothing is asked but what a node with one space asks; what goes on
/// for longer is measured.
fn settle(database: &Database, usual: Option<(&Calls, Duration)>) -> Result<()> {
    let until = Instant::now() + SETTLE_MAX;
    let busy =
        "SELECT count(*) FROM greenroom.node WHERE expires > clock_timestamp() AND busiest <> '[]'";
    let look = match usual {
        None => SETTLE_LOOK,
        Some(_) => SWEEP_LOOK,
    };
    while Instant::now() < until {
        let asked = count_during(database, look)?;
        let is_quiet = match usual {
            None => true,
            Some((usual, window)) => {
                let part = look.as_secs_f64() / window.as_secs_f64();
                let usual: Calls = usual
                    .iter()
                    .map(|(id, calls)| (id.clone(), (*calls as f64 * part).ceil() as u64))
                    .collect();
                excess(&asked, &usual) == 0
            }
        };
        if is_quiet && database.sql(busy)? == "0" {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(of: &[(&str, u64)]) -> Calls {
        of.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect()
    }

    #[test]
    fn what_many_spaces_ask_is_found_and_heartbeats_are_not() {
        let of_one = calls(&[("beat", 30), ("orders", 2)]);
        let of_all = calls(&[("beat", 31), ("orders", 4), ("sweep", 1_000)]);
        assert_eq!(excess(&of_all, &of_one), 1_000);
        assert_eq!(excess(&of_one, &of_one), 0);
        assert_eq!(excess(&calls(&[("beat", 33)]), &of_one), 3);
    }
}
