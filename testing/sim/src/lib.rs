//! Seeded simulation: a seed becomes clients of both generations, links that break, a host that dies at any point of
//! write, speak and act, a journal that fails, a moody model and a clock that jumps. In the end everything heals, and
//! the checkers say whether the house stood.
//!
//! Promises: the same seed tells the same story, byte for byte.

mod chats;
mod consent;
mod heal;
mod mishap;
mod mood;
mod rewrite;
mod story;
mod verb;
mod waiting;

pub use story::{Ending, tell};
