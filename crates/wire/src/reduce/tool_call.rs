//! Tool calls: the state machine of docs/rules/protocol.md, Tool calls.
//!
//! A call is its JSON object; its `status` says the state. A step carries what belongs to the call, drops what belongs
//! to the state it leaves, and preserves unknown fields. A step that its state does not allow does nothing.

use serde_json::{Value, json};

use super::chat::{active, refresh_status};
use super::{Reduced, present, set, set_field};
use crate::state::{ChatState, ResponsePart};
use crate::{Action, Object};

/// Fields that belong to some states only: a step drops them unless it carries them.
const STATE_FIELDS: [&str; 17] = [
    "partialInput",
    "confirmationTitle",
    "riskAssessment",
    "edits",
    "editable",
    "options",
    "confirmed",
    "selectedOption",
    "auth",
    "content",
    "success",
    "pastTenseMessage",
    "structuredContent",
    "error",
    "reason",
    "reasonMessage",
    "userSuggestion",
];

/// What a call keeps that is or was about to run.
const RUN_FIELDS: [&str; 3] = ["confirmed", "selectedOption", "content"];

/// What is shown while a confirmation waits.
const CONFIRMATION_FIELDS: [&str; 5] =
    ["confirmationTitle", "riskAssessment", "edits", "editable", "options"];

fn status_of(call: &Object) -> &str {
    call.get("status").and_then(Value::as_str).unwrap_or("")
}

/// Whether a part is a call that waits for someone.
pub(super) fn is_blocking(part: &ResponsePart) -> bool {
    let call = part.0.get("toolCall").and_then(Value::as_object);
    part.kind() == "toolCall"
        && matches!(
            call.map(status_of),
            Some("pending-confirmation" | "pending-result-confirmation" | "auth-required")
        )
}

/// The call an action names, in constant time unless a text part has taken its id first.
fn find<'a>(state: &'a mut ChatState, action: &Action) -> Option<&'a mut Object> {
    let id = action.text("toolCallId")?;
    let parts = &mut active(state, action)?.parts;
    let is_call = |part: &ResponsePart| part.kind() == "toolCall";
    let part = if is_call(parts.get(id)?) {
        parts.get_mut(id)
    } else {
        parts.find_mut(|part| is_call(part) && part.address() == Some(id))
    };
    part?.0.get_mut("toolCall")?.as_object_mut()
}

pub(super) fn make_ready(state: &mut ChatState, action: &Action) -> Reduced {
    step(state, action, after_ready)
}

pub(super) fn confirm(state: &mut ChatState, action: &Action) -> Reduced {
    step(state, action, after_confirmation)
}

pub(super) fn complete(state: &mut ChatState, action: &Action) -> Reduced {
    step(state, action, after_result)
}

pub(super) fn confirm_result(state: &mut ChatState, action: &Action) -> Reduced {
    step(state, action, after_result_confirmation)
}

pub(super) fn require_auth(state: &mut ChatState, action: &Action) -> Reduced {
    step(state, action, awaiting_auth)
}

pub(super) fn resolve_auth(state: &mut ChatState, action: &Action) -> Reduced {
    step(state, action, after_auth)
}

/// Takes a step if the call's state allows it, and updates the status of the chat, which says who waits for whom.
fn step(
    state: &mut ChatState,
    action: &Action,
    next: fn(&Object, &Action) -> Option<Object>,
) -> Reduced {
    let Some(call) = find(state, action) else { return Reduced::Unchanged };
    let stepped = match next(call, action) {
        Some(next) => set(call, next),
        None => Reduced::Unchanged,
    };
    stepped | refresh_status(state)
}

/// The call in another state: without what belongs to a state, except what is carried.
fn enter(call: &Object, status: &str, carried: &[&str]) -> Object {
    let stays = |field: &str| !STATE_FIELDS.contains(&field) || carried.contains(&field);
    let common = call.iter().filter(|(field, _)| stays(field));
    let mut next: Object = common.map(|(field, value)| (field.clone(), value.clone())).collect();
    next.insert("status".to_owned(), json!(status));
    next
}

