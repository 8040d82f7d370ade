//! What this host says beyond the protocol, between peers that agreed on it: names under `x-`, keys in `_meta`, and
//! fields that others ignore.
//!
//! Promises: an extension is used only with peers that opted in, or that ask for it. Its messages have JSON Schemas in
//! `docs/schema`.

pub mod compose;
pub mod import_session;
pub mod models;
pub mod system_message_transform;
