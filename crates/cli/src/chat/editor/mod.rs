//! The line people type into: text, a cursor, what was typed before, what was deleted.
//!
//! Promises: the cursor always stands between whole characters as people see them. What is half typed survives a look into
//! the history; what was deleted or replaced can be brought back.
//! Must not know: terminals, what becomes of the text.

mod chip;
mod movement;
mod recall;

use client::chat::MessageAttachment;

use self::chip::{Chips, without_chips};
use self::recall::Recall;
use super::keys::Key;

/// Steps that can be undone.
const UNDO_MAX: usize = 200;

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EditorOutcome {
    /// The text or the cursor changed, or nothing did.
    Taken,
    /// The text is complete; the editor is empty again.
    Entered(String),
    /// Not a key for editing, or nothing for it to do.
    Unused,
}

#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
    chips: Chips,
    recall: Recall,
    /// Texts before each change, with their cursors.
    undo: Vec<(String, usize)>,
    /// What was deleted last, by one or several keys in a row.
    killed: String,
    last: LastChange,
}

/// What the last key did: some go together with the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LastChange {
    #[default]
    Other,
    /// A letter was typed: a word is undone at once.
    Typed,
    /// Something was deleted that Ctrl-Y brings back.
    Killed,
}

/// On which side of the cursor text is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    Behind,
}

impl Editor {
    /// The text as it is edited: what is folded is one character each.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text as it is sent.
    pub(crate) fn whole_text(&self) -> String {
        self.chips.unfold(&self.text)
    }

    /// What is shown for a character of the text that stands for something longer.
    pub(crate) fn chip_label(&self, c: char) -> Option<&str> {
        self.chips.label(c)
    }

