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
