//! What a line of the input does: it commands, decides, is a text that was asked for, or is a message.

use client::chat::{Branch, ChatSelector, CommandCheck, PendingInput, TurnFollower, UsageReader};

use super::{PlainChat, PlainFlow};
use crate::chat::annotations::ListedThreads;
use crate::chat::command::{EnteredInput, unknown_command};
use crate::chat::command_table::{COMMANDS, ChatCommand};
use crate::chat::complete::host_commands;
use crate::chat::dialog::{self, PromptOutcome};
use crate::chat::model_argument;
use crate::chat::open_options;
use crate::chat::prompt::{PromptField, item_named};
use crate::chat::session_list::{pick, session_lines};
use crate::chat::usage::usage_rows;
use crate::chat::{annotations, budget};
use crate::clock::now;
use crate::exit::Exit;
use crate::input_lines::{InputLine, LineSource, LineUse};
use crate::terminal::escape_line;

/// What a line is entered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineTarget {
    Question,
    Chat,
}

impl PlainChat {
    pub(super) async fn take_line(&mut self, line: &InputLine) -> anyhow::Result<PlainFlow> {
        let used = self.input.use_of(line);
        let line = line.text.as_str();
        match (used, self.input.source()) {
            (LineUse::Current, _) => {}
            // A script meant it as a message: nothing was asked when it was read. It waits for the agent.
            (LineUse::BeforeQuestion, LineSource::Pipe) => {
                return self.enter(line, LineTarget::Chat).await;
            }
            (LineUse::BeforeQuestion, LineSource::Terminal) => {
                return self.drop_line(line, "it was typed before the question");
            }
            (LineUse::QuestionGone, _) => {
                return self.drop_line(line, "it was for an earlier question");
            }
        }
        if let Some(field) = self.field.take() {
            self.enter_field(field, line)?;
            return Ok(PlainFlow::Continue);
        }
        let target = match self.asked {
            Some(_) => LineTarget::Question,
            None => LineTarget::Chat,
        };
        self.enter(line, target).await
    }

    /// A line that decides nothing and is no message.
    fn drop_line(&mut self, line: &str, why: &str) -> anyhow::Result<PlainFlow> {
        if !line.trim().is_empty() {
            let still_open = match self.asked {
                Some(_) => ". The question is still open",
                None => "",
            };
            self.output.note(&format!("Ignored `{line}`: {why}{still_open}"))?;
            self.exit = Exit::Failed;
        }
        self.repeat_question()?;
        Ok(PlainFlow::Continue)
    }

