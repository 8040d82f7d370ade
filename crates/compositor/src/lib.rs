//! What a user message means.
//!
//! A message is a list of typed parts from the moment it is submitted until it is lowered to a provider's
//! own shapes (`lower`). Everything here is a function of its arguments.
//!
//! Must not know: files, sockets, channels, the host. The content of workspaces and blob stores is passed in.

pub mod ahp;
pub mod annotations;
mod body;
pub mod chat_reference;
pub mod command;
pub mod compose;
mod diagnostics;
pub mod image_header;
pub mod lower;
pub mod media_type;
mod normalize;
pub mod parse;
pub mod part;
pub mod position;
pub mod resolve;
pub mod version;

pub use command::{Catalogue, CommandAction, host_actions};
pub use compose::{
    ComposeRefusal, Composed, Environment, SubmittedMessage, compose, compose_plain, is_plain,
    plain_rows,
};
pub use part::{Part, View};
