//! What the session changed in files, and what can be done with it.
//!
//! Promises: a changeset that the host still computes is waited for, for a while. What is shown is the host's own list.
//! Must not know: how changes are shown.

use std::time::Duration;

use serde_json::{Value, json};
use wire::ChannelUri;

use crate::{ClientError, Live};

use super::OpenChat;

/// How often the host is asked whether it has computed a changeset, and how many times.
const ASK_TIME: Duration = Duration::from_millis(100);
const ASKS_MAX: usize = 300;

/// A changeset of the session that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangesOf {
    /// All that its turns changed.
    Session,
    /// What differs from the last commit.
    Uncommitted,
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
    /// Where the contents before and after are read.
    before: Option<String>,
    after: Option<String>,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChangeKind {
    Added,
    Removed,
    Moved,
    Changed,
}

/// A list of changed files, and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangesList {
    pub of: ChangesOf,
    pub files: Vec<FileChangeEntry>,
    changeset: ChannelUri,
}

impl ChangesOf {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Uncommitted => "uncommitted",
        }
    }
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
            before: side("before", "content"),
            after: side("after", "content"),
        })
    }
}

impl OpenChat {
    /// The files that the session changed, or that differ from the last commit.
    pub fn read_changes(
        &self,
        of: ChangesOf,
    ) -> impl Future<Output = Result<ChangesList, ClientError>> + Send + 'static {
        let (live, session) = (self.live.clone(), self.session.clone());
        async move {
            let changeset = ChannelUri::changeset_of(&session, of.name());
            let changeset =
                changeset.map_err(|error| ClientError::Unreadable(error.to_string()))?;
            let files = read_files(&live, &changeset).await;
            live.unsubscribe(&changeset).await;
            let files = files?;
            Ok(ChangesList {
                of,
                files,
                changeset,
            })
        }
    }

    /// What a changed file held before and holds after; empty where it is not there.
    pub fn read_change(
        &self,
        file: &FileChangeEntry,
    ) -> impl Future<Output = Result<(Vec<u8>, Vec<u8>), ClientError>> + Send + 'static {
        let (live, session) = (self.live.clone(), self.session.clone());
        let (before, after) = (file.before.clone(), file.after.clone());
        async move {
            let before = read_side(&live, &session, before).await?;
            Ok((before, read_side(&live, &session, after).await?))
        }
    }

    /// Commits what is staged, or all that differs from the last commit if nothing is; what the host says of it.
    pub fn commit_changes(
        &self,
        message: &str,
    ) -> impl Future<Output = Result<String, ClientError>> + Send + 'static {
        let (read, live) = (self.read_changes(ChangesOf::Uncommitted), self.live.clone());
        let message = message.to_owned();
        async move {
            let list = read.await?;
            let params = json!({
                "channel": list.changeset.as_str(),
                "operationId": "commit",
                "_meta": {"message": message},
            });
            let answer = live.request("invokeChangesetOperation", params).await?;
            Ok(answer["message"].as_str().unwrap_or("Committed").to_owned())
        }
    }

    /// Carries out an operation on one file of a list, or on all; what the host says of it.
    pub fn operate_on_changes(
        &self,
        list: &ChangesList,
        operation: &str,
        file: Option<&FileChangeEntry>,
        meta: Value,
    ) -> impl Future<Output = Result<String, ClientError>> + Send + 'static {
        let live = self.live.clone();
        let mut params = json!({
            "channel": list.changeset.as_str(),
            "operationId": operation,
            "_meta": meta,
        });
        if let Some(file) = file {
            params["target"] = json!({"kind": "resource", "resource": file.id});
        }
        async move {
            let answer = live.request("invokeChangesetOperation", params).await?;
            Ok(answer["message"].as_str().unwrap_or("Done").to_owned())
        }
    }
}

async fn read_files(
    live: &Live,
    changeset: &ChannelUri,
) -> Result<Vec<FileChangeEntry>, ClientError> {
    let params = json!({"channel": changeset.as_str()});
    // The first time has it computed; what was known before may be old.
    live.request("subscribe", params.clone()).await?;
    let mut ticks = tokio::time::interval(ASK_TIME);
    for _ in 0..ASKS_MAX {
        ticks.tick().await;
        let answer = live.request("subscribe", params.clone()).await?;
        let state = &answer["snapshot"]["state"];
        match state["status"].as_str() {
            Some("ready") => {
                let files = state["files"].as_array().into_iter().flatten();
                let files = files.filter_map(FileChangeEntry::from_value);
                let mut files: Vec<FileChangeEntry> = files.collect();
                // They come in no order.
                files.sort_by(|one, other| one.uri.cmp(&other.uri));
                return Ok(files);
            }
            Some("error") => {
                let why = state["error"]["message"]
                    .as_str()
                    .unwrap_or("it is not known why");
                return Err(ClientError::Unreadable(why.to_owned()));
            }
            Some(_) | None => {}
        }
    }
    Err(ClientError::Unreadable(
        "the host is still looking for changes; try again later".to_owned(),
    ))
}

async fn read_side(
    live: &Live,
    session: &ChannelUri,
    uri: Option<String>,
) -> Result<Vec<u8>, ClientError> {
    let Some(uri) = uri else {
        return Ok(Vec::new());
    };
    match live.read_content(session, &uri).await? {
        crate::ReadContent::Text(text) => Ok(text.into_bytes()),
        // Bytes that are no text are told apart, and never shown.
        crate::ReadContent::Base64(data) => Ok(format!("\0{data}").into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_became_of_a_file() {
        let side =
            |uri: &str| json!({"uri": uri, "content": {"uri": format!("ahp-content:/{uri}")}});
        let entry = |edit: Value| {
            let file = json!({"id": "i", "edit": edit});
            FileChangeEntry::from_value(&file)
        };
        let kind = |edit: Value| entry(edit).map(|entry| entry.kind);
        assert_eq!(
            kind(json!({"after": side("a")})),
            Some(FileChangeKind::Added)
        );
        assert_eq!(
            kind(json!({"before": side("a")})),
            Some(FileChangeKind::Removed)
        );
        let both =
            |before: &str, after: &str| json!({"before": side(before), "after": side(after)});
        assert_eq!(kind(both("a", "a")), Some(FileChangeKind::Changed));
        assert_eq!(kind(json!({})), None);
        let moved = entry(both("a", "b")).unwrap();
        assert_eq!(
            (moved.uri.as_str(), moved.moved_from.as_deref()),
            ("b", Some("a"))
        );
    }
}
