//! Many seeds, and some of them twice the same.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("SIM_FROM").unwrap_or(0);
            first..first + number("SIM_SEEDS").unwrap_or(1_000)
        }
    }
}

/// What must have happened in a thousand simulations, so that nothing of it is checked in vain.
const EXPECTED: [&str; 42] = [
    "(chat noted)",
    "(steering told)",
    "root/agentsChanged",
    "session/configChanged",
    "chat/turnStarted",
    "chat/turnComplete",
    "chat/turnCancelled",
    "chat/turnResume",
    "chat/error",
    "chat/truncated",
    "chat/toolCallStart",
    "chat/toolCallDelta",
    "chat/toolCallReady",
    "chat/toolCallConfirmed",
    "chat/toolCallContentChanged",
    "chat/toolCallComplete",
    "chat/toolCallResultConfirmed",
    "chat/inputRequested",
    "chat/inputAnswerChanged",
    "chat/inputCompleted",
    "chat/pendingMessageSet",
    "chat/pendingMessageRemoved",
    "chat/queuedMessagesReordered",
    "chat/draftChanged",
    "session/inputNeededSet",
    "session/inputNeededRemoved",
    "session/chatAdded",
    "session/chatRemoved",
    "session/chatUpdated",
    "session/defaultChatChanged",
    "session/activeClientSet",
    "session/activeClientRemoved",
    "session/creationFailed",
    "(tools run)",
    "(mirrors compared after a crash)",
    "x-session/systemMessageTransformSet",
    "(render: rewritten)",
    "(render: nothingToRewrite)",
    "(render: timeout)",
    "(render: peerGone)",
    "(render: error)",
    "(render: malformed)",
];

/// Everything that happened; what went wrong, if anything did.
fn run_seed(seed: u64, trace: bool) -> (BTreeMap<String, u64>, Option<String>) {
    match catch_unwind(AssertUnwindSafe(|| sim::run(seed, trace))) {
        Ok(outcome) => {
            let wrong = (!outcome.wrong.is_empty()).then(|| outcome.wrong.join("\n"));
            (outcome.happened, wrong)
        }
        Err(_) => (BTreeMap::new(), Some("it panicked".to_owned())),
    }
}

#[test]
fn a_thousand_seeds() {
    let trace = std::env::var("SIM_SEED").is_ok();
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(Vec::new());
    let all = Mutex::new(BTreeMap::<String, u64>::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let (happened, wrong) = run_seed(seed, trace);
                    let mut all = all.lock().expect("no one panics here");
                    for (what, times) in happened {
                        *all.entry(what).or_default() += times;
                    }
                    drop(all);
                    if let Some(why) = wrong {
                        println!("seed {seed}:\n{why}");
                        failed.lock().expect("no one panics here").push(seed);
                    }
                }
            });
        }
    });
    let all = all.into_inner().expect("no one panics here");
    println!("{all:#?}");
    if seeds.end - seeds.start >= 300 {
        let missed: Vec<&&str> =
            EXPECTED.iter().filter(|run_seed| !all.contains_key(**run_seed)).collect();
        assert!(missed.is_empty(), "never happened: {missed:?}");
    }
    let mut failed = failed.into_inner().expect("no one panics here");
    failed.sort_unstable();
    assert!(failed.is_empty(), "{} seeds fail (SIM_SEED=n traces one): {failed:?}", failed.len());
}

#[test]
fn same_seed_twice_same_bytes() {
    for seed in 0..10 {
        assert_eq!(sim::run(seed, false), sim::run(seed, false), "seed {seed}");
    }
}
