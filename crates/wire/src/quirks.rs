//! Known defects of the published types and reducers, and how this host lives with each.
//!
//! Each has a test that asserts the defect as it is today: the day upstream mends it, the test fails and the way
//! around it can go.
//!
//! - **String ids** (H-005): the published envelope reads a request with a string id as a notification, which is never
//!   answered. The host's own requests carry unsigned integers.
//! - **Errors with a null id** (H-006): the published envelope cannot read them. They are still what JSON-RPC asks for
//!   when no id could be read; nothing relies on their arrival.
//! - **`auth-required`** (H-204): the published tool-call state cannot read its own status, since the tag and a field
//!   share the name `status`. Our state holds the call as JSON, with one `status`.
//! - **Leftovers of a reorder** (H-234): the published reducer sorts queued messages that an order leaves out by id;
//!   the protocol keeps them as they stood, and so do we. The host echoes an order that names them all.
//! - **`session/chatUpdated` and `interactivity`** (H-149): the published reducer ignores it, `movable` too, and cannot
//!   clear a field. Ours does the same, so that all mirrors agree; the host sends the whole entry by `session/chatAdded`.
//! - **Client plugins need a `type`** (versions, 0.9 to 1.0): clients up to 0.9 do not send it, and the whole action
//!   becomes unreadable. `compat` adds it before anything is decoded.
//! - **Unreadable tool calls at turn end**: a call in a state the published types do not know loses even its id when its
//!   turn ends. Ours is cancelled like any other and keeps what it had.

#[cfg(test)]
mod tests {
    use ahp::reducers::{apply_action_to_chat, apply_action_to_session};
    use ahp_types::actions::StateAction;
    use ahp_types::messages::JsonRpcMessage;
    use ahp_types::state::{ChatState, SessionState, ToolCallState};
    use serde_json::{Value, json};

    use crate::Action;
    use crate::action::to_value;
    use crate::reduce::reduce_chat;

    fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> T {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn auth_required_call() -> Value {
        json!({
            "status": "auth-required",
            "toolCallId": "c1",
            "toolName": "n",
            "displayName": "d",
            "invocationMessage": "i",
            "confirmed": "not-needed",
            "contributor": {"kind": "mcp", "customizationId": "m"},
            "auth": {"reason": "expired", "resource": {"resource": "https://r"}},
        })
    }

    fn chat(fields: Value) -> Value {
        let mut chat = json!({
            "resource": "ahp-chat:/1",
            "title": "t",
            "status": 1,
            "modifiedAt": "2026-01-01T00:00:00.000Z",
            "turns": [],
        });
        if let (Value::Object(chat), Value::Object(fields)) = (&mut chat, fields) {
            chat.extend(fields);
        }
        chat
    }

    /// One action through the published reducer and through ours.
    fn both(start: &Value, action: &Value) -> (Value, Value) {
        let mut theirs: ChatState = decoded(start);
        apply_action_to_chat(&mut theirs, &decoded::<StateAction>(action));
        let mut ours = crate::state::ChatState::from_value(start.clone()).unwrap();
        let _ = reduce_chat(&mut ours, &Action::decode(action.clone()).unwrap());
        (to_value(&theirs), ours.value())
    }

    #[test]
    fn a_request_with_a_string_id_is_taken_for_a_notification() {
        let request = json!({"jsonrpc": "2.0", "id": "seven", "method": "resourceRead"});
        assert!(matches!(decoded(&request), JsonRpcMessage::Notification(_)));
    }

    #[test]
    fn an_error_with_a_null_id_cannot_be_read() {
        let error = json!({"code": -32700, "message": "m"});
        let response = json!({"jsonrpc": "2.0", "id": null, "error": error});
        assert!(serde_json::from_value::<JsonRpcMessage>(response).is_err());
    }

    #[test]
    fn a_tool_call_that_needs_auth_cannot_be_read() {
        let call: ToolCallState = decoded(&auth_required_call());
        assert!(matches!(call, ToolCallState::Unknown(_)));
    }

    #[test]
    fn a_tool_call_that_needs_auth_is_written_with_two_states() {
        let state = ToolCallState::AuthRequired(Box::new(decoded(&auth_required_call())));
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(text.matches("\"status\"").count(), 2);
    }

    #[test]
    fn an_unreadable_tool_call_loses_its_id_when_its_turn_ends() {
        let start = chat(json!({"activeTurn": {
            "id": "t1",
            "startedAt": "2026-01-01T00:00:00Z",
            "message": {"text": "", "origin": {"kind": "user"}},
            "responseParts": [{"kind": "toolCall", "toolCall": auth_required_call()}],
        }}));
        let action = json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1});
        let (theirs, ours) = both(&start, &action);
        let call = |chat: &Value| chat["turns"][0]["responseParts"][0]["toolCall"].clone();
        assert_eq!(call(&theirs)["toolCallId"], "");
        assert_eq!(call(&ours)["toolCallId"], "c1");
        assert_eq!(call(&ours)["status"], "cancelled");
    }

    #[test]
    fn queued_messages_that_an_order_leaves_out_are_sorted_by_id() {
        let message = json!({"text": "", "origin": {"kind": "user"}});
        let queued: Vec<Value> =
            ["z", "a", "m"].iter().map(|id| json!({"id": id, "message": message})).collect();
        let start = chat(json!({"queuedMessages": queued}));
        let action = json!({"type": "chat/queuedMessagesReordered", "order": ["m"]});
        let ids = |chat: &Value| -> Vec<Value> {
            let queue = chat["queuedMessages"].as_array().unwrap();
            queue.iter().map(|entry| entry["id"].clone()).collect()
        };
        let (theirs, ours) = both(&start, &action);
        assert_eq!(ids(&theirs), ["m", "a", "z"]);
        assert_eq!(ids(&ours), ["m", "z", "a"]);
    }

    #[test]
    fn a_chat_update_does_not_change_interactivity() {
        let mut session: SessionState = decoded(&json!({
            "provider": "p",
            "title": "t",
            "status": 1,
            "lifecycle": "ready",
            "activeClients": [],
            "chats": [{"resource": "c:/1", "title": "t", "status": 1, "modifiedAt": "m"}],
        }));
        let update = json!({
            "type": "session/chatUpdated",
            "chat": "c:/1",
            "changes": {"interactivity": "read-only", "movable": true, "title": "new"},
        });
        apply_action_to_session(&mut session, &decoded(&update));
        let chat = &session.chats[0];
        assert_eq!((chat.title.as_str(), &chat.interactivity, chat.movable), ("new", &None, None));
    }

    #[test]
    fn a_client_plugin_without_a_type_makes_its_action_unreadable() {
        let action = json!({
            "type": "session/activeClientSet",
            "activeClient": {
                "clientId": "c",
                "tools": [],
                "customizations": [{"id": "p", "uri": "u", "name": "n"}],
            },
        });
        assert!(matches!(decoded(&action), StateAction::Unknown(_)));
    }
}
