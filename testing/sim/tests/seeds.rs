//! Many seeds, and each of them twice the same.

use std::panic::{AssertUnwindSafe, catch_unwind};

fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_SEEDS").unwrap_or(300),
    }
}

#[test]
fn two_hundred_seeds_and_more() {
    let aloud = std::env::var("SIM_SEED").is_ok();
    let mut failed = Vec::new();
    for seed in seeds() {
        match catch_unwind(AssertUnwindSafe(|| sim::tell(seed, aloud))) {
            Ok(ending) if ending.wrong.is_empty() => {}
            Ok(ending) => {
                println!("seed {seed}:\n{}", ending.wrong.join("\n"));
                failed.push(seed);
            }
            Err(_) => {
                println!("seed {seed} panicked");
                failed.push(seed);
            }
        }
    }
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
