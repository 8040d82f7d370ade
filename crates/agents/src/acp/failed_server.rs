//! What agents say of an MCP server that they could not start: there is no message of the protocol for it (MC-9).
//!
//! Promises: a name is the agent's word, compared with what it was handed by whoever asks.
//! Must not know: which servers there are.

use agent_client_protocol_schema::v1 as acp;

use super::label::label;

const WHY_CHARS_MAX: usize = 300;

/// A server that did not start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FailedServer {
    pub(super) name: String,
    pub(super) why: String,
}

impl FailedServer {
    /// Claude sends a notice that names the server in quotes, Codex a failed call `mcp__NAME__startup` before the first prompt.
    pub(super) fn of(update: &acp::SessionUpdate) -> Option<Self> {
        let (name, why) = match update {
            acp::SessionUpdate::Notice(notice) => {
                let rest = notice.title.strip_prefix("MCP server \"")?;
                let (name, what) = rest.split_once('"')?;
                if !what.contains("failed") {
                    return None; // it says something else of a server
                }
                (name, notice.title.clone())
            }
            acp::SessionUpdate::ToolCall(call) if call.status == acp::ToolCallStatus::Failed => {
                let name = call.title.strip_prefix("mcp__")?.strip_suffix("__startup")?;
                (name, words_of(&call.content).unwrap_or_else(|| call.title.clone()))
            }
            _ => return None,
        };
        Some(Self { name: name.to_owned(), why: label(&why, WHY_CHARS_MAX) })
    }
}

fn words_of(content: &[acp::ToolCallContent]) -> Option<String> {
    content.iter().find_map(|part| match part {
        acp::ToolCallContent::Content(part) => match &part.content {
            acp::ContentBlock::Text(text) => Some(text.text.clone()),
            _ => None,
        },
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(update: Value) -> Option<(String, String)> {
        let update: acp::SessionUpdate = serde_json::from_value(update).unwrap();
        FailedServer::of(&update).map(|failed| (failed.name, failed.why))
    }

    #[test]
    fn mc_9_agents_tell_of_a_server_that_failed_in_their_own_ways() {
        let notice =
            |title: &str| json!({"sessionUpdate": "notice", "severity": "warning", "title": title});
        let said = "MCP server \"broken\" failed to start";
        assert_eq!(read(notice(said)), Some(("broken".to_owned(), said.to_owned())));
        assert_eq!(read(notice("MCP server \"a\" is ready")), None);
        assert_eq!(read(notice("Model metadata not found")), None);
        let call = |status: &str| {
            json!({"sessionUpdate": "tool_call", "toolCallId": "x", "title": "mcp__broken__startup", "status": status,
                "content": [{"type": "content", "content": {"type": "text", "text": "No such\u{1b}[2J file"}}]})
        };
        let (name, why) = read(call("failed")).unwrap();
        assert_eq!(name, "broken");
        assert!(why.starts_with("No such") && !why.contains('\u{1b}'), "{why}");
        assert_eq!(read(call("completed")), None);
    }
}
