//! May a client act on a tool call: consent to it, review its result, carry it out? The first to confirm wins; whoever comes
//! later, or after the turn, is refused (G-10, H-190).

use serde_json::{Value, json};
use wire::state::ChatState;
use wire::{Action, Object};

use crate::message::not_a_user_message;
use crate::refusal::Refusal;

/// The call an action names, in the turn that runs.
fn call<'a>(state: &'a ChatState, action: &Action) -> Result<&'a Object, Refusal> {
    let turn = state.active_turn.as_ref();
    let turn = turn.filter(|turn| Some(turn.id.as_str()) == action.text("turnId"));
    let Some(turn) = turn else { return Err(Refusal::because("no turn with this id is running")) };
    let wanted = action.text("toolCallId").unwrap_or("");
    find_call(&turn.parts, wanted)
        .ok_or_else(|| Refusal::because("this turn has no tool call with this id"))
}

/// What the `_meta` keys of the host and its agents begin with.
const OWN_KEYS: &str = "greenroom.";

/// A client's action on a call, with the keys of the host as they are: they say which files a call changed and which processes
/// are its own, and files are restored and processes ended by them.
pub(crate) fn keep_own_meta(state: &ChatState, mut action: Action) -> Action {
    if !action.body.contains_key("_meta") {
        return action; // the call's own stays as it is
    }
    let mut meta = match action.body.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Object::new(),
    };
    meta.retain(|key, _| !key.starts_with(OWN_KEYS));
    let call = call(state, &action).ok();
    let own = call
        .and_then(|call| call.get("_meta")?.as_object())
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(OWN_KEYS));
    meta.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    action.body.insert("_meta".to_owned(), Value::Object(meta));
    action
}

pub(super) fn find_call<'a>(parts: &'a wire::state::PartList, id: &str) -> Option<&'a Object> {
    let part = parts.get(id).filter(|part| part.kind() == "toolCall")?;
    part.0.get("toolCall")?.as_object()
}

pub(super) fn status_of(call: &Object) -> &str {
    call.get("status").and_then(Value::as_str).unwrap_or("")
}

pub(crate) fn check_confirmed(state: &ChatState, action: &Action) -> Result<(), Refusal> {
    let call = call(state, action)?;
    if status_of(call) != "pending-confirmation" {
        return Err(Refusal::because("this tool call waits for no confirmation")); // H-190
    }
    let approved = action.flag("approved") == Some(true);
    if let Some(chosen) = action.text("selectedOptionId") {
        let options = call.get("options").and_then(Value::as_array).into_iter();
        let option =
            options.flat_map(|options| options.iter()).find(|option| option["id"] == chosen);
        let Some(option) = option else {
            return Err(Refusal::because("no option has this id")); // H-194
        };
        let kind = if approved { "approve" } else { "deny" };
        if option["kind"] != kind {
            return Err(Refusal::because("this option does not mean what `approved` says"));
        }
    }
    if action.present("editedToolInput").is_some() {
        let editable = call.get("editable") == Some(&Value::Bool(true));
        let inline = call.get("toolInput").is_some_and(Value::is_string);
        if !approved || !editable || !inline {
            return Err(Refusal::because("the input of this tool call cannot be edited")); // H-195
        }
    }
    if let Some(suggestion) = action.present("userSuggestion")
        && suggestion["origin"]["kind"] != "user"
    {
        return Err(not_a_user_message());
    }
    Ok(())
}

pub(crate) fn check_result_confirmed(state: &ChatState, action: &Action) -> Result<(), Refusal> {
    let call = call(state, action)?;
    if status_of(call) != "pending-result-confirmation" {
        return Err(Refusal::because("no result of this tool call waits to be confirmed"));
    }
    Ok(())
}

/// Only the client that offers a tool may say how it went (H-197), except that anybody may give up a call that waits
/// for authentication (H-203).
pub(crate) fn check_complete(
    state: &ChatState,
    action: &Action,
    client_id: &str,
) -> Result<(), Refusal> {
    let call = call(state, action)?;
    let failed = action.get("result").map(|result| &result["success"]) == Some(&json!(false));
    match status_of(call) {
        "auth-required" if failed => Ok(()),
        "auth-required" => Err(Refusal::because(
            "a call that waits for authentication can only be completed as failed",
        )),
        "running" | "pending-confirmation" => check_owner(call, client_id),
        _ => Err(Refusal::because("this tool call is not running")),
    }
}

pub(crate) fn check_content(
    state: &ChatState,
    action: &Action,
    client_id: &str,
) -> Result<(), Refusal> {
    let call = call(state, action)?;
    check_owner(call, client_id)?;
    if status_of(call) != "running" {
        return Err(Refusal::because("this tool call is not running")); // H-206
    }
    Ok(())
}

fn check_owner(call: &Object, client_id: &str) -> Result<(), Refusal> {
    let contributor = call.get("contributor");
    let owner = contributor.filter(|contributor| contributor["kind"] == "client");
    match owner.and_then(|owner| owner["clientId"].as_str()) {
        Some(owner) if owner == client_id => Ok(()),
        Some(_) => Err(Refusal::because("another client carries out this tool call")),
        None => Err(Refusal::because("the host carries out this tool call")),
    }
}
