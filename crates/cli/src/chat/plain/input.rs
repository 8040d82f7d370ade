//! What a line of the input does: it answers, commands, or is a message.

use client::chat::{Branch, ChatSelector, PendingInput, TurnFollower};

use super::{PlainChat, PlainFlow};
use crate::chat::command::{ChatCommand, HELP, pick, session_lines};
use crate::chat::complete::host_commands;
use crate::chat::confirm::{Choice, choose_by_line};
use crate::chat::open_options;
use crate::chat::questions::{AnswerOutcome, answer_line};
use crate::clock::now;
use crate::exit::Exit;

impl PlainChat {
    pub(super) async fn take_line(&mut self, line: &str) -> anyhow::Result<PlainFlow> {
        if self.pending.is_some() {
            self.answer(line)?;
            return Ok(PlainFlow::Continue);
        }
        if line.trim().is_empty() {
            return Ok(PlainFlow::Continue);
        }
        let Some(command) = ChatCommand::parse(line) else {
            self.typed.push(line.to_owned());
            self.chat.send(line)?;
            return Ok(PlainFlow::Continue);
        };
        match self.run_command(command).await {
            Ok(flow) => Ok(flow),
            Err(error) => {
                self.output.note(&format!("{error:#}"))?;
                self.exit = Exit::Failed;
                Ok(PlainFlow::Continue)
            }
        }
    }

    fn answer(&mut self, line: &str) -> anyhow::Result<()> {
        debug_assert!(self.pending.is_some(), "a line answers what waits");
        let wrong = match &mut self.pending {
            Some(PendingInput::Confirmation(confirmation)) => {
                match choose_by_line(confirmation, line) {
                    Some(Choice::Decided(decision)) => {
                        self.chat.confirm(&decision)?;
                        None
                    }
                    Some(Choice::Edit(_)) => {
                        Some("type `e` and the whole input behind it".to_owned())
                    }
                    Some(Choice::Suggest) => {
                        Some("type `d` and what to do instead behind it".to_owned())
                    }
                    None => Some("that is none of the choices".to_owned()),
                }
            }
            Some(PendingInput::Questions(form)) => match answer_line(form, line) {
                AnswerOutcome::Complete(response) => {
                    self.chat.answer(&response)?;
                    None
                }
                AnswerOutcome::Next => {
                    self.show_question()?;
                    None
                }
                AnswerOutcome::Wrong(why) => Some(why),
            },
            None => None,
        };
        if let Some(wrong) = wrong {
            self.output.note(&wrong)?;
            self.show_question()?;
        }
        Ok(())
    }

    async fn run_command(&mut self, command: ChatCommand) -> anyhow::Result<PlainFlow> {
        match command {
            ChatCommand::Help => {
                for (name, what) in HELP {
                    self.output.note(&format!("{name:12} {what}"))?;
                }
                for (name, what) in host_commands(&self.chat).await {
                    self.output.note(&format!("{name:12} {what}"))?;
                }
            }
            ChatCommand::Sessions => {
                self.sessions = self.chat.live().list_sessions().await?;
                for line in session_lines(&self.sessions, self.chat.session(), now()) {
                    self.output.note(&line)?;
                }
                self.output.note("/open NUMBER goes to one")?;
            }
            ChatCommand::Open(answer) => {
                if self.sessions.is_empty() {
                    self.sessions = self.chat.live().list_sessions().await?;
                }
                let uri = pick(&self.sessions, &answer).map_err(anyhow::Error::msg)?;
                self.go_to(ChatSelector::Channel(uri)).await?;
            }
            ChatCommand::New => {
                let new = ChatSelector::NewSession { agent: None };
                self.go_to(new).await?;
            }
            ChatCommand::Fork(name) => {
                // One that is queued or failed shows as a turn.
                if let Branch::Created(chat) = self.chat.branch(&name).await? {
                    self.go_to(ChatSelector::Channel(chat)).await?;
                }
            }
            ChatCommand::Resume => self.chat.resume()?,
            ChatCommand::Steer(text) => self.chat.steer(&text, &[])?,
            ChatCommand::Quit => return Ok(PlainFlow::Leave),
        }
        Ok(PlainFlow::Continue)
    }

    async fn go_to(&mut self, selector: ChatSelector) -> anyhow::Result<()> {
        self.chat
            .switch_to(&selector, &open_options(), None)
            .await?;
        self.follower = TurnFollower::default();
        self.pending = None;
        self.skip_history();
        self.output.note(&format!(
            "session {}, chat {}",
            self.chat.session(),
            self.chat.chat()
        ))?;
        Ok(())
    }
}
