//! The agent's work on the active turn of a chat. The agent names parts, tool calls and questions by numbers of its own;
//! a run knows which ids clients know them by. It is not stored: a turn without its run is closed after a restart.

use std::collections::{BTreeMap, VecDeque};

use agent_api::TextKind;
use wire::ChannelUri;
use wire::state::PendingMessage;

use crate::io::RunId;

/// Steering messages that an agent was offered and that are remembered until it takes them: it has one at a time.
const OFFERED_STEERING_MAX: usize = 8;

/// One agent task at work on one turn.
pub(crate) struct Run {
    id: RunId,
    /// Response part ids by the agent's own numbers.
    parts: BTreeMap<u64, (String, TextKind)>,
    /// Tool calls, likewise.
    calls: BTreeMap<u64, RunCall>,
    /// Ids of input requests, likewise.
    questions: BTreeMap<u64, String>,
    /// The agent waits for a steering message, under this number.
    awaited_steering: Option<u64>,
    /// The steering messages that it was offered and did not take yet, as they were then, the oldest first.
    offered_steering: VecDeque<PendingMessage>,
}

/// A tool call of a run, and who carries it out.
struct RunCall {
    id: String,
    executor: Executor,
    /// Whether the agent waits for its outcome.
    awaited: bool,
}

/// Who carries out a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executor {
    Agent,
    Client,
    /// The chat of a worker.
    Worker(ChannelUri),
}

impl Run {
    pub(crate) fn new(id: RunId) -> Self {
        Self {
            id,
            parts: BTreeMap::new(),
            calls: BTreeMap::new(),
            questions: BTreeMap::new(),
            awaited_steering: None,
            offered_steering: VecDeque::new(),
        }
    }

    pub(crate) fn id(&self) -> RunId {
        self.id
    }

    pub(crate) fn add_part(&mut self, number: u64, id: String, kind: TextKind) {
        self.parts.insert(number, (id, kind));
    }

    pub(crate) fn part(&self, number: u64) -> Option<(&str, TextKind)> {
        self.parts.get(&number).map(|(id, kind)| (id.as_str(), *kind))
    }

    pub(crate) fn add_call(&mut self, number: u64, id: String, executor: Executor) {
        debug_assert!(
            self.calls.values().all(|call| call.id != id),
            "the id of a tool call comes from a seq and is used once"
        );
        let call = RunCall { id, executor, awaited: false };
        self.calls.insert(number, call);
    }

    /// Somebody else carries out a call from now on, and the agent waits for its end; the id of the call, if there is one of
    /// this number.
    pub(crate) fn hand_over_call(&mut self, number: u64, executor: &Executor) -> Option<String> {
        let call = self.calls.get_mut(&number)?;
        call.executor = executor.clone();
        call.awaited = true;
        Some(call.id.clone())
    }

    /// The agent waits for the outcome of a call from now on.
    pub(crate) fn await_call(&mut self, number: u64) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.awaited = true;
        }
    }

    /// Takes a call that the agent waits for: its number and who carries it out.
    pub(crate) fn take_awaited(&mut self, id: &str) -> Option<(u64, Executor)> {
        let mut calls = self.calls.iter_mut();
        let (number, call) = calls.find(|(_, call)| call.id == id)?;
        std::mem::take(&mut call.awaited).then(|| (*number, call.executor.clone()))
    }

    /// The id of the call that the agent knows by this number.
    pub(crate) fn call_id(&self, number: u64) -> Option<&str> {
        self.calls.get(&number).map(|call| call.id.as_str())
    }

    /// The call that waits for a worker.
    pub(crate) fn call_of_worker(&self, worker: &ChannelUri) -> Option<&str> {
        let mut calls = self.calls.values();
        calls
            .find(|call| matches!(&call.executor, Executor::Worker(chat) if chat == worker))
            .map(|call| call.id.as_str())
    }

    pub(crate) fn remove_call(&mut self, id: &str) {
        self.calls.retain(|_, call| call.id != id);
    }

    /// The chats of the workers that still work for this run.
    pub(crate) fn workers(&self) -> Vec<ChannelUri> {
        let calls = self.calls.values();
        calls
            .filter_map(|call| match &call.executor {
                Executor::Worker(chat) => Some(chat.clone()),
                Executor::Agent | Executor::Client => None,
            })
            .collect()
    }

    pub(crate) fn add_question(&mut self, number: u64, id: String) {
        self.questions.insert(number, id);
    }

    /// The agent does not wait for a question any more; the id of it.
    pub(crate) fn remove_question(&mut self, number: u64) -> Option<String> {
        self.questions.remove(&number)
    }

    /// The agent waits for a steering message from now on.
    pub(crate) fn await_steering(&mut self, steer: u64) {
        self.awaited_steering = Some(steer);
    }

    /// Takes the number under which the agent waits for a steering message that it does not know yet.
    pub(crate) fn offer_steering(&mut self, waiting: &PendingMessage) -> Option<u64> {
        if self.offered_steering.contains(waiting) {
            return None;
        }
        let steer = self.awaited_steering.take()?;
        self.offered_steering.retain(|offered| offered.id != waiting.id);
        if self.offered_steering.len() >= OFFERED_STEERING_MAX {
            self.offered_steering.pop_front();
        }
        self.offered_steering.push_back(waiting.clone());
        Some(steer)
    }

    /// The agent has a message that it was offered: as it was then.
    pub(crate) fn take_offered_steering(&mut self, pending_id: &str) -> Option<PendingMessage> {
        let offered = &mut self.offered_steering;
        let index = offered.iter().position(|offered| offered.id == pending_id)?;
        offered.remove(index)
    }

    /// The agent's number of a question.
    pub(crate) fn find_question(&self, id: &str) -> Option<u64> {
        let mut questions = self.questions.iter();
        questions.find(|(_, asked)| *asked == id).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_id_and_by_its_worker() {
        let worker = ChannelUri::parse("ahp-chat:/worker-1").unwrap();
        let mut run = Run::new(RunId(1));
        run.add_call(7, "c1".to_owned(), Executor::Agent);
        run.add_call(8, "c2".to_owned(), Executor::Worker(worker.clone()));
        assert_eq!(run.call_id(7), Some("c1"));
        assert_eq!(run.take_awaited("c1"), None);
        run.await_call(7);
        assert_eq!(run.take_awaited("c1"), Some((7, Executor::Agent)));
        assert_eq!(run.take_awaited("c1"), None, "it is told once");
        assert_eq!(run.call_of_worker(&worker), Some("c2"));
        assert_eq!(run.workers(), std::slice::from_ref(&worker));
        let handed_over = run.hand_over_call(7, &Executor::Worker(worker.clone()));
        assert_eq!(handed_over.as_deref(), Some("c1"));
        assert!(run.take_awaited("c1").is_some());
        assert_eq!(run.hand_over_call(9, &Executor::Client), None);
        run.remove_call("c1");
        run.remove_call("c2");
        assert_eq!(run.call_of_worker(&worker), None);
        assert_eq!(run.call_id(8), None);
    }
}
