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
use crate::tool::{TODO, TodoList};

/// Files that are named.
const FILES_MAX: usize = 12;

/// The longest path that is named, in bytes.
const PATH_BYTES_MAX: usize = 300;

/// Tools whose `path` is a file that is worked on.
const FILE_TOOLS: &[&str] = &["read", "write", "edit"];

/// Where a conversation stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WorkState {
    /// The newest first.
    pub files: Vec<String>,
    /// The last list that a call wrote.
    pub list: Option<TodoList>,
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
            if call.name == TODO && state.list.is_none() {
                state.list = TodoList::from_input(&input);
            }
        }
        state
    }

    fn add_file(&mut self, input: &Value) {
        let Some(path) = input["path"].as_str() else {
            return; // the call was refused for it
        };
        let is_known = self.files.iter().any(|file| file == path);
        if self.files.len() < FILES_MAX && path.len() <= PATH_BYTES_MAX && !is_known {
            self.files.push(path.to_owned());
        }
    }

    /// A summary with what it must not lose after it. The list stands last, where later turns find it; one of before that no
    /// call has changed since goes on.
    pub(super) fn add_to(&self, mut summary: String, input: &TurnInput) -> String {
        if !self.files.is_empty() {
            summary.push_str(&format!("\n\nFiles in use: {}", self.files.join(", ")));
        }
        let list = match &self.list {
            Some(list) => Some(list.clone()).filter(TodoList::is_open),
            None => todo_list::find_open(input),
        };
        todo_list::add_to_summary(summary, list.as_ref())
    }

    /// As people read it, in a few words each.
    pub(super) fn for_people(&self) -> Vec<String> {
        let open = self.list.as_ref().map_or(0, TodoList::count_open);
        let open = (open > 0).then(|| format!("the to-do list ({open} open)"));
        let files = (!self.files.is_empty()).then(|| {
            let names: Vec<String> = self.files.iter().map(|file| format!("`{file}`")).collect();
            format!("the names of files in use ({})", names.join(", "))
        });
        open.into_iter().chain(files).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ToolUse;
    use serde_json::json;

    fn calling(name: &str, input: &Value) -> HistoryEntry {
        let call = ToolUse { id: "c".to_owned(), name: name.to_owned(), input: input.to_string() };
        HistoryEntry::Model(ModelMessage::Assistant {
            text: String::new(),
            calls: vec![call],
            items: None,
        })
    }

    #[test]
    fn files_and_the_last_list_are_found() {
        let old = json!({"items": [{"text": "old", "status": "pending"}]});
        let new = json!({"items": [
            {"text": "one\nmore", "status": "completed"},
            {"text": "two", "status": "in_progress"},
            {"text": "three", "status": "pending"},
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
        let list = state.list.clone().unwrap().to_markdown();
        assert_eq!(list, "- [x] one more\n- [ ] two (in progress)\n- [ ] three\n");
        assert_eq!(state.for_people()[0], "the to-do list (2 open)");
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
