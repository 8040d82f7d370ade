//! What becomes of a line that was entered: a command of ours, one of the host, or a message.
//!
//! Promises: lines are sent in the order they were entered. A command that nobody knows is an error, never a message to a
//! model (G-65).

use client::chat::{ChatError, CommandCheck, CurrentModel};

use super::background::BackgroundAnswer;
use super::{Flow, TerminalChat};
use crate::chat::command::{EnteredInput, unknown_command};

/// A line that was entered.
#[derive(Debug)]
pub(super) struct EnteredLine {
    pub(super) text: String,
    pub(super) origin: LineOrigin,
}

#[derive(Debug)]
pub(super) enum LineOrigin {
    Typed,
    /// The last message, written anew.
    Rewritten {
        /// Its turn, which this goes in place of; without it this is a message of its own.
        replaced_turn: Option<String>,
    },
}

impl EnteredLine {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), origin: LineOrigin::Typed }
    }
}

impl TerminalChat {
    pub(super) async fn enter_line(&mut self, line: EnteredLine) -> anyhow::Result<Flow> {
        if self.is_checking {
            self.unsent.push_back(line);
            return Ok(Flow::Continue);
        }
        match EnteredInput::parse(&line.text) {
            EnteredInput::Command(command) => return self.run_command(command).await,
            EnteredInput::Wrong(why) => {
                self.note_error(&why);
                self.give_back_text(&line.text);
            }
            EnteredInput::Other(name) => {
                let checked = self.chat.check_command(&name);
                self.is_checking = true;
                self.answers.wait_for(async move {
                    let result = checked.await;
                    BackgroundAnswer::Command { line, name, result }
                });
            }
            EnteredInput::Message => self.send(&line)?,
        }
        Ok(Flow::Continue)
    }

    /// It is known whether a command is one; goes on with what was entered behind it.
    pub(super) async fn take_command_check(
        &mut self,
        line: EnteredLine,
        name: &str,
        result: Result<CommandCheck, ChatError>,
    ) -> anyhow::Result<Flow> {
        self.is_checking = false;
        match result {
            Ok(CommandCheck::Known) => self.send(&line)?,
            Ok(CommandCheck::Unknown { others }) => {
                self.note_error(&unknown_command(name, &others));
                self.give_back_text(&line.text);
            }
            Err(error) => {
                self.note_error(&format!("{name} was not sent: {error}"));
                self.give_back_text(&line.text);
            }
        }
        while !self.is_checking
            && let Some(next) = self.unsent.pop_front()
        {
            if self.enter_line(next).await? == Flow::Leave {
                return Ok(Flow::Leave);
            }
        }
        Ok(Flow::Continue)
    }

    /// Whether somebody must be chosen first to go on with the chat: its model is gone. Then the list is opened.
    pub(super) fn needs_model(&mut self, text: &str) -> bool {
        let CurrentModel::Gone { id } = self.chat.current_model() else { return false };
        self.give_back_text(text);
        self.open_models("");
        self.note_error(&format!("{id} is gone: choose another model, then send"));
        true
    }

    /// What was not sent can be corrected, unless something else is being typed.
    pub(super) fn give_back_text(&mut self, text: &str) {
        if self.field.is_none() && self.editor.is_empty() {
            self.editor.set(text);
        }
    }
}
