//! `write`: a file with this content, new or in place of the old one.

use serde::Deserialize;
use serde_json::{Value, json};
use workspace::Extent;

use super::ToolError;
use super::change::{Change, ChangeTool, NewContent};
use super::file_tool::PATH_DESCRIPTION;
use super::input::ToolInput;

pub(super) type WriteTool = ChangeTool<WriteInput>;

#[derive(Debug, Deserialize)]
pub(super) struct WriteInput {
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

impl Change for WriteInput {
    const NAME: &'static str = "write";
    const DISPLAY_NAME: &'static str = "Write";
    const DESCRIPTION: &'static str = "Writes a file: creates it, with the directories it needs, or replaces all of its content. An existing file \
         must have been read in this session first; to change parts of it, use `edit`.";

    fn path(&self) -> &str {
        &self.path
    }

    fn extent(&self) -> Extent {
        Extent::Whole
    }

    fn apply(&self, _before: Option<&[u8]>, _display_path: &str) -> Result<NewContent, ToolError> {
        Ok(NewContent { content: self.content.clone().into_bytes(), note: String::new() })
    }
}
