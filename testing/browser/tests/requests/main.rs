//! What agents ask, answered on the page: one inbox over all sessions (W-5), questions of every kind (W-6).

#[path = "../signed_in/mod.rs"]
mod signed_in;

mod confirmations;
mod questions;
mod script;
mod sheet;
