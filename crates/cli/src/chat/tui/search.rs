//! Ctrl-R: searching what was sent, here and in earlier runs, while the words are typed.

use super::overlay::{KeyUse, Overlay, OverlayLines};
use super::{Flow, TerminalChat};
use crate::chat::keys::Key;
use crate::chat::line::{Line, Style};
use crate::chat::wrap::wrap;
use crate::terminal::escape;

/// A search, and where in the history it is.
#[derive(Debug)]
pub(super) struct HistorySearch {
    words: String,
    /// Entries, the newest last.
    entries: Vec<String>,
    /// The entry that is shown.
    found: Option<usize>,
    /// What was in the input line before, and the cursor in it.
    before: (String, usize),
}

impl HistorySearch {
    /// The next older entry with the words, from here or from before here.
    fn search(&mut self, from: usize) -> bool {
        let words = self.words.to_lowercase();
        let entries = self.entries.get(..from).unwrap_or(&self.entries);
        let found = entries.iter().rposition(|entry| entry.to_lowercase().contains(&words));
        self.found = found.or(self.found);
        found.is_some()
    }

    fn newer(&mut self) -> bool {
        let words = self.words.to_lowercase();
        let from = self.found.map_or(0, |found| found + 1);
        let newer = self.entries.iter().enumerate().skip(from);
        let found = newer
            .filter(|(_, entry)| entry.to_lowercase().contains(&words))
            .map(|(index, _)| index)
            .next();
        self.found = found.or(self.found);
        found.is_some()
    }

    fn entry(&self) -> Option<&str> {
        self.entries.get(self.found?).map(String::as_str)
    }

    pub(super) fn lines(&self, width: usize) -> OverlayLines {
        let text = match (self.words.is_empty(), self.found) {
            (true, _) => "search: type words of an earlier message".to_owned(),
            (false, None) => format!("search: {} · no match", self.words),
            (false, Some(_)) => {
                format!("search: {} · Ctrl-R older, Enter takes it", self.words)
            }
        };
        let lines = wrap(&text, width).into_iter();
        OverlayLines {
            above: lines.map(|line| Line::new(Style::Dim, line)).collect(),
            ..OverlayLines::default()
        }
    }
}

impl TerminalChat {
    pub(super) fn open_search(&mut self) {
        if self.field.is_some() {
            return self.note("Ctrl-R searches messages; this is an answer");
        }
        let mut entries = match self.history.read() {
            Ok(entries) => entries,
            Err(error) => {
                self.note_error(&format!("the history cannot be read: {error}"));
                Vec::new()
            }
        };
        // What this chat knows beside it: messages of other clients, and what could not be stored.
        for entry in self.editor.history() {
            if !entries.contains(entry) {
                entries.push(entry.clone());
            }
        }
        self.overlay = Some(Overlay::Search(HistorySearch {
            words: String::new(),
            entries,
            found: None,
            before: (self.editor.text().to_owned(), self.editor.cursor()),
        }));
    }

    pub(super) fn press_search(&mut self, mut search: HistorySearch, key: &Key) -> KeyUse {
        let used = KeyUse::Used(Flow::Continue);
        let newest = search.entries.len();
        let is_found = match key {
            Key::Char(c) => {
                search.words.push(*c);
                let from = search.found.map_or(newest, |found| found + 1);
                search.search(from)
            }
            Key::Paste(text) => {
                search.words.push_str(text.lines().next().unwrap_or(""));
                search.search(newest)
            }
            Key::Backspace => {
                search.words.pop();
                search.found = None;
                search.words.is_empty() || search.search(newest)
            }
            Key::Ctrl('r') | Key::Up => {
                let from = search.found.unwrap_or(newest);
                search.search(from)
            }
            Key::Ctrl('s') | Key::Down => search.newer(),
            Key::Escape | Key::Ctrl('g') => {
                let (text, cursor) = search.before;
                self.editor.replace(text, cursor);
                return used;
            }
            Key::Enter | Key::Tab => return used, // what was found is in the input line
            _ => return KeyUse::Unused,           // goes on editing what was found
        };
        if !is_found {
            search.found = search.found.filter(|_| !matches!(key, Key::Char(_)));
            self.note("No match");
        }
        match search.entry() {
            Some(entry) => {
                let entry = escape(entry);
                let cursor = entry.len();
                self.editor.replace(entry, cursor);
            }
            None => {
                let (text, cursor) = search.before.clone();
                self.editor.replace(text, cursor);
            }
        }
        self.overlay = Some(Overlay::Search(search));
        used
    }
}
