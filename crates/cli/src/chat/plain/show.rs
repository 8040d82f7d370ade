//! What is new in the chat, printed: answers on standard output, the rest beside them.

use client::chat::{PendingInput, TurnEvent};
use wire::state::{ChatState, Outcome};

use super::PlainChat;
use crate::chat::dialog;
use crate::chat::line::{Line, Style};
use crate::chat::part::{message_lines, part_lines};
use crate::chat::tool::Detail;
use crate::exit::Exit;

/// No line is broken here: whoever reads it may.
const WIDTH: usize = usize::MAX / 4;

impl PlainChat {
    /// What is there when the chat is opened is not printed: a script wants its own answers.
    pub(super) fn skip_history(&mut self) {
        if let Some(chat) = self.chat.confirmed() {
            self.follower.skip(&chat);
        }
    }

    pub(super) fn show_news(&mut self) -> anyhow::Result<()> {
        let (confirmed, ahead) = self.chat.confirmed_and_ahead();
        if let Some(chat) = confirmed {
            for event in self.follower.follow(&chat, 0) {
                self.show_event(event)?;
            }
        }
        let Some(chat) = ahead else {
            return Ok(()); // between two connections the chat may not be held
        };
        let before = self.pending.take();
        self.pending = PendingInput::refresh(before.clone(), &chat);
        let is_new = match (&before, &self.pending) {
            (Some(before), Some(now)) => !before.is_same(now),
            (None, now) => now.is_some(),
            (Some(_), None) => false,
        };
        if is_new {
            self.show_subject(&chat)?;
            self.show_question()?;
        }
        Ok(())
    }

    fn show_event(&mut self, event: TurnEvent) -> anyhow::Result<()> {
        match event {
            TurnEvent::Started { message, .. } => {
                self.output.end_line()?;
                let text = message["text"].as_str().unwrap_or("");
                match self.typed.iter().position(|typed| typed == text) {
                    Some(ours) => drop(self.typed.remove(ours)),
                    None => self.note_lines(&message_lines(&message, Style::Plain, WIDTH))?,
                }
            }
            TurnEvent::Text {
                kind,
                position,
                text,
            } => self.output.text(kind, position, &text)?,
            TurnEvent::TextEnded => self.output.end_line()?,
            TurnEvent::Part(part) => self.note_lines(&part_lines(&part, WIDTH, Detail::Unfolded))?,
            TurnEvent::Ended { outcome, .. } => {
                self.exit = match outcome {
                    Outcome::Complete => Exit::Complete,
                    Outcome::Cancelled => Exit::Cancelled,
                    Outcome::Error { .. } => Exit::Failed,
                };
                if outcome == Outcome::Cancelled {
                    self.output.note("cancelled")?;
                }
            }
            TurnEvent::Resumed => self.output.note("resumed")?,
            TurnEvent::Rewound => self
                .output
                .note("Rewound: messages above no longer count")?,
            // History is not printed here, so it need not be counted.
            TurnEvent::Omitted { .. } => {}
        }
        Ok(())
    }

    /// What the question is about: the parts that are not finished.
    fn show_subject(&mut self, chat: &ChatState) -> anyhow::Result<()> {
        self.output.end_line()?;
        let lines: Vec<Line> = self
            .follower
            .open_parts(chat)
            .into_iter()
            .filter(|part| !matches!(part["kind"].as_str(), Some("markdown" | "reasoning")))
            .flat_map(|part| part_lines(part, WIDTH, Detail::Unfolded))
            .collect();
        self.note_lines(&lines)
    }

    pub(super) fn show_question(&mut self) -> anyhow::Result<()> {
        let pending = self.pending.as_ref();
        let lines = pending.map(|pending| dialog::lines(pending, WIDTH));
        self.note_lines(&lines.unwrap_or_default())
    }

    fn note_lines(&mut self, lines: &[Line]) -> anyhow::Result<()> {
        for line in lines {
            self.output.note(&line.text())?;
        }
        Ok(())
    }
}
