//! `edit`: exact replacements in a file, several in one call, all or none.

mod replacement;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::change::{self, Applied, Change};
use super::format::format_count;
use super::stop::off_thread;
use super::workspace::{Extent, Workspace, is_binary};
use super::{Nature, Outcome, Plan, Tool, ToolError, input};
use replacement::{LineEnds, Replacement};

pub(super) struct Edit;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    edits: Vec<Replacement>,
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn display_name(&self) -> &'static str {
        "Edit"
    }

    fn description(&self) -> &'static str {
        "Changes parts of a file by exact replacement. The edits are applied in order, each to what the ones before \
         it made; all of them or none. `old_text` must be in the file exactly once, white space included and without \
         the line numbers that `read` shows: give as many lines around as make it unique, or set `all`."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "Relative to the first working directory, or absolute inside any of them.",
                },
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_text": {"type": "string", "description": "What is there now."},
                            "new_text": {"type": "string", "description": "What comes in its place."},
                            "all": {"type": "boolean", "description": "Replace every occurrence."},
                        },
                        "required": ["old_text", "new_text"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["path", "edits"],
            "additionalProperties": false,
        })
    }

    fn nature(&self) -> Nature {
        Nature::Edits
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let name = change::change_digest(self.name(), input);
        let (input, workspace) = (input::parse::<Input>(input)?, workspace.clone());
        off_thread(move |_| change::plan(&input, name, &workspace)).await
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<Outcome, ToolError> {
        let name = change::change_digest(self.name(), input);
        let (input, workspace) = (input::parse::<Input>(input)?, workspace.clone());
        off_thread(move |stop| change::run(&input, name, &workspace, stop)).await
    }
}

impl Change for Input {
    fn path(&self) -> &str {
        &self.path
    }

    fn extent(&self) -> Extent {
        Extent::Parts
    }

    fn apply(&self, before: Option<&[u8]>, shown: &str) -> Result<Applied, ToolError> {
        let Some(before) = before else {
            return Err(ToolError(format!(
                "there is no {shown}; `list` shows what is there, `write` creates a file"
            )));
        };
        if is_binary(before) {
            return Err(ToolError(format!(
                "{shown} is a binary file; it cannot be edited"
            )));
        }
        if self.edits.is_empty() {
            return Err(ToolError(
                "`edits` is empty; say what to replace".to_owned(),
            ));
        }
        let line_ends = LineEnds::of(before);
        let mut after = before.to_vec();
        let mut replaced = 0;
        for (at, edit) in self.edits.iter().enumerate() {
            let number = at + 1;
            let count = edit.apply(&mut after, line_ends).map_err(|why| {
                let which = match self.edits.len() {
                    1 => String::new(),
                    edits => format!("edit {number} of {edits}: "),
                };
                ToolError(format!("{which}{why} Nothing was changed in {shown}."))
            })?;
            replaced += count;
        }
        let replacements = format_count(replaced, "replacement", "replacements");
        let note = format!(" {replacements}.");
        Ok(Applied { after, note })
    }
}