/// Copies the fields that an action has.
fn copy_fields(next: &mut Object, from: &Object, fields: &[&str]) {
    for field in fields {
        if let Some(value) = present(from, field) {
            next.insert((*field).to_owned(), value.clone());
        }
    }
}

pub(super) fn start(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(turn) = active(state, action) else { return Reduced::Unchanged };
    let mut call = Object::new();
    call.insert("status".to_owned(), json!("streaming"));
    copy_fields(
        &mut call,
        &action.body,
        &["toolCallId", "toolName", "displayName", "intention", "contributor", "_meta"],
    );
    let mut part = Object::new();
    part.insert("kind".to_owned(), json!("toolCall"));
    part.insert("toolCall".to_owned(), Value::Object(call));
    turn.parts.push(ResponsePart(part));
    Reduced::Changed
}

/// More of the input, in place.
pub(super) fn append_input(state: &mut ChatState, action: &Action) -> Reduced {
    let Some(call) = find(state, action).filter(|call| status_of(call) == "streaming") else {
        return Reduced::Unchanged;
    };
    let mut reduced = Reduced::Unchanged;
    if let Some(content) = action.text("content") {
        match call.get_mut("partialInput") {
            Some(Value::String(_)) if content.is_empty() => {}
            Some(Value::String(input)) => {
                input.push_str(content);
                reduced = Reduced::Changed;
            }
            _ => reduced = set_field(call, "partialInput", action.get("content")),
        }
    }
    for field in ["_meta", "invocationMessage"] {
        if let Some(value) = action.present(field) {
            reduced = reduced | set_field(call, field, Some(value));
        }
    }
    reduced
}

/// The input is complete: run, or ask first. While asking, what is not sent again stays (H-192, H-205).
fn after_ready(call: &Object, action: &Action) -> Option<Object> {
    let from = status_of(call);
    if !matches!(from, "streaming" | "running" | "pending-confirmation") {
        return None;
    }
    let carried: &[&str] = if from == "pending-confirmation" { &CONFIRMATION_FIELDS } else { &[] };
    let mut next = match action.present("confirmed") {
        Some(reason) => {
            let mut next = enter(call, "running", &[]);
            next.insert("confirmed".to_owned(), reason.clone());
            next
        }
        None => {
            let mut next = enter(call, "pending-confirmation", carried);
            copy_fields(&mut next, &action.body, &CONFIRMATION_FIELDS);
            next
        }
    };
    if from == "streaming" {
        next.shift_remove("toolInput"); // a streaming call has only a partial one
    }
    copy_fields(&mut next, &action.body, &["invocationMessage", "intention", "toolInput", "_meta"]);
    let contributor =
        refine_contributor(present(call, "contributor"), action.present("contributor"));
    let _ = set_field(&mut next, "contributor", contributor);
    Some(next)
}

fn client_of(contributor: &Value) -> Option<&str> {
    if contributor["kind"] == "client" { contributor["clientId"].as_str() } else { None }
}

/// A contributor may be described in more detail, but who executes never changes (H-193).
fn refine_contributor<'a>(
    current: Option<&'a Value>,
    next: Option<&'a Value>,
) -> Option<&'a Value> {
    let executes = current.and_then(client_of);
    match next {
        Some(next) if client_of(next) == executes => Some(next),
        Some(_) | None => current,
    }
}

/// Approved: it runs, with edited input if there was inline input to edit (H-195). Denied: it is over.
fn after_confirmation(call: &Object, action: &Action) -> Option<Object> {
    if status_of(call) != "pending-confirmation" {
        return None;
    }
    let mut next = if action.flag("approved")? {
        let mut next = enter(call, "running", &[]);
        let reason = action.present("confirmed").cloned().unwrap_or_else(|| json!("not-needed"));
        next.insert("confirmed".to_owned(), reason);
        if let (Some(Value::String(_)), Some(edited)) =
            (next.get("toolInput"), action.present("editedToolInput"))
        {
            next.insert("toolInput".to_owned(), edited.clone());
        }
        next
    } else {
        let mut next = enter(call, "cancelled", &[]);
        let reason = action.present("reason").cloned().unwrap_or_else(|| json!("denied"));
        next.insert("reason".to_owned(), reason);
        copy_fields(&mut next, &action.body, &["reasonMessage", "userSuggestion"]);
        next
    };
    let chosen = action.text("selectedOptionId");
    let options = call.get("options").and_then(Value::as_array);
    let option = options.and_then(|options| {
        options.iter().find(|option| chosen.is_some() && option["id"].as_str() == chosen)
    });
    let _ = set_field(&mut next, "selectedOption", option);
    copy_fields(&mut next, &action.body, &["_meta"]);
    Some(next)
}

