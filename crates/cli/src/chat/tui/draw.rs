//! What is on the screen: settled lines once, the live area at the bottom again and again.

use client::chat::PendingInput;
use wire::state::ChatState;

use super::{KeyMode, TerminalChat, write};
use crate::chat::dialog;
use crate::chat::line::{Line, Style};
use crate::chat::live_area::{LiveContent, layout};
use crate::chat::transcript::WholeCall;
use crate::terminal::escape_line;

impl TerminalChat {
    pub(super) fn draw(&mut self) -> anyhow::Result<()> {
        if self.draw_pager()? {
            return Ok(());
        }
        let width = self.painter.width();
        let mut settled = std::mem::take(&mut self.unprinted);
        let mut moving = Vec::new();
        let (confirmed, ahead) = self.chat.confirmed_and_ahead();
        if let Some(chat) = &confirmed {
            settled.extend(self.transcript.settle(chat, width));
            moving = self.transcript.moving(chat, width);
        }
        let asked = match (&self.pending, &ahead) {
            (Some(PendingInput::Confirmation(asked)), Some(chat)) if !self.is_subject_printed => {
                self.transcript.whole_call(chat, asked.call_id(), width)
            }
            _ => WholeCall::default(),
        };
        let running = active_turn(ahead.as_deref());
        let dialog = match (&self.pending, &self.mode) {
            (Some(pending), KeyMode::Answering | KeyMode::Suggesting) => {
                dialog::lines(pending, width)
            }
            _ => Vec::new(),
        };
        let mut overlay = self.overlay_lines(width);
        let status_line = self.status_line(ahead.as_deref(), width);
        overlay.below.push(status_line);
        let content = LiveContent {
            moving,
            chat: ahead.as_deref(),
            is_sending: running.is_some() && running != active_turn(confirmed.as_deref()),
            dialog,
            above: overlay.above,
            note: self.note.clone().or_else(|| self.status(ahead.as_deref())),
            prompt: overlay.prompt.unwrap_or(self.prompt()),
            editor: self.overlay_editor().unwrap_or(&self.editor),
            below: overlay.below,
        };
        let area = layout(content, width, self.painter.rows());
        // What is decided on can be read whole: above, if it does not fit where it is drawn again and again.
        if asked.is_cut || (area.hidden > 0 && !asked.lines.is_empty()) {
            settled.push(Line::default());
            settled.extend(asked.lines);
            self.is_subject_printed = true;
        }
        write(&self.painter.draw(&settled, area))
    }

    fn prompt(&self) -> &'static str {
        match (&self.mode, &self.pending) {
            (KeyMode::Answering, Some(PendingInput::Confirmation(_))) => "? ",
            (KeyMode::Answering, _) => "answer › ",
            (KeyMode::Suggesting, _) => "instead › ",
            (KeyMode::Typing, _) => "› ",
        }
    }

    /// What is going on, where that is not plain to see.
    fn status(&self, chat: Option<&ChatState>) -> Option<Line> {
        let warn = |text: &str| Some(Line::new(Style::Warn, text));
        let dim = |text: &str| Some(Line::new(Style::Dim, text));
        if let Some(why) = &self.disconnected {
            return warn(&format!("connection lost, trying again: {why}"));
        }
        match self.mode {
            KeyMode::Suggesting => {
                return dim("what to do instead; Enter alone denies without; Escape goes back");
            }
            KeyMode::Answering => return None,
            KeyMode::Typing => {}
        }
        if self.pending.is_some() {
            return warn("The agent is waiting. Press Tab to answer");
        }
        if let Some(chat) = self.chat.input_needed_elsewhere() {
            return warn(&format!(
                "Another chat is waiting: /open {}",
                escape_line(&chat)
            ));
        }
        let chat = chat?;
        if chat.active_turn.is_some() {
            let activity = chat.activity.as_deref().map(escape_line);
            let activity = activity.unwrap_or_else(|| "working".to_owned());
            return dim(&format!(
                "{activity} · Ctrl-C cancels · Enter queues · Ctrl-S steers"
            ));
        }
        if !chat.queued_messages.is_empty() {
            return dim("Queue paused. Press Enter to send");
        }
        None
    }

    /// Prints lines of our own.
    pub(super) fn print(&mut self, lines: impl IntoIterator<Item = Line>) {
        self.unprinted.push(Line::default());
        self.unprinted.extend(lines);
    }

    pub(super) fn note(&mut self, text: &str) {
        self.note = Some(Line::new(Style::Dim, escape_line(text)));
    }

    pub(super) fn note_error(&mut self, text: &str) {
        self.note = Some(Line::new(Style::Bad, escape_line(text)));
    }
}

fn active_turn(chat: Option<&ChatState>) -> Option<&str> {
    let turn = chat?.active_turn.as_ref()?;
    Some(turn.id.as_str())
}
