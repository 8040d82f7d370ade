//! What a call of a server returned, for the model and for people (MC-8).
//!
//! Promises: the text is bounded, and the whole of it is kept; media are stored before anything refers to them.
//! Must not know: how servers are spoken to.

use agent_api::EventSink;
use serde_json::{Value, json};

use crate::mcp::{McpContent, McpResult, SessionTool};
use crate::tool::{TEXT_BYTES_MAX, ToolOutcome};

/// Larger structured results are a part of the text alone.
const STRUCTURED_BYTES_MAX: usize = 64 * 1_024;

/// Longer addresses are a part of the text alone.
const URI_BYTES_MAX: usize = 4 * 1_024;

/// The longest name of a type.
const MIME_BYTES_MAX: usize = 256;

/// Pieces that are shown apart from the text.
const PIECES_MAX: usize = 32;

pub(super) async fn to_outcome(
    tool: &SessionTool,
    result: McpResult,
    events: &dyn EventSink,
) -> ToolOutcome {
    let mut texts = Vec::new();
    let mut content = Vec::new();
    let mut too_many = 0;
    for piece in result.content {
        let (text, block) = show(piece, content.len() < PIECES_MAX, events).await;
        texts.push(text);
        match block {
            ResultBlock::Shown(block) => content.push(block),
            ResultBlock::TooMany => too_many += 1,
            ResultBlock::None => {}
        }
    }
    if too_many > 0 {
        texts.push(format!("[{too_many} more pieces are not shown]"));
    }
    let structured = result.structured;
    if texts.is_empty()
        && let Some(structured) = &structured
    {
        texts.push(structured.to_string());
    }
    let whole = texts.join("\n");
    let (text, whole) = if whole.len() > TEXT_BYTES_MAX {
        (shorten(&whole), Some(whole.into_bytes()))
    } else {
        (whole, None)
    };
    let title = &tool.tool.title;
    ToolOutcome {
        text,
        summary: if result.is_error {
            format!("{title} failed")
        } else {
            format!("Called {title}")
        },
        content,
        bodies: Vec::new(), // all of them are stored
        whole,
        structured: structured.and_then(small_object),
        success: !result.is_error,
    }
}

enum ResultBlock {
    Shown(Value),
    TooMany,
    None,
}

/// A piece as text, and as people see it.
async fn show(piece: McpContent, has_room: bool, events: &dyn EventSink) -> (String, ResultBlock) {
    match piece {
        McpContent::Text(text) => (text, ResultBlock::None),
        McpContent::Unreadable(why) => (format!("[{why}]"), ResultBlock::None),
        McpContent::Document { uri, text, .. } => (format!("[{uri}]\n{text}"), ResultBlock::None),
        McpContent::Link { uri, name, description, mime_type } => {
            let description = description.map_or(String::new(), |text| format!(": {text}"));
            let text = format!("[resource {name}, {uri}{description}]");
            if uri.len() > URI_BYTES_MAX {
                return (text, ResultBlock::None);
            }
            let mut block = json!({"type": "resource", "uri": uri});
            if let Some(mime_type) = mime_type.filter(|mime| mime.len() <= MIME_BYTES_MAX) {
                block["contentType"] = json!(mime_type);
            }
            (text, show_if(has_room, block))
        }
        McpContent::Media { .. } if !has_room => (String::new(), ResultBlock::TooMany),
        McpContent::Media { mime_type, .. } if mime_type.len() > MIME_BYTES_MAX => {
            let text = "[media whose type has a name that is too long]".to_owned();
            (text, ResultBlock::None)
        }
        McpContent::Media { data, mime_type, uri } => {
            let of = uri.map_or(String::new(), |uri| format!("{uri}, "));
            let text = format!("[{of}{mime_type}, {} bytes]", data.len());
            match events.store_body(data, &mime_type).await {
                Ok(stored) => {
                    let mut block = json!(stored);
                    block["type"] = json!("resource");
                    (text, ResultBlock::Shown(block))
                }
                Err(why) => (format!("{text} (it could not be stored: {why})"), ResultBlock::None),
            }
        }
    }
}

fn show_if(has_room: bool, block: Value) -> ResultBlock {
    if has_room { ResultBlock::Shown(block) } else { ResultBlock::TooMany }
}

fn shorten(whole: &str) -> String {
    let end = whole.floor_char_boundary(TEXT_BYTES_MAX - 256);
    let left = whole.len() - end;
    format!("{}\n[{left} more bytes are left out: ask for less at a time]", &whole[..end])
}

fn small_object(structured: Value) -> Option<wire::Object> {
    let Value::Object(structured) = structured else {
        return None; // clients know objects alone; the text says the same
    };
    let bytes = wire::rpc::to_json(&structured).len();
    (bytes <= STRUCTURED_BYTES_MAX).then_some(structured)
}
