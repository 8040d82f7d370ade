//! The line people type into: text, a cursor, and what was typed before.
//!
//! Promises: the cursor always stands between whole characters as people see them. What is half typed survives a look into
//! the history.
//! Must not know: terminals, what becomes of the text.

use unicode_width::UnicodeWidthChar;

use super::keys::Key;

/// Entries of the history that are stored.
const HISTORY_MAX: usize = 500;
const JOINER: char = '\u{200d}';

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
    history: Vec<String>,
    /// Which entry is being looked at, and what was typed before looking.
    recalled: Option<(usize, String)>,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Bytes before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn set(&mut self, text: &str) {
        self.text = text.to_owned();
        self.cursor = self.text.len();
        self.recalled = None;
    }

    /// Another text, with the cursor somewhere in it.
    pub(crate) fn replace(&mut self, text: String, cursor: usize) {
        self.text = text;
        self.cursor = cursor.min(self.text.len());
    }

    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        self.recalled = None;
        std::mem::take(&mut self.text)
    }

    /// Adds to what Up brings back.
    pub(crate) fn remember(&mut self, text: &str) {
        if text.is_empty() || self.history.last().is_some_and(|last| last == text) {
            return; // twice in a row is once
        }
        self.history.push(text.to_owned());
        if self.history.len() > HISTORY_MAX {
            self.history.remove(0);
        }
    }

    pub(crate) fn key(&mut self, key: &Key) -> EditorOutcome {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(&printable(text)),
            Key::NewLine => self.insert("\n"),
            Key::Enter if self.text[..self.cursor].ends_with('\\') => {
                self.delete(self.cursor - 1, self.cursor);
                self.insert("\n");
            }
            Key::Enter => return EditorOutcome::Entered(self.take()),
            Key::Backspace => self.delete(self.before(self.cursor), self.cursor),
            Key::Delete => self.delete(self.cursor, self.after(self.cursor)),
            Key::Ctrl('d') if !self.is_empty() => {
                self.delete(self.cursor, self.after(self.cursor));
            }
            Key::Left | Key::Ctrl('b') => self.cursor = self.before(self.cursor),
            Key::Right | Key::Ctrl('f') => self.cursor = self.after(self.cursor),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_after(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(self.cursor),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(self.cursor),
            Key::Ctrl('u') => self.delete(self.line_start(self.cursor), self.cursor),
            Key::Ctrl('k') => self.delete(self.cursor, self.line_end(self.cursor)),
            Key::Ctrl('w') => self.delete(self.word_before(), self.cursor),
            Key::Up | Key::Ctrl('p') => return self.up(),
            Key::Down | Key::Ctrl('n') => return self.down(),
            Key::Tab
            | Key::BackTab
            | Key::Escape
            | Key::PageUp
            | Key::PageDown
            | Key::FocusGained
            | Key::FocusLost
            | Key::Ctrl(_)
            | Key::Alt(_) => return EditorOutcome::Unused,
        }
        EditorOutcome::Taken
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    /// One character to the left, with what is drawn on top of it.
    fn before(&self, at: usize) -> usize {
        let mut chars = self.text[..at].char_indices().rev().peekable();
        while let Some((start, c)) = chars.next() {
            let joined = chars.peek().is_some_and(|(_, before)| *before == JOINER);
            if c.width() != Some(0) && !joined {
                return start;
            }
        }
        0
    }

    fn after(&self, at: usize) -> usize {
        let mut chars = self.text[at..].chars();
        let Some(first) = chars.next() else {
            return at;
        };
        let mut end = at + first.len_utf8();
        let mut last = first;
        for c in chars {
            if c.width() != Some(0) && last != JOINER {
                break;
            }
            end += c.len_utf8();
            last = c;
        }
        end
    }

    fn word_before(&self) -> usize {
        let before = &self.text[..self.cursor];
        let trimmed = before.trim_end();
        trimmed
            .rfind(char::is_whitespace)
            .map_or(0, |gap| self.after(gap))
    }

    fn word_after(&self) -> usize {
        let after = &self.text[self.cursor..];
        let indent = after.len() - after.trim_start().len();
        let word = after[indent..].find(char::is_whitespace);
        word.map_or(self.text.len(), |end| self.cursor + indent + end)
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    fn line_end(&self, at: usize) -> usize {
        self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |newline| at + newline)
    }

    /// A line up in the text, or back in the history from its first line.
    fn up(&mut self) -> EditorOutcome {
        let start = self.line_start(self.cursor);
        if start > 0 {
            self.cursor = self.same_column(start, self.line_start(start - 1), start - 1);
            return EditorOutcome::Taken;
        }
        let older = match &self.recalled {
            Some((index, _)) => index.checked_sub(1),
            None => self.history.len().checked_sub(1),
        };
        let Some(older) = older else {
            return EditorOutcome::Unused;
        };
        let typed = match self.recalled.take() {
            Some((_, typed)) => typed,
            None => std::mem::take(&mut self.text),
        };
        self.recall(older, typed);
        EditorOutcome::Taken
    }

    fn down(&mut self) -> EditorOutcome {
        let end = self.line_end(self.cursor);
        if end < self.text.len() {
            let start = self.line_start(self.cursor);
            self.cursor = self.same_column(start, end + 1, self.line_end(end + 1));
            return EditorOutcome::Taken;
        }
        let Some((index, typed)) = self.recalled.take() else {
            return EditorOutcome::Unused;
        };
        if index + 1 < self.history.len() {
            self.recall(index + 1, typed);
        } else {
            self.set(&typed);
        }
        EditorOutcome::Taken
    }

    fn recall(&mut self, index: usize, typed: String) {
        let entry = self.history[index].clone();
        self.set(&entry);
        self.recalled = Some((index, typed));
    }

    /// The position in another line that is as far from its start as the cursor is from `start`.
    fn same_column(&self, start: usize, other: usize, other_end: usize) -> usize {
        let column = self.text[start..self.cursor].chars().count();
        let line = &self.text[other..other_end];
        line.char_indices()
            .nth(column)
            .map_or(other_end, |(offset, _)| other + offset)
    }
}

