//! A model's answer to one request, and the calls it asks for.

use std::sync::Arc;

use compositor::Part;
use serde_json::Value;

use crate::provider::{StopReason, ToolUse, Usage};

/// What a model answered to one request.
#[derive(Debug, Default)]
pub(super) struct ModelAnswer {
    pub text: String,
    pub calls: Vec<RequestedCall>,
    pub usage: Usage,
    pub stop: Option<StopReason>,
    /// The same as its server wants it back.
    pub items: Option<Arc<Vec<Value>>>,
}

/// A call that the model asked for, and the number it was announced under.
#[derive(Debug, Clone)]
pub(super) struct RequestedCall {
    pub number: u64,
    pub tool_use: ToolUse,
    /// What it was announced with; said again whenever something is said of it.
    pub meta: wire::Object,
}

/// What a model gets of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CallAnswer {
    pub text: String,
    /// Bodies that came with it.
    pub media: Vec<Part>,
}

impl From<String> for CallAnswer {
    fn from(text: String) -> Self {
        let media = Vec::new();
        Self { text, media }
    }
}

/// Numbers of parts and calls: each occurs once in a run.
#[derive(Debug, Default)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Under this name a call says in which round of its turn it was made: calls of one round saw nothing of each other.
pub(super) const ROUND: &str = "greenroom.round";

/// Under this name a call says by which mark the processes that it starts can be recognised, also by a host that comes later.
pub(super) const MARK: &str = "greenroom.mark";

/// Under this name a call says that the model's server carried it out itself: it is a part of the answer, and has no
/// result of ours.
pub(super) const SERVER_TOOL: &str = "greenroom.serverTool";
