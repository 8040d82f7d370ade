//! What becomes of a line that was entered: a command of ours, one of the host, or a message.
//!
//! Promises: lines are sent in the order they were entered. A command that nobody knows is an error, never a message to a
//! model (G-65).

use client::chat::{ChatError, CommandCheck, CurrentModel};

use super::background::BackgroundAnswer;
use super::{Flow, TerminalChat};
use crate::chat::command::{Entered, unknown_command};

impl TerminalChat {
    pub(super) async fn enter_line(&mut self, text: &str) -> anyhow::Result<Flow> {
        if self.is_checking {
            self.unsent.push_back(text.to_owned());
            return Ok(Flow::Continue);
        }
        match Entered::parse(text) {
            Entered::Command(command) => return self.run_command(command).await,
            Entered::Wrong(why) => {
                self.note_error(&why);
                self.give_back_text(text);
            }
            Entered::Other(name) => {
                let checked = self.chat.check_command(&name);
                self.is_checking = true;
                let line = text.to_owned();
                self.answers.wait_for(async move {
                    let result = checked.await;
                    BackgroundAnswer::Command { line, name, result }
                });
            }
            Entered::Message => self.send(text)?,
        }
        Ok(Flow::Continue)
    }

    /// It is known whether a command is one; goes on with what was entered behind it.
    pub(super) async fn take_command_check(
        &mut self,
        line: String,
        name: &str,
        result: Result<CommandCheck, ChatError>,
    ) -> anyhow::Result<Flow> {
        self.is_checking = false;
        match result {
            Ok(CommandCheck::Known) => self.send(&line)?,
            Ok(CommandCheck::Unknown { others }) => {
                self.note_error(&unknown_command(name, &others));
                self.give_back_text(&line);
            }
            Err(error) => {
                self.note_error(&format!("{name} was not sent: {error}"));
                self.give_back_text(&line);
            }
        }
        while !self.is_checking
            && let Some(next) = self.unsent.pop_front()
        {
            if self.enter_line(&next).await? == Flow::Leave {
                return Ok(Flow::Leave);
            }
        }
        Ok(Flow::Continue)
    }

    /// Whether somebody must be chosen first to go on with the chat: its model is gone. Then the list is opened.
    pub(super) fn needs_model(&mut self, text: &str) -> bool {
        let CurrentModel::Gone { id } = self.chat.current_model() else {
            return false;
        };
        self.give_back_text(text);
        self.open_models("");
        self.note_error(&format!("{id} is gone: choose another model, then send"));
        true
    }

    /// What was not sent can be corrected, unless something else is being typed.
    fn give_back_text(&mut self, text: &str) {
        if self.field.is_none() && self.editor.is_empty() {
            self.editor.set(text);
        }
    }
}
