//! Going to another chat, and leaving.

use client::chat::{Branch, ChatSelector};

use super::TerminalChat;
use crate::chat::annotations::ListedThreads;
use crate::chat::line::{Line, Style};
use crate::chat::open_options;
use crate::chat::prompt::PromptState;
use crate::chat::transcript::Transcript;
use crate::terminal::{escape, escape_line};

impl TerminalChat {
    /// Shows which chat was opened, and fills the editor's history and draft from it.
    pub(super) fn show_header(&mut self) {
        let session = self.chat.session_state();
        let provider = session.as_ref().map_or("", |session| session.provider.as_str());
        let session_uri = escape_line(self.chat.session().as_str());
        let title = format!(" · {} · {session_uri}", escape_line(provider));
        self.unprinted.extend([
            Line::new(Style::Bold, "greenroom").then(Style::Dim, title),
            Line::new(Style::Dim, "Type a message. /help lists the commands and keys."),
        ]);
        if let Some(notice) = self.chat.notice() {
            self.unprinted.push(Line::new(Style::Warn, escape_line(notice)));
        }
        for message in self.chat.history() {
            self.editor.remember(&escape(&message));
        }
        if let Some(draft) = self.chat.draft_text() {
            self.editor.set(&escape(&draft));
        }
    }

    /// Shows how to get a model.
    pub(super) fn show_hint(&mut self, lines: Vec<String>) {
        let lines = lines.into_iter().map(|line| Line::new(Style::Plain, line));
        self.unprinted.extend(lines);
    }

    /// Goes to another chat. What is half typed stays behind as the draft of this one.
    pub(super) async fn go_to(&mut self, selector: ChatSelector) -> anyhow::Result<()> {
        let (options, draft) = (open_options(self.directory.clone()), self.draft());
        self.chat.switch_to(&selector, &options, Some(&draft)).await?;
        self.stash.clear();
        self.editor.take();
        self.start_over();
        self.unprinted.push(Line::default());
        self.show_header();
        Ok(())
    }

    /// Goes on in a branch of the chat; its history is on the screen already.
    pub(super) async fn branch(&mut self, name: &str) -> anyhow::Result<()> {
        let branch = match self.chat.branch(name).await? {
            Branch::Created(chat) => ChatSelector::Channel(chat),
            Branch::Queued => {
                self.note("queued: the branch is created when the agent is done");
                return Ok(());
            }
            // The turn that failed says why.
            Branch::Failed => return Ok(()),
        };
        self.chat.switch_to(&branch, &open_options(self.directory.clone()), None).await?;
        self.start_over();
        if let Some(chat) = self.chat.confirmed() {
            self.transcript = Transcript::after(&chat);
        }
        let text = format!("· You are now in a new branch: {}", self.chat.chat());
        self.print([Line::new(Style::Dim, escape_line(&text))]);
        Ok(())
    }

    fn start_over(&mut self) {
        self.transcript = Transcript::below();
        self.creation = None;
        self.asked = None;
        self.prompt = PromptState::default();
        self.field = None;
        self.rewriting = None;
        self.overlay = None;
        // Their numbers are those of another chat.
        self.changes = None;
        self.annotations = ListedThreads::default();
    }

    /// How to return, for a user who leaves.
    pub(super) fn how_to_return(&self) -> Option<String> {
        let chat = self.chat.confirmed()?;
        let session = escape_line(self.chat.session().as_str());
        if chat.active_turn.is_some() {
            let why = match self.disconnected {
                None => "The agent is still working",
                Some(_) => "The connection is lost",
            };
            return Some(format!("{why}. Return with `greenroom chat --session {session}`"));
        }
        (!chat.turns.is_empty())
            .then(|| format!("Continue with `greenroom chat --session {session}`"))
    }
}
