//! The workers of a chat: chats of their own that its tool calls started.

use super::OpenChat;
use super::asked::is_worker;

/// A worker, as its session lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSummary {
    /// The URI of its chat.
    pub chat: String,
    pub status: u32,
    /// What it does, in its own words.
    pub activity: Option<String>,
}

impl OpenChat {
    /// The workers of this chat, and their workers.
    pub fn workers(&self) -> Vec<WorkerSummary> {
        let Some(session) = self.session_state() else {
            return Vec::new(); // between two connections the session may not be held
        };
        let chats = session.chats.iter();
        let workers = chats.filter(|chat| is_worker(&session, &self.chat, &chat.resource));
        workers
            .map(|chat| WorkerSummary {
                chat: chat.resource.clone(),
                status: chat.status,
                activity: chat.activity.clone(),
            })
            .collect()
    }
}
