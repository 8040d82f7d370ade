//! When an agent was heard, and when a call of it may have begun.
//!
//! Promises: a call that is told of when it is over began after what its agent said before, whatever it says of its session meanwhile.

use std::time::SystemTime;

use agent_client_protocol_schema::v1 as acp;

use super::call_update::CallUpdate;

/// When the agent was heard, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct ActivityTimes {
    /// What is mapped now came then.
    now: Option<SystemTime>,
    /// It was prompted then, or said something else last.
    before: Option<SystemTime>,
}

impl ActivityTimes {
    /// The agent is about to be prompted.
    pub(in super::super) fn note_prompt(&mut self, at: SystemTime) {
        self.before = Some(at);
    }

    /// What is mapped next came then.
    pub(in super::super) fn note_arrival(&mut self, at: SystemTime) {
        self.now = Some(at);
    }

    /// What came now was something that is seen in the turn.
    pub(super) fn note_activity(&mut self) {
        self.before = self.now;
    }

    /// When a call that is new began, at the earliest.
    pub(super) fn beginning_of(&self, update: &CallUpdate) -> Option<SystemTime> {
        use acp::ToolCallStatus as S;
        match update.fields.status {
            Some(S::Completed | S::Failed) => self.before,
            _ => self.now,
        }
    }
}
