//! What the host's events do to the chat on a terminal: notes, messages that come back, questions that come and go.

use std::time::{Duration, Instant};

use client::chat::{ChatEvent, PendingInput, Undelivered};

use super::{KeyMode, TerminalChat};
use crate::terminal::{escape, escape_line};

/// Whoever typed this recently goes on typing: a question must not take the keys away.
const TYPING_PAUSE: Duration = Duration::from_millis(700);
/// How long a question that replaces another is shown before a key can answer it.
const READING_TIME: Duration = Duration::from_millis(400);

impl TerminalChat {
    /// Takes an event and all that are there: they are drawn at once.
    pub(super) fn take_events(&mut self, first: ChatEvent) -> anyhow::Result<()> {
        self.take_event(first);
        while let Some(event) = self.chat.try_next()? {
            self.take_event(event);
        }
        Ok(())
    }

    fn take_event(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::Refused { what, reason } => {
                self.note_error(&format!("the host refused it: {reason}"));
                self.give_back(&what);
            }
            ChatEvent::NotResent { what } => {
                self.note_error(
                    "the connection was lost before the host took your last action: look, then repeat it",
                );
                self.give_back(&what);
            }
            ChatEvent::ConnectionLost { why } | ChatEvent::ReconnectFailed { why } => {
                self.disconnected = Some(escape_line(&why.to_string()));
            }
            ChatEvent::Reconnected => {
                self.disconnected = None;
                // What was said about sessions meanwhile is not repeated.
                self.ask_for_sessions();
            }
            ChatEvent::Changed => {} // what is drawn is read from the state
        }
    }

    /// A message that did not get through can be sent again, unless something else is being typed.
    fn give_back(&mut self, what: &Undelivered) {
        if let (Some(text), KeyMode::Typing, true) =
            (&what.text, &self.mode, self.editor.is_empty())
        {
            self.editor.set(&escape(text));
        }
    }

    /// Looks at what the agent waits for now.
    pub(super) fn refresh_pending(&mut self) {
        let chat = self.chat.ahead();
        let before = self.pending.take();
        self.pending = chat.and_then(|chat| PendingInput::refresh(before.clone(), &chat));
        let is_same = match (&before, &self.pending) {
            (Some(before), Some(now)) => before.is_same(now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return; // the keys go on doing what they do
        }
        self.is_subject_printed = false;
        let is_asking = self.pending.is_some();
        match self.mode {
            KeyMode::Answering | KeyMode::Suggesting if !is_asking => self.stop_answering(),
            KeyMode::Answering | KeyMode::Suggesting => {
                self.editor.take();
                self.mode = KeyMode::Answering;
            }
            KeyMode::Typing if is_asking && before.is_none() => {
                let is_typing = self
                    .last_typed
                    .is_some_and(|at| at.elapsed() < TYPING_PAUSE);
                if self.editor.is_empty() && !is_typing {
                    self.mode = KeyMode::Answering;
                }
            }
            KeyMode::Typing => {}
        }
        // A key that is meant for one question must not answer the next.
        if is_asking && (before.is_some() || self.has_just_answered) {
            self.too_new_until = Some(Instant::now() + READING_TIME);
        }
    }

    pub(super) fn start_answering(&mut self) {
        self.stash = self.editor.take();
        self.mode = KeyMode::Answering;
    }

    pub(super) fn stop_answering(&mut self) {
        let stash = std::mem::take(&mut self.stash);
        self.editor.set(&stash);
        self.mode = KeyMode::Typing;
    }
}
