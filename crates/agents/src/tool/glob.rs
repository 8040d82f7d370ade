//! `glob`: files by their names, the most recently changed first.

use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{Cancellation, FindOptions, Workspace, WorkspacePath};

use super::file_tool::{FileInput, FileTool};
use super::format::{count, describe_left_out, group_digits, shorten};
use super::input::ToolInput;
use super::{TEXT_BYTES_MAX, ToolError, ToolOutcome, input};

/// Files of one call.
const FILES_MAX: usize = 500;

/// Characters of a pattern in a summary.
const PATTERN_CHARS_MAX: usize = 60;

pub(super) struct GlobTool;

#[derive(Debug, Deserialize)]
pub(super) struct GlobInput {
    pattern: String,
    path: Option<String>,
    include_ignored: Option<bool>,
}

impl ToolInput for GlobInput {
    const EXAMPLE: &'static str = r#"{"pattern": "src/**/*.rs"}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "description": "Such as `src/**/*.rs` or `*.{ts,tsx}`; without a slash it matches at any depth.",
                },
                "path": {
                    "type": "string",
                    "description": "The directory that the pattern is relative to; relative to the first working \
                                    directory, which is the default, or absolute inside any of them.",
                },
                "include_ignored": {"type": "boolean", "description": "Also find what is excluded."},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        let path = self.path.iter().map(|path| ("path", path.as_str()));
        path.chain([("pattern", self.pattern.as_str())]).collect()
    }
}

impl FileInput for GlobInput {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

impl FileTool for GlobTool {
    type Input = GlobInput;

    const NAME: &'static str = "glob";
    const DISPLAY_NAME: &'static str = "Find";
    const DESCRIPTION: &'static str = "Finds files whose paths match a pattern, at most 500, the most recently changed first. \
         Files that `.gitignore` or `.ignore` exclude are left out.";
    const KIND: &'static str = "search";

    fn summarise(input: &GlobInput, display_path: &str) -> Result<String, ToolError> {
        let pattern = shorten(&input.pattern, PATTERN_CHARS_MAX);
        Ok(format!("Find {pattern} in {display_path}"))
    }

    fn look(
        input: &GlobInput,
        path: &WorkspacePath,
        workspace: &Workspace,
        cancellation: &Cancellation,
    ) -> Result<ToolOutcome, ToolError> {
        let options = FindOptions {
            ignore: input::ignore_mode(input.include_ignored),
            glob: input.pattern.clone(),
            files_max: FILES_MAX,
            bytes_max: TEXT_BYTES_MAX - 1_024,
        };
        let found = workspace.find_files(path, &options, cancellation)?;
        let mut text = String::new();
        for path in &found.paths {
            text.push_str(path);
            text.push('\n');
        }
        if found.total == 0 {
            text.push_str("[no file matches]\n");
        } else if found.paths.len() < found.total {
            let more = group_digits((found.total - found.paths.len()) as u64);
            text.push_str(&format!("[{more} more match; narrow the pattern]\n"));
        }
        if found.is_cut {
            text.push_str("[not every directory was looked at; name one further down as `path`]\n");
        }
        text.push_str(&describe_left_out(found.left_out));
        let pattern = shorten(&input.pattern, PATTERN_CHARS_MAX);
        Ok(ToolOutcome {
            text,
            summary: format!("Found {} for {pattern}", count(found.total, "file", "files")),
            success: true,
            ..ToolOutcome::default()
        })
    }
}
