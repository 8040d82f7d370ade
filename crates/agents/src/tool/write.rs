//! `write`: a file with this content, new or in place of the old one.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::{Extent, Workspace};

use super::blocking::run_blocking;
use super::change::{Change, NewContent, change_id, plan_change, run_change};
use super::{Nature, Plan, Tool, ToolError, ToolOutcome, input};

pub(super) struct WriteTool;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteInput {
    path: String,
    content: String,
}

#[async_trait]
impl Tool for WriteTool {
    fn name(&self) -> &'static str {
        "write"
    }

    fn display_name(&self) -> &'static str {
        "Write"
    }

    fn description(&self) -> &'static str {
        "Writes a file: creates it, with the directories it needs, or replaces all of its content. An existing file \
         must have been read in this session first; to change parts of it, use `edit`."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "Relative to the first working directory, or absolute inside any of them.",
                },
                "content": {"type": "string", "description": "The whole content of the file."},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        })
    }

    fn nature(&self) -> Nature {
        Nature::Edits
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let id = change_id(self.name(), input);
        let (input, workspace) = (input::parse::<WriteInput>(input)?, workspace.clone());
        run_blocking(move |_| plan_change(&input, id, &workspace)).await
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        let id = change_id(self.name(), input);
        let (input, workspace) = (input::parse::<WriteInput>(input)?, workspace.clone());
        run_blocking(move |cancellation| run_change(&input, id, &workspace, cancellation)).await
    }
}

impl Change for WriteInput {
    fn path(&self) -> &str {
        &self.path
    }

    fn extent(&self) -> Extent {
        Extent::Whole
    }

    fn apply(&self, _before: Option<&[u8]>, _display_path: &str) -> Result<NewContent, ToolError> {
        Ok(NewContent {
            content: self.content.clone().into_bytes(),
            note: String::new(),
        })
    }
}
