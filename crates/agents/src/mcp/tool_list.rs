//! The tools that a server lists, as far as they are kept.
//!
//! Promises: bounded, however many pages a server sends; what is left out is counted.

use rmcp::model::{PaginatedRequestParams, Tool};
use rmcp::service::{Peer, RoleClient};
use serde_json::Value;

use super::error::{McpError, clean};

/// Tools of one server that are kept; a model gets fewer.
const TOOLS_MAX: usize = 512;

/// Pages that are asked for.
const PAGES_MAX: usize = 64;

/// Tools with a longer name are left out.
const NAME_BYTES_MAX: usize = 512;

/// Longer descriptions are cut.
const DESCRIPTION_BYTES_MAX: usize = 4 * 1_024;

/// Tools with a larger schema are left out.
const SCHEMA_BYTES_MAX: usize = 32 * 1_024;

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    pub name: String,
    /// As people read it.
    pub title: String,
    pub description: String,
    /// JSON Schema of the input; an object.
    pub schema: Value,
    pub hints: ToolHints,
}

/// What a server claims of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolHints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub open_world: Option<bool>,
}

/// What a server listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ToolList {
    pub tools: Vec<McpTool>,
    /// Tools that are not kept, and why.
    pub left_out: Vec<String>,
}

pub(super) async fn list_tools(
    peer: &Peer<RoleClient>,
    allowed: Option<&[String]>,
) -> Result<ToolList, McpError> {
    let mut list = ToolList::default();
    let mut cursor = None;
    let mut too_many = 0_usize;
    for page in 0.. {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let listed = peer.list_tools(Some(params)).await.map_err(McpError::of_request)?;
        for tool in listed.tools {
            if allowed.is_some_and(|allowed| !allowed.iter().any(|name| *name == tool.name)) {
                continue;
            }
            match McpTool::read(tool) {
                Ok(_) if list.tools.len() >= TOOLS_MAX => too_many += 1,
                Ok(tool) => list.tools.push(tool),
                Err(why) => list.left_out.push(why),
            }
        }
        cursor = listed.next_cursor;
        if cursor.is_none() {
            break;
        }
        if page + 1 >= PAGES_MAX {
            let why =
                format!("its list has more than {PAGES_MAX} pages; the others were not asked for");
            list.left_out.push(why);
            break;
        }
    }
    if too_many > 0 {
        let why = format!("{too_many} tools: at most {TOOLS_MAX} of a server are kept");
        list.left_out.push(why);
    }
    list.left_out.truncate(TOOLS_MAX);
    Ok(list)
}

impl McpTool {
    fn read(tool: Tool) -> Result<Self, String> {
        let shown = clean(&tool.name);
        if tool.name.len() > NAME_BYTES_MAX {
            return Err(format!("`{shown}`: its name has more than {NAME_BYTES_MAX} bytes"));
        }
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        if wire::rpc::to_json(&schema).len() > SCHEMA_BYTES_MAX {
            return Err(format!(
                "`{shown}`: its input schema has more than {SCHEMA_BYTES_MAX} bytes"
            ));
        }
        let annotations = tool.annotations.unwrap_or_default();
        let mut titles =
            [annotations.title, tool.title].into_iter().flatten().map(|title| clean(&title));
        let title = titles.find(|title| !title.is_empty());
        let mut description = tool.description.unwrap_or_default().into_owned();
        description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
        Ok(Self {
            title: title.unwrap_or(shown),
            name: tool.name.into_owned(),
            description,
            schema,
            hints: ToolHints {
                read_only: annotations.read_only_hint,
                destructive: annotations.destructive_hint,
                open_world: annotations.open_world_hint,
            },
        })
    }
}
