//! What is on the screen: settled lines once, the live area at the bottom again and again.

use client::chat::{AskedInput, PendingInput};
use wire::state::ChatState;

use super::{TerminalChat, write};
use crate::chat::dialog;
use crate::chat::line::{Line, Style};
use crate::chat::live_area::{LiveContent, layout};
use crate::chat::tool::Detail;
use crate::chat::transcript::{ChatView, WholeCall};
use crate::terminal::escape_line;

/// Rows of a prompt that are shown however low the screen is.
const ITEM_ROWS_MIN: usize = 4;

impl TerminalChat {
    pub(super) fn draw(&mut self) -> anyhow::Result<()> {
        // As it is now, not as it was when somebody last said that it had changed.
        self.painter.resize(self.tty.size());
        self.reading.begin_frame();
        self.reading.see_workers(self.chat.workers());
        if self.draw_pager()? {
            return Ok(());
        }
        let width = self.painter.width();
        let mut settled = std::mem::take(&mut self.unprinted);
        let mut moving = Vec::new();
        let (confirmed, ahead) = self.chat.confirmed_and_ahead();
        let view = self.reading.view(self.painter.page());
        if let Some(chat) = &confirmed {
            settled.extend(self.transcript.settle(chat, &view));
            moving = self.transcript.moving(chat, &view);
        }
        let asked = match (&self.asked, &ahead) {
            (Some(asked), Some(chat)) if !self.is_subject_printed => {
                self.whole_subject(asked, chat, &view)
            }
            _ => WholeCall::default(),
        };
        let running = active_turn(ahead.as_deref());
        let dialog = self.dialog_lines(width);
        let mut overlay = self.overlay_lines(width);
        overlay
            .below
            .push(self.status_line(ahead.as_deref(), width));
        let content = LiveContent {
            moving,
            chat: ahead.as_deref(),
            is_sending: running.is_some() && running != active_turn(confirmed.as_deref()),
            dialog,
            hides_queue: overlay.hides_queue,
            above: overlay.above,
            note: self.note.clone().or_else(|| self.status(ahead.as_deref())),
            prompt: overlay.prompt.unwrap_or(self.line_prompt()),
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
        if let Some(chat) = &confirmed {
            self.read_wanted(chat);
        }
        write(&self.painter.draw(&settled, area))?;
        self.mark_drawn();
        Ok(())
    }

    /// What is decided on, whole, if that is more than is drawn of it.
    fn whole_subject(
        &self,
        asked: &AskedInput,
        chat: &ChatState,
        view: &ChatView<'_>,
    ) -> WholeCall {
        match &asked.input {
            PendingInput::Confirmation(confirmation) if asked.worker.is_none() => {
                let call_id = confirmation.call_id();
                self.transcript.whole_call(chat, call_id, view)
            }
            PendingInput::Confirmation(_) => WholeCall::of_part(asked.part(), view),
            PendingInput::Questions(_) => WholeCall::default(),
        }
    }

    /// The prompt: what is asked, and what can be chosen.
    fn dialog_lines(&self, width: usize) -> Vec<Line> {
        let Some(asked) = &self.asked else {
            return Vec::new(); // nothing waits for the user
        };
        let mut lines = dialog::subject_lines(asked, self.asked_number, Detail::Brief, width);
        if self.field.is_none() {
            let items = dialog::items(&asked.input, &self.prompt);
            // What is asked stands above, and the input line below.
            let rows_max = (self.painter.rows() / 2).max(ITEM_ROWS_MIN);
            lines.push(Line::default());
            lines.extend(self.prompt.lines(&items, width, rows_max));
        }
        lines
    }

    /// What stands before the text that is typed.
    fn line_prompt(&self) -> &'static str {
        match (self.field, &self.rewriting) {
            (Some(field), _) => dialog::field_prompt(field),
            (None, Some(_)) => "edit › ",
            (None, None) => "› ",
        }
    }

    /// What is going on, where that is not plain to see.
    fn status(&self, chat: Option<&ChatState>) -> Option<Line> {
        let warn = |text: &str| Some(Line::new(Style::Warn, text));
        let dim = |text: &str| Some(Line::new(Style::Dim, text));
        if let Some(why) = &self.disconnected {
            return warn(&format!("connection lost, trying again: {why}"));
        }
        if let Some(field) = self.field {
            return dim(dialog::field_hint(field));
        }
        if self.rewriting.is_some() {
            return dim("Enter asks before it replaces your last message; Escape leaves it");
        }
        if self.asked.is_some() {
            return match (self.editor.is_empty(), self.stash.is_empty()) {
                (false, _) => dim("Enter queues this message; Tab puts it aside to answer"),
                (true, false) => dim("Your message is put aside; Tab brings it back"),
                (true, true) => None,
            };
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
                "{activity} · Esc interrupts · Enter queues · Ctrl-S steers"
            ));
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
