//! From what is submitted to what is persisted, rule by rule.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod attachments;
mod by_vector;
mod commands;
mod environment;
mod fuzzed;
mod hostile;
mod laws;
mod mentions;
mod messages;
mod parts;
#[path = "../vectors/mod.rs"]
mod vectors;
