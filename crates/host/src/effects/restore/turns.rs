//! Turns as far as files are concerned, read from the journal, and which of them a command is about.
//!
//! Which turns are undone is not stored anywhere: an undo is a turn itself, and says which turn it took back. So it is right in
//! forks and after a rewind, too.
//!
//! Promises: bounded; a damaged turn changed nothing. An undo that was cut off counts as not done.
//! Must not know: what files hold.

use std::collections::BTreeSet;

use agent_api::{AgentError, RecordedEdit, edits_of_call};
use kernel::{Answer, ChannelId, Query, RestoreTask, StoredTurn, TurnPage};
use serde_json::{Value, json};
use wire::meta;

use crate::changes::{DamagedChanges, FileChanges, RecordedChange};
use crate::effects::history::{read_page, unreadable};
use crate::journal::JournalHandle;
use crate::sorted_map::SortedMap;

/// Turns that are looked at in all, and at once.
const TURNS_MAX: usize = 1_000;
const PAGE_TURNS: u32 = 50;
const PAGE_BYTES: u64 = 4 * 1_024 * 1_024;

/// Turns that a rewind offers to go back to.
const CHOICES_MAX: u32 = 9;

/// How much of a message names its turn, in characters.
const NAME_CHARS_MAX: usize = 60;

/// What was found to be changed, by ids of turns.
type FoundChanges = SortedMap<String, FileChanges>;

/// The commands that restore files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestoreCommand {
    Undo,
    Redo,
    Rewind,
}

/// A turn that changed files.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileTurn {
    pub id: String,
    /// The beginning of its message.
    pub name: String,
    /// In the order they were made.
    pub edits: Vec<RecordedEdit>,
    /// Set if it took back the changes of another turn.
    pub restores: Option<Restoration>,
}

/// What a turn took back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Restoration {
    command: RestoreCommand,
    turn_id: String,
    is_complete: bool,
}

/// Turns that changed files, newest first, and where to go on.
pub(super) struct FileTurns {
    pub turns: Vec<FileTurn>,
    pub next: Option<u64>,
}

impl RestoreCommand {
    pub(super) fn of(task: &RestoreTask) -> Self {
        match task {
            RestoreTask::Undo => Self::Undo,
            RestoreTask::Redo => Self::Redo,
            RestoreTask::ChooseTurns | RestoreTask::Rewind { .. } => Self::Rewind,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Rewind => "rewind",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Undo, Self::Redo, Self::Rewind].into_iter().find(|command| command.name() == name)
    }
}

/// What the call that restores files says of itself.
pub(super) fn restoration_meta(command: RestoreCommand, turn_id: &str) -> wire::Object {
    let value = json!({"command": command.name(), "turnId": turn_id});
    wire::Object::from_iter([(meta::RESTORE.to_owned(), value)])
}

impl FileTurn {
    /// A turn of the journal; `None` if it changed no file.
    fn read(stored: &StoredTurn, found: &FoundChanges) -> Option<Self> {
        let keys = [meta::EDITS, meta::RESTORE, "\"fileEdit\""];
        let found = found.get(&stored.id);
        if found.is_none() && !keys.iter().any(|key| meta::may_hold(&stored.json, key)) {
            return None;
        }
        match serde_json::from_slice(&stored.json) {
            Ok(turn) => Self::of(&turn, found),
            Err(error) => {
                tracing::error!(turn = stored.n, %error, "a turn of the journal is damaged; its files cannot be restored");
                None
            }
        }
    }

    /// What was found comes first: it knows what files were before all calls, also of those that commands changed.
    fn of(turn: &Value, found: Option<&FileChanges>) -> Option<Self> {
        let parts = turn["responseParts"].as_array()?.iter();
        let calls: Vec<&Value> =
            parts.filter(|part| part["kind"] == "toolCall").map(|part| &part["toolCall"]).collect();
        let found = found.into_iter().flat_map(|found| found.files.values());
        let edits = calls.iter().flat_map(|call| edits_of_call(call));
        let edits: Vec<RecordedEdit> =
            found.filter_map(RecordedChange::edit).chain(edits).collect();
        let restores = calls.iter().find_map(|call| Restoration::of(call));
        if edits.is_empty() && restores.is_none() {
            return None;
        }
        Some(Self {
            id: turn["id"].as_str()?.to_owned(),
            name: name_of(turn["message"]["text"].as_str().unwrap_or("")),
            edits,
            restores,
        })
    }
}

impl Restoration {
    fn of(call: &Value) -> Option<Self> {
        let restored = &call["_meta"][meta::RESTORE];
        Some(Self {
            command: RestoreCommand::from_name(restored["command"].as_str()?)?,
            turn_id: restored["turnId"].as_str()?.to_owned(),
            is_complete: call["status"] == "completed" && call["success"] == true,
        })
    }
}

/// The beginning of a message: its first line, or what fits of it.
fn name_of(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("");
    let mut name: String = line.chars().take(NAME_CHARS_MAX).collect();
    if name.len() < text.trim().len() {
        name.push('…');
    }
    name
}