/// What can be typed: no control characters, tabs as they are.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_in(editor: &mut Editor, text: &str) {
        for c in text.chars() {
            editor.key(&Key::Char(c));
        }
    }

    fn press(editor: &mut Editor, keys: &[Key]) {
        for key in keys {
            editor.key(key);
        }
    }

    /// The text with a bar where the cursor is.
    fn draw(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    #[test]
    fn keys_edit_the_text() {
        use Key::{Backspace, Ctrl, Delete, End, Home, Left, Right, WordLeft, WordRight};
        for (typed, keys, expected) in [
            ("abc", &[Left, Backspace][..], "a|c"),
            ("abc", &[Home, Delete, Right], "b|c"),
            ("one two", &[WordLeft], "one |two"),
            ("one two", &[Home, WordRight], "one| two"),
            ("one two ", &[Ctrl('w')], "one |"),
            ("one two", &[WordLeft, Ctrl('k')], "one |"),
            ("one two", &[WordLeft, Ctrl('u'), End], "two|"),
            ("Grüße", &[Left, Left, Backspace], "Gr|ße"),
            ("a👩‍🚀b", &[Left, Backspace], "a|b"),
            ("ae\u{301}", &[Left], "a|e\u{301}"),
            ("", &[Left, Right, Backspace, Delete], "|"),
            ("ab", &[Home, Ctrl('d')], "|b"),
        ] {
            let mut editor = Editor::default();
            type_in(&mut editor, typed);
            press(&mut editor, keys);
            assert_eq!(draw(&editor), expected, "{typed:?} {keys:?}");
        }
    }

    #[test]
    fn a_backslash_or_a_modifier_makes_a_new_line() {
        let mut editor = Editor::default();
        type_in(&mut editor, "one\\");
        press(&mut editor, &[Key::Enter]);
        type_in(&mut editor, "two");
        press(&mut editor, &[Key::NewLine]);
        type_in(&mut editor, "three");
        press(&mut editor, &[Key::Up, Key::Home]);
        assert_eq!(draw(&editor), "one\n|two\nthree");
        press(&mut editor, &[Key::Down, Key::End, Key::Up]);
        assert_eq!(draw(&editor), "one\ntwo|\nthree");
        let entered = editor.key(&Key::Enter);
        assert_eq!(
            entered,
            EditorOutcome::Entered("one\ntwo\nthree".to_owned())
        );
        assert!(editor.is_empty());
    }

    #[test]
    fn history_and_the_unfinished_line_can_be_recalled() {
        let mut editor = Editor::default();
        editor.remember("first");
        editor.remember("second");
        editor.remember("second");
        type_in(&mut editor, "half");
        press(&mut editor, &[Key::Up]);
        assert_eq!(draw(&editor), "second|");
        press(&mut editor, &[Key::Up]);
        assert_eq!(draw(&editor), "first|");
        assert_eq!(editor.key(&Key::Up), EditorOutcome::Unused);
        press(&mut editor, &[Key::Down, Key::Down]);
        assert_eq!(draw(&editor), "half|");
        assert_eq!(editor.key(&Key::Down), EditorOutcome::Unused);
    }

    #[test]
    fn pasted_text_cannot_control_the_editor() {
        let mut editor = Editor::default();
        press(&mut editor, &[Key::Paste("a\nb\u{1b}[31m\u{7}".to_owned())]);
        assert_eq!(draw(&editor), "a\nb[31m|");
    }
}
