//! Writing a message: what Enter, Ctrl-S and the external editor do with the text.

use client::chat::Sent;

use super::entering::{EnteredLine, LineOrigin};
use super::{Flow, TerminalChat};

impl TerminalChat {
    /// Enter: sends a message, now or when the agent is done; sets a paused queue going if there is none.
    pub(super) async fn enter_message(&mut self, text: &str) -> anyhow::Result<Flow> {
        if text.trim().is_empty() {
            if self.rewriting.is_some() {
                self.stop_rewriting();
            } else if !self.chat.is_working() {
                self.chat.release_queue()?;
            }
            return Ok(Flow::Continue);
        }
        if self.rewriting.is_some() {
            return self.enter_rewritten(text).await;
        }
        self.remember(text);
        self.enter_line(EnteredLine::new(text)).await
    }

    /// Sends a line that is known to be a message.
    pub(super) fn send(&mut self, line: &EnteredLine) -> anyhow::Result<()> {
        let text = line.text.as_str();
        if self.needs_model(text) {
            return Ok(());
        }
        if let LineOrigin::Rewritten { replaced_turn } = &line.origin {
            if let Some(turn_id) = replaced_turn
                && !self.remove_replaced(turn_id)
            {
                self.give_back_text(text);
                return Ok(());
            }
            self.finish_rewriting();
        }
        let attachments = self.accepted.take_attachments(text);
        let sent = self.chat.send_with(text, &attachments)?;
        if sent == Sent::Queued && self.asked.is_some() {
            self.note("Queued. The question still waits for you");
        }
        Ok(())
    }

    /// Ctrl-S: what is typed reaches the agent at its next opportunity.
    pub(super) fn steer_with_typed(&mut self) -> anyhow::Result<()> {
        if self.field.is_some() || self.rewriting.is_some() {
            self.note("Ctrl-S steers with a message; Enter sends this");
            return Ok(());
        }
        for (label, attachment) in self.editor.attachments() {
            self.accepted.accept_attachment(label, attachment);
        }
        let text = self.editor.take();
        if text.trim().is_empty() {
            self.note("Type what to tell the agent, then Ctrl-S");
            return Ok(());
        }
        self.steer(&text)
    }

    pub(super) fn steer(&mut self, text: &str) -> anyhow::Result<()> {
        self.remember(text);
        if !self.chat.is_working() {
            return self.send(&EnteredLine::new(text));
        }
        let attachments = self.accepted.take_attachments(text);
        self.chat.steer(text, &attachments)?;
        Ok(())
    }

    /// What Up and Ctrl-R bring back, here and in later runs.
    pub(super) fn remember(&mut self, text: &str) {
        self.editor.remember(text);
        if let Err(error) = self.history.append(text) {
            self.note_error(&format!("this message was not saved to the history: {error}"));
        }
    }

    /// Ctrl-X Ctrl-E: the text in the user's own editor.
    pub(super) async fn edit_text(&mut self) {
        let text = self.editor.whole_text();
        match self.edit_plain(&text).await {
            Ok(edited) => {
                let edited = edited.trim_end_matches('\n');
                self.editor.replace(edited.to_owned(), edited.len());
            }
            Err(error) => self.note_error(&format!("{error:#}")),
        }
    }
}
