//! `/changes`, `/discard`, `/commit`: what the session changed in files, one file's difference, and what to do about it.
//!
//! Promises: a number means the file that the last list showed under it. Nothing is discarded without a yes of its own.

use client::ClientError;
use client::chat::{ChangesList, ChangesOf, FileChangeEntry, FileChangeKind};
use serde_json::json;

use super::TerminalChat;
use super::background::BackgroundAnswer;
use super::picker::{Picker, QuestionAction, YesNoQuestion};
use crate::chat::line::{Line, Style};
use crate::chat::render::diff::{LineNumbers, show_diff};
use crate::terminal::escape_line;

/// Files that are listed.
const LISTED_MAX: usize = 100;

/// Files that a question names.
const NAMED_MAX: usize = 10;

impl TerminalChat {
    /// The list, or what changed in the file with a number.
    pub(super) fn show_changes(&mut self, argument: &str) {
        let of = match argument {
            "" => ChangesOf::Session,
            "uncommitted" => ChangesOf::Uncommitted,
            number => return self.show_one_change(number),
        };
        let read = self.chat.read_changes(of);
        self.answers
            .wait_for(async move { BackgroundAnswer::Changes(read.await) });
    }

    pub(super) fn take_changes(&mut self, result: Result<ChangesList, ClientError>) {
        let list = match result {
            Ok(list) => list,
            Err(error) => return self.note_error(&say(&error)),
        };
        if list.files.is_empty() {
            self.note(match list.of {
                ChangesOf::Session => "This session changed no files",
                ChangesOf::Uncommitted => "Nothing differs from the last commit",
            });
            return;
        }
        let lines: Vec<Line> = list_lines(&list, &self.base_directory());
        self.print(lines);
        self.changes = Some(list);
    }

    fn show_one_change(&mut self, number: &str) {
        let Some(file) = self.listed_change(number) else {
            return; // what to do is said
        };
        let read = self.chat.read_change(&file);
        self.answers.wait_for(async move {
            let contents = read.await;
            BackgroundAnswer::Change { file, contents }
        });
    }

    pub(super) fn take_change(
        &mut self,
        file: &FileChangeEntry,
        contents: Result<(Vec<u8>, Vec<u8>), ClientError>,
    ) {
        let (before, after) = match contents {
            Ok(contents) => contents,
            Err(error) => return self.note_error(&say(&error)),
        };
        let mut lines = vec![file_line(None, file, &self.base_directory())];
        let width = self.painter.width();
        lines.extend(show_diff(&before, &after, LineNumbers::Shown, width).lines);
        self.print(lines);
    }

    /// Asks whether a file, or all of the list, is to be what it was.
    pub(super) fn ask_to_discard(&mut self, argument: &str) {
        let Some(list) = self.changes.clone() else {
            return self.note_error(
                "/changes lists the files first; then /discard takes a number or `all`",
            );
        };
        let base = self.base_directory();
        let file = match argument {
            "all" => None,
            number => match self.listed_change(number) {
                Some(file) => Some(file),
                None => return, // what to do is said
            },
        };
        let files: Vec<&FileChangeEntry> = match &file {
            Some(file) => vec![file],
            None => list.files.iter().collect(),
        };
        let mut names: Vec<String> = files
            .iter()
            .take(NAMED_MAX)
            .map(|file| name_of(&file.uri, &base))
            .collect();
        if files.len() > NAMED_MAX {
            names.push(format!("and {} more", files.len() - NAMED_MAX));
        }
        let what = match list.of {
            ChangesOf::Session => "as before this session",
            ChangesOf::Uncommitted => "as in the last commit; new files are removed",
        };
        let text = format!("Make this {what}?\n{}", names.join("\n"));
        let action = QuestionAction::Discard {
            list: Box::new(list),
            file: file.map(Box::new),
        };
        let question = YesNoQuestion::new(text, "Discard", "Keep", action);
        self.open_picker(Picker::YesNoQuestion(question));
    }

    pub(super) fn discard(&mut self, list: &ChangesList, file: Option<&FileChangeEntry>) {
        let done = self
            .chat
            .operate_on_changes(list, "discard", file, json!({}));
        self.answers
            .wait_for(async move { BackgroundAnswer::Operated(done.await) });
    }

