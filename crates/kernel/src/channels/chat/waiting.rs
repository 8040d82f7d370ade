//! What the host knows of the messages that wait in a chat: who sent them, and what they mean.
//!
//! Promises: nothing is known of a message that is not in the chat's state when a step ends.

use wire::state::ChatState;

use super::Chat;
use crate::author::Author;
use crate::submission::Submitted;

impl Chat {
    /// A message waits from now on, or means something else than before: the state has it already.
    pub(crate) fn put_message(&mut self, id: String, author: Author, submitted: Submitted) {
        debug_assert!(is_waiting(&self.state, &id), "the message waits");
        self.private.messages.insert(id.clone(), submitted);
        self.private.message_authors.insert(id, author);
    }

    /// Takes out who sent a message that waits and what it means. Messages of older journals have no meaning stored.
    pub(crate) fn take_message(&mut self, id: &str) -> (Option<Author>, Option<Submitted>) {
        let author = self.private.message_authors.remove(id);
        (author, self.private.messages.remove(id))
    }

    /// Messages that wait no more, and authors of such: the rest of what is known of them can be forgotten. Returns the
    /// ids of their rows.
    pub(crate) fn forget_gone_messages(&mut self) -> Vec<String> {
        let state = &self.state;
        let gone = |id: &String| !is_waiting(state, id);
        let private = &mut self.private;
        private.message_authors.retain(|id, _| !gone(id));
        let ids: Vec<String> = private.messages.keys().filter(|id| gone(id)).cloned().collect();
        let rows = ids.iter().filter_map(|id| private.messages.remove(id));
        rows.map(|submitted| submitted.id).collect()
    }

    /// Whether what is known of waiting messages names some that are gone.
    pub(crate) fn knows_gone_messages(&self) -> bool {
        let mut known = self.private.message_authors.keys().chain(self.private.messages.keys());
        known.any(|id| !is_waiting(&self.state, id))
    }

    /// Whether a draft or a message waits here: its session is not empty then (G-28).
    pub(crate) fn holds_input(&self) -> bool {
        // Clients clear their input by syncing an empty draft: that is none.
        let has_draft = self.state.draft.as_ref().is_some_and(|draft| {
            let attachments = draft["attachments"].as_array();
            let text = draft["text"].as_str();
            attachments.is_some_and(|all| !all.is_empty())
                || text.is_some_and(|text| !text.is_empty())
        });
        has_draft || self.state.steering_message.is_some() || !self.state.queued_messages.is_empty()
    }
}

fn is_waiting(state: &ChatState, id: &str) -> bool {
    let steering = state.steering_message.as_ref();
    steering.is_some_and(|message| message.id == id)
        || state.queued_messages.iter().any(|other| other.id == id)
}
