//! `write`: a file with this content, new or in place of the old one.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::{Extent, Workspace};

use super::change::{Change, NewContent, plan_change, preview_edits, run_change};
use super::file_tool::PATH_DESCRIPTION;
use super::input::ToolInput;
use super::{Edits, Nature, Plan, Tool, ToolError, ToolOutcome};

pub(super) struct WriteTool;

#[derive(Debug, Deserialize)]
struct WriteInput {
    path: String,
    content: String,
}

impl ToolInput for WriteInput {
    const EXAMPLE: &'static str = r#"{"path": "src/new.rs", "content": "fn main() {}\n"}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": PATH_DESCRIPTION},
                "content": {"type": "string", "description": "The whole content of the file."},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("path", &self.path)]
    }
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
        WriteInput::schema()
    }

    fn nature(&self) -> Nature {
        Nature::Edits
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        plan_change::<WriteInput>(self.name(), input, workspace).await
    }

    async fn edits(&self, input: &Value, workspace: &Workspace) -> Result<Edits, ToolError> {
        preview_edits::<WriteInput>(self.name(), input, workspace).await
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        run_change::<WriteInput>(self.name(), input, workspace).await
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
