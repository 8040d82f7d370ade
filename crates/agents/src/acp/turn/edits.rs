//! What calls of an agent did to files, as the files themselves say (AG-27c).
//!
//! Promises: files are read inside the working directories alone, confined, text, bounded. What an agent says of a change is checked against
//! the file: a hunk is shown as such only where it is not found.
//! Must not know: how changes are shown to people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::{EventSink, StoreError};
use serde_json::{Value, json};
use wire::NamedBody;
use workspace::{FileChange, Workspace, is_binary};

use super::super::mapper::FileDiff;
use crate::permission::is_protected;
use crate::task;
use crate::tool::{preview_item, result_content};

/// Larger files are not compared.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files that are watched in a turn.
const WATCHED_MAX: usize = 512;

/// What files held before a call changed them.
pub(super) struct EditWatch {
    workspace: Arc<Workspace>,
    /// By call and path.
    before: BTreeMap<(u64, PathBuf), HeldEdit>,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HeldEdit {
    Text(Vec<u8>),
    Missing,
    /// It cannot be told: outside, no text, too large.
    Unknown,
}

impl EditWatch {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        Self { workspace, before: BTreeMap::new() }
    }

    /// Notes what the files hold that a call has named.
    pub(super) async fn watch(&mut self, call: u64, diffs: &[FileDiff]) {
        for diff in diffs {
            let key = (call, diff.path.clone());
            if self.before.len() < WATCHED_MAX && !self.before.contains_key(&key) {
                let held = self.read(&diff.path).await;
                self.before.insert(key, held);
            }
        }
    }

    /// Whether these are files of the working directories that no tool and no agent is steered by, wherever links lead (G-63).
    pub(super) async fn are_ordinary(&self, diffs: &[FileDiff]) -> bool {
        let workspace = Arc::clone(&self.workspace);
        let paths: Vec<PathBuf> = diffs.iter().map(|diff| diff.path.clone()).collect();
        let look = move || paths.iter().all(|path| is_ordinary(&workspace, path));
        // A thread that died found out nothing.
        task::try_blocking(look).await.unwrap_or(false)
    }

    async fn read(&self, path: &Path) -> HeldEdit {
        let (workspace, path) = (Arc::clone(&self.workspace), path.to_owned());
        let read = task::try_blocking(move || read(&workspace, &path));
        // A thread that died read nothing.
        read.await.unwrap_or(HeldEdit::Unknown)
    }

    fn change(&self, path: &Path, before: Option<Vec<u8>>, after: Vec<u8>) -> FileChange {
        let uri = wire::file_uri::uri_of(path.as_os_str().as_encoded_bytes());
        let text = path.to_string_lossy();
        let resolved = self.workspace.resolve(&text);
        FileChange {
            display_path: resolved
                .map_or_else(|_| text.into_owned(), |path| self.workspace.display_path(&path)),
            uri,
            before: before.map(NamedBody::of),
            after: NamedBody::of(after),
            mode: None,
            new_directories: 0,
        }
    }

    /// `FileEdit`s for the question about a call: what it would make of the files. An error: somebody would consent to what is not shown.
    pub(super) async fn previews(
        &self,
        call: u64,
        diffs: &[FileDiff],
        events: &dyn EventSink,
    ) -> Result<Vec<Value>, StoreError> {
        let mut items = Vec::new();
        for diff in diffs {
            let Some(new) = &diff.new_text else {
                continue; // only the path is known
            };
            let held = self.before.get(&(call, diff.path.clone()));
            let (before, after) = propose(held, diff.old_text.as_deref(), new);
            let change = self.change(&diff.path, before, after);
            let (item, bodies) = preview_item(&change, change.diff_stats());
            store_all(events, bodies).await?;
            items.push(item);
        }
        Ok(items)
    }

    /// What the question about a call showed that these changes of one file make of it. None if that was not shown: only the path was
    /// known, where a change goes was not clear, or the file held something else than `before`.
    pub(super) fn previewed_result(
        &self,
        call: u64,
        changes: &[FileDiff],
        before: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let path = changes.first()?.path.clone();
        let mut text = match self.before.get(&(call, path))? {
            HeldEdit::Text(held) => Some(held.clone()),
            HeldEdit::Missing => None,
            HeldEdit::Unknown => return None,
        };
        if text.as_deref() != before {
            return None;
        }
        for change in changes {
            let new = change.new_text.as_deref()?.as_bytes();
            text = match (text, change.old_text.as_deref()) {
                (Some(file), Some(old)) => Some(replace_once(&file, old.as_bytes(), new)?),
                (Some(_), None) | (None, Some("") | None) => Some(new.to_vec()),
                (None, Some(_)) => return None,
            };
        }
        text
    }

