//! `list`: what is in a directory, and below it as deep as is asked.

use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{Cancellation, TreeLimits, Workspace, WorkspacePath};

use super::file_tool::{FileInput, FileTool};
use super::format::{count, describe_left_out};
use super::input::ToolInput;
use super::{TEXT_BYTES_MAX, ToolError, ToolOutcome, input};

/// Entries of one call.
const ENTRIES_MAX: usize = 1_000;

const DEPTH_MAX: usize = 16;

pub(super) struct ListTool;

#[derive(Debug, Deserialize)]
pub(super) struct ListInput {
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
        self.path.iter().map(|path| ("path", path.as_str())).collect()
    }
}

impl FileInput for ListInput {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

impl FileTool for ListTool {
    type Input = ListInput;

    const NAME: &'static str = "list";
    const DISPLAY_NAME: &'static str = "List";
    const DESCRIPTION: &'static str = "Lists a directory, at most 1,000 entries: directories end in `/`, symbolic links in `@`. \
         Files that `.gitignore` or `.ignore` exclude are left out.";
    const KIND: &'static str = "read";

    fn summarise(_: &ListInput, display_path: &str) -> Result<String, ToolError> {
        Ok(format!("List {display_path}"))
    }

    fn look(
        input: &ListInput,
        path: &WorkspacePath,
        workspace: &Workspace,
        cancellation: &Cancellation,
    ) -> Result<ToolOutcome, ToolError> {
        let display_path = workspace.display_path(path);
        let mode = input::ignore_mode(input.include_ignored);
        let limits = TreeLimits {
            depth: input.depth.unwrap_or(1).clamp(1, DEPTH_MAX),
            entries: ENTRIES_MAX,
            bytes: TEXT_BYTES_MAX,
        };
        let tree = workspace.list_tree(path, mode, limits, cancellation)?;
        let mut text = tree.lines.join("\n");
        if tree.lines.is_empty() {
            text.push_str(&format!("[nothing in {display_path}]"));
        }
        if tree.is_cut {
            text.push_str("\n[there is more; list a directory further down, or with less depth]");
        }
        if tree.left_out > 0 {
            text.push('\n');
            text.push_str(describe_left_out(tree.left_out).trim_end());
        }
        let entries = count(tree.lines.len(), "entry", "entries");
        Ok(ToolOutcome {
            text,
            summary: format!("Listed {entries} of {display_path}"),
            success: true,
            ..ToolOutcome::default()
        })
    }
}
