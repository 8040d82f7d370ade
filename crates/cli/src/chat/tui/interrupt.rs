//! Escape and Ctrl-C: close what is open, stop what runs, take the last message up again.
//!
//! Promises: one press does one thing, the nearest first.

use std::time::{Duration, Instant};

use super::{Flow, TerminalChat};
use crate::terminal::escape;

/// A second Escape within this time takes the last message up again (G-67).
const TWICE: Duration = Duration::from_secs(1);

/// The message that is being written anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rewriting {
    pub(super) turn_id: String,
    /// What was in the input line before.
    before: String,
}

impl TerminalChat {
    /// Ctrl-C: cancels what runs, or what is typed; twice in a row leaves.
    pub(super) fn interrupt(&mut self) -> anyhow::Result<Flow> {
        if self.is_interrupted {
            return Ok(Flow::Leave);
        }
        self.is_interrupted = true;
        if self.chat.cancel()? {
            self.note("Cancelled. Ctrl-C again leaves");
            return Ok(Flow::Continue);
        }
        self.stop_rewriting();
        self.editor.put_away();
        self.note("Ctrl-C again leaves");
        Ok(Flow::Continue)
    }

    /// Escape: steps back from what is open, else stops the turn; again at once edits the last message.
    pub(super) fn escape(&mut self) -> anyhow::Result<Flow> {
        let is_second = self.escaped_at.take().is_some_and(|at| at.elapsed() < TWICE);
        if self.field.is_some() {
            self.leave_field();
        } else if self.prompt.has_choice() {
            self.prompt.clear_choice();
        } else if is_second {
            self.start_rewriting();
        } else if self.rewriting.is_some() {
            self.stop_rewriting();
        } else {
            self.escaped_at = Some(Instant::now());
            let is_cancelled = self.chat.cancel()?;
            if is_cancelled {
                self.note("Interrupted. Escape again at once edits your message");
            } else if self.chat.has_turns() {
                self.note("Escape again at once edits your last message");
            }
        }
        Ok(Flow::Continue)
    }

    /// Puts the last message into the input line, to be sent in place of itself.
    fn start_rewriting(&mut self) {
        let Some((turn_id, text)) = self.chat.last_message(&mut self.accepted) else {
            return self.note("There is no message to edit");
        };
        let before = self.editor.whole_text();
        self.editor.set(&escape(&text));
        self.rewriting = Some(Rewriting { turn_id, before });
    }

    /// The message was sent: what was in the line before comes back.
    pub(super) fn finish_rewriting(&mut self) {
        if let Some(rewriting) = self.rewriting.take()
            && self.editor.is_empty()
        {
            self.editor.set(&rewriting.before);
        }
    }

    /// Leaves the message as it was sent.
    pub(super) fn stop_rewriting(&mut self) {
        if let Some(rewriting) = self.rewriting.take() {
            self.editor.set(&rewriting.before);
        }
    }
}
