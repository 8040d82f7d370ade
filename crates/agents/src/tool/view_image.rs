//! `view_image`: a picture, shown to a model that sees pictures.

use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{Cancellation, Workspace, WorkspacePath};

use super::file_tool::{FileInput, FileTool, PATH_DESCRIPTION};
use super::input::ToolInput;
use super::{ToolError, ToolOutcome, read};

pub(super) struct ViewImageTool;

#[derive(Debug, Deserialize)]
pub(super) struct ViewImageInput {
    path: String,
}

impl ToolInput for ViewImageInput {
    const EXAMPLE: &'static str = r#"{"path": "docs/screenshot.png"}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": PATH_DESCRIPTION},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("path", &self.path)]
    }
}

impl FileInput for ViewImageInput {
    fn path(&self) -> &str {
        &self.path
    }
}

impl FileTool for ViewImageTool {
    type Input = ViewImageInput;

    const NAME: &'static str = "view_image";
    const DISPLAY_NAME: &'static str = "View";
    const DESCRIPTION: &'static str = "Shows you an image file (PNG, JPEG, GIF, WebP), at most 8 MiB: a screenshot, a diagram, a \
         plot that a command made.";
    const KIND: &'static str = "read";

    fn summarise(_: &ViewImageInput, display_path: &str) -> Result<String, ToolError> {
        Ok(format!("View {display_path}"))
    }

    fn look(
        _: &ViewImageInput,
        path: &WorkspacePath,
        workspace: &Workspace,
        _: &Cancellation,
    ) -> Result<ToolOutcome, ToolError> {
        read::view_image(path, workspace)
    }
}
