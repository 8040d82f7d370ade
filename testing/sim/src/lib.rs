//! Seeded simulation: a seed becomes clients of both generations, links that break, a host that dies at any point of
//! write, send and act, a journal that fails, a model that does anything and a clock that jumps. In the end every fault
//! is removed, and the checkers say whether the state is right.
//!
//! Promises: the same seed gives the same bytes.

mod agent_news;
mod annotations;
mod chats;
mod client_actions;
mod consent;
mod faults;
mod model_scripts;
mod pending_messages;
mod recovery;
mod rewrite;
mod simulation;

pub use simulation::{Outcome, run};
