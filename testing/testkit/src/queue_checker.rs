//! Checks the queue of one chat by what was recorded: every message is sent once, from the head, or is removed.

use serde_json::Value;

/// What waits in a chat, and what was taken out to be sent.
#[derive(Debug, Default)]
pub struct QueueChecker {
    waiting: Vec<(String, Value)>,
    /// Taken out by the host; the very next action of the chat must send it (H-231).
    taken: Option<(String, Value)>,
}

impl QueueChecker {
    /// Takes one recorded envelope of the chat. What is wrong with it, if anything is.
    pub fn apply(&mut self, envelope: &Value) -> Option<String> {
        let action = &envelope["action"];
        let by_host = envelope.get("origin").is_none();
        let id = action["id"].as_str().unwrap_or("");
        let queued = action["kind"] == "queued";
        let kind = action["type"].as_str().unwrap_or("");
        let taken = self.taken.take();
        match (kind, taken) {
            ("chat/turnStarted", taken) => Self::sent(envelope, taken),
            (_, Some((id, _))) => Some(format!("{id} was taken and not sent: {envelope}")),
            ("chat/pendingMessageSet", None) if queued => {
                let message = action["message"].clone();
                match self.waiting.iter_mut().find(|(known, _)| known == id) {
                    Some(entry) => entry.1 = message,
                    None => self.waiting.push((id.to_owned(), message)),
                }
                None
            }
            ("chat/pendingMessageRemoved", None) if queued => self.removed(id, by_host, envelope),
            ("chat/queuedMessagesReordered", None) => self.reordered(envelope),
            _ => None,
        }
    }

    fn sent(envelope: &Value, taken: Option<(String, Value)>) -> Option<String> {
        let action = &envelope["action"];
        let named = action.get("queuedMessageId").and_then(Value::as_str);
        match (named, taken) {
            (None, None) => None,
            (Some(named), Some((id, message))) if named == id => {
                let same = ["text", "attachments", "_meta", "origin"]
                    .iter()
                    .all(|field| message.get(field) == action["message"].get(field));
                (!same).then(|| format!("another message was sent than queued: {envelope}"))
            }
            (_, taken) => Some(format!("{taken:?} was taken, and sent: {envelope}")),
        }
    }

    fn removed(&mut self, id: &str, by_host: bool, envelope: &Value) -> Option<String> {
        let Some(index) = self.waiting.iter().position(|(known, _)| known == id) else {
            return Some(format!("nothing waits under this id: {envelope}")); // H-233
        };
        let entry = self.waiting.remove(index);
        if !by_host {
            return None;
        }
        self.taken = Some(entry);
        (index != 0).then(|| format!("not the head was taken: {envelope}"))
    }

    /// A recorded order names everyone once, so that every client sorts alike (H-234).
    fn reordered(&mut self, envelope: &Value) -> Option<String> {
        let order = envelope["action"]["order"].as_array()?;
        let named: Vec<&str> = order.iter().filter_map(Value::as_str).collect();
        let mut sorted = named.clone();
        sorted.sort_unstable();
        let mut known: Vec<&str> = self.waiting.iter().map(|(id, _)| id.as_str()).collect();
        known.sort_unstable();
        if sorted != known {
            return Some(format!("{known:?} wait, and are ordered: {envelope}"));
        }
        let index = |id: &str| named.iter().position(|named| *named == id);
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|(id, _)| index(id));
        self.waiting = waiting;
        None
    }

    /// What was taken and not sent by the end of the batch, in words.
    pub fn unsent(&self) -> Option<String> {
        let (id, _) = self.taken.as_ref()?;
        Some(format!("{id} was taken out of the queue and not sent"))
    }

    /// What waits, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|(id, _)| id.as_str())
    }
}