/// The turns that `/undo` may take back, newest first: those that changed files and were not undone.
pub(super) fn undo_candidates(newest_first: &[FileTurn]) -> Vec<usize> {
    let mut undone: BTreeSet<&str> = BTreeSet::new();
    let mut candidates = Vec::new();
    for (index, turn) in newest_first.iter().enumerate() {
        if undone.contains(turn.id.as_str()) {
            // An undo that was redone: the redo stands for what it had taken back.
            let undo =
                turn.restores.iter().filter(|restored| restored.command == RestoreCommand::Undo);
            undone.extend(undo.map(|restored| restored.turn_id.as_str()));
            continue;
        }
        match &turn.restores {
            Some(restored) if !restored.is_complete => {} // cut off: as if it had not been
            Some(restored) => {
                undone.insert(restored.turn_id.as_str());
                // An undo is taken back by `/redo`. What that brought back, and what a rewind did, can be undone again.
                if restored.command != RestoreCommand::Undo {
                    candidates.push(index);
                }
            }
            None => candidates.push(index),
        }
    }
    candidates
}

/// The undo that `/redo` may take back: the last one that is not redone, if no turn changed files since.
pub(super) fn redo_candidates(newest_first: &[FileTurn]) -> Vec<usize> {
    let mut redone: BTreeSet<&str> = BTreeSet::new();
    for (index, turn) in newest_first.iter().enumerate() {
        if redone.contains(turn.id.as_str()) {
            continue;
        }
        match &turn.restores {
            Some(restored) if !restored.is_complete => {} // cut off: as if it had not been
            Some(restored) if restored.command == RestoreCommand::Undo => return vec![index],
            Some(restored) if restored.command == RestoreCommand::Redo => {
                redone.insert(restored.turn_id.as_str());
            }
            Some(_) | None => return Vec::new(),
        }
    }
    Vec::new()
}

/// Reads the turns of a chat.
pub(super) struct TurnReader {
    journal: JournalHandle,
    chat: ChannelId,
    turns_left: usize,
}

impl TurnReader {
    pub(super) fn new(journal: JournalHandle, chat: ChannelId) -> Self {
        Self { journal, chat, turns_left: TURNS_MAX }
    }

    /// What the newest turns before a number are called, newest first.
    pub(super) async fn read_names(&self, before_n: u64) -> Result<Vec<String>, AgentError> {
        let query = Query::Turns {
            chat: self.chat,
            before_n,
            turns_max: CHOICES_MAX,
            bytes_max: PAGE_BYTES,
        };
        let page = read_page(&self.journal, query).await?;
        let names = page.turns.iter().rev().map(|stored| {
            // A damaged turn has no name; it can be cut off like any other.
            let turn: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
            name_of(turn["message"]["text"].as_str().unwrap_or(""))
        });
        Ok(names.collect())
    }

    /// A page of the turns that the chat shows before a number.
    pub(super) async fn read_before(&mut self, before_n: u64) -> Result<FileTurns, AgentError> {
        let query = Query::Turns {
            chat: self.chat,
            before_n,
            turns_max: PAGE_TURNS,
            bytes_max: PAGE_BYTES,
        };
        let page = read_page(&self.journal, query).await?;
        self.turns_left = self.turns_left.saturating_sub(page.turns.len());
        let goes_on = page.older && self.turns_left > 0;
        let oldest = page.turns.first().map(|turn| turn.n);
        let found = self.read_changes(&page).await?;
        let turns = page.turns.iter().rev();
        Ok(FileTurns {
            turns: turns.filter_map(|turn| FileTurn::read(turn, &found)).collect(),
            next: oldest.filter(|_| goes_on),
        })
    }

    /// The turns with the numbers through one, so many of them, whether they are shown or cut off; oldest first.
    pub(super) async fn read_shown_or_not(
        &mut self,
        through_n: u64,
        numbers: u64,
    ) -> Result<Vec<FileTurn>, AgentError> {
        let first_n = (through_n + 1).saturating_sub(numbers);
        let mut newest_first = Vec::new();
        let mut through_n = through_n;
        loop {
            let query = Query::Context {
                chat: self.chat,
                through_n,
                turns_max: PAGE_TURNS,
                bytes_max: PAGE_BYTES,
            };
            let page = read_page(&self.journal, query).await?;
            self.turns_left = self.turns_left.saturating_sub(page.turns.len());
            let found = self.read_changes(&page).await?;
            let turns = page.turns.iter().rev();
            let wanted = turns.filter(|turn| turn.n >= first_n);
            newest_first.extend(wanted.filter_map(|turn| FileTurn::read(turn, &found)));
            match page.turns.first() {
                Some(oldest) if oldest.n > first_n && self.turns_left > 0 => {
                    through_n = oldest.n - 1;
                }
                Some(_) | None => break,
            }
        }
        newest_first.reverse();
        Ok(newest_first)
    }

