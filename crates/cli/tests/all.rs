//! The real binary, as people use it. One executable: it is linked once.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]
#![allow(unreachable_pub, reason = "modules that several tests share")]

mod acp_kill;
mod agents;
mod budget;
mod changes;
mod chat;
mod complete;
mod compose;
mod compose_check;
mod consent;
mod devices;
mod documents;
mod driving;
mod endpoint;
mod export;
mod fixture;
mod input_line;
mod inspect;
mod inspect_calls;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod kernel_panic;
mod key_alone;
mod kill;
mod mcp_kill;
mod memory;
mod models;
mod models_refresh;
mod native;
mod pictures;
mod plain;
mod process_one;
mod prompt;
mod prompts;
mod reading;
mod rules;
mod running;
mod scenes;
mod send;
mod sessions;
mod sign_in;
mod spaces;
#[path = "../../../testing/conformance/tests/spoken/mod.rs"]
mod spoken;
mod terminal;
mod terminals;
mod undo;
mod verbs;
mod watch;