    /// Blocks for the result of a call: what it did to files, as they say.
    pub(super) async fn results(
        &self,
        call: u64,
        diffs: &[FileDiff],
        original: Option<&str>,
        events: &dyn EventSink,
    ) -> Vec<Value> {
        let mut blocks = Vec::new();
        for diff in diffs {
            let before = self.before.get(&(call, diff.path.clone()));
            let after = self.read(&diff.path).await;
            let change = match (before, after) {
                // Outside, or no text: as the agent tells it.
                (_, HeldEdit::Unknown) | (Some(HeldEdit::Unknown), _) => {
                    blocks.extend(describe(diff));
                    continue;
                }
                // A file that was removed has no side after.
                (Some(HeldEdit::Text(before)), HeldEdit::Missing) => {
                    let change = self.change(&diff.path, Some(before.clone()), Vec::new());
                    let bodies = change.before.clone().into_iter().collect();
                    blocks.push(match store_all(events, bodies).await {
                        Ok(()) => deletion_block(&change),
                        Err(why) => not_shown(&change, &why),
                    });
                    continue;
                }
                (Some(HeldEdit::Missing) | None, HeldEdit::Missing) => continue,
                (Some(HeldEdit::Text(before)), HeldEdit::Text(after)) if *before == after => {
                    continue;
                }
                (Some(HeldEdit::Text(before)), HeldEdit::Text(after)) => {
                    self.change(&diff.path, Some(before.clone()), after)
                }
                (Some(HeldEdit::Missing), HeldEdit::Text(after)) => {
                    self.change(&diff.path, None, after)
                }
                (None, HeldEdit::Text(after)) => {
                    let before = original.map(|text| text.as_bytes().to_vec());
                    self.change(&diff.path, before.or_else(|| undo(diff, &after)), after)
                }
            };
            let (block, bodies) = result_content(&change, change.diff_stats());
            blocks.push(match store_all(events, bodies).await {
                Ok(()) => block,
                Err(why) => not_shown(&change, &why),
            });
        }
        blocks
    }
}

/// A file that cannot be located is none of them: it lies outside, or a link leads there.
fn is_ordinary(workspace: &Workspace, path: &Path) -> bool {
    let location = path.to_str().and_then(|path| workspace.locate(path).ok());
    location.is_some_and(|location| {
        workspace.real_directories().contains(&location.root) && !is_protected(&location.relative)
    })
}

fn read(workspace: &Workspace, path: &Path) -> HeldEdit {
    let Some(path) = path.to_str() else { return HeldEdit::Unknown };
    let Ok(resolved) = workspace.resolve(path) else { return HeldEdit::Unknown };
    match workspace.read_bytes(&resolved, FILE_BYTES_MAX) {
        Ok(file) if file.total > FILE_BYTES_MAX || is_binary(&file.bytes) => HeldEdit::Unknown,
        Ok(file) => HeldEdit::Text(file.bytes.into()),
        Err(workspace::FileError::NotFound { .. }) => HeldEdit::Missing,
        Err(_) => HeldEdit::Unknown,
    }
}

/// What a file holds, and what it would hold after a change that an agent tells of.
fn propose(held: Option<&HeldEdit>, old: Option<&str>, new: &str) -> (Option<Vec<u8>>, Vec<u8>) {
    let new = new.as_bytes().to_vec();
    match (held, old) {
        (Some(HeldEdit::Text(file)), Some(old)) => match replace_once(file, old.as_bytes(), &new) {
            Some(after) => (Some(file.clone()), after),
            // Where it goes is not clear: the texts as they are.
            None => (Some(old.as_bytes().to_vec()), new),
        },
        (Some(HeldEdit::Text(file)), None) => (Some(file.clone()), new),
        (Some(HeldEdit::Missing), Some("") | None) => (None, new),
        (_, old) => (old.filter(|old| !old.is_empty()).map(|old| old.as_bytes().to_vec()), new),
    }
}

/// What a file held before a change that was made, if that can be told from the change.
fn undo(diff: &FileDiff, after: &[u8]) -> Option<Vec<u8>> {
    let (old, new) = (diff.old_text.as_deref()?, diff.new_text.as_deref()?);
    replace_once(after, new.as_bytes(), old.as_bytes())
}

/// The text with its one occurrence of `old` replaced; the whole text is one.
fn replace_once(text: &[u8], old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    if text == old {
        return Some(new.to_vec());
    }
    if old.is_empty() {
        return None;
    }
    let mut found = memchr::memmem::find_iter(text, old);
    let at = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let (head, rest) = text.split_at_checked(at)?;
    let tail = rest.get(old.len()..)?;
    Some([head, new, tail].concat())
}

/// A change that cannot be checked, in words.
fn describe(diff: &FileDiff) -> Option<Value> {
    let new = diff.new_text.as_deref()?;
    let mut text = format!("{}\n", diff.path.display());
    for line in diff.old_text.as_deref().unwrap_or_default().lines() {
        text.push_str(&format!("-{line}\n"));
    }
    for line in new.lines() {
        text.push_str(&format!("+{line}\n"));
    }
    Some(json!({"type": "text", "text": text}))
}

