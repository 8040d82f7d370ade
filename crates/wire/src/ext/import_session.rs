//! `x-importSession`: a session with its turns, as another host or an earlier export knew it, becomes a session of this host.
//!
//! The session and its turns travel as JSON texts, not as JSON: a session may hold more values than a message may.

use serde::{Deserialize, Serialize};

use crate::Object;

pub const METHOD: &str = "x-importSession";

/// The params, beside `channel`, which is the root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportSessionParams {
    /// The JSON of the session's state, with `resource`, and `createdAt` and `modifiedAt` where they are known.
    pub session: String,
    /// JSON Lines, each an [`ImportedTurn`]: of each chat the oldest first.
    pub turns: String,
}

/// One completed turn, and the chat it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedTurn {
    pub chat: String,
    pub turn: Object,
}