    /// What was found to be changed in the turns of a page, by their ids.
    async fn read_changes(&self, page: &TurnPage) -> Result<FoundChanges, AgentError> {
        let query = Query::FileChanges {
            channel: self.chat,
            turn_ids: page.turns.iter().map(|turn| turn.id.clone()).collect(),
        };
        match self.journal.read(query).await {
            Ok(Answer::FileChanges(rows)) => Ok(rows
                .into_iter()
                .map(|row| Ok((row.turn_id, FileChanges::from_json(&row.json)?)))
                .collect::<Result<_, DamagedChanges>>()
                .map_err(|damage| unreadable(&damage.to_string()))?),
            Ok(_) => Err(unreadable("the journal answered something else")),
            Err(error) => Err(unreadable(&error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns, oldest first: `t1` changes files, `u:t1` undoes it, `r:x` redoes an undo, `w:x` rewinds; `!` was cut off.
    fn turns(all: &[&str]) -> Vec<FileTurn> {
        let turn = |text: &&str| {
            let (text, is_complete) = match text.strip_suffix('!') {
                Some(text) => (text, false),
                None => (*text, true),
            };
            let restored = text.split_once(':').map(|(command, turn_id)| Restoration {
                command: match command.as_bytes()[0] {
                    b'u' => RestoreCommand::Undo,
                    b'r' => RestoreCommand::Redo,
                    _ => RestoreCommand::Rewind,
                },
                turn_id: turn_id.to_owned(),
                is_complete,
            });
            FileTurn {
                id: text.split(':').next().unwrap_or(text).to_owned(),
                name: String::new(),
                edits: Vec::new(),
                restores: restored,
            }
        };
        all.iter().map(turn).rev().collect()
    }

    fn check(all: &[&str], undo: &[&str], redo: Option<&str>) {
        let turns = turns(all);
        let ids = |indexes: Vec<usize>| -> Vec<String> {
            indexes.iter().map(|at| turns[*at].id.clone()).collect()
        };
        assert_eq!(ids(undo_candidates(&turns)), undo, "undo after {all:?}");
        let redone = ids(redo_candidates(&turns));
        assert_eq!(redone.first().map(String::as_str), redo, "redo after {all:?}");
    }

    #[test]
    fn undo_goes_back_step_by_step_and_redo_forth() {
        check(&["t1", "t2"], &["t2", "t1"], None);
        check(&["t1", "t2", "u1:t2"], &["t1"], Some("u1"));
        check(&["t1", "t2", "u1:t2", "u2:t1"], &[], Some("u2"));
        check(&["t1", "t2", "u1:t2", "u2:t1", "r1:u2"], &["r1"], Some("u1"));
        check(&["t1", "t2", "u1:t2", "r1:u1"], &["r1", "t1"], None);
        check(&["t1", "t2", "u1:t2", "r1:u1", "u2:r1"], &["t1"], Some("u2"));
    }

    #[test]
    fn a_change_after_an_undo_leaves_nothing_to_redo() {
        check(&["t1", "u1:t1", "t2"], &["t2"], None);
        check(&["t1", "u1:t1", "w1:t9"], &["w1"], None);
    }

    #[test]
    fn what_was_cut_off_did_not_happen() {
        check(&["t1", "u1:t1!"], &["t1"], None);
        check(&["t1", "u1:t1!", "u2:t1"], &[], Some("u2"));
        check(&["t1", "u1:t1", "r1:u1!"], &[], Some("u1"));
    }

    #[test]
    fn a_turn_is_read_with_what_it_changed_and_took_back() {
        let edit = json!({"uri": "file:///a", "after": {"uri": wire::Digest::new([1; 32]).uri()}});
        let call = |status: &str, success: bool| {
            let mut meta = restoration_meta(RestoreCommand::Undo, "t1");
            meta.insert(meta::EDITS.to_owned(), json!([edit]));
            json!({"kind": "toolCall", "toolCall": {"status": status, "success": success, "_meta": meta}})
        };
        let turn = |call: Value| {
            let message = json!({"text": format!("\n{}\nmore", "é".repeat(80))});
            json!({"id": "u", "message": message, "responseParts": [{"kind": "markdown"}, call]})
        };
        let read = FileTurn::of(&turn(call("completed", true)), None).unwrap();
        assert_eq!((read.id.as_str(), read.edits.len()), ("u", 1));
        assert_eq!(read.name.chars().count(), NAME_CHARS_MAX + 1);
        let restored = read.restores.unwrap();
        assert!(restored.is_complete && restored.turn_id == "t1");
        for call in [call("completed", false), call("cancelled", false)] {
            let read = FileTurn::of(&turn(call), None).unwrap();
            assert!(!read.restores.unwrap().is_complete);
        }
        let other = json!({"kind": "toolCall", "toolCall": {"status": "completed"}});
        assert_eq!(FileTurn::of(&turn(other), None), None);
    }
}
