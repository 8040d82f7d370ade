//! The commands of this client, on a terminal.

use client::chat::ChatSelector;

use super::overlay::Overlay;
use super::{Flow, TerminalChat};
use crate::chat::command::{ChatCommand, HELP, KEYS, pick, session_lines};
use crate::chat::line::{Line, Style};
use crate::clock::now;

impl TerminalChat {
    pub(super) async fn run_command(&mut self, command: ChatCommand) -> anyhow::Result<Flow> {
        match command {
            ChatCommand::Quit => return Ok(Flow::Leave),
            ChatCommand::Help => self.show_help().await,
            ChatCommand::Sessions => match self.chat.live().list_sessions().await {
                Ok(sessions) => {
                    let lines = session_lines(&sessions, self.chat.session(), now());
                    self.print(lines.into_iter().map(|line| Line::new(Style::Plain, line)));
                    self.overlay = Some(Overlay::Sessions(sessions));
                }
                Err(error) => self.note_error(&error.to_string()),
            },
            ChatCommand::Open(answer) => match pick(&[], &answer) {
                Ok(uri) => self.try_to_go_to(ChatSelector::Channel(uri)).await,
                Err(_) => self.note_error("/open needs a URI; /sessions lists what there is"),
            },
            ChatCommand::New => {
                self.try_to_go_to(ChatSelector::NewSession { agent: None })
                    .await;
            }
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

    async fn show_help(&mut self) {
        let row = |name: &str, what: &str| {
            Line::new(Style::Bold, format!("  {name:20}")).then(Style::Plain, what)
        };
        let ours = HELP.iter().chain(KEYS).map(|(name, what)| row(name, what));
        self.print(ours.collect::<Vec<Line>>());
        let commands = crate::chat::complete::host_commands(&self.chat).await;
        if !commands.is_empty() {
            self.print([Line::new(Style::Dim, "  Commands of the host:")]);
            let commands = commands.iter().map(|(name, what)| row(name, what));
            self.print(commands.collect::<Vec<Line>>());
        }
        let rest = "  Any other line that begins with / is for the agent.";
        self.print([Line::new(Style::Dim, rest)]);
    }
}
