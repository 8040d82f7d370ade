//! What is on the screen: settled lines once, the live area at the bottom again and again.

use client::chat::AskedInput;
use wire::state::ChatState;

use super::{TerminalChat, write};
use crate::chat::dialog;
use crate::chat::line::{Line, Style};
use crate::chat::live_area::{Dialog, LiveContent, layout};
use crate::chat::prompt::is_item_cut;
use crate::chat::tool::Detail;
use crate::terminal::escape_line;

/// What is decided on in lines, made once for each state of it: a large change takes long to compare.
#[derive(Debug)]
pub(super) struct DrawnSubject {
    asked: AskedInput,
    width: usize,
    /// Whether the contents that it refers to are there.
    is_complete: bool,
    brief: Vec<Line>,
    /// Empty until all is there.
    whole: Vec<Line>,
    /// It was printed whole, since not all of it fits where it is drawn again and again.
    is_printed: bool,
}

impl DrawnSubject {
    /// Whether all of it is there to be read.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl TerminalChat {
    pub(super) fn draw(&mut self) -> anyhow::Result<()> {
        // As it is now, not as it was when somebody last said that it had changed.
        self.painter.resize(self.tty.size());
        self.reading.begin_frame();
        self.reading.update_workers(self.chat.workers());
        if self.draw_pager()? {
            return Ok(());
        }
        self.refresh_subject();
        let width = self.painter.width();
        let mut settled = std::mem::take(&mut self.unprinted);
        let mut moving = Vec::new();
        let (confirmed, ahead) = self.chat.confirmed_and_ahead();
        let mut overlay = self.overlay_lines(width);
        overlay.below.push(self.status_line(ahead.as_deref(), width));
        let view = self.reading.view(self.painter.page());
        if let Some(chat) = &confirmed {
            settled.extend(self.transcript.settle(chat, &view));
            let asked = self.asked.as_ref().map(AskedInput::part);
            moving = self.transcript.moving(chat, asked, &view);
        }
        let running = active_turn(ahead.as_deref());
        let dialog = self.dialog(width);
        let content = LiveContent {
            moving,
            chat: ahead.as_deref(),
            is_sending: running.is_some() && running != active_turn(confirmed.as_deref()),
            dialog,
            hides_queue: overlay.hides_queue,
            above: overlay.above,
            note: self
                .note
                .clone()
                .or_else(|| self.creation.clone())
                .or_else(|| self.status(ahead.as_deref())),
            prompt: overlay.prompt.unwrap_or(self.line_prompt()),
            editor: self.overlay_editor().unwrap_or(&self.editor),
            below: overlay.below,
        };
        let area = layout(content, width, self.painter.rows());
        // What is decided on can be read whole: above, if it does not fit where it is drawn again and again.
        if let Some(whole) = self.unprinted_subject(area.is_subject_cut, width) {
            settled.push(Line::default());
            settled.extend(whole);
            if let Some(subject) = &mut self.subject {
                subject.is_printed = true;
            }
        }
        self.read_needed();
        write(&self.painter.draw(&settled, area))?;
        self.mark_drawn();
        Ok(())
    }

    /// Makes the lines of what is decided on, if they may have changed.
    fn refresh_subject(&mut self) {
        let Some(asked) = &self.asked else {
            self.subject = None;
            return; // nothing waits for the user
        };
        let view = self.reading.view(self.painter.page());
        let width = view.page.width;
        let is_complete = dialog::is_subject_complete(asked, view.references);
        let before = self
            .subject
            .take()
            .filter(|drawn| drawn.asked == *asked && drawn.is_complete == is_complete);
        let is_printed = before.as_ref().is_some_and(|drawn| drawn.is_printed);
        // While contents come in each of them changes what there is to see.
        let is_same = |drawn: &DrawnSubject| is_complete && drawn.width == width;
        let drawn = before.filter(is_same).unwrap_or_else(|| {
            let lines = |detail| dialog::subject_lines(asked, detail, view.page, view.references);
            DrawnSubject {
                asked: asked.clone(),
                width,
                is_complete,
                brief: lines(Detail::Brief),
                whole: if is_complete { lines(Detail::Whole) } else { Vec::new() },
                is_printed,
            }
        });
        self.subject = Some(drawn);
    }

    /// What is decided on, whole, if that is more than is drawn of it, and was not printed. It is printed when its contents are
    /// there, which is soon, so that it is printed once.
    fn unprinted_subject(&self, is_cut: bool, width: usize) -> Option<Vec<Line>> {
        let subject = self.subject.as_ref()?;
        if subject.is_printed || !subject.is_complete {
            return None;
        }
        let items = dialog::items(&subject.asked.input, &self.prompt);
        let is_item_cut = is_item_cut(&items, width);
        if !is_cut && !is_item_cut && subject.brief == subject.whole {
            return None;
        }
        let mut whole = subject.whole.clone();
        if is_item_cut {
            whole.extend(self.all_choices(width));
        }
        Some(whole)
    }

    /// All that can be chosen, with nothing folded.
    pub(super) fn all_choices(&self, width: usize) -> Vec<Line> {
        let Some(asked) = &self.asked else {
            return Vec::new(); // nothing waits for the user
        };
        let items = dialog::items(&asked.input, &self.prompt);
        let lines = items.iter().flat_map(|item| item.lines(false, width));
        lines.collect()
    }

    /// The prompt: what is asked, and what can be chosen.
    fn dialog(&self, width: usize) -> Option<Dialog<'_>> {
        let subject = self.subject.as_ref()?;
        let items = match self.field {
            None => dialog::items(&subject.asked.input, &self.prompt),
            Some(_) => Vec::new(),
        };
        Some(Dialog {
            subject: subject.brief.clone(),
            question: dialog::question_lines(&subject.asked, self.asked_number, width),
            choices: Box::new(move |rows_max| {
                if items.is_empty() {
                    Vec::new()
                } else {
                    self.prompt.lines(&items, width, rows_max)
                }
            }),
        })
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
        if let Some(why) = self.chat.creation_failure() {
            let why = escape_line(&why);
            return warn(&format!("This session could not be started: {why}"));
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
            return warn(&format!("Another chat is waiting: /open {}", escape_line(&chat)));
        }
        let chat = chat?;
        if chat.active_turn.is_some() {
            let activity =
                chat.activity.as_deref().map(escape_line).unwrap_or_else(|| "working".to_owned());
            return dim(&format!("{activity} · Esc interrupts · Enter queues · Ctrl-S steers"));
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
