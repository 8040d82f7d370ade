//! What of a conversation a summary must not lose, as the calls in it tell: the files that were worked on, and the list of
//! what is left to do.
//!
//! Promises: bounded; read from the calls alone, so that it does not depend on what a model remembers.
//! Must not know: how the summary is made.

use agent_api::TurnInput;
use serde_json::Value;

use super::model_view::HistoryEntry;
use super::todo_list;
use crate::provider::ModelMessage;

/// Files that are named.
const FILES_MAX: usize = 12;

/// The longest path that is named, and the longest line of the list, in bytes.
const LINE_BYTES_MAX: usize = 300;

/// Lines of the list.
const TODO_MAX: usize = 40;

/// Tools whose `path` is a file that is worked on.
const FILE_TOOLS: &[&str] = &["read", "write", "edit"];

/// The tool whose last call holds the list.
const TODO_TOOL: &str = "todo";

/// Where a conversation stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WorkState {
    /// The newest first.
    pub files: Vec<String>,
    /// What is not done.
    pub open: Vec<String>,
    /// Whether there is a list, with something open on it or not.
    has_list: bool,
}

impl WorkState {
    pub(super) fn of_entries(entries: &[HistoryEntry]) -> Self {
        let mut state = Self::default();
        let calls = entries.iter().rev().filter_map(|entry| match entry {
            HistoryEntry::Model(ModelMessage::Assistant { calls, .. }) => Some(calls),
            _ => None,
        });
        for call in calls.flat_map(|calls| calls.iter().rev()) {
            let Ok(input) = serde_json::from_str::<Value>(&call.input) else {
                continue; // a call that was never made
            };
            if FILE_TOOLS.contains(&call.name.as_str()) {
                state.add_file(&input);
            }
            if call.name == TODO_TOOL && !state.has_list {
                state.has_list = true;
                state.open = open_items(&input);
            }
        }
        state
    }

    fn add_file(&mut self, input: &Value) {
        let Some(path) = input["path"].as_str() else {
            return; // the call was refused for it
        };
        let is_known = self.files.iter().any(|file| file == path);
        if self.files.len() < FILES_MAX && path.len() <= LINE_BYTES_MAX && !is_known {
            self.files.push(path.to_owned());
        }
    }

    /// A summary with what it must not lose after it. The list stands last, where later turns find it; one of before that no
    /// call has changed since goes on.
    pub(super) fn add_to(&self, mut summary: String, input: &TurnInput) -> String {
        if !self.files.is_empty() {
            summary.push_str(&format!("\n\nFiles in use: {}", self.files.join(", ")));
        }
        if !self.has_list {
            return todo_list::keep_in_summary(summary, input);
        }
        if !self.open.is_empty() {
            let lines = self.open.iter().map(|line| format!("\n- [ ] {line}"));
            let lines: String = lines.collect();
            summary.push_str(&format!("\n\n{}{lines}", todo_list::HEADING));
        }
        summary
    }

    /// As people read it, in a few words each.
    pub(super) fn for_people(&self) -> Vec<String> {
        let open = (!self.open.is_empty()).then(|| match self.open.len() {
            1 => "the to-do list (1 open)".to_owned(),
            open => format!("the to-do list ({open} open)"),
        });
        let files = (!self.files.is_empty()).then(|| {
            let names: Vec<String> = self.files.iter().map(|file| format!("`{file}`")).collect();
            format!("the names of files in use ({})", names.join(", "))
        });
        open.into_iter().chain(files).collect()
    }
}

/// The items of a list that are not done, whatever its fields are called.
fn open_items(input: &Value) -> Vec<String> {
    let lists = ["items", "todos", "tasks"].map(|name| input[name].as_array());
    let items = lists.into_iter().flatten().next().into_iter().flatten();
    let open = items.filter_map(|item| {
        let status = item["status"].as_str().unwrap_or("");
        if matches!(status, "completed" | "done" | "cancelled") || item["done"] == true {
            return None;
        }
        let names = ["content", "text", "title"];
        let text = item.as_str().or_else(|| {
            let mut texts = names.iter().filter_map(|name| item[*name].as_str());
            texts.next()
        })?;
        let text = text.lines().next().unwrap_or("").trim();
        Some(text[..text.floor_char_boundary(LINE_BYTES_MAX)].to_owned())
    });
    open.filter(|text| !text.is_empty())
        .take(TODO_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ToolUse;
    use serde_json::json;

    fn calling(name: &str, input: &Value) -> HistoryEntry {
        let call = ToolUse {
            id: "c".to_owned(),
            name: name.to_owned(),
            input: input.to_string(),
        };
        HistoryEntry::Model(ModelMessage::Assistant {
            text: String::new(),
            calls: vec![call],
            items: None,
        })
    }

    #[test]
    fn files_and_the_last_list_are_found() {
        let old = json!({"items": [{"content": "old", "status": "pending"}]});
        let new = json!({"items": [
            {"content": "one\nmore", "status": "completed"},
            {"content": "two", "status": "in_progress"},
            {"content": "three", "status": "pending"},
        ]});
        let entries = [
            calling("read", &json!({"path": "a.rs"})),
            calling("todo", &old),
            calling("edit", &json!({"path": "b.rs", "edits": []})),
            calling("todo", &new),
            calling("read", &json!({"path": "a.rs"})),
            calling("bash", &json!({"command": "ls"})),
        ];
        let state = WorkState::of_entries(&entries);
        assert_eq!(state.files, ["a.rs", "b.rs"]);
        assert_eq!(state.open, ["two", "three"]);
    }

    #[test]
    fn there_is_an_end_to_what_is_named() {
        let many: Vec<HistoryEntry> = (0..100)
            .map(|number| calling("read", &json!({"path": format!("f{number}")})))
            .collect();
        let state = WorkState::of_entries(&many);
        assert_eq!(state.files.len(), FILES_MAX);
        assert_eq!(state.files[0], "f99");
    }
}
