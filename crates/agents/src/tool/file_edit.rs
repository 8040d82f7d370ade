//! A change to a file in the protocol's words: `FileEdit` in a preview, `fileEdit` content in a result.
//!
//! Promises: both sides are named by what they hold, so that they stay what they were when the file goes on changing.
//! Must not know: how the change is made.

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, InternedInput};
use serde_json::{Value, json};

use super::workspace::{digest_of, is_binary};
use wire::Object;

/// A change of a file.
pub(super) struct FileEdit<'a> {
    pub(super) uri: String,
    /// Absent for a new file.
    pub(super) before: Option<&'a [u8]>,
    pub(super) after: &'a [u8],
}

/// How many lines came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DiffStats {
    pub(super) added: u32,
    pub(super) removed: u32,
}

impl FileEdit<'_> {
    pub(super) fn stats(&self) -> DiffStats {
        let before = self.before.unwrap_or_default();
        let input = InternedInput::new(byte_lines(before), byte_lines(self.after));
        let diff = Diff::compute(Algorithm::Histogram, &input);
        DiffStats {
            added: diff.count_additions(),
            removed: diff.count_removals(),
        }
    }

    /// `FileEdit`, and what it refers to.
    pub(super) fn to_item(&self, stats: DiffStats) -> (Value, Vec<Vec<u8>>) {
        let (fields, bodies) = self.fields(stats);
        (Value::Object(fields), bodies)
    }

    /// `ToolResultFileEditContent`, and what it refers to.
    pub(super) fn to_content(&self, stats: DiffStats) -> (Value, Vec<Vec<u8>>) {
        let (mut fields, bodies) = self.fields(stats);
        fields.insert("type".to_owned(), json!("fileEdit"));
        (Value::Object(fields), bodies)
    }

    fn fields(&self, stats: DiffStats) -> (Object, Vec<Vec<u8>>) {
        let mut fields = Object::new();
        let mut bodies = Vec::new();
        for (name, body) in [("before", self.before), ("after", Some(self.after))] {
            if let Some(body) = body {
                fields.insert(name.to_owned(), self.side(body));
                bodies.push(body.to_vec());
            }
        }
        let diff = json!({"added": stats.added, "removed": stats.removed});
        fields.insert("diff".to_owned(), diff);
        (fields, bodies)
    }

    /// `FileEditSide`
    fn side(&self, body: &[u8]) -> Value {
        let is_text = !is_binary(body) && std::str::from_utf8(body).is_ok();
        let content_type = if is_text {
            "text/plain; charset=utf-8"
        } else {
            "application/octet-stream"
        };
        json!({
            "uri": self.uri,
            "content": {
                "uri": digest_of(body).uri(),
                "sizeHint": body.len(),
                "contentType": content_type,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::from_value;
    use wire::published::state;

    fn edit<'a>(before: Option<&'a [u8]>, after: &'a [u8]) -> FileEdit<'a> {
        FileEdit {
            uri: "file:///a".to_owned(),
            before,
            after,
        }
    }

    #[test]
    fn lines_are_counted_as_they_come_and_go() {
        let stats = |before, after| edit(before, after).stats();
        let check = |before, after, added, removed| {
            assert_eq!(stats(before, after), DiffStats { added, removed });
        };
        check(None, b"a\nb\n", 2, 0);
        check(None, b"", 0, 0);
        check(Some(b"a\nb\nc\n"), b"a\nB\nc\nd\n", 2, 1);
        check(Some(b"a\n"), b"", 0, 1);
        check(Some(b"a"), b"a\n", 1, 1);
        check(Some(b"\xff\n"), b"\xff\nb\n", 1, 0);
    }

    #[test]
    fn both_shapes_are_what_the_protocol_publishes() {
        let edit = edit(Some(b"a\n"), b"\0");
        let (item, bodies) = edit.to_item(edit.stats());
        assert_eq!(bodies, [b"a\n".to_vec(), b"\0".to_vec()]);
        let read: state::FileEdit = from_value(item.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), item);
        let before = read.before.unwrap();
        assert_eq!(before.uri, "file:///a");
        let digest = wire::Digest::from_uri(&before.content.uri).unwrap();
        assert_eq!(digest, digest_of(b"a\n"));
        let after = read.after.unwrap().content;
        assert_eq!(
            after.content_type.as_deref(),
            Some("application/octet-stream")
        );

        let (content, _) = edit.to_content(edit.stats());
        let block: state::ToolResultContent = from_value(content).unwrap();
        assert!(matches!(block, state::ToolResultContent::FileEdit(_)));
    }

    #[test]
    fn a_new_file_has_no_side_before() {
        let edit = edit(None, b"a");
        let (item, bodies) = edit.to_item(edit.stats());
        assert_eq!(item.get("before"), None);
        assert_eq!(bodies, [b"a".to_vec()]);
    }
}
