//! The files of a changeset, as the host lists them, and what each held before and holds after.
//!
//! Promises: a changeset that the host still computes is waited for, for a while. What is shown is the host's own list.
//! Must not know: how changes are shown.

use serde_json::Value;
use wire::ChannelUri;
use wire::state::ChangesetState;

use crate::{ClientError, Live};

use super::OpenChat;
use super::change_operations::OfferedOperation;
use super::changesets::{ChangesetOffer, ListedTurn};
use super::watched_changeset::WatchedChangeset;

/// Why changes cannot be shown, or something not be done with them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChangesError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the files cannot be compared: {0}")]
    Unknown(String),
    /// The URI of a file.
    #[error("{0} was changed since it was listed")]
    ChangedSince(String),
    #[error("the host did not answer; check the result before you try again")]
    NotAnswered,
    #[error("the host did not set the marks")]
    NotMarked,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChangeEntry {
    /// What operations call it.
    pub id: String,
    /// Where it is, or was.
    pub uri: String,
    /// Where it was, if it was moved.
    pub moved_from: Option<String>,
    pub kind: FileChangeKind,
    pub added: u64,
    pub removed: u64,
    /// Somebody looked at it as it is now.
    pub is_reviewed: bool,
    /// Whether what it held and holds can be read: not of what is too large to be kept.
    pub is_content_kept: bool,
    /// Where the contents before and after are read.
    before: Option<String>,
    after: Option<String>,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    Added,
    Removed,
    Moved,
    Changed,
}

/// A list of changed files, what can be done with them, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangesList {
    pub of: ChangesetOffer,
    /// The turn, if it is of one.
    pub turn: Option<ListedTurn>,
    /// In the order of their names.
    pub files: Vec<FileChangeEntry>,
    /// In the host's order.
    pub operations: Vec<OfferedOperation>,
    pub(super) changeset: ChannelUri,
}

impl FileChangeEntry {
    fn from_value(file: &Value) -> Option<Self> {
        let edit = &file["edit"];
        let side = |name: &str, field: &str| match field {
            "uri" => edit[name]["uri"].as_str().map(str::to_owned),
            _ => edit[name]["content"]["uri"].as_str().map(str::to_owned),
        };
        let (before, after) = (side("before", "uri"), side("after", "uri"));
        let kind = match (&before, &after) {
            (None, Some(_)) => FileChangeKind::Added,
            (Some(_), None) => FileChangeKind::Removed,
            (Some(before), Some(after)) if before != after => FileChangeKind::Moved,
            (Some(_), Some(_)) => FileChangeKind::Changed,
            (None, None) => return None,
        };
        let count = |name: &str| edit["diff"][name].as_u64().unwrap_or(0);
        Some(Self {
            id: file["id"].as_str()?.to_owned(),
            moved_from: before.clone().filter(|_| kind == FileChangeKind::Moved),
            uri: after.or(before)?,
            kind,
            added: count("added"),
            removed: count("removed"),
            is_reviewed: file["reviewed"] == true,
            is_content_kept: file["_meta"]["contentNotKept"] != true,
            before: side("before", "content"),
            after: side("after", "content"),
        })
    }

    /// Whether it is the same change, whoever looked at it.
    pub(super) fn is_same_change(&self, other: &Self) -> bool {
        let change = |entry: &Self| Self { is_reviewed: false, ..entry.clone() };
        change(self) == change(other)
    }
}

impl ChangesList {
    /// A changeset as its channel has it.
    pub fn from_state(
        of: ChangesetOffer,
        turn: Option<ListedTurn>,
        changeset: ChannelUri,
        state: &ChangesetState,
    ) -> Self {
        let mut files: Vec<FileChangeEntry> =
            state.files.iter().filter_map(FileChangeEntry::from_value).collect();
        // They come in no order.
        files.sort_by(|one, other| one.uri.cmp(&other.uri));
        let operations = state
            .operations
            .as_deref()
            .unwrap_or_default()
            .iter()
            .filter_map(OfferedOperation::from_value);
        Self { of, turn, files, operations: operations.collect(), changeset }
    }

    /// Whether files of this list, all if none are named, are the same changes in a newer one, and no others came.
    pub fn is_current_in(&self, now: &Self, files: &[FileChangeEntry]) -> bool {
        let (asked, is_all) = match files {
            [] => (self.files.as_slice(), true),
            files => (files, false),
        };
        let is_there = |file: &FileChangeEntry| {
            let same = now.files.iter().find(|other| other.id == file.id);
            same.is_some_and(|same| same.is_same_change(file))
        };
        asked.iter().all(is_there) && (!is_all || now.files.len() == asked.len())
    }

    /// An operation that the host offers on these files.
    pub fn operation(&self, id: &str) -> Option<&OfferedOperation> {
        self.operations.iter().find(|operation| operation.id == id)
    }
}

