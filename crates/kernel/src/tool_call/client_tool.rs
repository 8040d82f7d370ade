//! Tool calls that a client carries out for an agent: how the agent makes them and waits for their end (G-07, H-196 to
//! H-200).

use agent_api::{AgentReply, ToolStart};
use serde_json::{Value, json};
use wire::ActionKind;
use wire::ChannelUri;

use super::agent::start_call;
use super::check::status_of;
use super::client::denied;
use super::offer::{ToolOffer, find_offer};
use super::reply::{call_of, fail_call, is_with_client, reply_to_call, report_if_over};
use crate::agent_action::record_agent_action;
use crate::channels::Executor;
use crate::io::{RunId, Timer};
use crate::state::{Kernel, Step};

/// A tool that an agent wants a client to carry out.
pub(crate) struct ClientTool {
    pub name: String,
    pub input: Value,
    pub timeout_ms: u64,
}

/// A tool that an active client offers: called by whoever started the turn if it has it, else by the first that is connected,
/// else by the first that may come back.
pub(crate) fn call_client(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    run: RunId,
    number: u64,
    tool: &ClientTool,
) {
    let name = &tool.name;
    let offer = find_offer(step, uri, name);
    let contributor = offer.as_ref().map(ToolOffer::contributor);
    let title = offer.as_ref().and_then(|offer| offer.title()).unwrap_or(name).to_owned();
    let is_offered = offer.is_some();
    let start = ToolStart {
        name: name.clone(),
        display_name: title.clone(),
        contributor,
        ..ToolStart::default()
    };
    let Some(id) = start_call(step, uri, turn_id, number, Executor::Client, start) else {
        return; // the turn ended in an error that says why
    };
    if let Some(run) = step.run_mut(uri) {
        run.await_call(number);
    }
    let fields = json!({
        "turnId": turn_id,
        "toolCallId": id,
        "invocationMessage": format!("Running {title}"),
        "toolInput": input_text(&tool.input),
        "confirmed": "not-needed",
    });
    if !record_agent_action(step, uri, ActionKind::ChatToolCallReady, fields) {
        return; // likewise: the turn ended in an error
    }
    if !is_offered {
        let why = format!("no client that is active in this session offers `{name}`");
        return fail_call(step, uri, &id, &why);
    }
    let timer = Timer::ClientTool { run, tool_call_id: id };
    step.wake_in(timer, tool.timeout_ms);
}

/// The agent waits for the end of a call that a client carries out. It may be over already: the client is quick, or left.
pub(crate) fn await_client(
    step: &mut Step,
    uri: &ChannelUri,
    run: RunId,
    number: u64,
    timeout_ms: u64,
) {
    let Some(run_state) = step.run_mut(uri) else {
        return; // the turn is over
    };
    let Some(id) = run_state.call_id(number).map(str::to_owned) else {
        debug_assert!(false, "a call is started before it is waited for");
        return;
    };
    run_state.await_call(number);
    let Some(call) = call_of(step, uri, &id) else {
        debug_assert!(false, "a call of a run is in its turn");
        return;
    };
    match status_of(call) {
        "completed" => report_if_over(step, uri, &id),
        // Its result was reviewed, and is not to be used.
        "cancelled" => {
            reply_to_call(step, uri, &id, |call, _| AgentReply::ToolEnded {
                call,
                result: denied(),
            });
        }
        "pending-result-confirmation" => {} // whoever reviews it ends it
        _ if is_with_active_client(step, uri, &id) => {
            let timer = Timer::ClientTool { run, tool_call_id: id };
            step.wake_in(timer, timeout_ms);
        }
        _ => {
            let why = "no client that is active in this session offers this tool any more";
            fail_call(step, uri, &id, why);
        }
    }
}

/// Whether the client that is to carry out a call is still active.
fn is_with_active_client(kernel: &Kernel, uri: &ChannelUri, id: &str) -> bool {
    let call = call_of(kernel, uri, id).filter(|call| is_with_client(call, None));
    let client_id = call.and_then(|call| call.get("contributor")?["clientId"].as_str());
    let session = kernel.chat(uri).session();
    client_id.is_some_and(|client_id| kernel.active_clients().is_active(client_id, session))
}

/// A client had its time to carry out a tool.
pub(crate) fn time_out_client_tool(step: &mut Step, run: RunId, id: &str) {
    let Some(uri) = step.runs().chat_of(run).cloned() else {
        return; // the turn is over
    };
    let waits = call_of(step, &uri, id).is_some_and(|call| is_with_client(call, None));
    if waits {
        fail_call(step, &uri, id, "the client did not answer in time"); // H-198
    }
}

/// Inputs travel as text; one that is text already stays what it is.
fn input_text(input: &Value) -> String {
    match input {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
