//! What a user message means.
//!
//! A message is a list of typed parts from the moment it is submitted until a provider's own shapes are made of it at
//! the last door (`lower`). Everything here is a function of its arguments.
//!
//! Must not know: files, sockets, channels, the host. What lies in a workspace or a blob store is handed in.

pub mod ahp;
mod body;
pub mod command;
pub mod compose;
mod diagnostics;
pub mod lower;
pub mod parse;
pub mod part;
pub mod picture;
pub mod position;
pub mod resolve;
mod settle;
pub mod sniff;
pub mod version;

pub use command::{Action, Catalogue, host_actions};
pub use compose::{Composed, Input, Refused, Surroundings, compose, is_plain, plain};
pub use part::{Part, View};
