//! What a session waits for people to decide, in the chat that is open and in the chats of its workers.
//!
//! Promises: everything that waits for a person is here, whoever's chat it is; what a client's tool is to do is not.
//! Must not know: how it is shown and answered.

use serde_json::json;
use wire::state::SessionState;
use wire::{ChannelUri, Object};

use super::{Confirmation, InputResponse, OpenChat, PendingInput, QuestionForm, ToolDecision};
use crate::ClientError;

/// Something that a session waits for.
#[derive(Debug, Clone, PartialEq)]
pub struct NeededInput {
    /// Unique in the host, never used again.
    pub id: String,
    pub chat: ChannelUri,
    pub pending: PendingInput,
    /// What it is about, as a part of that chat.
    pub part: Object,
}

impl NeededInput {
    /// All that a session waits for, in the order it came.
    fn all_of(session: &SessionState) -> Vec<Self> {
        let needed = session.input_needed.iter();
        needed.filter_map(Self::read).collect()
    }

    fn read(needed: &serde_json::Value) -> Option<Self> {
        let (pending, part) = match needed["kind"].as_str()? {
            "toolConfirmation" | "toolAuthentication" => {
                let call = needed["toolCall"].as_object()?;
                let confirmation = Confirmation::of(needed["turnId"].as_str()?, call)?;
                let part = json!({"kind": "toolCall", "toolCall": call});
                (PendingInput::Confirmation(confirmation), part)
            }
            "chatInput" => {
                let form = QuestionForm::new(&needed["request"]);
                let part = json!({"kind": "inputRequest", "request": needed["request"]});
                (PendingInput::Questions(form), part)
            }
            // A tool that a client runs, or something newer: nothing a person decides here.
            _ => return None,
        };
        Some(Self {
            id: needed["id"].as_str()?.to_owned(),
            chat: ChannelUri::parse(needed["chat"].as_str()?).ok()?,
            pending,
            part: part.as_object()?.clone(),
        })
    }
}

impl OpenChat {
    /// What the session waits for in this chat and in the chats that work for it. Other chats of the session are somebody else's.
    pub fn needed_inputs(&self) -> Vec<NeededInput> {
        let Some(session) = self.session_state() else {
            return Vec::new(); // between two connections it may not be held
        };
        let mut needed = NeededInput::all_of(&session);
        needed.retain(|needed| works_for(&session, needed.chat.as_str(), self.chat.as_str()));
        needed
    }

    /// Tells the host what was decided about a tool call of any chat.
    pub fn confirm_in(
        &self,
        chat: &ChannelUri,
        decision: &ToolDecision,
    ) -> Result<(), ClientError> {
        self.live.dispatch(chat, decision.action()).map(drop)
    }

    /// Answers, declines or dismisses questions of any chat.
    pub fn answer_in(
        &self,
        chat: &ChannelUri,
        response: &InputResponse,
    ) -> Result<(), ClientError> {
        self.live.dispatch(chat, response.action()).map(drop)
    }
}

/// Whether a chat is another, or was started by a tool call of it, over however many workers.
fn works_for(session: &SessionState, chat: &str, other: &str) -> bool {
    let mut at = chat;
    // No chain is longer than there are chats: one that goes round ends, too.
    for _ in 0..=session.chats.len() {
        if at == other {
            return true;
        }
        let entry = session.chats.iter().find(|entry| entry.resource == at);
        let origin = entry.and_then(|entry| entry.extra.get("origin"));
        match origin {
            Some(origin) if origin["kind"] == "tool" => at = origin["chat"].as_str().unwrap_or(""),
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionState {
        let call = json!({"toolCallId": "c", "status": "pending-confirmation"});
        SessionState::from_value(json!({
            "provider": "p", "title": "", "status": 24, "lifecycle": "ready", "activeClients": [],
            "chats": [
                {"resource": "x:/main", "title": "", "status": 1, "modifiedAt": ""},
                {"resource": "x:/worker", "title": "", "status": 1, "modifiedAt": "",
                 "origin": {"kind": "tool", "chat": "x:/main"}},
                {"resource": "x:/below", "title": "", "status": 1, "modifiedAt": "",
                 "origin": {"kind": "tool", "chat": "x:/worker"}},
                {"resource": "x:/other", "title": "", "status": 1, "modifiedAt": "",
                 "origin": {"kind": "user"}},
                {"resource": "x:/round", "title": "", "status": 1, "modifiedAt": "",
                 "origin": {"kind": "tool", "chat": "x:/round"}},
            ],
            "inputNeeded": [
                {"kind": "toolConfirmation", "id": "1", "chat": "x:/below", "turnId": "t", "toolCall": call},
                {"kind": "chatInput", "id": "2", "chat": "x:/main", "request": {"id": "r"}},
                {"kind": "toolClientExecution", "id": "3", "chat": "x:/main", "turnId": "t", "toolCall": call},
                {"kind": "new", "id": "4", "chat": "x:/main"},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn what_a_person_decides_is_found_wherever_it_waits() {
        let needed = NeededInput::all_of(&session());
        let found: Vec<(&str, &str)> = needed
            .iter()
            .map(|needed| (needed.id.as_str(), needed.chat.as_str()))
            .collect();
        assert_eq!(found, [("1", "x:/below"), ("2", "x:/main")]);
        assert!(matches!(needed[0].pending, PendingInput::Confirmation(_)));
        assert!(matches!(needed[1].pending, PendingInput::Questions(_)));
        assert_eq!(needed[0].part["kind"], "toolCall");
    }

    #[test]
    fn only_workers_belong_to_a_chat() {
        let session = session();
        let belongs = |chat: &str| works_for(&session, chat, "x:/main");
        assert!(belongs("x:/main") && belongs("x:/worker") && belongs("x:/below"));
        assert!(!belongs("x:/other") && !belongs("x:/round") && !belongs("x:/unknown"));
    }
}
