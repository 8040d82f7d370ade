//! Three nodes, one database, a few spaces, in virtual time: seeds choose when processes stop, die and start again, when the
//! database is away or its clock jumps, and which packets are lost or late. What runs are the state machines of a real node.
//!
//! `LEASE_SEEDS=10000 cargo test -p host --lib lease_simulation -- --nocapture` runs more seeds and prints what they did;
//! `LEASE_SEED=n` runs one.

mod faults;
mod node;
mod table;
mod world;

use faults::SimFigures;
use world::LeaseWorld;

/// A mistake that a checker must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlantedBug {
    None,
    /// The table takes batches of every epoch.
    AppendUnchecked,
    /// Whoever was away itself judges others.
    JudgeUnwell,
    /// A node says what it has to say, however old its heartbeat is.
    SpeakUntrusted,
    /// A batch is said before it is committed.
    SpeakUncommitted,
}

fn count(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn leases_hold_over_seeds() {
    let (first, seeds) = match count("LEASE_SEED") {
        Some(seed) => (seed, 1),
        None => (0, count("LEASE_SEEDS").unwrap_or(300)),
    };
    let mut all = SimFigures::default();
    for seed in first..first + seeds {
        match LeaseWorld::new(seed, PlantedBug::None).run() {
            Ok(figures) => all.add(&figures),
            Err(broken) => panic!("LEASE_SEED={seed}: {broken}"),
        }
    }
    println!("{seeds} seeds: {all:?}");
    // What was never tried was not tested.
    if seeds >= 100 {
        for (what, count) in all.counts() {
            assert!(count > 0, "no seed had any {what}");
        }
    }
}

#[test]
fn a_planted_bug_is_found() {
    for (bug, words) in [
        (PlantedBug::AppendUnchecked, "after"),
        (PlantedBug::JudgeUnwell, "was unwell itself"),
        (PlantedBug::SpeakUntrusted, "spoke for"),
        (PlantedBug::SpeakUncommitted, "is not in the journal"),
    ] {
        let mut seeds = 0..300;
        let found = seeds.find_map(|seed| LeaseWorld::new(seed, bug).run().err());
        let found = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        assert!(found.contains(words), "{bug:?}: {found}");
    }
}
