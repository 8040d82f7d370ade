//! What a user message means.
//!
//! A message is a list of typed parts from the moment it is submitted until a provider's own shapes are made of it at
//! the last door (`lower`). Everything here is a function of its arguments.
//!
//! Must not know: files, sockets, channels, the host. What lies in a workspace or a blob store is handed in.

pub mod lower;
pub mod part;
pub mod picture;
pub mod resolve;
pub mod sniff;

pub use part::{Part, View};
