//! Tool calls as an agent makes them.

use agent_api::{RecordedEdit, ToolExecutor, ToolReady, ToolResult, ToolStart};
use serde_json::{Value, json};
use wire::{ActionKind, ChannelUri, Object};

use super::check::{find_call, status_of};
use super::offer::find_offer;
use super::reply::call_of;
use crate::agent_action::record_agent_action;
use crate::channels::Executor;
use crate::io::Effect;
use crate::state::Step;
use crate::turn::end::end_without_agent;

/// Announces a call; its id comes from the seq that creates it (G-26). `None` if no client could read it.
pub(crate) fn start_call(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    number: u64,
    executor: Executor,
    start: ToolStart,
) -> Option<String> {
    let id = format!("c{}", step.seq().0 + 1);
    let fields = json!({
        "turnId": turn_id,
        "toolCallId": id,
        "toolName": start.name,
        "displayName": start.display_name,
        "intention": start.intention,
        "contributor": start.contributor,
        "_meta": start.meta,
    });
    if !record_agent_action(step, uri, ActionKind::ChatToolCallStart, fields) {
        return None;
    }
    debug_assert_eq!(id, format!("c{}", step.seq().0), "no other has this id");
    if let Some(run) = step.run_mut(uri) {
        run.add_call(number, id.clone(), executor);
        let named = Effect::CallNamed { run: run.id(), call: number, id: id.clone() };
        step.effect(named);
    }
    Some(id)
}

/// The agent starts a call that it carries out itself, or that a client is to carry out (H-196).
pub(crate) fn start(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    number: u64,
    mut start: ToolStart,
) {
    let executor = match start.executor {
        ToolExecutor::Agent => Executor::Agent,
        ToolExecutor::Client => {
            let offer = find_offer(step, uri, &start.name);
            start.contributor = offer.map(|offer| offer.contributor());
            Executor::Client
        }
    };
    start_call(step, uri, turn_id, number, executor, start);
}

/// More of the input of a call.
pub(crate) fn add_input(step: &mut Step, uri: &ChannelUri, turn_id: &str, call: u64, text: String) {
    let fields = json!({"content": text});
    act_on_call(step, uri, turn_id, call, ActionKind::ChatToolCallDelta, fields);
}

/// What people decide about: while they do, it stays as it is.
const DECIDED_ON: [&str; 2] = ["toolInput", "edits"];

/// A call is ready to run, or to be consented to. What is said of one that waits for consent may say more of it, but not that
/// it is another call: a yes may be on its way to the one that was seen.
pub(crate) fn set_ready(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    ready: ToolReady,
) {
    if changes_what_is_decided_on(step, uri, call, &ready) {
        let message =
            "the agent changed a call while it was asked about; what was asked about was not run";
        return end_without_agent(step, uri, "callChanged", message);
    }
    if ready.confirmed.is_none()
        && let Some(run) = step.run_mut(uri)
    {
        run.await_call(call);
    }
    let fields = Value::Object(ready.into_object());
    act_on_call(step, uri, turn_id, call, ActionKind::ChatToolCallReady, fields);
}

/// Whether a call waits for consent, and would be another one by this.
fn changes_what_is_decided_on(
    step: &Step,
    uri: &ChannelUri,
    number: u64,
    ready: &ToolReady,
) -> bool {
    let run = step.chat(uri).run();
    let id = run.and_then(|run| run.call_id(number));
    let asked = id.and_then(|id| call_of(step, uri, id));
    let Some(asked) = asked.filter(|call| status_of(call) == "pending-confirmation") else {
        return false; // nobody decides about it
    };
    let fields = ready.clone().into_object();
    let is_other =
        |field: &&str| fields.get(*field).is_some_and(|it| asked.get(*field) != Some(it));
    DECIDED_ON.iter().any(is_other)
}

