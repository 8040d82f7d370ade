//! A render of the system prompt: what the sections were, which client was asked to rewrite some of them, and the result.

use std::collections::BTreeMap;

use agent_api::Section;
use serde_json::Value;
use wire::{ChannelUri, RpcError, Timestamp};

use crate::host_guard::HostGuard;
use crate::ids::{ChannelId, RunId};

/// One render that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The chat it was made for, and the turn; none at the start of a session.
    pub chat: ChannelId,
    pub turn_id: Option<String>,
    /// When it was done.
    pub at: Timestamp,
    /// What the agent put together, in order.
    pub before: Vec<Section>,
    /// What a client made of some sections, by id.
    pub rewritten: BTreeMap<String, String>,
    pub transform: Transform,
}

/// Whether a client rewrote sections, and if not, why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transform {
    NotAsked(TransformSkipped),
    Rewritten(TransformAttempt),
    PassedThrough(TransformAttempt, TransformFailure),
}

/// Why no client was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransformSkipped {
    /// No active client that is connected opted in.
    NobodyOptedIn,
    /// Nothing that its owner opted in to is in this render and may leave the host.
    NothingToRewrite,
}

/// Which client was asked to rewrite which sections, and how long its answer took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransformAttempt {
    pub client_id: String,
    pub method: &'static str,
    pub sections: Vec<String>,
    pub ms: u64,
}

/// Why everything stays as it was (G-36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransformFailure {
    Timeout,
    /// The connection ended before it answered.
    PeerGone,
    /// It answered with this error.
    Error(i32),
    Malformed,
    TooLarge,
    /// Too many questions to this client are out already.
    Busy,
}

impl Rendered {
    /// The sections as the model is to read them.
    pub fn after(&self) -> Vec<Section> {
        let after = |section: &Section| match self.rewritten.get(&*section.id) {
            Some(content) => Section { content: content.clone().into(), ..section.clone() },
            None => section.clone(),
        };
        self.before.iter().map(after).collect()
    }
}

impl Transform {
    pub fn attempt(&self) -> Option<&TransformAttempt> {
        match self {
            Self::NotAsked(_) => None,
            Self::Rewritten(asked) | Self::PassedThrough(asked, _) => Some(asked),
        }
    }

    /// The outcome's name in counters and in the journal.
    pub fn outcome_name(&self) -> &'static str {
        match self {
            Self::NotAsked(TransformSkipped::NobodyOptedIn) => "nobodyOptedIn",
            Self::NotAsked(TransformSkipped::NothingToRewrite) => "nothingToRewrite",
            Self::Rewritten(_) => "rewritten",
            Self::PassedThrough(_, failure) => match failure {
                TransformFailure::Timeout => "timeout",
                TransformFailure::PeerGone => "peerGone",
                TransformFailure::Error(_) => "error",
                TransformFailure::Malformed => "malformed",
                TransformFailure::TooLarge => "tooLarge",
                TransformFailure::Busy => "busy",
            },
        }
    }
}

/// A render on its way to who waits for it.
pub(crate) struct Rendering {
    pub to: Renderer,
    pub chat: ChannelId,
    pub turn_id: Option<String>,
    pub before: Vec<Section>,
}

/// A render that waits for a client to rewrite some of its sections.
pub(crate) struct PendingTransform {
    pub rendering: Rendering,
    pub attempt: TransformAttempt,
}

/// Who waits for a render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Renderer {
    Run {
        run: RunId,
        render: u64,
    },
    /// A session that begins: nobody but the operator.
    Session(ChannelUri),
}

/// How a request to a client ended.
pub(crate) enum RequestEnd {
    /// With this result; `bytes` is what the message took on the wire.
    Result {
        value: Value,
        bytes: usize,
        /// What the host keeps for the answer while anything of it is in memory.
        hold: HostGuard,
    },
    Error(RpcError),
    Timeout,
    PeerGone,
}
