//! Comments on files, in threads: the annotations of the session of an open chat.
//!
//! Promises: what is changed is taken by the host, or an error says why not. The channel is watched only while it is used.

use std::path::Path;

use serde_json::{Value, json};
use uuid::Uuid;
use wire::state::{Annotation, AnnotationEntry, AnnotationsState};
use wire::{ChannelUri, file_uri};

use super::{ChatError, MessageAttachment, OpenChat};

/// A thread as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationThread {
    pub id: String,
    /// The path of the file, or its URI if it is none of this machine.
    pub file: String,
    /// The first and last line, counted from 1; none for the whole file.
    pub lines: Option<(u64, u64)>,
    pub is_resolved: bool,
    /// Oldest first.
    pub comments: Vec<AnnotationComment>,
}

/// One comment of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationComment {
    pub id: String,
    pub text: String,
    /// What another client keeps with it.
    meta: Option<Value>,
}

/// What is done to the annotations of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationChange {
    Add {
        /// Absolute.
        file: std::path::PathBuf,
        lines: Option<(u64, u64)>,
        text: String,
    },
    Reply {
        id: String,
        text: String,
    },
    Resolve {
        id: String,
        is_resolved: bool,
    },
    Remove {
        id: String,
    },
    /// Gives a comment another text.
    Edit {
        id: String,
        comment: AnnotationComment,
        text: String,
    },
    /// Takes a comment out of a thread; the thread goes with it if it has no other by now.
    RemoveComment {
        id: String,
        comment_id: String,
    },
}

impl AnnotationComment {
    /// A comment with nothing but its text.
    pub fn new(id: &str, text: &str) -> Self {
        Self { id: id.to_owned(), text: text.to_owned(), meta: None }
    }
}

impl OpenChat {
    /// The threads of the session, oldest first.
    pub async fn annotations(&self) -> Result<Vec<AnnotationThread>, ChatError> {
        let channel = self.annotations_channel()?;
        self.live.subscribe(&channel).await?;
        let threads = self.live.read(|replica| {
            let state = replica.plain(channel.as_str());
            state.and_then(|state| state.annotations()).map(threads_of).unwrap_or_default()
        });
        self.live.unsubscribe(&channel).await;
        Ok(threads)
    }

    /// Changes them, and waits until the host took it.
    pub async fn annotate(&mut self, change: &AnnotationChange) -> Result<(), ChatError> {
        let channel = self.annotations_channel()?;
        // Only a watcher of the channel is sent the echo of an action.
        self.live.subscribe(&channel).await?;
        let change = self.live.read(|replica| {
            let state = replica.plain(channel.as_str());
            let state = state.and_then(|state| state.annotations());
            with_empty_thread(change, &state.map(threads_of).unwrap_or_default())
        });
        let action = action_of(&change, self.session.as_str(), self.chat.as_str());
        let taken = match self.live.dispatch(&channel, action) {
            Ok(sent) => self.wait_until_taken(sent).await,
            Err(error) => Err(error.into()),
        };
        self.live.unsubscribe(&channel).await;
        self.is_annotated |= taken.is_ok();
        taken
    }

    /// What takes some threads, or all of them, along with a message.
    pub fn attach_annotations(
        &self,
        threads: &[AnnotationThread],
    ) -> Result<MessageAttachment, ChatError> {
        let ids: Vec<&str> = threads.iter().map(|thread| thread.id.as_str()).collect();
        let label = match ids.len() {
            1 => "1 comment".to_owned(),
            count => format!("{count} comments"),
        };
        let resource = self.annotations_channel()?;
        Ok(MessageAttachment(json!({
            "type": "annotations",
            "label": label,
            "resource": resource.as_str(),
            "annotationIds": ids,
        })))
    }

    fn annotations_channel(&self) -> Result<ChannelUri, ChatError> {
        ChannelUri::annotations_of(&self.session).map_err(ChatError::BadUri)
    }
}

/// A thread without comments is none: it goes with its last one.
fn with_empty_thread(change: &AnnotationChange, threads: &[AnnotationThread]) -> AnnotationChange {
    let AnnotationChange::RemoveComment { id, comment_id } = change else { return change.clone() };
    let thread = threads.iter().find(|thread| thread.id == *id);
    match thread.map(|thread| thread.comments.as_slice()) {
        Some([only]) if only.id == *comment_id => AnnotationChange::Remove { id: id.clone() },
        _ => change.clone(),
    }
}

fn threads_of(state: &AnnotationsState) -> Vec<AnnotationThread> {
    state.annotations.iter().map(thread_of).collect()
}

fn thread_of(annotation: &Annotation) -> AnnotationThread {
    let path = file_uri::path_of(&annotation.resource);
    let path = path.map(|path| String::from_utf8_lossy(&path).into_owned());
    let comments = annotation.entries.iter();
    AnnotationThread {
        id: annotation.id.clone(),
        file: path.unwrap_or_else(|| annotation.resource.clone()),
        lines: annotation.range.as_ref().and_then(lines_of),
        is_resolved: annotation.resolved,
        comments: comments.map(comment_of).collect(),
    }
}

