//! The replies that an agent waits for: each question is registered before it leaves, and forgotten when nobody waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use agent_api::{AgentReply, AwaitedReply};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A reply came that no call waits for, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no call waits for this reply")]
pub struct UnexpectedReply;

/// The replies that an agent waits for. Clones share the same waits.
#[derive(Debug, Clone, Default)]
pub struct PendingReplies(Arc<Mutex<HashMap<AwaitedReply, oneshot::Sender<AgentReply>>>>);

/// A question that waits for its reply; when this is dropped, it does not any more.
pub(super) struct ReplyWait<'a> {
    replies: &'a PendingReplies,
    awaited: AwaitedReply,
}

impl PendingReplies {
    /// From now on a reply to this is waited for, until it comes.
    pub(super) fn register(&self, awaited: AwaitedReply) -> oneshot::Receiver<AgentReply> {
        let (sender, reply) = oneshot::channel();
        self.0.lock().insert(awaited, sender);
        reply
    }

    /// The same, no longer than the wait that is returned is held.
    pub(super) fn wait_for(
        &self,
        awaited: AwaitedReply,
    ) -> (oneshot::Receiver<AgentReply>, ReplyWait<'_>) {
        let wait = ReplyWait { replies: self, awaited };
        (self.register(awaited), wait)
    }

    /// Hands a reply to who waits for it.
    pub fn deliver(&self, reply: AgentReply) -> Result<(), UnexpectedReply> {
        let waiting = self.0.lock().remove(&reply.answers()).ok_or(UnexpectedReply)?;
        waiting.send(reply).map_err(|_| UnexpectedReply)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl Drop for ReplyWait<'_> {
    fn drop(&mut self) {
        self.replies.0.lock().remove(&self.awaited);
    }
}