impl OpenChat {
    /// The files of a changeset as they are now; `turn` for one that is of a turn.
    pub fn read_changes(
        &self,
        of: ChangesetOffer,
        turn: Option<ListedTurn>,
    ) -> impl Future<Output = Result<ChangesList, ChangesError>> + Send + 'static {
        let live = self.live.clone();
        async move {
            let changeset = of.uri(turn.as_ref())?;
            let watched = WatchedChangeset::open(&live, changeset, of, turn).await?;
            let list = watched.list();
            watched.close().await;
            list
        }
    }

    /// What a changed file held before and holds after; empty where it is not there.
    pub fn read_change(
        &self,
        file: &FileChangeEntry,
    ) -> impl Future<Output = Result<(Vec<u8>, Vec<u8>), ChangesError>> + Send + 'static {
        let (live, session) = (self.live.clone(), self.session.clone());
        let (before, after) = (file.before.clone(), file.after.clone());
        async move {
            let before = read_side(&live, &session, before).await?;
            Ok((before, read_side(&live, &session, after).await?))
        }
    }
}

async fn read_side(
    live: &Live,
    session: &ChannelUri,
    uri: Option<String>,
) -> Result<Vec<u8>, ClientError> {
    let Some(uri) = uri else { return Ok(Vec::new()) };
    match live.read_content(session, &uri).await? {
        crate::ReadContent::Text(text) => Ok(text.into_bytes()),
        // Bytes that are no text are told apart, and never shown.
        crate::ReadContent::Base64(data) => Ok(format!("\0{data}").into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn side(uri: &str) -> Value {
        json!({"uri": uri, "content": {"uri": format!("ahp-content:/{uri}")}})
    }

    fn entry(edit: Value) -> Option<FileChangeEntry> {
        FileChangeEntry::from_value(&json!({"id": "i", "edit": edit}))
    }

    #[test]
    fn entries_say_what_became_of_a_file() {
        let kind = |edit: Value| entry(edit).map(|entry| entry.kind);
        assert_eq!(kind(json!({"after": side("a")})), Some(FileChangeKind::Added));
        assert_eq!(kind(json!({"before": side("a")})), Some(FileChangeKind::Removed));
        let both =
            |before: &str, after: &str| json!({"before": side(before), "after": side(after)});
        assert_eq!(kind(both("a", "a")), Some(FileChangeKind::Changed));
        assert_eq!(kind(json!({})), None);
        let moved = entry(both("a", "b")).unwrap();
        assert_eq!((moved.uri.as_str(), moved.moved_from.as_deref()), ("b", Some("a")));
    }

    fn list(files: Value) -> ChangesList {
        let state = json!({"status": "ready", "files": files});
        let state = ChangesetState::from_value(state).unwrap();
        let uri = ChannelUri::parse("x:/s/changeset/session").unwrap();
        let of = json!({"uriTemplate": uri.as_str()});
        let of = ChangesetOffer::from_value(&of).unwrap();
        ChangesList::from_state(of, None, uri, &state)
    }

    #[test]
    fn files_that_came_or_changed_since_are_noticed() {
        let file = |id: &str, added: u64| json!({"id": id, "edit": {"after": side(id), "diff": {"added": added}}});
        let old = list(json!([file("a", 1), file("b", 1)]));
        let more = list(json!([file("a", 1), file("b", 1), file("c", 1)]));
        let changed = list(json!([file("a", 1), file("b", 2)]));
        let fewer = list(json!([file("a", 1)]));
        assert!(old.is_current_in(&old, &[]));
        for now in [&more, &changed, &fewer] {
            assert!(!old.is_current_in(now, &[]));
            assert!(old.is_current_in(now, &old.files[..1]), "a is as it was");
        }
        assert!(!old.is_current_in(&changed, &old.files[1..]));
        assert!(!old.is_current_in(&fewer, &old.files));
    }

    #[test]
    fn a_review_is_no_change() {
        let edit = json!({"after": side("a"), "diff": {"added": 1, "removed": 0}});
        let file = |reviewed: bool, edit: &Value| {
            let file = json!({"id": "i", "edit": edit, "reviewed": reviewed});
            FileChangeEntry::from_value(&file).unwrap()
        };
        let (open, reviewed) = (file(false, &edit), file(true, &edit));
        assert!(reviewed.is_reviewed && !open.is_reviewed && open.is_content_kept);
        assert!(open.is_same_change(&reviewed));
        let other = json!({"after": side("a"), "diff": {"added": 2, "removed": 0}});
        assert!(!open.is_same_change(&file(false, &other)));
        let large = json!({"id": "i", "edit": edit, "_meta": {"contentNotKept": true}});
        assert!(!FileChangeEntry::from_value(&large).unwrap().is_content_kept);
    }
}
