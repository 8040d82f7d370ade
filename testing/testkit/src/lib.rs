//! A simulated world around the real kernel: clients, links, virtual time, a scripted model, a journal that can fail,
//! and checkers that know no test.
//!
//! Promises: everything is deterministic; the same seed gives the same bytes.
//! Must not know: sockets, files, threads, the clock. Only [`model_server`] does: it stands outside the simulated world,
//! for tests of what talks to real servers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

pub mod agents_heard;
pub mod blocks;
mod bodies;
pub mod chats;
pub mod checker;
pub mod client;
pub mod connections;
pub mod consent;
pub mod derived_state;
pub mod digest;
pub mod facts;
pub mod files_asked;
pub mod ledger;
pub mod link;
pub mod mirror;
pub mod model;
pub mod model_server;
pub mod pending_messages;
mod published_types;
pub mod queue_checker;
pub mod replicas;
pub mod rng;
mod rollback_check;
pub mod scenario;
pub mod scenario_client;
pub mod script;
pub mod sent_resources;
pub mod tool;
pub mod transform_opt_in;
pub mod world;

pub use crate::client::ROOT;
pub use model_server::{Answer, Call, CapturedRequest, Gate, ModelServer};
pub use scenario::Scenario;
pub use scenario_client::{ScenarioClient, Sent};
pub use script::Script;
pub use tool::Tool;
pub use world::{Kill, World};

/// The URI of the chat that comes with a session (G-26).
pub fn default_chat(session: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::from("ahp-chat://default/");
    for chunk in session.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for offset in 0..=chunk.len() {
            let index = bits >> (18 - 6 * offset) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}
