//! `list`: what is in a directory, and below it as deep as is asked.

use std::collections::VecDeque;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::format::format_count;
use super::stop::{Stop, off_thread};
use super::workspace::{Entry, Kind, Wanted, Workspace};
use super::{Nature, Outcome, Plan, TEXT_BYTES_MAX, Tool, ToolError, input};

/// Entries shown by one call.
const ENTRIES_MAX: usize = 1_000;

const DEPTH_MAX: usize = 16;

pub(super) struct List;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: Option<String>,
    depth: Option<usize>,
    include_ignored: Option<bool>,
}

#[async_trait]
impl Tool for List {
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

    fn nature(&self) -> Nature {
        Nature::Reads
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: Input = input::parse(input)?;
        let place = workspace.place(input.path.as_deref().unwrap_or("."))?;
        Ok(Plan {
            summary: format!("List {}", workspace.shown(&place)),
            consent_key: self.name().to_owned(),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<Outcome, ToolError> {
        let (input, workspace) = (input::parse::<Input>(input)?, workspace.clone());
        off_thread(move |stop| list(&input, &workspace, stop)).await
    }
}

fn list(input: &Input, workspace: &Workspace, stop: &Stop) -> Result<Outcome, ToolError> {
    let place = workspace.place(input.path.as_deref().unwrap_or("."))?;
    let shown = workspace.shown(&place);
    let wanted = match input.include_ignored {
        Some(true) => Wanted::All,
        Some(false) | None => Wanted::NotIgnored,
    };
    let depth_max = input.depth.unwrap_or(1).clamp(1, DEPTH_MAX);
    let mut lines = Vec::new();
    let mut bytes = 0;
    let mut is_cut = false;
    // Level by level, so that what does not fit is what lies deepest.
    let mut waiting = VecDeque::from([(workspace.folder(&place, wanted)?, String::new(), 1)]);
    'all: while let Some((folder, prefix, depth)) = waiting.pop_front() {
        stop.check()?;
        let listing = match workspace.look_into(&folder) {
            Ok(listing) => listing,
            Err(error) if depth == 1 => return Err(error),
            // It may have gone, or not be ours to look into.
            Err(_) => continue,
        };
        is_cut |= listing.is_cut;
        for entry in &listing.entries {
            let line = format!("{prefix}{}", line(entry));
            bytes += line.len() + 1;
            if lines.len() == ENTRIES_MAX || bytes > TEXT_BYTES_MAX {
                is_cut = true;
                break 'all;
            }
            if depth < depth_max
                && let Some(folder) = listing.folder(entry)
            {
                waiting.push_back((folder, line.clone(), depth + 1));
            }
            lines.push(line);
        }
    }
    let entries = format_count(lines.len(), "entry", "entries");
    lines.sort();
    let mut text = lines.join("\n");
    if lines.is_empty() {
        text.push_str(&format!("[nothing in {shown}]"));
    }
    if is_cut {
        text.push_str("\n[there is more; list a directory further down, or with less depth]");
    }
    Ok(Outcome {
        text,
        summary: format!("Listed {entries} of {shown}"),
        success: true,
        ..Outcome::default()
    })
}

fn line(entry: &Entry) -> String {
    let name = entry.name.to_string_lossy();
    // A name must not be able to look like two.
    let name = name.replace(char::is_control, "\u{fffd}");
    let mark = match entry.kind {
        Kind::Directory => "/",
        Kind::Link => "@",
        Kind::File | Kind::Other => "",
    };
    format!("{name}{mark}")
}
