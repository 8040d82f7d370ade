//! Many seeds, and some of them twice the same.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = number("SIM_FROM").unwrap_or(0);
            first..first + number("SIM_SEEDS").unwrap_or(1_000)
        }
    }
}

/// What went wrong in a story, if anything did.
fn fails(seed: u64, aloud: bool) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| sim::tell(seed, aloud))) {
        Ok(ending) if ending.wrong.is_empty() => None,
        Ok(ending) => Some(ending.wrong.join("\n")),
        Err(_) => Some("it panicked".to_owned()),
    }
}

#[test]
fn a_thousand_seeds() {
    let aloud = std::env::var("SIM_SEED").is_ok();
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let Some(why) = fails(seed, aloud) {
                        println!("seed {seed}:\n{why}");
                        failed.lock().expect("no one panics here").push(seed);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().expect("no one panics here");
    failed.sort_unstable();
    assert!(
        failed.is_empty(),
        "{} seeds fail (SIM_SEED=n tells one aloud): {failed:?}",
        failed.len()
    );
}

#[test]
fn same_seed_twice_same_bytes() {
    for seed in 0..10 {
        assert_eq!(
            sim::tell(seed, false),
            sim::tell(seed, false),
            "seed {seed}"
        );
    }
}
