//! Clients that run ahead of their host, with connections that are cut at any moment: at the end, all
//! agree, every action took effect at most once, and nothing was sent again that must not be (G-30).
//!
//! The host of this test is a model of its own on the reducers; `PROPTEST_CASES` makes it look harder.

#![allow(clippy::expect_used, reason = "a test that cannot go on ends")]
#![allow(unreachable_pub, reason = "modules that several tests share")]

#[path = "convergence/actions.rs"]
mod actions;
#[path = "convergence/dice.rs"]
mod dice;
#[path = "convergence/host.rs"]
mod host;
#[path = "convergence/person.rs"]
mod person;
#[path = "convergence/recorded.rs"]
mod recorded;
#[path = "convergence/story.rs"]
mod story;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn all_replicas_agree_at_the_end(
        first in vec(any::<u8>(), 0..4),
        steps in vec(vec(any::<u8>(), 0..14), 0..160),
    ) {
        story::tell(&first, &steps);
    }
}

#[test]
fn calls_are_written_down_only_when_that_is_asked_for() {
    let steps = vec![vec![0, 0, 1, 2, 3]; 6];
    let silent = story::tell(&[0], &steps);
    assert!(silent.iter().all(|person| person.replica.calls().is_empty()));
    let recorded = recorded::recording(|| story::tell(&[0], &steps));
    let names: Vec<&str> = recorded
        .iter()
        .flat_map(|person| person.replica.calls())
        .filter_map(|call| call["call"].as_str())
        .collect();
    for name in ["takeSnapshot", "dispatch", "takeUnsent", "receive"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}