/// The agent does not ask any more whether a call may run: it is skipped, as by the end of its turn. One that was decided on stays so.
pub(crate) fn withdraw_confirmation(step: &mut Step, uri: &ChannelUri, turn_id: &str, call: u64) {
    let run = step.chat(uri).run();
    let Some(id) = run.and_then(|run| run.call_id(call)).map(str::to_owned) else {
        return; // a number that the agent never started means nothing
    };
    let waits = |call: &Object| status_of(call) == "pending-confirmation";
    if !call_of(step, uri, &id).is_some_and(waits) {
        return; // somebody was faster
    }
    if let Some(run) = step.run_mut(uri) {
        run.take_awaited(&id); // the agent completes it itself: no reply follows
    }
    let fields = json!({
        "turnId": turn_id,
        "toolCallId": id,
        "approved": false,
        "reason": "skipped",
    });
    step.act_as_host(uri, ActionKind::ChatToolCallConfirmed, fields);
}

/// A call that is not carried out. Nobody can confirm it between the two actions of this step.
pub(crate) fn refuse(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    ready: ToolReady,
    result: ToolResult,
) {
    let ready = ToolReady { confirmed: None, ..ready };
    let fields = Value::Object(ready.into_object());
    let kind = ActionKind::ChatToolCallReady;
    act_on_call(step, uri, turn_id, call, kind, fields);
    complete(step, uri, turn_id, call, result, false);
}

/// The output of a call so far.
pub(crate) fn set_content(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    content: Vec<Value>,
) {
    let fields = json!({"content": content});
    act_on_call(step, uri, turn_id, call, ActionKind::ChatToolCallContentChanged, fields);
}

/// What a running call is about to do to files: it stays with the call however that ends.
pub(crate) fn record_edits(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    edits: &[RecordedEdit],
) {
    let chat = step.chat(uri);
    let id = chat.run().and_then(|run| run.call_id(call));
    let turn = chat.state().active_turn.as_ref();
    let found = turn.zip(id).and_then(|(turn, id)| find_call(&turn.parts, id));
    let Some(found) = found else {
        return; // a number that the agent never started means nothing
    };
    let edits: Vec<Value> = edits.iter().map(RecordedEdit::to_value).collect();
    let mut meta = found.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
    meta.insert(wire::meta::EDITS.to_owned(), Value::Array(edits));
    let content = found.get("content").cloned().unwrap_or_else(|| json!([]));
    let fields = json!({"content": content, "_meta": meta});
    let kind = ActionKind::ChatToolCallContentChanged;
    act_on_call(step, uri, turn_id, call, kind, fields);
}

/// A running call waits for a token (H-201). Somebody may give it up meanwhile: then its agent hears of it.
pub(crate) fn require_auth(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    auth: &Value,
) {
    if let Some(run) = step.run_mut(uri) {
        run.await_call(call);
    }
    let fields = json!({"auth": auth});
    let kind = ActionKind::ChatToolCallAuthRequired;
    act_on_call(step, uri, turn_id, call, kind, fields);
}

/// A call that waited for a token goes on (H-202). One that was given up stays so.
pub(crate) fn resolve_auth(step: &mut Step, uri: &ChannelUri, turn_id: &str, call: u64) {
    let run = step.chat(uri).run();
    let Some(id) = run.and_then(|run| run.call_id(call)).map(str::to_owned) else {
        return; // it was given up, and is not the agent's any more
    };
    if let Some(run) = step.run_mut(uri) {
        run.take_awaited(&id); // it does not wait any more
    }
    let kind = ActionKind::ChatToolCallAuthResolved;
    act_on_call(step, uri, turn_id, call, kind, json!({}));
}

/// A call of the agent's own is over.
pub(crate) fn complete(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    result: ToolResult,
    review: bool,
) {
    let mut fields = json!({"result": result.into_object()});
    if review {
        fields["requiresResultConfirmation"] = json!(true);
        if let Some(run) = step.run_mut(uri) {
            run.await_call(call);
        }
    }
    act_on_call(step, uri, turn_id, call, ActionKind::ChatToolCallComplete, fields);
}

/// An action on a call the agent names by its number. A number it never started means nothing.
fn act_on_call(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    number: u64,
    kind: ActionKind,
    mut fields: Value,
) {
    let run = step.chat(uri).run();
    if let Some(id) = run.and_then(|run| run.call_id(number)) {
        fields["turnId"] = json!(turn_id);
        fields["toolCallId"] = json!(id);
        record_agent_action(step, uri, kind, fields);
    }
}