fn comment_of(entry: &AnnotationEntry) -> AnnotationComment {
    AnnotationComment {
        id: entry.id.clone(),
        text: entry.plain_text().to_owned(),
        meta: entry.extra.get("_meta").cloned(),
    }
}

/// The protocol counts lines from 0, and a range that ends before the first character of a line ends with the one before.
fn lines_of(range: &Value) -> Option<(u64, u64)> {
    let line = |end: &str| range[end]["line"].as_u64()?.checked_add(1);
    let (first, last) = (line("start")?, line("end")?);
    let is_before = range["end"]["character"] == 0 && last > first;
    Some((first, if is_before { last - 1 } else { last }))
}

fn range_of(first: u64, last: u64) -> Value {
    let at = |line: u64| json!({"line": line, "character": 0});
    json!({"start": at(first.saturating_sub(1)), "end": at(last)})
}

fn action_of(change: &AnnotationChange, session: &str, chat: &str) -> Value {
    let new_id = || Uuid::now_v7().to_string();
    match change {
        AnnotationChange::Add { file, lines, text } => {
            let mut annotation = json!({
                "id": new_id(),
                "origin": {"session": session, "chat": chat},
                "resource": uri_of(file),
                "resolved": false,
                "entries": [{"id": new_id(), "text": text}],
            });
            if let Some((first, last)) = lines {
                annotation["range"] = range_of(*first, *last);
            }
            json!({"type": "annotations/set", "annotation": annotation})
        }
        AnnotationChange::Reply { id, text } => json!({
            "type": "annotations/entrySet",
            "annotationId": id,
            "entry": {"id": new_id(), "text": text},
        }),
        AnnotationChange::Resolve { id, is_resolved } => {
            json!({"type": "annotations/updated", "annotationId": id, "resolved": is_resolved})
        }
        AnnotationChange::Remove { id } => {
            json!({"type": "annotations/removed", "annotationId": id})
        }
        AnnotationChange::Edit { id, comment, text } => {
            let mut entry = json!({"id": comment.id, "text": text});
            if let Some(meta) = &comment.meta {
                entry["_meta"] = meta.clone();
            }
            json!({"type": "annotations/entrySet", "annotationId": id, "entry": entry})
        }
        AnnotationChange::RemoveComment { id, comment_id } => json!({
            "type": "annotations/entryRemoved",
            "annotationId": id,
            "entryId": comment_id,
        }),
    }
}

fn uri_of(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    file_uri::uri_of(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_as_it_was_added() {
        let added = AnnotationChange::Add {
            file: "/w/a b.rs".into(),
            lines: Some((4, 6)),
            text: "why?".to_owned(),
        };
        let action = action_of(&added, "x:/s", "x:/c");
        let annotation = Annotation::from_value(action["annotation"].clone()).unwrap();
        assert_eq!(annotation.origin["session"], "x:/s");
        let thread = thread_of(&annotation);
        assert_eq!((thread.file.as_str(), thread.lines), ("/w/a b.rs", Some((4, 6))));
        assert_eq!(thread.comments.len(), 1);
        assert_eq!(thread.comments[0].text, "why?");
        let one = range_of(7, 7);
        assert_eq!(lines_of(&one), Some((7, 7)));
    }

    #[test]
    fn a_thread_goes_with_its_last_comment_only() {
        let mut thread = AnnotationThread {
            id: "t".to_owned(),
            file: "/w/a".to_owned(),
            lines: None,
            is_resolved: false,
            comments: vec![AnnotationComment::new("c", "why?")],
        };
        let removed =
            AnnotationChange::RemoveComment { id: "t".to_owned(), comment_id: "c".to_owned() };
        let whole = AnnotationChange::Remove { id: "t".to_owned() };
        let alone = std::slice::from_ref(&thread);
        assert_eq!(with_empty_thread(&removed, alone), whole);
        thread.comments.push(AnnotationComment::new("d", "because"));
        assert_eq!(with_empty_thread(&removed, &[thread]), removed);
        assert_eq!(with_empty_thread(&removed, &[]), removed);
    }

    #[test]
    fn a_comment_that_is_edited_stays_itself() {
        let entry = json!({"id": "e", "text": {"markdown": "why?"}, "_meta": {"by": "ann"}});
        let comment = comment_of(&AnnotationEntry::from_value(entry).unwrap());
        assert_eq!(comment.text, "why?");
        let edited =
            AnnotationChange::Edit { id: "a".to_owned(), comment, text: "why so?".to_owned() };
        let action = action_of(&edited, "x:/s", "x:/c");
        let entry = json!({"id": "e", "text": "why so?", "_meta": {"by": "ann"}});
        assert_eq!(action["entry"], entry);
        assert_eq!(action["type"], "annotations/entrySet");
    }
}
