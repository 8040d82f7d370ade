//! `todo`: what the agent means to do, written down where people see it. Each call replaces the list.
//!
//! Promises: bounded. The list itself is in the call's result: nothing else holds it.
//! Must not know: turns, and how a list gets from one to the next.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::Workspace;

use super::input::{self, ToolInput};
use super::{Plan, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

pub(crate) const NAME: &str = "todo";

const ITEMS_MAX: usize = 50;
const TEXT_CHARS_MAX: usize = 300;

/// Behind what is being worked on, in a checklist.
const IN_PROGRESS: &str = " (in progress)";

pub(super) struct TodoTool;

/// A list of things to do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct TodoList {
    items: Vec<TodoItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TodoItem {
    #[serde(alias = "content")]
    text: String,
    status: TodoStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatus {
    Pending,
    InProgress,
    #[serde(alias = "done")]
    Completed,
}

impl TodoList {
    /// Reads the list in the result of a call.
    pub(crate) fn from_result(structured: &Value) -> Option<Self> {
        TodoList::deserialize(structured).ok()
    }

    /// Reads the list in the input of a call, if that is one.
    pub(crate) fn from_input(input: &Value) -> Option<Self> {
        Self::parse(input).ok()
    }

    pub(crate) fn count_open(&self) -> usize {
        self.items.len() - self.count_done()
    }

    /// Whether something is left to do.
    pub(crate) fn is_open(&self) -> bool {
        self.count_open() > 0
    }

    /// As a checklist in Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let lines = self.items.iter().map(|item| match item.status {
            TodoStatus::Pending => format!("- [ ] {}\n", item.text),
            TodoStatus::InProgress => format!("- [ ] {}{IN_PROGRESS}\n", item.text),
            TodoStatus::Completed => format!("- [x] {}\n", item.text),
        });
        lines.collect()
    }

    /// Reads a checklist; lines that are none are left out.
    pub(crate) fn from_markdown(text: &str) -> Self {
        let items = text.lines().filter_map(|line| {
            let done = line.strip_prefix("- [x] ");
            let open = line.strip_prefix("- [ ] ");
            let (text, status) = match (done, open) {
                (Some(text), _) => (text, TodoStatus::Completed),
                (None, Some(open)) => match open.strip_suffix(IN_PROGRESS) {
                    Some(text) => (text, TodoStatus::InProgress),
                    None => (open, TodoStatus::Pending),
                },
                (None, None) => return None,
            };
            let text = text.to_owned();
            Some(TodoItem { text, status })
        });
        Self { items: items.take(ITEMS_MAX).collect() }
    }

    fn count_done(&self) -> usize {
        let done = |item: &&TodoItem| item.status == TodoStatus::Completed;
        self.items.iter().filter(done).count()
    }

    fn parse(input: &Value) -> Result<Self, ToolError> {
        let mut list: Self = input::parse(input)?;
        if list.items.len() > ITEMS_MAX {
            return Err(ToolError(format!(
                "`items` has more than {ITEMS_MAX} entries; put small steps together"
            )));
        }
        for item in &mut list.items {
            // An entry is one line of a checklist.
            let text = item.text.replace(char::is_control, " ");
            item.text = text.trim().chars().take(TEXT_CHARS_MAX).collect();
            if item.text.is_empty() {
                return Err(ToolError("the `text` of an entry is empty".to_owned()));
            }
        }
        Ok(list)
    }
}

impl ToolInput for TodoList {
    const EXAMPLE: &'static str = r#"{"items": [{"text": "Read the parser", "status": "completed"}, {"text": "Add a test", "status": "in_progress"}]}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": ITEMS_MAX,
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": {"type": "string", "description": "What is to be done, in one line."},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                        },
                        "required": ["text", "status"],
                        "additionalProperties": false,
                    },
                    "description": "The whole list, in order: it replaces the one of before.",
                },
            },
            "required": ["items"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        Vec::new() // nothing of it is run or opened
    }
}

#[async_trait]
impl Tool for TodoTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            display_name: "Plan",
            description: "Writes down what is to be done, for work of several steps; the user sees it. Send the whole list each time: when \
         you begin, when you take up a step, and as soon as one is done.",
            effect: ToolEffect::Reads,
            kind: Some("plan"),
        }
    }

    fn parameters(&self) -> Value {
        TodoList::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        TodoList::parse(input)?;
        Ok(Plan { summary: "Write down the plan".to_owned(), ..Plan::default() })
    }

    async fn run(
        &self,
        input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let list = TodoList::parse(input)?;
        let text = if list.items.is_empty() {
            "[the list is empty]".to_owned()
        } else {
            list.to_markdown()
        };
        Ok(ToolOutcome {
            text,
            summary: format!("Plan: {} of {} done", list.count_done(), list.items.len()),
            structured: json!(list).as_object().cloned(),
            success: true,
            ..ToolOutcome::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_checklist_and_back() {
        let input = json!({"items": [
            {"text": "read", "status": "completed"},
            {"content": "write\nit", "status": "in_progress"},
            {"text": "test", "status": "pending", "id": 3},
        ]});
        let list = TodoList::parse(&input).unwrap();
        let text = "- [x] read\n- [ ] write it (in progress)\n- [ ] test\n";
        assert_eq!(list.to_markdown(), text);
        assert_eq!(TodoList::from_markdown(&format!("Words\n{text}more")), list);
        assert_eq!(TodoList::from_result(&json!(list)), Some(list.clone()));
        assert!(list.is_open() && list.count_done() == 1);
        assert!(!TodoList::from_markdown("- [x] read\n").is_open());
        for (input, expected) in [
            (json!({"items": "x"}), "`items` must be a list"),
            (
                json!({"items": [{"text": "a", "status": "maybe"}]}),
                "`items[0].status` must be one of \"pending\", \"in_progress\", \"completed\"",
            ),
            (json!({"items": [{"text": " ", "status": "pending"}]}), "is empty"),
            (json!({"items": vec![json!({"text": "a", "status": "pending"}); 51]}), "more than 50"),
        ] {
            let why = TodoList::parse(&input).unwrap_err().0;
            assert!(why.contains(expected), "{why}");
        }
    }
}
