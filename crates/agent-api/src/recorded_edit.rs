//! A change to a file as a turn records it: what the file was before and is after, by content, so that it can be taken back.
//!
//! Promises: what is read back is what was recorded; what was recorded by others, or damaged, is no change at all.
//! Must not know: where content lies, how files are changed.

use serde_json::{Value, json};
use wire::{Digest, meta};

/// Edits read of one call at most: no tool makes more.
const EDITS_MAX: usize = 1_024;

/// The part of a mode that says what a file is, and that of a symbolic link.
const FILE_TYPE: u32 = 0o170000;
const LINK: u32 = 0o120000;

/// A change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEdit {
    /// `file:` URI, without links.
    pub uri: String,
    /// Absent if the file was not there.
    pub before: Option<FileContent>,
    /// Absent if the file is removed.
    pub after: Option<FileContent>,
    /// How many directories were made for a new file.
    pub new_directories: usize,
    /// The host saw that it was made: it counts, however its call ends.
    pub is_made: bool,
}

/// What a file holds, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileContent {
    pub digest: Digest,
    /// Its permissions, where they are known; of a link, the type that git writes.
    pub mode: Option<u32>,
}

impl RecordedEdit {
    pub fn to_value(&self) -> Value {
        let mut edit = json!({"uri": self.uri});
        for (name, content) in [("before", &self.before), ("after", &self.after)] {
            if let Some(content) = content {
                edit[name] = content.to_value();
            }
        }
        if self.new_directories > 0 {
            edit["newDirectories"] = json!(self.new_directories);
        }
        if self.is_made {
            edit["made"] = json!(true);
        }
        edit
    }

    /// Whether it gave the file other permissions, or made something else of it than a file.
    pub fn changes_mode(&self) -> bool {
        let mode = |side: &Option<FileContent>| side.and_then(|content| content.mode);
        mode(&self.before).zip(mode(&self.after)).is_some_and(|(before, after)| before != after)
    }

    /// Whether there was or is a symbolic link.
    pub fn has_link(&self) -> bool {
        let mut sides = self.before.iter().chain(&self.after);
        sides.any(|content| content.is_link())
    }

    fn from_value(value: &Value) -> Option<Self> {
        let side = |name: &str| match &value[name] {
            Value::Null => Some(None),
            content => FileContent::from_value(content).map(Some),
        };
        let directories = value["newDirectories"].as_u64().unwrap_or(0);
        Some(Self {
            uri: value["uri"].as_str()?.to_owned(),
            before: side("before")?,
            after: side("after")?,
            new_directories: usize::try_from(directories).ok()?,
            is_made: value["made"] == true,
        })
    }

    /// A `fileEdit` block of a result that says no more: from before edits were recorded, or of another agent.
    fn from_block(block: &Value) -> Option<Self> {
        let side = |name: &str| match &block[name] {
            Value::Null => Some(None),
            side => {
                let digest = Digest::from_uri(side["content"]["uri"].as_str()?)?;
                Some(Some(FileContent { digest, mode: None }))
            }
        };
        let named = |name: &str| block[name]["uri"].as_str();
        let (before, after) = (named("before"), named("after"));
        if before.is_some() && after.is_some() && before != after {
            return None; // a file that was moved is not one that was changed
        }
        Some(Self {
            uri: after.or(before)?.to_owned(),
            before: side("before")?,
            after: side("after")?,
            new_directories: 0,
            is_made: false,
        })
    }
}

impl FileContent {
    /// Whether it is a symbolic link: what it holds is where it leads.
    pub fn is_link(&self) -> bool {
        self.mode.is_some_and(|mode| mode & FILE_TYPE == LINK)
    }

    fn to_value(self) -> Value {
        let mut content = json!({"uri": self.digest.uri()});
        if let Some(mode) = self.mode {
            content["mode"] = json!(mode);
        }
        content
    }

