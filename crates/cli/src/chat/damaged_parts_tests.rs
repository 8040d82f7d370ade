//! Parts of a chat as no host should send them, drawn and asked about: whatever is missing or of another kind, nothing panics.

use std::time::Instant;

use client::chat::PendingInput;
use serde_json::{Value, json};
use wire::reduce::reduce_chat;
use wire::state::{ChatState, status};
use wire::{Action, ActionKind, Object};

use super::dialog;
use super::part::{message_lines, part_lines};
use super::prompt::{PromptAction, PromptField, PromptState};
use super::render::Page;
use super::tool::{Detail, References};
use super::transcript::{ChatView, Transcript};
use crate::chat::line::Style;

const WIDTH: usize = 40;

/// A part of every kind, with every field that is looked at.
fn parts() -> Vec<Value> {
    let call = |fields: Value| {
        let mut call = json!({
            "toolCallId": "c", "toolName": "edit", "displayName": "Edit", "invocationMessage": {"markdown": "Editing"},
            "toolInput": "{\"path\":\"a\",\"old_text\":\"b\",\"new_text\":\"c\"}", "editable": true,
            "_meta": {"toolKind": "search", "risk": {"safety": 0.5, "reason": "writes"}},
            "edits": {"items": [{"before": {"uri": "file:///a", "content": {"uri": "c:1"}},
                "after": {"uri": "file:///a", "content": {"uri": "c:2"}}, "diff": {"added": 1, "removed": 2}}]},
            "options": [{"id": "o", "label": {"markdown": "Once"}, "kind": "approve"}, {"id": "d", "label": "No", "kind": "deny"}],
            "content": [{"type": "text", "text": "out"}, {"type": "fileEdit", "before": {"uri": "file:///a"}},
                {"type": "subagent", "resource": "ahp-chat:/w", "title": "Worker"},
                {"type": "terminal", "resource": "t:/1", "result": {"exitCode": 1, "preview": "x"}},
                {"type": "resource", "uri": "ahp-content:/sha256/0", "contentType": "text/plain", "sizeHint": 3},
                {"type": "embeddedResource", "data": "aGk=", "contentType": "image/png"}],
            "success": false, "pastTenseMessage": "Edited", "error": {"message": "no"}, "reason": "denied",
            "reasonMessage": "why", "userSuggestion": {"text": "else"}, "partialInput": "{\"path\"",
        });
        for (key, value) in fields.as_object().into_iter().flatten() {
            call[key] = value.clone();
        }
        json!({"kind": "toolCall", "toolCall": call})
    };
    let statuses = [
        "streaming",
        "pending-confirmation",
        "running",
        "pending-result-confirmation",
        "auth-required",
        "completed",
        "cancelled",
    ];
    let mut parts: Vec<Value> = statuses.map(|status| call(json!({"status": status}))).to_vec();
    let options =
        json!([{"id": "a", "label": "A", "description": "the first", "recommended": true}]);
    let question = |kind: &str| {
        json!({"id": kind, "kind": kind, "message": "Which?", "title": "T", "min": 1, "max": 9,
        "defaultValue": 2, "options": options, "allowFreeformInput": true})
    };
    let kinds = ["single-select", "multi-select", "text", "integer", "boolean"];
    for kind in kinds {
        let value = json!({"kind": "selected-many", "value": ["a"], "freeformValues": ["b"]});
        let answers = json!({kind: {"state": "submitted", "value": value}});
        parts.push(json!({"kind": "inputRequest", "request": {
            "id": "r", "message": "Tell me", "url": "https://example.org", "questions": [question(kind)], "answers": answers,
        }}));
        let answered = parts.last().cloned().unwrap_or_default();
        parts.push(
            json!({"kind": "inputRequest", "response": "accept", "request": answered["request"]}),
        );
    }
    parts.extend([
        json!({"kind": "systemNotification", "id": "n", "content": {"markdown": "note"}}),
        json!({"kind": "error", "id": "e", "error": {"errorType": "x", "message": "m"}, "resumable": true}),
        json!({"kind": "contentRef", "id": "f", "uri": "c:1", "contentType": "text/plain", "sizeHint": 1}),
        json!({"kind": "markdown", "id": "p", "content": "text"}),
        json!({"kind": "reasoning", "id": "q", "content": "text"}),
    ]);
    parts
}

