//! What a session waits for: every block of any of its chats, mirrored where clients that watch only the session see it
//! (H-196, H-220, H-221).

use serde_json::{Value, json};
use wire::state::{ChatState, Part};
use wire::{Action, ActionKind, ChannelUri};

use crate::Kernel;
use crate::record::ChannelId;

impl Kernel {
    /// The session's `inputNeeded` says what the chat's active turn says.
    pub(crate) fn needs_followed(&mut self, uri: &ChannelUri) {
        let (Some(chat), Some(channel)) = (self.chat(uri), self.channels.get(uri)) else {
            return;
        };
        let wanted = needs_of(&chat.state, channel.id);
        self.mirror_needs(&chat.session.clone(), uri, wanted);
    }

    /// Makes the entries of one chat what they should be: none, if it is gone.
    pub(crate) fn mirror_needs(
        &mut self,
        session: &ChannelUri,
        chat: &ChannelUri,
        wanted: Vec<Value>,
    ) {
        let Some(state) = self.session_state(session) else {
            return;
        };
        let told: Vec<Value> = state
            .input_needed
            .iter()
            .filter(|entry| entry["chat"] == chat.as_str())
            .cloned()
            .collect();
        for entry in &told {
            if !wanted.iter().any(|other| other["id"] == entry["id"]) {
                let fields = json!({"id": entry["id"]});
                self.act(
                    session,
                    Action::host(ActionKind::SessionInputNeededRemoved, fields),
                    None,
                );
            }
        }
        for entry in wanted {
            if !told.contains(&entry) {
                let fields = json!({"request": entry});
                self.act(
                    session,
                    Action::host(ActionKind::SessionInputNeededSet, fields),
                    None,
                );
            }
        }
    }
}

/// The blocks of a chat, in the order they stand in its turn. Call and request ids are never reused in a chat, and the
/// chat's number never in the host: so their ids are unique.
fn needs_of(state: &ChatState, id: ChannelId) -> Vec<Value> {
    let Some(turn) = &state.active_turn else {
        return Vec::new();
    };
    let entry = |part: &Part| match part.kind() {
        "inputRequest" if part.0.get("response").is_none_or(Value::is_null) => {
            let request = part.0.get("request")?;
            let name = request["id"].as_str()?;
            Some(json!({
                "kind": "chatInput",
                "id": format!("n{}-{name}", id.0),
                "chat": state.resource,
                "request": request,
            }))
        }
        "toolCall" => {
            let call = part.0.get("toolCall")?;
            let name = call["toolCallId"].as_str()?;
            let kind = match call["status"].as_str()? {
                "pending-confirmation" | "pending-result-confirmation" => "toolConfirmation",
                "auth-required" => "toolAuthentication",
                "running" if call["contributor"]["kind"] == "client" => "toolClientExecution",
                _ => return None,
            };
            let mut entry = json!({
                "kind": kind,
                "id": format!("n{}-{name}", id.0),
                "chat": state.resource,
                "turnId": turn.id,
            });
            if kind == "toolClientExecution" {
                entry["clientId"] = call["contributor"]["clientId"].clone();
            }
            entry["toolCall"] = call.clone();
            Some(entry)
        }
        _ => None,
    };
    turn.parts.iter().filter_map(entry).collect()
}
