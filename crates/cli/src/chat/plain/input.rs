//! What a line of the input does: it commands, decides, is a text that was asked for, or is a message.

use client::chat::{Branch, ChatSelector, CommandCheck, PendingInput, TurnFollower};

use super::{PlainChat, PlainFlow};
use crate::chat::command::{COMMANDS, ChatCommand, Entered, pick, session_lines, unknown_command};
use crate::chat::complete::host_commands;
use crate::chat::dialog::{self, PromptOutcome};
use crate::chat::open_options;
use crate::chat::prompt::{PromptField, item_named};
use crate::clock::now;
use crate::exit::Exit;

impl PlainChat {
    pub(super) async fn take_line(&mut self, line: &str) -> anyhow::Result<PlainFlow> {
        if let Some(field) = self.field.take() {
            self.enter_field(field, line)?;
            return Ok(PlainFlow::Continue);
        }
        if line.trim().is_empty() {
            return Ok(PlainFlow::Continue);
        }
        let done = match Entered::parse(line) {
            Entered::Command(command) => self.run_command(command).await,
            Entered::Wrong(why) => Err(anyhow::Error::msg(why)),
            Entered::Message | Entered::Other(_) if self.asked.is_some() => {
                self.choose(line)?;
                Ok(PlainFlow::Continue)
            }
            Entered::Message => self.send(line),
            Entered::Other(name) => match self.chat.check_command(&name).await? {
                CommandCheck::Known => self.send(line),
                CommandCheck::Unknown { others } => {
                    Err(anyhow::Error::msg(unknown_command(&name, &others)))
                }
            },
        };
        match done {
            Ok(flow) => Ok(flow),
            Err(error) => {
                self.output.note(&format!("{error:#}"))?;
                self.exit = Exit::Failed;
                Ok(PlainFlow::Continue)
            }
        }
    }

    fn send(&mut self, line: &str) -> anyhow::Result<PlainFlow> {
        self.typed.push(line.to_owned());
        self.chat.send(line)?;
        Ok(PlainFlow::Continue)
    }

    /// A line at a prompt: exactly a digit or a word of it, or nothing.
    fn choose(&mut self, line: &str) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // answered meanwhile
        };
        let items = dialog::items(&asked.input, &self.prompt);
        let outcome = match item_named(&items, line) {
            Some(item) => {
                let action = item.action.clone();
                dialog::apply(&mut asked.input, &mut self.prompt, action)
            }
            None => PromptOutcome::Wrong(
                "Nothing is decided: type one of these digits or words, and nothing else"
                    .to_owned(),
            ),
        };
        self.take_outcome(outcome)
    }

    /// A line that a choice asked for.
    fn enter_field(&mut self, field: PromptField, line: &str) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // answered meanwhile
        };
        let outcome = dialog::enter_field(&mut asked.input, &mut self.prompt, field, line);
        self.take_outcome(outcome)
    }

    fn take_outcome(&mut self, outcome: PromptOutcome) -> anyhow::Result<()> {
        let Some(asked) = &self.asked else {
            return Ok(()); // answered meanwhile
        };
        match outcome {
            PromptOutcome::Decided(decision) => self.chat.confirm(asked, &decision)?,
            PromptOutcome::Responded(response) => self.chat.answer(asked, &response)?,
            PromptOutcome::Stays => self.show_changed_question()?,
            PromptOutcome::Opens(field) => self.open_field(field)?,
            PromptOutcome::Edits(_) => self.open_field(PromptField::Input)?,
            PromptOutcome::Wrong(why) => {
                self.output.note(&why)?;
                match &asked.input {
                    PendingInput::Questions(_) => self.show_changed_question()?,
                    PendingInput::Confirmation(_) => self.show_question()?,
                }
            }
        }
        Ok(())
    }

    fn open_field(&mut self, field: PromptField) -> anyhow::Result<()> {
        self.field = Some(field);
        self.output.note(match field {
            PromptField::Reason => "The next line says why",
            PromptField::Answer | PromptField::OwnWords => "The next line is your answer",
            PromptField::Input => "The next line is the whole input; then decide",
        })?;
        Ok(())
    }

    async fn run_command(&mut self, command: ChatCommand) -> anyhow::Result<PlainFlow> {
        match command {
            ChatCommand::Help => {
                for command in COMMANDS.iter().filter(|command| !command.needs_terminal) {
                    let name = format!("{} {}", command.name, command.arguments);
                    self.output.note(&format!("{name:18} {}", command.what))?;
                }
                for (name, what) in host_commands(&self.chat).await {
                    self.output.note(&format!("{name:18} {what}"))?;
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
            ChatCommand::Rename(title) => {
                self.chat.rename_session(self.chat.session(), &title)?;
            }
            ChatCommand::Model(name) => self.use_model(&name)?,
            ChatCommand::Approvals(name) => self.use_mode(&name)?,
            ChatCommand::Status
            | ChatCommand::Export(_)
            | ChatCommand::Archive
            | ChatCommand::Delete
            | ChatCommand::Earlier => {
                anyhow::bail!("that needs a terminal; `greenroom --help` lists verbs that do it")
            }
        }
        Ok(PlainFlow::Continue)
    }

    fn use_model(&mut self, name: &str) -> anyhow::Result<()> {
        let models = self.chat.models();
        let model = models
            .iter()
            .find(|model| model.id == name || model.name == name);
        let Some(model) = model.filter(|model| model.unavailable.is_none()) else {
            let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
            anyhow::bail!("/model needs one of: {}", ids.join(", "));
        };
        self.chat.set_model(Some(model.id.clone()));
        Ok(())
    }

    fn use_mode(&mut self, name: &str) -> anyhow::Result<()> {
        let modes = self.chat.permission_modes();
        let Some(mode) = modes.iter().find(|mode| mode.id == name) else {
            let ids: Vec<&str> = modes.iter().map(|mode| mode.id.as_str()).collect();
            anyhow::bail!("/approvals needs one of: {}", ids.join(", "));
        };
        Ok(self.chat.set_permission_mode(mode)?)
    }

    async fn go_to(&mut self, selector: ChatSelector) -> anyhow::Result<()> {
        self.chat
            .switch_to(&selector, &open_options(), None)
            .await?;
        self.follower = TurnFollower::default();
        self.asked = None;
        self.field = None;
        self.skip_history();
        self.output.note(&format!(
            "session {}, chat {}",
            self.chat.session(),
            self.chat.chat()
        ))?;
        Ok(())
    }
}