/// The value with each of its parts left out once, and once replaced by something of every other kind.
fn damaged(value: &Value) -> Vec<Value> {
    let mut all = [json!(null), json!("x"), json!({})].to_vec();
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let mut without = fields.clone();
                without.remove(key);
                all.push(without.into());
                all.extend(damaged(field).into_iter().map(|field| {
                    let mut with = fields.clone();
                    with.insert(key.clone(), field);
                    with.into()
                }));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                all.extend(damaged(item).into_iter().map(|item| {
                    let mut with = items.clone();
                    with[index] = item;
                    with.into()
                }));
            }
        }
        _ => {}
    }
    all
}

fn chat_with(part: &Object) -> ChatState {
    let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
    let message = json!({"text": "hi", "origin": {"kind": "user"}});
    let begin = json!({"turnId": "t", "startedAt": "2026-11-15T08:00:00Z", "message": message});
    let part = json!({"turnId": "t", "part": part});
    for (name, fields) in [("chat/turnStarted", begin), ("chat/responsePart", part)] {
        let action = Action::host(ActionKind::from_name(name), fields);
        reduce_chat(&mut chat, &action);
    }
    chat.status = status::INPUT_NEEDED;
    chat
}

/// Draws it, asks about it and answers by whatever can be chosen; returns how much was drawn.
fn try_part(part: &Object) -> usize {
    let mut drawn = 0;
    for detail in [Detail::Brief, Detail::Whole, Detail::Unfolded] {
        drawn += part_lines(part, Page::of_width(WIDTH), detail).len();
    }
    let mut chat = chat_with(part);
    let references = References::default();
    let view =
        ChatView { page: Page::of_width(WIDTH), references: &references, now: Instant::now() };
    for (_, input) in PendingInput::all_of(&chat) {
        let state = PromptState::default();
        for item in dialog::items(&input, &state) {
            let (mut input, mut state) = (input.clone(), state.clone());
            match item.action {
                PromptAction::OpenField(field) => {
                    dialog::enter_field(&mut input, &mut state, field, "2");
                }
                PromptAction::Edit(_) => {
                    dialog::enter_field(&mut input, &mut state, PromptField::Input, "{}");
                }
                action => drop(dialog::apply(&mut input, &mut state, action)),
            }
        }
    }
    let mut transcript = Transcript::default();
    for _ in 0..2 {
        drawn += transcript.settle(&chat, &view).len();
        drawn += transcript.moving(&chat, Some(part), &view).len();
        drawn += transcript.moving(&chat, None, &view).len();
        drawn += transcript.unfold_last_call(&view).lines.len();
        let end = Action::host(
            ActionKind::from_name("chat/turnComplete"),
            json!({"turnId": "t", "duration": 1}),
        );
        reduce_chat(&mut chat, &end);
    }
    drawn
}

#[test]
fn a_part_that_lacks_anything_is_shown_without_it() {
    let mut tried = 0;
    for whole in parts() {
        let mut all = damaged(&whole);
        all.push(whole);
        for part in all {
            if let Value::Object(part) = part {
                assert!(try_part(&part) > 0, "{part:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
}

#[test]
fn a_message_that_lacks_anything_is_shown_without_it() {
    let message = json!({"text": "hi", "origin": {"kind": "user"}, "model": {"id": "m", "config": {"a": 1}},
        "attachments": [{"type": "resource", "label": "a", "uri": "file:///a"}]});
    for message in damaged(&message) {
        assert!(!message_lines(&message, Style::Plain, WIDTH).is_empty());
    }
}
