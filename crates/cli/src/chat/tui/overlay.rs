//! What has the keys before the input line: a menu, a search, a question of our own. One is open at a time.
//!
//! To add one: a variant of [`Overlay`], an arm in `press_overlay` that says what a key does to it, and one in
//! `overlay_lines` that says what is drawn above or below the input line. Whoever takes the keys gets the overlay by value
//! and puts it back into `self.overlay` to stay open.
//!
//! Promises: a key that an overlay does not use goes on to the input line; Escape closes it.

use super::pager::OpenPager;
use super::picker::Picker;
use super::queue::QueueMenu;
use super::rewrite::RewritePrompt;
use super::search::HistorySearch;
use super::{Flow, TerminalChat};
use crate::chat::editor::Editor;
use crate::chat::keys::Key;
use crate::chat::line::Line;

/// What is open above or below the input line.
#[derive(Debug)]
pub(super) enum Overlay {
    /// Something is chosen from a list.
    Picker(Box<Picker>),
    /// The transcript is read, on a screen of its own.
    Pager(Box<OpenPager>),
    /// What was sent before is searched.
    Search(HistorySearch),
    /// One of the messages that wait is chosen.
    Queue(QueueMenu),
    /// Whether a message is to replace the last one.
    Rewrite(RewritePrompt),
}

impl Overlay {
    /// It stands on the screen now.
    pub(super) fn mark_drawn(&mut self) {
        match self {
            Self::Rewrite(prompt) => prompt.mark_drawn(),
            Self::Picker(picker) => picker.mark_drawn(),
            // Nothing is decided there.
            Self::Pager(_) | Self::Search(_) | Self::Queue(_) => {}
        }
    }
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
            Some(Overlay::Picker(picker)) => self.press_picker(*picker, key).await,
            Some(Overlay::Pager(pager)) => self.press_pager(pager, key),
            Some(Overlay::Search(search)) => Ok(self.press_search(search, key)),
            Some(Overlay::Queue(menu)) => self.press_queue(menu, key),
            Some(Overlay::Rewrite(prompt)) => self.press_rewrite(prompt, key).await,
        }
    }

    pub(super) fn overlay_lines(&self, width: usize) -> OverlayLines {
        match &self.overlay {
            // What is proposed while typing is no overlay: it takes some keys, and the rest is typed.
            None => OverlayLines { below: self.popup.lines(width), ..OverlayLines::default() },
            Some(Overlay::Picker(picker)) => self.picker_lines(picker, width),
            Some(Overlay::Pager(_)) => OverlayLines::default(), // it has its own screen
            Some(Overlay::Search(search)) => search.lines(width),
            Some(Overlay::Queue(menu)) => self.queue_lines(menu),
            Some(Overlay::Rewrite(prompt)) => prompt.lines(width),
        }
    }

    /// What is typed into, if not the input line.
    pub(super) fn overlay_editor(&self) -> Option<&Editor> {
        match &self.overlay {
            Some(Overlay::Picker(picker)) => Some(picker.editor()),
            _ => None,
        }
    }
}
