//! The replies that an agent waits for: each question is registered before it leaves, and forgotten when nobody waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_api::{AgentReply, Awaited};
use tokio::sync::oneshot;

/// A reply came that no call waits for, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no call waits for this reply")]
pub struct NotAwaited;

/// The replies that an agent waits for. Clones share the same waits.
#[derive(Debug, Clone, Default)]
pub struct PendingReplies(Arc<Mutex<HashMap<Awaited, oneshot::Sender<AgentReply>>>>);

/// A question that waits for its reply; when this is dropped, it does not any more.
pub(super) struct Wait<'a> {
    replies: &'a PendingReplies,
    awaited: Awaited,
}

impl PendingReplies {
    fn lock(&self) -> MutexGuard<'_, HashMap<Awaited, oneshot::Sender<AgentReply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on a reply to this is waited for, until it comes.
    pub(super) fn register(&self, awaited: Awaited) -> oneshot::Receiver<AgentReply> {
        let (sender, reply) = oneshot::channel();
        self.lock().insert(awaited, sender);
        reply
    }

    /// The same, no longer than the wait that is returned is held.
    pub(super) fn wait_for(&self, awaited: Awaited) -> (oneshot::Receiver<AgentReply>, Wait<'_>) {
        let wait = Wait {
            replies: self,
            awaited,
        };
        (self.register(awaited), wait)
    }

    /// Hands a reply to who waits for it.
    pub fn deliver(&self, reply: AgentReply) -> Result<(), NotAwaited> {
        let waiting = self.lock().remove(&reply.answers()).ok_or(NotAwaited)?;
        waiting.send(reply).map_err(|_| NotAwaited)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.replies.lock().remove(&self.awaited);
    }
}
