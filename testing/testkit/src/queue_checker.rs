//! Checks what waits in one chat by what was recorded: every queued message is sent once, from the head, or is removed;
//! steering that its turn did not take is sent at once, or becomes the head of the queue (G-08).

use serde_json::Value;

/// What waits in a chat, and what the host must do with it next.
#[derive(Debug, Default)]
pub struct QueueChecker {
    waiting: Vec<(String, Value)>,
    steering: Option<(String, Value)>,
    busy: bool,
    due: Due,
}

/// What the very next action of the chat must be.
#[derive(Debug, Default)]
enum Due {
    #[default]
    Anything,
    /// A message was taken out of the queue: it is sent (H-231).
    Start((String, Value)),
    /// A turn ended and left steering: it is sent, or goes to the queue.
    Leftover,
    /// Steering was taken by the host while no turn ran: it is queued under the same id.
    Queue((String, Value)),
    /// It was queued behind others: it becomes the head.
    Head(String),
}

impl QueueChecker {
    /// Takes one recorded envelope of the chat. What is wrong with it, if anything is.
    pub fn apply(&mut self, envelope: &Value) -> Option<String> {
        let action = &envelope["action"];
        let kind = action["type"].as_str().unwrap_or("");
        let wrong = match (kind, std::mem::take(&mut self.due)) {
            ("chat/turnStarted", due) => self.started(envelope, due),
            (_, Due::Start((id, _))) => Some(format!("{id} was taken and not sent: {envelope}")),
            ("chat/pendingMessageSet", due) => self.set(envelope, due),
            (_, Due::Queue((id, _))) => Some(format!("{id} was taken and not queued: {envelope}")),
            ("chat/queuedMessagesReordered", due) => self.reordered(envelope, due),
            (_, Due::Head(id)) => Some(format!("{id} was not put first: {envelope}")),
            ("chat/pendingMessageRemoved", due) => self.removed(envelope, due),
            (_, Due::Leftover) => Some(format!("steering was left, and then: {envelope}")),
            ("chat/turnComplete" | "chat/turnCancelled" | "chat/error", Due::Anything) => {
                self.ended();
                None
            }
            ("chat/truncated", Due::Anything) => {
                if self.busy {
                    self.ended();
                }
                None
            }
            ("chat/turnResume", Due::Anything) => {
                self.busy = true;
                None
            }
            (_, Due::Anything) => None,
        };
        wrong.or_else(|| self.unsteered(envelope))
    }

    fn ended(&mut self) {
        self.busy = false;
        if self.steering.is_some() {
            self.due = Due::Leftover;
        }
    }

    /// Steering in an idle chat must be what comes next.
    fn unsteered(&self, envelope: &Value) -> Option<String> {
        let waits = self.steering.is_some() && !self.busy && matches!(self.due, Due::Anything);
        waits.then(|| format!("steering waits where no turn runs, after {envelope}"))
    }

    fn set(&mut self, envelope: &Value, due: Due) -> Option<String> {
        let action = &envelope["action"];
        let entry = (action["id"].as_str().unwrap_or("").to_owned(), action["message"].clone());
        let queued = action["kind"] == "queued";
        let by_host = envelope.get("origin").is_none();
        let wrong = match due {
            Due::Queue(taken) if queued && by_host && taken == entry => {
                if !self.waiting.is_empty() {
                    self.due = Due::Head(entry.0.clone());
                }
                None
            }
            Due::Anything if !by_host => None,
            due => Some(format!("{due:?}, and then: {envelope}")),
        };
        if !queued {
            self.steering = Some(entry);
            if !self.busy {
                self.due = Due::Leftover; // it starts at once
            }
            return wrong;
        }
        match self.waiting.iter_mut().find(|(known, _)| *known == entry.0) {
            Some(known) => *known = entry,
            None => self.waiting.push(entry),
        }
        wrong
    }

    fn started(&mut self, envelope: &Value, due: Due) -> Option<String> {
        let action = &envelope["action"];
        let named = action.get("queuedMessageId").and_then(Value::as_str);
        self.busy = true;
        let sent = match (named, due) {
            (None, Due::Anything) => return None,
            (Some(_), Due::Start(taken)) => Some(taken),
            (Some(_), Due::Leftover) => self.steering.take(),
            (_, due) => return Some(format!("{due:?}, and then: {envelope}")),
        };
        let same = sent.is_some_and(|(id, message)| {
            let mut fields = ["text", "attachments", "_meta", "origin"].iter();
            Some(id.as_str()) == named
                && fields.all(|field| message.get(field) == action["message"].get(field))
        });
        (!same).then(|| format!("another message was sent than waited: {envelope}"))
    }

    fn removed(&mut self, envelope: &Value, due: Due) -> Option<String> {
        let action = &envelope["action"];
        let id = action["id"].as_str().unwrap_or("");
        let by_host = envelope.get("origin").is_none();
        if action["kind"] == "steering" {
            let taken = self.steering.take_if(|(known, _)| known == id);
            return match (taken, due) {
                (None, _) => Some(format!("nothing waits under this id: {envelope}")),
                (Some(taken), Due::Leftover) if by_host => {
                    self.due = Due::Queue(taken);
                    None
                }
                (Some(_), Due::Anything) if self.busy => None, // taken by the agent, or taken back
                (Some(_), due) => Some(format!("{due:?}, and then: {envelope}")),
            };
        }
        if !matches!(due, Due::Anything) {
            return Some(format!("{due:?}, and then: {envelope}"));
        }
        let Some(index) = self.waiting.iter().position(|(known, _)| known == id) else {
            return Some(format!("nothing waits under this id: {envelope}")); // H-233
        };
        let entry = self.waiting.remove(index);
        if !by_host {
            return None;
        }
        self.due = Due::Start(entry);
        (index != 0).then(|| format!("not the head was taken: {envelope}"))
    }

    /// A recorded order names everyone once, so that every client sorts alike (H-234).
    fn reordered(&mut self, envelope: &Value, due: Due) -> Option<String> {
        let order = envelope["action"]["order"].as_array()?;
        let named: Vec<&str> = order.iter().filter_map(Value::as_str).collect();
        let by_host = envelope.get("origin").is_none();
        let fits = match &due {
            Due::Head(id) => by_host && named.first() == Some(&id.as_str()),
            due => !by_host && matches!(due, Due::Anything),
        };
        if !fits {
            return Some(format!("{due:?}, and then: {envelope}"));
        }
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

    /// What was still to be done at the end of a batch, in words: nothing may be (all of it is one step).
    pub fn unsent(&self) -> Option<String> {
        match &self.due {
            Due::Anything => None,
            due => Some(format!("not done in the batch that began it: {due:?}")),
        }
    }

    /// What waits, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().map(|(id, _)| id.as_str())
    }
}
