//! Between 0.6 and 0.7: one working directory, where there are several now; the input of a tool call is a text; what a command
//! in a terminal came to is a block of its own; there are no chats beside others, and none are attached to a message.

use serde_json::{Value, json};

use super::shape::{
    for_each_message, for_each_tool_call, kind_of, object_mut, objects_mut, replace_field, text,
};
use super::{AfterAction, SnapshotOf, VersionStep, unchanged};
use crate::methods::Method;
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_6,
    touches,
    down_action,
    down_state,
    down_summary: down_directories,
    up_action: unchanged::up_action,
    up_params,
};

fn touches(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::SessionChatAdded
            | ActionKind::SessionChatUpdated
            | ActionKind::SessionInputNeededSet
            | ActionKind::ChatToolCallDelta
            | ActionKind::ChatToolCallReady
            | ActionKind::ChatToolCallConfirmed
            | ActionKind::ChatToolCallComplete
            | ActionKind::ChatToolCallContentChanged
            | ActionKind::ChatTurnsLoaded
            | ActionKind::ChatTurnStarted
            | ActionKind::ChatPendingMessageSet
            | ActionKind::ChatDraftChanged
    )
}

fn down_action(mut sent: Object, _: AfterAction, out: &mut Vec<Object>) {
    for_each_message(&mut sent, down_message);
    match kind_of(&sent) {
        ActionKind::SessionChatAdded => down_summary_in(&mut sent, "summary"),
        ActionKind::SessionChatUpdated => down_summary_in(&mut sent, "changes"),
        ActionKind::ChatToolCallDelta => {
            let content = sent.entry("content").or_insert(Value::Null);
            if content.is_null() {
                *content = json!("");
            }
        }
        ActionKind::ChatToolCallReady | ActionKind::ChatToolCallConfirmed => {
            down_input(&mut sent);
        }
        ActionKind::ChatToolCallComplete => {
            if let Some(result) = object_mut(&mut sent, "result") {
                down_content(result);
            }
        }
        ActionKind::ChatToolCallContentChanged => down_content(&mut sent),
        _ => for_each_tool_call(&mut sent, down_tool_call),
    }
    out.push(sent);
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    down_directories(state);
    match of {
        SnapshotOf::Root | SnapshotOf::Plain(_) => {}
        SnapshotOf::Session { .. } => {
            for chat in objects_mut(state, "chats") {
                down_directories(chat);
                down_origin(chat);
            }
            for_each_tool_call(state, down_tool_call);
        }
        SnapshotOf::Chat => {
            down_origin(state);
            for_each_message(state, down_message);
            for_each_tool_call(state, down_tool_call);
        }
    }
}

/// The first of several is the one that older clients know.
fn down_directories(holder: &mut Object) {
    let first = |all: Value| match all {
        Value::Array(all) => all.into_iter().next(),
        _ => None,
    };
    replace_field(holder, "workingDirectories", "workingDirectory", first);
}

fn down_summary_in(sent: &mut Object, field: &str) {
    if let Some(summary) = object_mut(sent, field) {
        down_directories(summary);
        down_origin(summary);
    }
}

/// A chat beside another was made by a person: it has none of the other's turns, as a fork would.
fn down_origin(chat: &mut Object) {
    if let Some(origin) = object_mut(chat, "origin")
        && text(origin, "kind") == Some("sideChat")
    {
        chat.insert("origin".to_owned(), json!({"kind": "user"}));
    }
}

/// A chat that is attached is told by its label.
fn down_message(message: &mut Object) {
    for attachment in objects_mut(message, "attachments") {
        if text(attachment, "type") == Some("chat") {
            attachment.insert("type".to_owned(), json!("simple"));
            attachment.shift_remove("resource");
            attachment.shift_remove("endTurn");
        }
    }
}

fn down_tool_call(call: &mut Object) {
    if let Some(suggestion) = object_mut(call, "userSuggestion") {
        down_message(suggestion);
    }
    down_input(call);
    down_content(call);
}

/// An input that is stored elsewhere is told by its address: a text, as inputs were, and `resourceRead` reads it.
fn down_input(call: &mut Object) {
    if let Some(Value::Object(stored)) = call.get("toolInput") {
        let address = text(stored, "uri").unwrap_or_default().to_owned();
        call.insert("toolInput".to_owned(), Value::String(address));
    }
}

