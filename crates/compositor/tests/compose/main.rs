//! From what is submitted to what is persisted, rule by rule.

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
