//! `grep`: lines that match a pattern, in a directory or a file.

use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{
    Cancellation, SearchMatches, SearchOptions, SearchOutput, SearchPattern, Workspace,
    WorkspacePath,
};

use super::file_tool::{FileInput, FileTool};
use super::format::{count, describe_left_out, shorten};
use super::input::{Texts, ToolInput};
use super::{TEXT_BYTES_MAX, ToolError, ToolOutcome, input};

/// Matching lines of one call.
const LINES_MAX: usize = 200;

/// Files of one call when no lines are requested.
const FILES_MAX: usize = 500;

/// Text after which nothing is added: the last match and its context still fit.
const MATCHES_BYTES_MAX: usize = TEXT_BYTES_MAX - 16 * 1_024;

const CONTEXT_LINES_MAX: usize = 10;

/// Characters of a pattern in a summary.
const PATTERN_CHARS_MAX: usize = 60;

pub(super) struct GrepTool;

#[derive(Debug, Deserialize)]
pub(super) struct GrepInput {
    pattern: String,
    path: Option<String>,
    #[serde(default, alias = "glob")]
    globs: Texts,
    ignore_case: Option<bool>,
    literal: Option<bool>,
    context: Option<usize>,
    #[serde(alias = "output_mode")]
    output: Option<GrepOutput>,
    /// What `output` was called before it had more than two values.
    files_only: Option<bool>,
    include_ignored: Option<bool>,
}

/// Its values also go by the names that other agents gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GrepOutput {
    #[serde(alias = "content")]
    Lines,
    #[serde(alias = "files_with_matches")]
    Files,
    #[serde(alias = "count")]
    Counts,
}

impl GrepInput {
    fn output(&self) -> SearchOutput {
        match (self.output, self.files_only) {
            (Some(GrepOutput::Files), _) | (None, Some(true)) => SearchOutput::Files,
            (Some(GrepOutput::Counts), _) => SearchOutput::Counts,
            (Some(GrepOutput::Lines), _) | (None, Some(false) | None) => SearchOutput::Lines,
        }
    }
}

impl ToolInput for GrepInput {
    const EXAMPLE: &'static str =
        r#"{"pattern": "fn main", "path": "src", "globs": ["*.rs"], "context": 2}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {
                    "type": "string",
                    "description": "A directory or a file; relative to the first working directory, which is the \
                                    default, or absolute inside any of them.",
                },
                "globs": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Search only files that match one of these, such as `*.rs` or `src/**`; with `!` \
                                    in front, search none that match.",
                },
                "ignore_case": {"type": "boolean"},
                "literal": {"type": "boolean", "description": "The pattern is plain text."},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": CONTEXT_LINES_MAX,
                    "description": "Lines to show before and after each match.",
                },
                "output": {
                    "type": "string",
                    "enum": ["lines", "files", "counts"],
                    "description": "What to show: the lines that match (the default), only which files have a match, \
                                    or how many lines of each match.",
                },
                "include_ignored": {"type": "boolean", "description": "Also search what is excluded."},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        let globs = self.globs.0.iter().map(|glob| ("globs", glob.as_str()));
        let path = self.path.iter().map(|path| ("path", path.as_str()));
        path.chain(globs).collect()
    }
}

impl FileInput for GrepInput {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

impl FileTool for GrepTool {
    type Input = GrepInput;

    const NAME: &'static str = "grep";
    const DISPLAY_NAME: &'static str = "Search";
    const DESCRIPTION: &'static str = "Searches files for lines that match a regular expression (Rust syntax, one line at a \
         time), at most 200 lines, or at most 500 files if only files or counts are asked for. Binary files and files that \
         `.gitignore` or `.ignore` exclude are skipped.";
    const KIND: &'static str = "search";

    fn summarise(input: &GrepInput, display_path: &str) -> Result<String, ToolError> {
        compile(input)?;
        let pattern = shorten(&input.pattern, PATTERN_CHARS_MAX);
        Ok(format!("Search {display_path} for {pattern}"))
    }

    fn look(
        input: &GrepInput,
        path: &WorkspacePath,
        workspace: &Workspace,
        cancellation: &Cancellation,
    ) -> Result<ToolOutcome, ToolError> {
        let output = input.output();
        let options = SearchOptions {
            ignore: input::ignore_mode(input.include_ignored),
            globs: input.globs.0.clone(),
            context_lines: input.context.unwrap_or(0).min(CONTEXT_LINES_MAX),
            output,
            lines_max: LINES_MAX,
            files_max: FILES_MAX,
            text_bytes_max: MATCHES_BYTES_MAX,
        };
        let matches = workspace.search(path, &compile(input)?, &options, cancellation)?;
        let lines = count(matches.lines, "line", "lines");
        let files = count(matches.files, "file", "files");
        let pattern = shorten(&input.pattern, PATTERN_CHARS_MAX);
        Ok(ToolOutcome {
            summary: match matches.files {
                0 => format!("Found no match for {pattern}"),
                _ if output == SearchOutput::Files => format!("Found {pattern} in {files}"),
                _ => format!("Found {lines} in {files} for {pattern}"),
            },
            text: into_text(matches),
            success: true,
            ..ToolOutcome::default()
        })
    }
}

fn compile(input: &GrepInput) -> Result<SearchPattern, ToolError> {
    let literal = input.literal == Some(true);
    let ignore_case = input.ignore_case == Some(true);
    Ok(SearchPattern::compile(&input.pattern, literal, ignore_case)?)
}

fn into_text(matches: SearchMatches) -> String {
    let mut text = matches.text;
    if matches.files == 0 {
        text.push_str("[no match]\n");
    }
    if matches.is_cut {
        text.push_str("[there may be more; narrow the search by pattern, path or globs]\n");
    }
    if matches.skipped_files > 0 {
        let files = count(matches.skipped_files, "file was", "files were");
        text.push_str(&format!("[{files} too large to be searched]\n"));
    }
    text.push_str(&describe_left_out(matches.left_out));
    text
}