fn down_content(holder: &mut Object) {
    let Some(Value::Array(blocks)) = holder.get_mut("content") else {
        return; // a call that said nothing yet
    };
    let mut older = Vec::with_capacity(blocks.len());
    for mut block in std::mem::take(blocks) {
        let ended = block.as_object_mut().and_then(completed_command);
        older.push(block);
        older.extend(ended);
    }
    *blocks = older;
}

/// What a command in a terminal came to, beside the terminal itself.
fn completed_command(block: &mut Object) -> Option<Value> {
    if text(block, "type") != Some("terminal") {
        return None;
    }
    let Some(Value::Object(result)) = block.shift_remove("result") else { return None };
    let mut ended = json!({"type": "terminalComplete"});
    if let Some(resource) = block.get("resource") {
        ended["resource"] = resource.clone();
    }
    for field in ["exitCode", "preview", "truncated"] {
        if let Some(value) = result.get(field) {
            ended[field] = value.clone();
        }
    }
    Some(ended)
}

fn up_params(method: Method, params: &mut Object) {
    match method {
        Method::CreateSession => {
            // What is no text is refused by the types.
            let several = |one: Value| (!one.is_null()).then(|| Value::Array(vec![one]));
            replace_field(params, "workingDirectory", "workingDirectories", several);
        }
        Method::CreateChat => {
            if let Some(source) = object_mut(params, "source") {
                source.entry("kind").or_insert(json!("fork"));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{down, object};
    use super::*;

    #[test]
    fn a_chat_beside_another_is_one_that_somebody_made() {
        let origin = json!({"kind": "sideChat", "chat": "ahp-chat:/1", "turnId": "t", "selection": {"text": "x"}});
        let summary = json!({"resource": "ahp-chat:/2", "origin": origin});
        let added = json!({"type": "session/chatAdded", "summary": summary});
        let same = down(Generation::V0_7, added.clone(), AfterAction::Root);
        assert_eq!(same, vec![added.clone()]);
        let older = down(Generation::V0_6, added, AfterAction::Root);
        assert_eq!(older[0]["summary"]["origin"], json!({"kind": "user"}));
        let mut chat = object(summary.clone());
        down_state(SnapshotOf::Chat, &mut chat);
        assert_eq!(chat["origin"], json!({"kind": "user"}));
        let entry = Object::new();
        let of = SnapshotOf::Session { resource: "s:/1", summary: &entry };
        let mut session = object(json!({"chats": [summary]}));
        down_state(of, &mut session);
        assert_eq!(session["chats"][0]["origin"], json!({"kind": "user"}));
        // A fork is what it was.
        let fork = json!({"kind": "fork", "chat": "ahp-chat:/1", "turnId": "t"});
        let mut chat = object(json!({"origin": fork}));
        down_state(SnapshotOf::Chat, &mut chat);
        assert_eq!(chat["origin"], fork);
    }

    #[test]
    fn an_attached_chat_is_told_by_its_label() {
        let attached =
            json!({"type": "chat", "label": "L", "resource": "ahp-chat:/1", "endTurn": "t"});
        let message = json!({"text": "m", "attachments": [attached]});
        let older = json!([{"type": "simple", "label": "L"}]);
        for (action, place) in [
            (
                json!({"type": "chat/turnStarted", "turnId": "t", "message": message}),
                "/message/attachments",
            ),
            (
                json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "p", "message": message}),
                "/message/attachments",
            ),
            (json!({"type": "chat/draftChanged", "draft": message}), "/draft/attachments"),
            (
                json!({"type": "chat/turnsLoaded", "turns": [{"id": "t", "message": message, "responseParts": []}]}),
                "/turns/0/message/attachments",
            ),
        ] {
            let told = down(Generation::V0_6, action, AfterAction::Root);
            assert_eq!(told[0].pointer(place), Some(&older), "{told:?}");
        }
        let mut chat = object(json!({"queuedMessages": [{"id": "p", "message": message}]}));
        down_state(SnapshotOf::Chat, &mut chat);
        assert_eq!(chat["queuedMessages"][0]["message"]["attachments"], older);
    }
}
