//! Messages of the protocol and the parts they are, lossless both ways (3.1 to 3.3).
//!
//! A received message is stored beside its parts and restored exactly, except for bodies that went to the blob store.
//! A message that is made from parts carries a skeleton, by which they are found again.

mod anchor;
mod attachment;
mod client_resource;
mod context;
mod form;
mod read;
mod record;
mod skeleton;
mod uri;
mod write;

pub(crate) use read::{read_message, read_text};
pub(crate) use record::{metadata, record};

pub use attachment::insert_text;
pub use client_resource::{client_resource, client_resources};
pub use context::{context_names, contexts_in, names_in};
pub use read::from_ahp;
pub use write::to_ahp;

/// Where a message carries its skeleton, in `_meta`.
pub const MESSAGE_KEY: &str = "compositor/message";
/// Where a message brings editor context along, and a request for completions names it, in `_meta`.
pub const CONTEXTS_KEY: &str = "compositor/contexts";
/// Where an attachment carries its part, in `_meta`.
pub const PART_KEY: &str = "compositor/part";
