//! What the host's events do to the chat on a terminal: notes, messages that come back, questions that come and go.

use std::time::Duration;

use client::chat::{AskedInput, ChatEvent, CreationProgress, Undelivered};

use super::TerminalChat;
use super::prompt_keys::UnreadQuestion;
use crate::chat::dialog::PromptNumber;
use crate::chat::line::{Line, Style};
use crate::chat::prompt::PromptState;
use crate::terminal::{escape, escape_line};

/// Whoever typed this recently goes on typing: a question that comes meanwhile must not take a key for its answer.
const TYPING_PAUSE: Duration = Duration::from_millis(700);
/// Cells of a bar that shows how far something is.
const BAR_CELLS: i64 = 10;

/// How long a question that replaces another is shown before a key can answer it.
pub(super) const READING_TIME: Duration = Duration::from_millis(400);

impl TerminalChat {
    /// Takes an event and all that are there: they are drawn at once.
    pub(super) fn take_events(&mut self, first: ChatEvent) -> anyhow::Result<()> {
        self.take_event(first);
        while let Some(event) = self.chat.try_next()? {
            self.take_event(event);
        }
        Ok(())
    }

    /// A session that takes its time to be made says what it is at, until it is there.
    fn show_creation(&mut self) {
        let Some(progress) = self.chat.take_creation_progress() else {
            return; // nothing new
        };
        if progress.is_over() {
            self.creation = None;
            return;
        }
        self.creation = Some(creation_line(&progress));
    }

    fn take_event(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::Refused { what, reason } => {
                self.note_error(&format!("the host refused it: {reason}"));
                self.give_back(&what);
            }
            ChatEvent::NotResent { what } => {
                self.note_error(
                    "Connection lost before your last action was confirmed. Check whether it arrived before repeating it",
                );
                self.give_back(&what);
            }
            ChatEvent::ConnectionLost { why } => {
                // What was noted before is older news.
                self.note = None;
                self.disconnected = Some(escape_line(&why.to_string()));
            }
            ChatEvent::ReconnectFailed { why } => {
                self.disconnected = Some(escape_line(&why.to_string()));
            }
            ChatEvent::Reconnected => {
                self.disconnected = None;
                // What was said about sessions meanwhile is not repeated.
                self.ask_for_sessions();
            }
            ChatEvent::Changed => {
                self.show_creation(); // what else is drawn is read from the state
                self.sign_ins.renew_wanted(&self.chat);
            }
        }
    }

    /// A message that did not get through can be sent again, unless something else is being typed; Up has it then.
    fn give_back(&mut self, what: &Undelivered) {
        if let (Some(text), None, true) = (&what.text, self.field, self.editor.is_empty()) {
            self.editor.set(&escape(text));
        }
    }

    /// Looks at what the agent waits for now.
    pub(super) fn refresh_asked(&mut self) {
        if self.field.is_none() && !self.editor.is_empty() {
            // Text came into the line, however it did: nothing is chosen beside it.
            self.prompt.clear_choice();
        }
        let all = self.chat.asked_inputs();
        let before = self.asked.take();
        self.asked = AskedInput::refresh(before.clone(), &all);
        self.asked_number = PromptNumber {
            index: self.asked.as_ref().map_or(0, |now| {
                let index = all.iter().position(|asked| asked.is_same(now));
                index.unwrap_or(0)
            }),
            count: all.len(),
        };
        let is_same = AskedInput::is_unchanged(before.as_ref(), self.asked.as_ref());
        if is_same {
            return; // the keys go on doing what they do
        }
        self.close_prompt();
        self.unread = None;
        if self.asked.is_none() {
            self.restore_stashed_text();
            return;
        }
        self.close_rewrite_prompt();
        // A key that is meant for one question, or for what was typed when it came, must not answer the next.
        let is_typing = self.last_typed.is_some_and(|at| at.elapsed() < TYPING_PAUSE);
        let is_sudden = before.is_some() || self.has_just_answered || is_typing;
        let pause = if is_sudden { READING_TIME } else { Duration::ZERO };
        self.unread = Some(UnreadQuestion::new(pause));
    }

    /// The question is gone, and with it what was chosen and the field that was open for it.
    fn close_prompt(&mut self) {
        self.prompt = PromptState::default();
        if self.field.take().is_some() && !self.editor.is_empty() {
            self.editor.put_away();
            self.note("This question was answered elsewhere or withdrawn. Ctrl-Y brings back what you typed");
        }
    }
}

/// How far a creation is, and what it is at.
fn creation_line(progress: &CreationProgress) -> Line {
    let message = escape_line(progress.message.as_deref().unwrap_or("starting"));
    let message = format!("{message} …");
    let Some(total) = progress.total.filter(|total| *total > 0) else {
        return Line::new(Style::Dim, message);
    };
    let done = progress.done.clamp(0, total);
    // The host may count by anything, bytes too.
    let cells = done.saturating_mul(BAR_CELLS) / total;
    let bar = |cell: &str, count: i64| cell.repeat(usize::try_from(count).unwrap_or(0));
    Line::new(Style::Good, bar("▰", cells))
        .then(Style::Dim, bar("▱", BAR_CELLS - cells))
        .then(Style::Dim, format!(" {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_a_creation_is_can_be_seen() {
        let shown = |done: i64, total: Option<i64>, message: Option<&str>| {
            let message = message.map(str::to_owned);
            let progress = CreationProgress { done, total, message };
            creation_line(&progress).text()
        };
        assert_eq!(shown(0, None, None), "starting …");
        let worktree = Some("making a worktree");
        assert_eq!(shown(1, Some(3), worktree), "▰▰▰▱▱▱▱▱▱▱ making a worktree …");
        assert!(!shown(2, Some(3), Some("\u{1b}[2J")).contains('\u{1b}'));
        // What a host may say, too.
        assert_eq!(shown(-5, Some(3), None), "▱▱▱▱▱▱▱▱▱▱ starting …");
        assert_eq!(shown(9, Some(3), None), "▰▰▰▰▰▰▰▰▰▰ starting …");
        assert_eq!(shown(i64::MAX, Some(i64::MAX), None).chars().count(), 21);
        assert_eq!(shown(1, Some(0), None), "starting …");
    }
}
