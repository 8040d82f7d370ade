//! The way from users' messages to a provider's shapes.
//!
//! Promises: nothing else makes anything but parts of a message; what it reads outside was handed in by the host, and
//! read on threads that may wait for a disk.
//! Must not know: where bodies and files lie.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::{SharedSources, UserMessage};
use compositor::lower::{Capabilities, Lowered, ResolvedMessage, Target, lower_all};
use compositor::resolve::InlineLimits;

use crate::task;

/// A message and the parts of it that a provider rejected: they are described instead.
#[derive(Debug, Clone, Default)]
pub struct MessageToLower {
    pub message: Arc<UserMessage>,
    pub described: BTreeSet<usize>,
}

/// Lowers one message for a target.
pub async fn lower_message(
    sources: &SharedSources,
    message: Arc<UserMessage>,
    target: Target,
    capabilities: Capabilities,
) -> Lowered {
    let message = MessageToLower { message, described: BTreeSet::new() };
    let mut lowered = lower_messages(sources, vec![message], target, capabilities).await;
    lowered.pop().unwrap_or_default()
}

/// Lowers the messages of one request for a target, in their order. The newest draw on the budget first.
pub async fn lower_messages(
    sources: &SharedSources,
    messages: Vec<MessageToLower>,
    target: Target,
    capabilities: Capabilities,
) -> Vec<Lowered> {
    let sources = sources.clone();
    // A defect of ours ends the turn: the caller panics, too, and sends no empty request.
    let work = task::run_blocking(move || {
        let mut sources = sources.lock();
        let messages: Vec<ResolvedMessage<'_>> = messages
            .iter()
            .map(|to_lower| ResolvedMessage {
                parts: &to_lower.message.parts,
                resolved: &to_lower.message.resolved,
                described: &to_lower.described,
            })
            .collect();
        let limits = InlineLimits::default();
        lower_all(&messages, limits, target, &capabilities, &mut *sources)
    });
    work.await
}
