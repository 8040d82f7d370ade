//! `view_image`: a picture, shown to a model that sees pictures.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::Workspace;

use super::input::{ToolInput, parse_and_run};
use super::{Nature, Plan, PlanSubject, Tool, ToolError, ToolOutcome, input, read};

pub(super) struct ViewImageTool;

#[derive(Debug, Deserialize)]
struct ViewImageInput {
    path: String,
}

impl ToolInput for ViewImageInput {
    const EXAMPLE: &'static str = r#"{"path": "docs/screenshot.png"}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "Relative to the first working directory, or absolute inside any of them.",
                },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("path", &self.path)]
    }
}

#[async_trait]
impl Tool for ViewImageTool {
    fn name(&self) -> &'static str {
        "view_image"
    }

    fn display_name(&self) -> &'static str {
        "View"
    }

    fn description(&self) -> &'static str {
        "Shows you an image file (PNG, JPEG, GIF, WebP), at most 8 MiB: a screenshot, a diagram, a plot that a command made."
    }

    fn parameters(&self) -> Value {
        ViewImageInput::schema()
    }

    fn nature(&self) -> Nature {
        Nature::Reads
    }

    fn kind(&self) -> Option<&'static str> {
        Some("read")
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: ViewImageInput = input::parse(input)?;
        let path = workspace.display_path(&workspace.resolve(&input.path)?);
        Ok(Plan {
            summary: format!("View {path}"),
            subject: PlanSubject::File(input.path),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        parse_and_run(input, workspace, |input: &ViewImageInput, workspace, _| {
            read::view_image(&workspace.resolve(&input.path)?, workspace)
        })
        .await
    }
}
