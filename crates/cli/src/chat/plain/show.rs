//! What is new in the chat, printed: answers on standard output, the rest beside them.

use client::chat::{AskedInput, TurnEvent};
use wire::state::Outcome;

use super::PlainChat;
use crate::chat::contents::read_all;
use crate::chat::dialog;
use crate::chat::line::{Line, Style};
use crate::chat::part::{message_lines, part_lines};
use crate::chat::prompt::PromptState;
use crate::chat::render::{Page, UNBROKEN};
use crate::chat::sign_in::SignInEvent;
use crate::chat::tool::Detail;
use crate::exit::Exit;

impl PlainChat {
    /// What is there when the chat is opened is not printed: a script wants its own answers.
    pub(super) fn skip_history(&mut self) {
        if let Some(chat) = self.chat.confirmed() {
            self.follower.skip(&chat);
        }
    }

    pub(super) async fn show_news(&mut self) -> anyhow::Result<()> {
        let Some(chat) = self.chat.confirmed() else {
            return Ok(()); // between two connections the chat may not be held
        };
        for event in self.follower.follow(&chat, 0) {
            self.show_event(event)?;
        }
        let all = self.chat.asked_inputs();
        let before = self.asked.take();
        self.asked = AskedInput::refresh(before.clone(), &all);
        self.asked_number.count = all.len();
        let is_same = AskedInput::is_unchanged(before.as_ref(), self.asked.as_ref());
        if !is_same {
            self.prompt = PromptState::default();
            self.field = None;
            if before.is_some() && !std::mem::take(&mut self.has_answered) {
                self.output.note("That question was answered elsewhere or withdrawn")?;
            }
            match self.asked.clone() {
                Some(asked) => {
                    self.read_contents(&asked).await;
                    self.output.end_line()?;
                    self.ask()?;
                }
                None => self.input.end_question()?,
            }
        }
        Ok(())
    }

    /// The page to visit to sign in somewhere, and the outcome.
    pub(super) fn show_sign_in(&mut self, event: &SignInEvent) -> anyhow::Result<()> {
        self.sign_ins.take(event);
        self.output.end_line()?;
        Ok(self.output.note(&event.describe())?)
    }

    fn show_event(&mut self, event: TurnEvent) -> anyhow::Result<()> {
        match event {
            TurnEvent::Started { message, .. } => {
                self.output.end_line()?;
                let text = message["text"].as_str().unwrap_or("");
                match self.typed.iter().position(|typed| typed == text) {
                    Some(ours) => drop(self.typed.remove(ours)),
                    None => self.note_lines(&message_lines(&message, Style::Plain, UNBROKEN))?,
                }
            }
            TurnEvent::Text { kind, position, text } => self.output.text(kind, position, &text)?,
            TurnEvent::TextEnded => self.output.end_line()?,
            TurnEvent::Part(part) => {
                self.note_lines(&part_lines(&part, Page::unbroken(), Detail::Unfolded))?
            }
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
            TurnEvent::Rewound => self.output.note("Rewound: messages above no longer count")?,
            // History is not printed here, so it need not be counted.
            TurnEvent::Omitted { .. } => {}
        }
        Ok(())
    }

    /// Reads what the question refers to, so that it can be shown whole.
    async fn read_contents(&mut self, asked: &AskedInput) {
        let call = asked.part().get("toolCall");
        if let Some(call) = call.and_then(|call| call.as_object()) {
            let (live, session) = (self.chat.live(), self.chat.session());
            read_all(&mut self.references, call, live, session).await;
        }
    }

    /// Shows what is to be decided, as it is decided on: the chat may have gone on since. From then on a line may decide it, and
    /// none that was typed before.
    pub(super) fn ask(&mut self) -> anyhow::Result<()> {
        self.input.begin_question()?;
        self.repeat_all()?;
        self.input.question_shown();
        Ok(())
    }

    /// What is asked has changed by what was entered, or is not understood: all of it is shown again.
    pub(super) fn repeat_all(&mut self) -> anyhow::Result<()> {
        if let Some(asked) = &self.asked {
            let lines =
                dialog::subject_lines(asked, Detail::Unfolded, Page::unbroken(), &self.references);
            self.note_lines(&lines)?;
        }
        self.repeat_question()
    }

    /// Shows again what can be chosen.
    pub(super) fn repeat_question(&mut self) -> anyhow::Result<()> {
        let Some(asked) = &self.asked else {
            return Ok(()); // answered meanwhile
        };
        let mut lines = dialog::question_lines(asked, self.asked_number, UNBROKEN);
        let items = dialog::items(&asked.input, &self.prompt);
        lines.extend(items.iter().flat_map(|item| item.lines(false, UNBROKEN)));
        self.note_lines(&lines)
    }

    fn note_lines(&mut self, lines: &[Line]) -> anyhow::Result<()> {
        for line in lines {
            self.output.note(&line.text())?;
        }
        Ok(())
    }
}