    async fn enter(&mut self, line: &str, target: LineTarget) -> anyhow::Result<PlainFlow> {
        if line.trim().is_empty() {
            return Ok(PlainFlow::Continue);
        }
        let done = match EnteredInput::parse(line) {
            EnteredInput::Command(command) => self.run_command(command).await,
            EnteredInput::Wrong(why) => Err(anyhow::Error::msg(why)),
            EnteredInput::Message | EnteredInput::Other(_) if target == LineTarget::Question => {
                self.choose(line)?;
                Ok(PlainFlow::Continue)
            }
            EnteredInput::Message => self.send(line),
            EnteredInput::Other(name) => match self.chat.check_command(&name).await? {
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
        let position = dialog::question_position(&asked.input);
        let items = dialog::items(&asked.input, &self.prompt);
        let outcome = match item_named(&items, line) {
            Some(item) => {
                let action = item.action.clone();
                dialog::apply(&mut asked.input, &mut self.prompt, action)
            }
            None => PromptOutcome::Wrong(
                "Not an answer. Type one of the digits or words above".to_owned(),
            ),
        };
        self.take_outcome(outcome, position)
    }

    /// A line that a choice asked for.
    fn enter_field(&mut self, field: PromptField, line: &str) -> anyhow::Result<()> {
        let Some(asked) = &mut self.asked else {
            return Ok(()); // answered meanwhile
        };
        let position = dialog::question_position(&asked.input);
        let outcome = dialog::enter_field(&mut asked.input, &mut self.prompt, field, line);
        self.take_outcome(outcome, position)
    }

    /// `position` is that of the question before.
    fn take_outcome(
        &mut self,
        outcome: PromptOutcome,
        position: Option<usize>,
    ) -> anyhow::Result<()> {
        let Some(asked) = &self.asked else {
            return Ok(()); // answered meanwhile
        };
        match outcome {
            PromptOutcome::Decided(decision) => {
                self.chat.confirm(asked, &decision)?;
                self.has_answered = true;
            }
            PromptOutcome::Responded(response) => {
                self.chat.answer(asked, &response)?;
                self.has_answered = true;
            }
            PromptOutcome::Stays if dialog::is_same_question(position, &asked.input) => {
                self.repeat_all()?;
            }
            PromptOutcome::Stays => self.ask()?,
            PromptOutcome::Opens(field) => self.open_field(field)?,
            PromptOutcome::Edits(_) => self.open_field(PromptField::Input)?,
            PromptOutcome::SignsIn(wanted) => {
                let name = wanted.resource.clone();
                self.sign_ins.begin(self.chat.live(), &name, &wanted);
            }
            PromptOutcome::Wrong(why) => {
                self.output.note(&why)?;
                match &asked.input {
                    PendingInput::Questions(_) => self.repeat_all()?,
                    PendingInput::Confirmation(_) => self.repeat_question()?,
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

    #[expect(clippy::too_many_lines, reason = "a table")]
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
                let agent = self.chat.agent_for_new_session();
                self.go_to(ChatSelector::NewSession { agent }).await?;
            }
            ChatCommand::Agents(id) if id.is_empty() => self.list_agents()?,
            ChatCommand::Agents(id) => {
                let new = ChatSelector::NewSession { agent: Some(id) };
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
            ChatCommand::Budget(amount) => {
                let text = budget::apply(&self.chat, &amount).map_err(anyhow::Error::msg)?;
                self.output.note(&text)?;
            }
            ChatCommand::Annotations(typed) => {
                let rows = annotations::apply(&mut self.chat, &mut self.annotations, &typed).await;
                for row in rows.map_err(anyhow::Error::msg)? {
                    self.output.note(&row)?;
                }
            }
            ChatCommand::SignIn(typed) => {
                let entered = self.sign_ins.enter(&self.chat, &typed).await;
                let text = entered.map_err(anyhow::Error::msg)?;
                self.output.note(&text)?;
            }
            ChatCommand::Usage => {
                let chat = self.chat.ahead();
                let usage = chat.map(|chat| UsageReader::default().read(&chat));
                for line in usage_rows(&usage.unwrap_or_default(), self.chat.context_tokens()) {
                    self.output.note(&line.text())?;
                }
            }
            ChatCommand::Status
            | ChatCommand::Permissions
            | ChatCommand::Terminals(_)
            | ChatCommand::Export(_)
            | ChatCommand::Archive
            | ChatCommand::Delete
            | ChatCommand::Changes(_)
            | ChatCommand::Discard(_)
            | ChatCommand::Commit(_)
            | ChatCommand::Earlier => {
                anyhow::bail!("that needs a terminal; `greenroom --help` lists verbs that do it")
            }
        }
        Ok(PlainFlow::Continue)
    }

    fn list_agents(&mut self) -> anyhow::Result<()> {
        for agent in self.chat.agents() {
            let (id, name) = (escape_line(&agent.id), escape_line(&agent.name));
            let about = escape_line(&agent.description);
            self.output.note(&format!("{id:18} {name}: {about}"))?;
        }
        self.output.note("/agents ID starts a new session with one")?;
        Ok(())
    }

    fn use_model(&mut self, name: &str) -> anyhow::Result<()> {
        let models = self.chat.models();
        if name.is_empty() {
            let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
            anyhow::bail!("/model needs one of: {}", ids.join(", "));
        }
        let named = model_argument::parse(name, &models).map_err(anyhow::Error::msg)?;
        self.chat.select_model(named.selection);
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
        self.chat.switch_to(&selector, &open_options(self.directory.clone()), None).await?;
        self.follower = TurnFollower::default();
        self.field = None;
        self.has_answered = false;
        self.annotations = ListedThreads::default();
        if self.asked.take().is_some() {
            self.input.end_question()?; // where nothing was asked, what was typed is for the chat that comes
        }
        self.skip_history();
        self.output.note(&format!("session {}, chat {}", self.chat.session(), self.chat.chat()))?;
        Ok(())
    }
}