    fn from_value(value: &Value) -> Option<Self> {
        let mode = value["mode"].as_u64();
        Some(Self {
            digest: Digest::from_uri(value["uri"].as_str()?)?,
            mode: mode.and_then(|mode| u32::try_from(mode).ok()),
        })
    }
}

/// The changes that a tool call of a turn made, or was about to make when its turn was cut off.
pub fn edits_of_call(call: &Value) -> Vec<RecordedEdit> {
    let has_failed = call["status"] == "completed" && call["success"] == false;
    let recorded = call["_meta"][meta::EDITS].as_array();
    if let Some(recorded) = recorded {
        let recorded = recorded.iter().take(EDITS_MAX).filter_map(RecordedEdit::from_value);
        // A file is changed whole or not at all.
        return recorded.filter(|edit| edit.is_made || !has_failed).collect();
    }
    if call["status"] != "completed" || has_failed {
        return Vec::new();
    }
    let blocks = call["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| block["type"] == "fileEdit")
        .take(EDITS_MAX);
    blocks.filter_map(RecordedEdit::from_block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(byte: u8, mode: Option<u32>) -> Option<FileContent> {
        let digest = Digest::new([byte; 32]);
        Some(FileContent { digest, mode })
    }

    #[test]
    fn what_was_recorded_is_read_back() {
        let edits = [
            RecordedEdit {
                uri: "file:///a".to_owned(),
                before: content(1, Some(0o755)),
                after: content(2, None),
                new_directories: 0,
                is_made: false,
            },
            RecordedEdit {
                uri: "file:///b".to_owned(),
                before: None,
                after: content(3, None),
                new_directories: 2,
                is_made: true,
            },
            RecordedEdit {
                uri: "file:///c".to_owned(),
                before: content(4, Some(0o600)),
                after: None,
                new_directories: 0,
                is_made: false,
            },
        ];
        let values: Vec<Value> = edits.iter().map(RecordedEdit::to_value).collect();
        // However the call ended: the file may have been changed.
        for status in ["completed", "cancelled"] {
            let call = json!({"status": status, "_meta": {meta::EDITS: values}});
            assert_eq!(edits_of_call(&call), edits);
        }
        let call = json!({"status": "completed", "success": false, "_meta": {meta::EDITS: values}});
        assert_eq!(edits_of_call(&call), edits[1..2], "but for what is known to be made");
    }

    #[test]
    fn a_result_without_a_record_is_read_as_far_as_it_goes() {
        let side = |uri: &str, byte: u8| json!({"uri": uri, "content": {"uri": Digest::new([byte; 32]).uri()}});
        let block = |before: Value, after: Value| json!({"type": "fileEdit", "before": before, "after": after});
        let call = json!({"status": "completed", "content": [
            {"type": "text", "text": "t"},
            block(side("file:///a", 1), side("file:///a", 2)),
            block(Value::Null, side("file:///b", 3)),
            block(side("file:///c", 4), side("file:///moved", 4)),
            block(json!({"uri": "file:///d", "content": {"uri": "https://elsewhere"}}), Value::Null),
        ]});
        let edits = edits_of_call(&call);
        let uris: Vec<&str> = edits.iter().map(|edit| edit.uri.as_str()).collect();
        assert_eq!(uris, ["file:///a", "file:///b"]);
        assert_eq!((edits[0].before, edits[1].before), (content(1, None), None));
        let mut denied = call;
        denied["status"] = json!("cancelled");
        assert_eq!(edits_of_call(&denied), []);
    }

    #[test]
    fn what_is_damaged_is_no_change() {
        for edit in [
            json!(7),
            json!({"uri": 7}),
            json!({"uri": "file:///a", "before": {"uri": "?"}}),
            json!({"uri": "file:///a", "after": 7}),
        ] {
            let call = json!({"_meta": {meta::EDITS: [edit]}});
            assert_eq!(edits_of_call(&call), []);
        }
    }
}