    /// What is attached by what stands in the text, with the label that names it there.
    pub(crate) fn attachments(&self) -> Vec<(String, MessageAttachment)> {
        self.chips.attachments(&self.text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn set(&mut self, text: &str) {
        self.change(LastChange::Other);
        self.text = without_chips(text);
        self.cursor = self.text.len();
        self.recall.stop();
    }

    /// Another text, with the cursor somewhere in it.
    pub(crate) fn replace(&mut self, text: String, cursor: usize) {
        self.change(LastChange::Other);
        self.text = text;
        self.cursor = cursor.min(self.text.len());
    }

    /// Takes the text out as it is sent.
    pub(crate) fn take(&mut self) -> String {
        let whole = self.whole_text();
        self.text.clear();
        self.cursor = 0;
        self.chips = Chips::default();
        self.undo.clear();
        self.last = LastChange::Other;
        self.recall.stop();
        whole
    }

    /// Takes the text out; Ctrl-Y brings it back.
    pub(crate) fn put_away(&mut self) {
        if !self.is_empty() {
            self.killed = self.take();
        }
    }

    /// Inserts what a picture or a file is named by here.
    pub(crate) fn attach(&mut self, name: &str, attachment: MessageAttachment) {
        if let Some(chip) = self.chips.attach(name, attachment) {
            self.change(LastChange::Other);
            self.insert(chip.encode_utf8(&mut [0; 4]));
            self.insert(" ");
        }
    }

    /// Adds to what Up brings back.
    pub(crate) fn remember(&mut self, text: &str) {
        self.recall.remember(text);
    }

    /// What Up brings back, the newest last.
    pub(crate) fn history(&self) -> &[String] {
        self.recall.entries()
    }

    pub(crate) fn key(&mut self, key: &Key) -> EditorOutcome {
        match key {
            Key::Char(c) => self.type_character(*c),
            Key::Paste(text) => self.paste(text),
            Key::NewLine => self.type_character('\n'),
            Key::Enter if self.text[..self.cursor].ends_with('\\') => {
                self.change(LastChange::Other);
                self.delete(self.cursor - 1, self.cursor);
                self.insert("\n");
            }
            Key::Enter => return EditorOutcome::Entered(self.take()),
            Key::Undo => self.undo(),
            Key::Up | Key::Ctrl('p') => return self.up(),
            Key::Down | Key::Ctrl('n') => return self.down(),
            key => match self.destination(key) {
                Some(cursor) => {
                    self.cursor = cursor;
                    self.last = LastChange::Other;
                }
                None => return self.delete_by(key),
            },
        }
        EditorOutcome::Taken
    }

    /// Where a key moves the cursor to; none if it does not.
    fn destination(&self, key: &Key) -> Option<usize> {
        let (text, at) = (self.text.as_str(), self.cursor);
        Some(match key {
            Key::Left | Key::Ctrl('b') => movement::before(text, at),
            Key::Right | Key::Ctrl('f') => movement::after(text, at),
            Key::WordLeft => movement::word_before(text, at),
            Key::WordRight => movement::word_after(text, at),
            Key::Home | Key::Ctrl('a') => movement::line_start(text, at),
            Key::End | Key::Ctrl('e') => movement::line_end(text, at),
            _ => return None,
        })
    }

    fn delete_by(&mut self, key: &Key) -> EditorOutcome {
        let (text, at) = (self.text.as_str(), self.cursor);
        match key {
            Key::Backspace => self.erase(movement::before(text, at), at),
            Key::Delete => self.erase(at, movement::after(text, at)),
            Key::Ctrl('d') if !text.is_empty() => self.erase(at, movement::after(text, at)),
            Key::Ctrl('u') => self.kill(movement::line_start(text, at), at, Side::Before),
            Key::Ctrl('k') => self.kill(at, movement::line_end(text, at), Side::Behind),
            Key::Ctrl('w') => self.kill(movement::word_before(text, at), at, Side::Before),
            Key::Alt('d') => self.kill(at, movement::word_after(text, at), Side::Behind),
            Key::Ctrl('y') => {
                let killed = self.killed.clone();
                self.paste(&killed);
            }
            _ => return EditorOutcome::Unused,
        }
        EditorOutcome::Taken
    }

    /// Notes the text before it changes, so that it can be brought back.
    fn change(&mut self, what: LastChange) {
        let goes_on = what == LastChange::Typed && self.last == what;
        if !goes_on {
            self.undo.push((self.text.clone(), self.cursor));
            if self.undo.len() > UNDO_MAX {
                self.undo.remove(0);
            }
        }
        self.last = what;
    }

    fn undo(&mut self) {
        self.last = LastChange::Other;
        // With nothing left to undo the text stays as it is.
        if let Some((text, cursor)) = self.undo.pop() {
            self.text = text;
            self.cursor = cursor;
        }
    }

    fn type_character(&mut self, c: char) {
        // Every word is undone by itself.
        if c.is_whitespace() {
            self.change(LastChange::Other)
        } else {
            self.change(LastChange::Typed)
        }
        self.insert(c.encode_utf8(&mut [0; 4]));
    }

    fn paste(&mut self, text: &str) {
        self.change(LastChange::Other);
        let text = without_chips(&printable(text));
        match self.chips.fold(&text) {
            Some(chip) => self.insert(chip.encode_utf8(&mut [0; 4])),
            None => self.insert(&text),
        }
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn erase(&mut self, from: usize, to: usize) {
        if from < to {
            self.change(LastChange::Other);
            self.delete(from, to);
        }
    }

    /// Deletes what Ctrl-Y brings back, together with what was deleted right before.
    fn kill(&mut self, from: usize, to: usize, side: Side) {
        if from == to {
            return; // nothing to delete, and nothing to forget
        }
        let goes_on = self.last == LastChange::Killed;
        self.change(LastChange::Killed);
        let killed = self.chips.unfold(&self.text[from..to]);
        self.killed = match (goes_on, side) {
            (false, _) => killed,
            (true, Side::Before) => killed + &self.killed,
            (true, Side::Behind) => std::mem::take(&mut self.killed) + &killed,
        };
        self.delete(from, to);
    }

    /// A line up in the text, or back in the history from its first line.
    fn up(&mut self) -> EditorOutcome {
        if let Some(up) = movement::line_up(&self.text, self.cursor) {
            self.cursor = up;
            return EditorOutcome::Taken;
        }
        let recalled = self.recall.older(&self.text);
        self.show_recalled(recalled)
    }

    fn down(&mut self) -> EditorOutcome {
        if let Some(down) = movement::line_down(&self.text, self.cursor) {
            self.cursor = down;
            return EditorOutcome::Taken;
        }
        let recalled = self.recall.newer();
        self.show_recalled(recalled)
    }

    fn show_recalled(&mut self, recalled: Option<String>) -> EditorOutcome {
        let Some(text) = recalled else { return EditorOutcome::Unused };
        self.change(LastChange::Other);
        self.cursor = text.len();
        self.text = text;
        EditorOutcome::Taken
    }
}

/// What can be typed: no control characters, tabs as they are.
fn printable(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}

#[cfg(test)]
mod tests;