    /// Commits what is staged, or everything.
    pub(super) fn commit(&mut self, message: &str) {
        let committed = self.chat.commit_changes(message);
        self.answers
            .wait_for(async move { BackgroundAnswer::Operated(committed.await) });
    }

    pub(super) fn take_operated(&mut self, result: Result<String, ClientError>) {
        match result {
            Ok(message) => self.note(&escape_line(&message)),
            Err(error) => self.note_error(&say(&error)),
        }
    }

    /// The file that the last list shows under a number; says what to do if there is none.
    fn listed_change(&mut self, number: &str) -> Option<FileChangeEntry> {
        let files = self.changes.as_ref().map(|list| list.files.as_slice());
        let files = files.unwrap_or_default();
        let index = number.parse::<usize>().ok();
        let index = index.and_then(|number| number.checked_sub(1));
        let file = index.and_then(|index| files.get(index).cloned());
        if file.is_none() {
            self.note_error(match files.is_empty() {
                true => "/changes lists the files first",
                false => "/changes gave no file that number",
            });
        }
        file
    }

    fn base_directory(&self) -> String {
        let directory = self.chat.directories().into_iter().next();
        directory.map_or(String::new(), |directory| {
            wire::file_uri::uri_of(directory.as_os_str().as_encoded_bytes())
        })
    }
}

fn say(error: &ClientError) -> String {
    escape_line(&error.to_string())
}

/// A file as people call it.
fn name_of(uri: &str, base: &str) -> String {
    let inside = uri.strip_prefix(base);
    let inside = inside.and_then(|rest| rest.strip_prefix('/'));
    let path = match inside {
        Some(path) => path.to_owned(),
        None => uri.to_owned(),
    };
    let decoded = wire::file_uri::path_of(&format!("file:///{path}"));
    let decoded = decoded.map(|path| String::from_utf8_lossy(&path).into_owned());
    let name = match (inside, decoded) {
        (Some(_), Some(decoded)) => decoded.trim_start_matches('/').to_owned(),
        _ => path,
    };
    escape_line(&name)
}

fn list_lines(list: &ChangesList, base: &str) -> Vec<Line> {
    let (added, removed) = list.files.iter().fold((0, 0), |(added, removed), file| {
        (added + file.added, removed + file.removed)
    });
    let what = match list.of {
        ChangesOf::Session => "in this session",
        ChangesOf::Uncommitted => "since the last commit",
    };
    let count = list.files.len();
    let files = if count == 1 { "file" } else { "files" };
    let mut lines = vec![Line::new(
        Style::Bold,
        format!("  {count} {files} changed {what} +{added} -{removed}"),
    )];
    let listed = list.files.iter().take(LISTED_MAX).enumerate();
    lines.extend(listed.map(|(index, file)| file_line(Some(index + 1), file, base)));
    if count > LISTED_MAX {
        let more = format!("  and {} more", count - LISTED_MAX);
        lines.push(Line::new(Style::Dim, more));
    }
    let next = "  /changes N shows one · /discard N or /discard all takes back";
    lines.push(Line::new(Style::Dim, next));
    lines
}

fn file_line(number: Option<usize>, file: &FileChangeEntry, base: &str) -> Line {
    let number = number.map_or(String::new(), |number| format!("{number:>4} "));
    let (letter, style) = match file.kind {
        FileChangeKind::Added => ("A", Style::Good),
        FileChangeKind::Removed => ("D", Style::Bad),
        FileChangeKind::Moved => ("R", Style::Warn),
        FileChangeKind::Changed => ("M", Style::Warn),
    };
    let from = file.moved_from.as_ref();
    let from = from.map_or(String::new(), |from| format!("{} → ", name_of(from, base)));
    Line::new(Style::Dim, number)
        .then(style, letter)
        .then(Style::Plain, format!(" {from}{}", name_of(&file.uri, base)))
        .then(Style::Good, format!(" +{}", file.added))
        .then(Style::Bad, format!(" -{}", file.removed))
}