/// A change that was made and cannot be shown.
fn not_shown(change: &FileChange, why: &StoreError) -> Value {
    let text = format!("{} was changed; the change cannot be shown: {why}", change.display_path);
    json!({"type": "text", "text": text})
}

fn deletion_block(change: &FileChange) -> Value {
    let (mut block, _) = result_content(change, change.diff_stats());
    if let Some(fields) = block.as_object_mut() {
        fields.shift_remove("after");
    }
    block
}

pub(super) async fn store_all(
    events: &dyn EventSink,
    bodies: Vec<NamedBody>,
) -> Result<(), StoreError> {
    for body in bodies {
        events.store_named_body(body, "text/plain").await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn ag_27c_a_hunk_is_applied_where_it_occurs_once() {
        let file = HeldEdit::Text(bytes("one\ntwo\nthree\n"));
        let proposed = propose(Some(&file), Some("two"), "TWO");
        assert_eq!(proposed, (Some(bytes("one\ntwo\nthree\n")), bytes("one\nTWO\nthree\n")));
        let whole = propose(Some(&file), Some("one\ntwo\nthree\n"), "new\n");
        assert_eq!(whole, (Some(bytes("one\ntwo\nthree\n")), bytes("new\n")));
        let twice = HeldEdit::Text(bytes("a a"));
        assert_eq!(propose(Some(&twice), Some("a"), "b"), (Some(bytes("a")), bytes("b")));
        assert_eq!(propose(Some(&HeldEdit::Missing), Some(""), "b"), (None, bytes("b")));
        assert_eq!(propose(None, Some("x"), "y"), (Some(bytes("x")), bytes("y")));
    }

    #[tokio::test]
    async fn ag_51_only_what_was_shown_has_a_result() {
        let directory = tempfile::tempdir().unwrap();
        let work = directory.path().canonicalize().unwrap();
        let write = |name: &str, content: &[u8]| std::fs::write(work.join(name), content).unwrap();
        write("a", b"one\ntwo\n");
        write("twice", b"two two");
        write("binary", b"\0\xff");
        let uri = wire::file_uri::uri_of(work.as_os_str().as_encoded_bytes());
        let workspace = Workspace::open(&[uri], &workspace::Confinement::none()).unwrap();
        let mut edits = EditWatch::new(Arc::new(workspace));
        let diff = |name: &str, old: Option<&str>, new: Option<&str>| FileDiff {
            path: work.join(name),
            old_text: old.map(str::to_owned),
            new_text: new.map(str::to_owned),
        };
        let (one, two) = (("one", "ONE"), ("two", "TWO"));
        let hunk = |name: &str, (old, new): (&str, &str)| diff(name, Some(old), Some(new));
        let held: Option<&[u8]> = Some(b"one\ntwo\n");
        for (changes, before, made) in [
            (vec![hunk("a", two)], held, Some("one\nTWO\n")),
            (vec![hunk("a", one), hunk("a", two)], held, Some("ONE\nTWO\n")),
            (vec![diff("a", None, Some("all"))], held, Some("all")),
            (vec![diff("new", None, Some("n"))], None, Some("n")),
            (vec![diff("new", Some(""), Some("n"))], None, Some("n")),
            (vec![diff("new", Some("x"), Some("n"))], None, None),
            (vec![diff("a", None, None)], held, None),
            (vec![hunk("a", two), diff("a", None, None)], held, None),
            (vec![hunk("a", ("three", "3"))], held, None),
            (vec![hunk("a", two)], Some(b"two"), None),
            (vec![hunk("a", two)], None, None),
            (vec![hunk("twice", two)], Some(b"two two"), None),
            (vec![diff("binary", None, Some("b"))], Some(b"\0\xff"), None),
            (vec![], held, None),
        ] {
            edits.watch(1, &changes).await;
            let made = made.map(bytes);
            assert_eq!(edits.previewed_result(1, &changes, before), made, "{changes:?}");
            assert_eq!(edits.previewed_result(2, &changes, before), None, "not watched");
        }
    }

    #[test]
    fn files_outside_are_not_read() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("in");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(inner.join("a"), "text").unwrap();
        std::fs::write(inner.join("b"), b"\0\xff").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), inner.join("link")).unwrap();
        let uri = wire::file_uri::uri_of(inner.as_os_str().as_encoded_bytes());
        let workspace = Workspace::open(&[uri], &workspace::Confinement::none()).unwrap();
        let read = |path: PathBuf| super::read(&workspace, &path);
        assert_eq!(read(inner.join("a")), HeldEdit::Text(bytes("text")));
        assert_eq!(read(inner.join("none")), HeldEdit::Missing);
        for path in [
            outer.path().join("secret"),
            inner.join("link"),
            inner.join("b"),
            inner.join("../secret"),
        ] {
            assert_eq!(read(path.clone()), HeldEdit::Unknown, "{path:?}");
        }
    }
}
