//! A change to a file in the protocol's shapes: `FileEdit` in a preview, `fileEdit` content in a result.
//!
//! Promises: both sides are named by their content, so that they stay what they were when the file goes on changing.
//! Must not know: how the change is made.

use agent_api::{FileContent, RecordedEdit};
use serde_json::{Value, json};
use wire::{NamedBody, Object};
use workspace::{DiffStats, FileChange, is_binary};

use super::Edits;

/// `FileEdit`, and the bodies it refers to.
pub(crate) fn preview_item(change: &FileChange, stats: DiffStats) -> (Value, Vec<NamedBody>) {
    let (fields, bodies) = fields(change, stats);
    (Value::Object(fields), bodies)
}

/// `ToolResultFileEditContent`, and the bodies it refers to.
pub(crate) fn result_content(change: &FileChange, stats: DiffStats) -> (Value, Vec<NamedBody>) {
    let (mut fields, bodies) = fields(change, stats);
    fields.insert("type".to_owned(), json!("fileEdit"));
    (Value::Object(fields), bodies)
}

/// The change as a turn records it, and the bodies it refers to.
pub(crate) fn recorded_edit(change: FileChange) -> Edits {
    let content = |body: &NamedBody, mode| FileContent { digest: body.digest(), mode };
    let before = change.before.as_ref();
    let edit = RecordedEdit {
        before: before.map(|body| content(body, change.mode)),
        after: Some(content(&change.after, change.mode)),
        uri: change.uri,
        new_directories: change.new_directories,
        is_made: false,
    };
    Edits { edits: vec![edit], bodies: change.before.into_iter().chain([change.after]).collect() }
}

fn fields(change: &FileChange, stats: DiffStats) -> (Object, Vec<NamedBody>) {
    let mut fields = Object::new();
    let mut bodies = Vec::new();
    for (name, body) in [("before", change.before.as_ref()), ("after", Some(&change.after))] {
        if let Some(body) = body {
            fields.insert(name.to_owned(), side(change, body));
            bodies.push(body.clone());
        }
    }
    let diff = json!({"added": stats.added, "removed": stats.removed});
    fields.insert("diff".to_owned(), diff);
    (fields, bodies)
}

/// `FileEditSide`
fn side(change: &FileChange, body: &NamedBody) -> Value {
    let is_text = !is_binary(body) && std::str::from_utf8(body).is_ok();
    let content_type =
        if is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    json!({
        "uri": change.uri,
        "content": {
            "uri": body.digest().uri_with_name(&change.display_path),
            "sizeHint": body.len(),
            "contentType": content_type,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::from_value;
    use wire::Digest;
    use wire::published::state;

    fn contents(bodies: &[NamedBody]) -> Vec<&[u8]> {
        bodies.iter().map(|body| &body[..]).collect()
    }

    fn change(before: Option<&[u8]>, after: &[u8]) -> FileChange {
        FileChange {
            display_path: "src/a.rs".to_owned(),
            uri: "file:///a".to_owned(),
            before: before.map(|body| NamedBody::of(body.to_vec())),
            after: NamedBody::of(after.to_vec()),
            mode: before.map(|_| 0o640),
            new_directories: 1,
        }
    }

    #[test]
    fn what_is_recorded_names_both_sides_and_what_came_with_them() {
        let Edits { edits, bodies } = recorded_edit(change(Some(b"a\n"), b"b\n"));
        assert_eq!(contents(&bodies), [b"a\n", b"b\n"]);
        let before = edits[0].before.unwrap();
        assert_eq!((before.digest, before.mode), (Digest::of(b"a\n"), Some(0o640)));
        assert_eq!(edits[0].after.unwrap().digest, Digest::of(b"b\n"));

        let Edits { edits, bodies } = recorded_edit(change(None, b"new"));
        assert_eq!(contents(&bodies), [b"new"]);
        assert_eq!((edits[0].before, edits[0].new_directories), (None, 1));
    }

    #[test]
    fn both_shapes_are_what_the_protocol_publishes() {
        let change = change(Some(b"a\n"), b"\0");
        let (item, bodies) = preview_item(&change, change.diff_stats());
        assert_eq!(contents(&bodies), [&b"a\n"[..], b"\0"]);
        let read: state::FileEdit = from_value(item.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), item);
        let before = read.before.unwrap();
        assert_eq!(before.uri, "file:///a");
        let digest = Digest::from_uri(&before.content.uri).unwrap();
        assert_eq!(digest, Digest::of(b"a\n"));
        assert!(before.content.uri.ends_with("/a.rs"), "named for people");
        let after = read.after.unwrap().content;
        assert_eq!(after.content_type.as_deref(), Some("application/octet-stream"));

        let (content, _) = result_content(&change, change.diff_stats());
        let block: state::ToolResultContent = from_value(content).unwrap();
        assert!(matches!(block, state::ToolResultContent::FileEdit(_)));
    }

    #[test]
    fn a_new_file_has_no_side_before() {
        let change = change(None, b"a");
        let (item, bodies) = preview_item(&change, change.diff_stats());
        assert_eq!(item.get("before"), None);
        assert_eq!(contents(&bodies), [b"a"]);
    }
}
