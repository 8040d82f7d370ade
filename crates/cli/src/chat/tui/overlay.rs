//! What has the keys before the input line: a menu, a search, a question of our own. One is open at a time.
//!
//! To add one: a variant of [`Overlay`], an arm in `press_overlay` that says what a key does to it, and one in
//! `overlay_lines` that says what is drawn above or below the input line. Whoever takes the keys gets the overlay by value
//! and puts it back into `self.overlay` to stay open.
//!
//! Promises: a key that an overlay does not use goes on to the input line; Escape closes it.

use client::SessionSummary;
use client::chat::ChatSelector;

use super::queue::QueueMenu;
use super::rewrite::RewritePrompt;
use super::search::HistorySearch;
use super::{Flow, TerminalChat};
use crate::chat::command::pick;
use crate::chat::editor::EditorOutcome;
use crate::chat::keys::Key;
use crate::chat::line::{Line, Style};

/// What is open above or below the input line.
#[derive(Debug)]
pub(super) enum Overlay {
    /// The number of one of these sessions is typed.
    Sessions(Vec<SessionSummary>),
    /// What was sent before is searched.
    Search(HistorySearch),
    /// One of the messages that wait is chosen.
    Queue(QueueMenu),
    /// Whether a message is to replace the last one.
    Rewrite(RewritePrompt),
}

/// What an overlay did with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyUse {
    /// It is done with.
    Used(Flow),
    /// It goes on to whatever would have had it without the overlay.
    Unused,
}

/// What an overlay draws, around the input line.
#[derive(Debug, Default)]
pub(super) struct OverlayLines {
    pub(super) above: Vec<Line>,
    pub(super) below: Vec<Line>,
    /// Whether it shows the messages that wait itself.
    pub(super) hides_queue: bool,
    /// What stands before the text that is typed, if not the usual.
    pub(super) prompt: Option<&'static str>,
}

impl TerminalChat {
    /// Gives a key to the overlay that is open.
    pub(super) async fn press_overlay(&mut self, key: &Key) -> anyhow::Result<KeyUse> {
        match self.overlay.take() {
            None => Ok(KeyUse::Unused),
            Some(Overlay::Sessions(sessions)) => self.press_sessions(sessions, key).await,
            Some(Overlay::Search(search)) => Ok(self.press_search(search, key)),
            Some(Overlay::Queue(menu)) => self.press_queue(menu, key),
            Some(Overlay::Rewrite(prompt)) => self.press_rewrite(prompt, key).await,
        }
    }

    pub(super) fn overlay_lines(&self, width: usize) -> OverlayLines {
        match &self.overlay {
            None => OverlayLines::default(),
            Some(Overlay::Sessions(_)) => OverlayLines {
                above: vec![Line::new(
                    Style::Dim,
                    "the number of a session; Enter alone stays here",
                )],
                prompt: Some("number › "),
                ..OverlayLines::default()
            },
            Some(Overlay::Search(search)) => search.lines(width),
            Some(Overlay::Queue(menu)) => self.queue_lines(menu),
            Some(Overlay::Rewrite(prompt)) => prompt.lines(width),
        }
    }

    async fn press_sessions(
        &mut self,
        sessions: Vec<SessionSummary>,
        key: &Key,
    ) -> anyhow::Result<KeyUse> {
        let used = Ok(KeyUse::Used(Flow::Continue));
        if *key == Key::Escape {
            self.editor.take();
            return used;
        }
        match self.editor.key(key) {
            EditorOutcome::Entered(text) if text.trim().is_empty() => {}
            EditorOutcome::Entered(text) => match pick(&sessions, &text) {
                Ok(uri) => self.try_to_go_to(ChatSelector::Channel(uri)).await,
                Err(why) => {
                    self.note_error(&why);
                    self.overlay = Some(Overlay::Sessions(sessions));
                }
            },
            EditorOutcome::Taken | EditorOutcome::Unused => {
                self.overlay = Some(Overlay::Sessions(sessions));
            }
        }
        used
    }
}