/// The result. In `auth-required` only a failure ends the call, and it ends it for good (H-203).
fn after_result(call: &Object, action: &Action) -> Option<Object> {
    let Some(Value::Object(result)) = action.get("result") else { return None };
    let carried: &[&str] = match status_of(call) {
        "running" => &["confirmed", "selectedOption"],
        "pending-confirmation" => &[],
        "auth-required" if result.get("success") == Some(&Value::Bool(false)) => &RUN_FIELDS,
        _ => return None,
    };
    let reviewed = action.flag("requiresResultConfirmation") == Some(true)
        && status_of(call) != "auth-required";
    let status = if reviewed { "pending-result-confirmation" } else { "completed" };
    let mut next = enter(call, status, carried);
    next.entry("confirmed").or_insert_with(|| json!("not-needed"));
    copy_fields(
        &mut next,
        result,
        &["success", "pastTenseMessage", "content", "structuredContent", "error"],
    );
    copy_fields(&mut next, &action.body, &["_meta"]);
    Some(next)
}

fn after_result_confirmation(call: &Object, action: &Action) -> Option<Object> {
    if status_of(call) != "pending-result-confirmation" {
        return None;
    }
    let mut next = if action.flag("approved")? {
        enter(call, "completed", &STATE_FIELDS)
    } else {
        let mut next = enter(call, "cancelled", &["selectedOption"]);
        next.insert("reason".to_owned(), json!("result-denied"));
        next
    };
    copy_fields(&mut next, &action.body, &["_meta"]);
    Some(next)
}

/// Output so far, replaced whole, only while the call runs (H-206).
pub(super) fn set_content(state: &mut ChatState, action: &Action) -> Reduced {
    let call = find(state, action).filter(|call| status_of(call) == "running");
    let (Some(call), Some(content)) = (call, action.present("content")) else {
        return Reduced::Unchanged;
    };
    let meta = match action.present("_meta") {
        Some(meta) => set_field(call, "_meta", Some(meta)),
        None => Reduced::Unchanged,
    };
    meta | set_field(call, "content", Some(content))
}

/// An MCP server needs another token to continue. Only calls of MCP servers can need one (H-201).
fn awaiting_auth(call: &Object, action: &Action) -> Option<Object> {
    let contributor = present(call, "contributor")?;
    let is_mcp = contributor["kind"] == "mcp" && contributor["customizationId"].is_string();
    if status_of(call) != "running" || !is_mcp {
        return None;
    }
    let mut next = enter(call, "auth-required", &RUN_FIELDS);
    copy_fields(&mut next, &action.body, &["auth", "_meta"]);
    Some(next)
}

fn after_auth(call: &Object, action: &Action) -> Option<Object> {
    if status_of(call) != "auth-required" {
        return None;
    }
    let mut next = enter(call, "running", &RUN_FIELDS);
    copy_fields(&mut next, &action.body, &["_meta"]);
    Some(next)
}

/// The call as it is left behind by a turn that ends before it; nothing if it is over already (H-174).
pub(super) fn skip(call: &Object) -> Option<Object> {
    let from = status_of(call);
    if matches!(from, "completed" | "cancelled") {
        return None;
    }
    let mut next = enter(call, "cancelled", &[]);
    if from == "streaming" {
        next.shift_remove("toolInput");
    }
    if present(&next, "invocationMessage").is_none() {
        next.insert("invocationMessage".to_owned(), json!(""));
    }
    next.insert("reason".to_owned(), json!("skipped"));
    Some(next)
}
