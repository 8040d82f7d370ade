//! `list`: what is in a directory, and below it as deep as is asked.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::{Cancellation, TreeLimits, Workspace};

use super::format::count;
use super::input::{ToolInput, parse_and_run};
use super::{Nature, Plan, PlanSubject, TEXT_BYTES_MAX, Tool, ToolError, ToolOutcome, input};

/// Entries of one call.
const ENTRIES_MAX: usize = 1_000;

const DEPTH_MAX: usize = 16;

pub(super) struct ListTool;

#[derive(Debug, Deserialize)]
struct ListInput {
    path: Option<String>,
    depth: Option<usize>,
    include_ignored: Option<bool>,
}

impl ToolInput for ListInput {
    const EXAMPLE: &'static str = r#"{"path": "src", "depth": 2}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "The directory; relative to the first working directory, which is the default, or \
                                    absolute inside any of them.",
                },
                "depth": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": DEPTH_MAX,
                    "description": "How many levels to list: 1, the default, is the directory alone.",
                },
                "include_ignored": {"type": "boolean", "description": "Also list what is excluded."},
            },
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        self.path
            .iter()
            .map(|path| ("path", path.as_str()))
            .collect()
    }
}

#[async_trait]
impl Tool for ListTool {
    fn name(&self) -> &'static str {
        "list"
    }

    fn display_name(&self) -> &'static str {
        "List"
    }

    fn description(&self) -> &'static str {
        "Lists a directory, at most 1,000 entries: directories end in `/`, symbolic links in `@`. Files that \
         `.gitignore` or `.ignore` exclude are left out."
    }

    fn parameters(&self) -> Value {
        ListInput::schema()
    }

    fn nature(&self) -> Nature {
        Nature::Reads
    }

    fn kind(&self) -> Option<&'static str> {
        Some("read")
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: ListInput = input::parse(input)?;
        let path = workspace.resolve(input.path.as_deref().unwrap_or("."))?;
        Ok(Plan {
            summary: format!("List {}", workspace.display_path(&path)),
            subject: PlanSubject::File(input.path.unwrap_or_else(|| ".".to_owned())),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        parse_and_run(input, workspace, list).await
    }
}

fn list(
    input: &ListInput,
    workspace: &Workspace,
    cancellation: &Cancellation,
) -> Result<ToolOutcome, ToolError> {
    let path = workspace.resolve(input.path.as_deref().unwrap_or("."))?;
    let display_path = workspace.display_path(&path);
    let mode = input::ignore_mode(input.include_ignored);
    let limits = TreeLimits {
        depth: input.depth.unwrap_or(1).clamp(1, DEPTH_MAX),
        entries: ENTRIES_MAX,
        bytes: TEXT_BYTES_MAX,
    };
    let tree = workspace.list_tree(&path, mode, limits, cancellation)?;
    let mut text = tree.lines.join("\n");
    if tree.lines.is_empty() {
        text.push_str(&format!("[nothing in {display_path}]"));
    }
    if tree.is_cut {
        text.push_str("\n[there is more; list a directory further down, or with less depth]");
    }
    let entries = count(tree.lines.len(), "entry", "entries");
    Ok(ToolOutcome {
        text,
        summary: format!("Listed {entries} of {display_path}"),
        success: true,
        ..ToolOutcome::default()
    })
}
