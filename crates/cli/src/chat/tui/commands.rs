//! The commands of this client, on a terminal.

use client::chat::ChatSelector;
use wire::state::status;

use super::background::BackgroundAnswer;
use super::{Flow, TerminalChat};
use crate::chat::command_table::{COMMANDS, ChatCommand, KEYS};
use crate::chat::complete::host_commands;
use crate::chat::line::{Line, Style};
use crate::chat::session_list::pick;
use crate::chat::{annotations, budget};
use crate::export;
use crate::terminal::escape_line;

impl TerminalChat {
    pub(super) async fn run_command(&mut self, command: ChatCommand) -> anyhow::Result<Flow> {
        match command {
            ChatCommand::Quit => return Ok(Flow::Leave),
            ChatCommand::Help => self.show_help().await,
            ChatCommand::Status => self.show_status(),
            ChatCommand::Usage => self.show_usage(),
            ChatCommand::Sessions => self.open_sessions(),
            ChatCommand::Rename(title) => {
                self.chat.rename_session(self.chat.session(), &title)?;
                self.note(&format!("Renamed to {title}"));
            }
            ChatCommand::Export(file) => self.export(&file),
            ChatCommand::Archive => self.archive()?,
            ChatCommand::Delete => {
                let session = self.chat.session_state();
                let title = session.map_or(String::new(), |session| session.title.clone());
                self.ask_to_delete(self.chat.session().clone(), &title, false);
            }
            ChatCommand::Model(name) => self.open_models(&name),
            ChatCommand::Approvals(name) => self.open_modes(&name)?,
            ChatCommand::Budget(amount) => match budget::apply(&self.chat, &amount) {
                Ok(text) => self.note(&text),
                Err(text) => self.note_error(&text),
            },
            ChatCommand::Annotations(typed) => {
                match annotations::apply(&mut self.chat, &mut self.annotations, &typed).await {
                    Ok(rows) => {
                        let rows = rows.iter().map(|row| escape_line(row));
                        self.print(
                            rows.map(|row| Line::new(Style::Plain, row)).collect::<Vec<_>>(),
                        );
                    }
                    Err(text) => self.note_error(&text),
                }
            }
            ChatCommand::Permissions => self.show_permissions(),
            ChatCommand::SignIn(typed) => self.enter_sign_in(&typed).await,
            ChatCommand::Changes(argument) => self.enter_changes(&argument),
            ChatCommand::Discard(argument) => self.discard(&argument),
            ChatCommand::Commit(message) => self.commit(&message),
            ChatCommand::Terminals(typed) => self.enter_terminals(&typed).await?,
            ChatCommand::Earlier => self.open_pager(),
            ChatCommand::Open(answer) => match pick(&[], &answer) {
                Ok(uri) => self.try_to_go_to(ChatSelector::Channel(uri)).await,
                Err(_) => self.note_error("/open needs a URI; /sessions lists what there is"),
            },
            ChatCommand::New => {
                let agent = self.chat.agent_for_new_session();
                self.try_to_go_to(ChatSelector::NewSession { agent }).await;
            }
            ChatCommand::Agents(id) => self.open_agents(&id).await,
            ChatCommand::Fork(name) => {
                if let Err(error) = self.branch(&name).await {
                    self.note_error(&format!("{error:#}"));
                }
            }
            ChatCommand::Resume => {
                if let Err(error) = self.chat.resume() {
                    self.note_error(&error.to_string());
                }
            }
            ChatCommand::Steer(text) => self.steer(&text)?,
        }
        Ok(Flow::Continue)
    }

    /// Goes to another chat, or stays and says why.
    pub(super) async fn try_to_go_to(&mut self, selector: ChatSelector) {
        if let Err(error) = self.go_to(selector).await {
            self.note_error(&format!("{error:#}"));
        }
    }

    /// Puts the session away, or takes it out again.
    fn archive(&mut self) -> anyhow::Result<()> {
        let session = self.chat.session_state();
        let is_archived = session.is_some_and(|session| session.status & status::IS_ARCHIVED != 0);
        self.chat.archive_session(self.chat.session(), !is_archived)?;
        self.note(if is_archived {
            "No longer archived"
        } else {
            "Archived. /archive again restores it"
        });
        Ok(())
    }

    /// Writes the session to a file, which must not be there yet.
    fn export(&mut self, file: &str) {
        let Some(data) = self.data.clone() else {
            return self.note_error("/export reads the data directory: use it where the host runs");
        };
        let session = self.chat.session().clone();
        let file = match file {
            "" => format!("{}.md", export::file_name(&session)),
            file => file.to_owned(),
        };
        // The host answers in order: what was done here just now is in its journal then. One that does not answer has a journal to
        // be read all the same.
        let answered = self.chat.list_sessions();
        self.answers.wait_for(async move {
            let _ = answered.await;
            let written = tokio::task::spawn_blocking(move || {
                export::write_file(&data, &session, file.as_ref()).map(|()| file)
            });
            BackgroundAnswer::Exported(written.await.map_err(anyhow::Error::from).flatten())
        });
    }

    async fn show_help(&mut self) {
        let row = |name: &str, what: &str| {
            Line::new(Style::Bold, format!("  {name:20}  ")).then(Style::Plain, what)
        };
        let ours = COMMANDS.iter().map(|command| {
            let name = format!("{} {}", command.name, command.arguments);
            row(&name, command.what)
        });
        let keys = KEYS.iter().map(|(name, what)| row(name, what));
        self.print(ours.chain(keys).collect::<Vec<Line>>());
        let commands = host_commands(&self.chat).await;
        if !commands.is_empty() {
            self.print([Line::new(Style::Dim, "  Commands of the host:")]);
            let commands = commands.iter().map(|(name, what)| row(name, what));
            self.print(commands.collect::<Vec<Line>>());
        }
        let rest = "  A message that begins with / is typed with \\ before it.";
        self.print([Line::new(Style::Dim, rest)]);
    }
}
