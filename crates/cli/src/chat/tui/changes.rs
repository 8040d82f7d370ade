//! `/changes`: the changesets that the host keeps of a session, listed, one file's difference, and marks on files that were read.
//!
//! Promises: a number means the file that the last list showed under it.

use client::ClientError;
use client::chat::{ChangesError, ChangesList, ChangesetOffer, FileChangeEntry, ListedTurn};

use super::TerminalChat;
use super::change_answers::{ChangesAnswer, WaitingEntry};
use super::picker::Picker;
use crate::chat::change_argument::{self, ChangesRequest};
use crate::chat::change_lines::{file_line, list_lines, name_of, turn_name};
use crate::chat::keys::Key;
use crate::chat::line::{Line, Style};
use crate::chat::menu::{Menu, MenuItem, MenuOutcome};
use crate::chat::model_argument::ArgumentProposal;
use crate::chat::render::diff::{LineNumbers, show_diff};
use crate::format::format_age;
use crate::terminal::escape_line;

/// The turns whose changes can be listed.
#[derive(Debug)]
pub(super) struct TurnPicker {
    of: ChangesetOffer,
    pub(super) menu: Menu<ListedTurn>,
}

impl TerminalChat {
    /// Does what stands behind `/changes`.
    pub(super) fn enter_changes(&mut self, typed: &str) {
        let offers = self.chat.changesets();
        if offers.is_empty() && self.changes.is_none() {
            return self.wait_for_offers(WaitingEntry::Changes(typed.to_owned()));
        }
        match change_argument::parse(typed, &offers, self.changes.as_ref()) {
            Ok(ChangesRequest::List(of)) if of.is_of_turn => self.open_turns(of),
            Ok(ChangesRequest::List(of)) => self.list_changes(of, None),
            Ok(ChangesRequest::Show(file)) => self.show_change(file),
            Ok(ChangesRequest::Review { files, is_reviewed }) => self.review(files, is_reviewed),
            Ok(ChangesRequest::Operate(request)) => self.ask_or_operate(request),
            Err(why) => self.note_error(&why),
        }
    }

    pub(super) fn list_changes(&mut self, of: ChangesetOffer, turn: Option<ListedTurn>) {
        let read = self.chat.read_changes(of, turn);
        self.note("Looking at the files …");
        self.wait_for_changes(async move { ChangesAnswer::List(read.await) });
    }

    pub(super) fn take_changes(&mut self, result: Result<ChangesList, ChangesError>) {
        match result {
            Ok(list) => {
                self.note = None;
                let lines = list_lines(&list, &self.chat.changesets(), &self.base_directory());
                self.print(lines);
                self.changes = Some(list);
            }
            Err(error) => self.show_changes_error(&error),
        }
    }

    /// Asks for the turn, unless there is one only.
    fn open_turns(&mut self, of: ChangesetOffer) {
        let mut turns = self.chat.ended_turns();
        match turns.len() {
            0 => self.note_error("no turn of this chat is over yet"),
            1 => self.list_changes(of, turns.pop()),
            _ => {
                let now = crate::clock::now();
                let items = turns.into_iter().map(|turn| {
                    let (name, age) = (turn_name(&turn.text), format_age(&turn.started_at, now));
                    MenuItem::new(turn, name, age)
                });
                let menu = Menu::new(items.collect());
                self.open_picker(Picker::Turns(TurnPicker { of, menu }));
            }
        }
    }

    pub(super) fn press_turns(&mut self, mut turns: TurnPicker, key: &Key) {
        match turns.menu.key(key) {
            MenuOutcome::Taken | MenuOutcome::Unused => self.open_picker(Picker::Turns(turns)),
            MenuOutcome::Closed => {}
            MenuOutcome::Chosen => match turns.menu.selected().map(|item| item.value.clone()) {
                Some(turn) => self.list_changes(turns.of, Some(turn)),
                None => self.open_picker(Picker::Turns(turns)), // nothing matches what was typed
            },
        }
    }

    fn show_change(&mut self, file: FileChangeEntry) {
        if !file.is_content_kept {
            let name = name_of(&file.uri, &self.base_directory());
            return self.note_error(&format!("{name} is too large: its content is not kept"));
        }
        let read = self.chat.read_change(&file);
        self.wait_for_changes(async move {
            let contents = read.await;
            ChangesAnswer::File { file, contents }
        });
    }

    pub(super) fn take_change(
        &mut self,
        file: &FileChangeEntry,
        contents: Result<(Vec<u8>, Vec<u8>), ChangesError>,
    ) {
        let (before, after) = match contents {
            Ok(contents) => contents,
            Err(error) => return self.show_changes_error(&error),
        };
        let mut lines = vec![file_line(None, file, &self.base_directory())];
        let width = self.painter.width();
        lines.extend(show_diff(&before, &after, LineNumbers::Shown, width).lines);
        self.print(lines);
    }

    /// Marks files of the list as reviewed, or not any more; the list is shown as it is then.
    fn review(&mut self, files: Vec<FileChangeEntry>, is_reviewed: bool) {
        let Some(list) = &self.changes else {
            debug_assert!(false, "files are selected from a list");
            return;
        };
        let marked = self.chat.review_changes(list, files, is_reviewed);
        self.wait_for_changes(async move { ChangesAnswer::List(marked.await) });
    }

    pub(super) fn show_changes_error(&mut self, error: &ChangesError) {
        let text = match error {
            ChangesError::Client(error) => describe(error),
            ChangesError::ChangedSince(uri) => {
                let name = name_of(uri, &self.base_directory());
                format!("{name} changed since it was listed; run /changes again")
            }
            // In the transcript: a note may say why, and stays.
            ChangesError::NotMarked => {
                return self.print([Line::new(Style::Bad, format!("  {error}"))]);
            }
            error => error.to_string(),
        };
        self.note_error(&text);
    }

    pub(super) fn base_directory(&self) -> String {
        let directory = self.chat.directories().into_iter().next();
        directory.map_or(String::new(), |directory| {
            wire::file_uri::uri_of(directory.as_os_str().as_encoded_bytes())
        })
    }

    /// What the first word behind `/changes` may become.
    pub(super) fn propose_changes(&self, text: &str, cursor: usize) -> Vec<ArgumentProposal> {
        let typed = text.get(..cursor).unwrap_or(text);
        let word = typed.split_once(char::is_whitespace);
        let word = word.map_or("", |(_, word)| word.trim_start());
        if word.contains(char::is_whitespace) {
            return Vec::new(); // numbers and messages are the user's own
        }
        let start = cursor - word.len();
        let words = change_argument::words(&self.chat.changesets(), self.changes.as_ref())
            .into_iter()
            .filter(|one| one.word.contains(word));
        let proposals = words.map(|one| ArgumentProposal {
            replaces: start..cursor,
            about: escape_line(&one.about),
            text: one.word,
        });
        proposals.collect()
    }
}

/// What the host says, without the number that programs know it by.
pub(super) fn describe(error: &ClientError) -> String {
    match error {
        ClientError::Rpc(error) => error.message.clone(),
        error => error.to_string(),
    }
}
