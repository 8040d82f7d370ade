//! The list of sessions to choose from: open, rename, put away, delete.

use std::path::PathBuf;

use client::chat::ChatSelector;
use client::{ClientError, SessionSummary};
use wire::ChannelUri;

use super::TerminalChat;
use super::overlay::{Overlay, OverlayLines};
use super::picker::{Picker, QuestionAction, YesNoQuestion};
use crate::chat::editor::{Editor, EditorOutcome};
use crate::chat::keys::Key;
use crate::chat::line::{Line, Style};
use crate::chat::menu::{Menu, MenuOutcome};
use crate::chat::session_menu::{SessionChosen, SessionMenuContext, items};
use crate::clock::now;
use crate::terminal::escape_line;

const KEYS: &str = "Enter opens · Ctrl-R renames · Ctrl-T archives · Ctrl-X deletes · Escape";
const KEYS_NARROW: &str = "^R rename ^T archive ^X delete";

#[derive(Debug)]
pub(super) struct SessionPicker {
    menu: Menu<SessionChosen>,
    /// The session that is being renamed, and its new title.
    renaming: Option<(ChannelUri, Editor)>,
    /// The list is on its way.
    is_loading: bool,
}

impl SessionPicker {
    fn new() -> Self {
        Self { menu: Menu::new(Vec::new()), renaming: None, is_loading: true }
    }

    pub(super) fn editor(&self) -> &Editor {
        match &self.renaming {
            Some((_, title)) => title,
            None => &self.menu.filter,
        }
    }

    pub(super) fn lines(&self, width: usize, rows: usize) -> OverlayLines {
        let (heading, prompt) = match &self.renaming {
            Some(_) => ("Enter renames · Escape goes back", "title › "),
            None if columns_fit(KEYS, width) => (KEYS, "sessions › "),
            None => (KEYS_NARROW, "sessions › "),
        };
        OverlayLines {
            above: vec![Line::new(Style::Dim, heading).clip(width)],
            below: if self.is_loading {
                vec![Line::new(Style::Dim, "  loading").clip(width)]
            } else {
                self.menu.lines(width, rows)
            },
            prompt: Some(prompt),
            ..OverlayLines::default()
        }
    }
}

fn columns_fit(text: &str, width: usize) -> bool {
    crate::chat::line::columns(text) <= width
}

impl TerminalChat {
    /// Opens the list; it fills when the host answers.
    pub(super) fn open_sessions(&mut self) {
        self.open_picker(Picker::Sessions(SessionPicker::new()));
        self.ask_for_sessions();
    }

    /// The list has come.
    pub(super) fn show_sessions(&mut self, sessions: &[SessionSummary]) {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let directory = std::env::current_dir().ok();
        let items = items(
            sessions,
            &SessionMenuContext {
                current: self.chat.session(),
                directory: directory.as_deref(),
                home: home.as_deref(),
                now: now(),
            },
        );
        if let Some(Overlay::Picker(picker)) = &mut self.overlay
            && let Picker::Sessions(sessions) = &mut **picker
        {
            sessions.is_loading = false;
            sessions.menu.set_items(items);
        }
    }

    /// The list does not come.
    pub(super) fn sessions_failed(&mut self, error: &ClientError) {
        let is_waiting = matches!(
            &self.overlay,
            Some(Overlay::Picker(picker)) if matches!(**picker, Picker::Sessions(_))
        );
        if is_waiting {
            self.overlay = None;
            self.note_error(&error.to_string());
        }
    }

    pub(super) async fn press_sessions(
        &mut self,
        mut sessions: SessionPicker,
        key: &Key,
    ) -> anyhow::Result<()> {
        if let Some((uri, title)) = sessions.renaming.take() {
            return self.press_title(sessions, uri, title, key);
        }
        let selected = sessions.menu.selected().map(|item| item.value.clone());
        match (key, selected) {
            (Key::Ctrl('r'), Some(session)) => {
                let mut title = Editor::default();
                title.set(&escape_line(&session.title));
                sessions.renaming = Some((session.uri, title));
            }
            (Key::Ctrl('t'), Some(session)) => {
                self.chat.archive_session(&session.uri, !session.is_archived)?;
                self.ask_for_sessions();
            }
            (Key::Ctrl('x'), Some(session)) => {
                self.ask_to_delete(session.uri, &session.title, true);
                return Ok(());
            }
            (key, selected) => match (sessions.menu.key(key), selected) {
                (MenuOutcome::Chosen, Some(session)) => {
                    self.try_to_go_to(ChatSelector::Channel(session.uri)).await;
                    return Ok(());
                }
                (MenuOutcome::Closed, _) => return Ok(()),
                (MenuOutcome::Taken | MenuOutcome::Unused | MenuOutcome::Chosen, _) => {}
            },
        }
        self.open_picker(Picker::Sessions(sessions));
        Ok(())
    }

    /// A key while a title is typed.
    fn press_title(
        &mut self,
        mut sessions: SessionPicker,
        uri: ChannelUri,
        mut title: Editor,
        key: &Key,
    ) -> anyhow::Result<()> {
        match (key, title.key(key)) {
            (Key::Escape, _) => {}
            (_, EditorOutcome::Entered(text)) if text.trim().is_empty() => {
                self.note_error("a title cannot be empty; Escape goes back");
                sessions.renaming = Some((uri, title));
            }
            (_, EditorOutcome::Entered(text)) => {
                self.chat.rename_session(&uri, text.trim())?;
                self.ask_for_sessions();
            }
            (_, EditorOutcome::Taken | EditorOutcome::Unused) => {
                sessions.renaming = Some((uri, title));
            }
        }
        self.open_picker(Picker::Sessions(sessions));
        Ok(())
    }

    pub(super) fn ask_to_delete(&mut self, uri: ChannelUri, title: &str, is_listed: bool) {
        let title = match title.trim() {
            "" => escape_line(uri.as_str()),
            title => escape_line(title),
        };
        let text = format!("Delete \"{title}\" for everyone?");
        let action = QuestionAction::DeleteSession { uri, is_listed };
        let question = YesNoQuestion::new(text, "Delete it", "Keep it", action);
        self.open_picker(Picker::YesNoQuestion(question));
    }

    /// Deletes a session; from the one that is open a new one is gone to first.
    pub(super) async fn delete_session(&mut self, uri: &ChannelUri, is_listed: bool) {
        let new = ChatSelector::NewSession { agent: None };
        let deleted = async {
            if uri == self.chat.session() {
                self.go_to(new).await?;
            }
            anyhow::Ok(self.chat.live().dispose_session(uri).await?)
        };
        match deleted.await {
            Ok(None) => self.note("Deleted"),
            Ok(Some(kept)) => self.note(&format!("Deleted; {kept}")),
            Err(error) => self.note_error(&format!("{error:#}")),
        }
        if is_listed {
            self.open_sessions();
        }
    }
}
