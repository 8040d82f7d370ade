//! Tool calls as an agent makes them: its own, and those it asks a client to carry out (G-07, H-196 to H-200).

use agent_api::{ToolReady, ToolResult, ToolStart};
use serde_json::{Value, json};
use wire::ActionKind;
use wire::ChannelUri;
use wire::published::state::{ToolCallClientContributor, ToolCallContributor};

use super::reply::{call_of, fail_call, is_with_client};
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
    if let Some(run) = step.run_mut(uri) {
        run.add_call(number, id.clone(), executor);
    }
    Some(id)
}

/// More of the input of a call.
pub(crate) fn add_input(step: &mut Step, uri: &ChannelUri, turn_id: &str, call: u64, text: String) {
    let fields = json!({"content": text});
    act_on_call(
        step,
        uri,
        turn_id,
        call,
        ActionKind::ChatToolCallDelta,
        fields,
    );
}

/// A call is ready to run, or to be consented to.
pub(crate) fn set_ready(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    call: u64,
    ready: ToolReady,
) {
    let fields = Value::Object(ready.into_object());
    act_on_call(
        step,
        uri,
        turn_id,
        call,
        ActionKind::ChatToolCallReady,
        fields,
    );
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
    act_on_call(
        step,
        uri,
        turn_id,
        call,
        ActionKind::ChatToolCallContentChanged,
        fields,
    );
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
    }
    act_on_call(
        step,
        uri,
        turn_id,
        call,
        ActionKind::ChatToolCallComplete,
        fields,
    );
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

/// A tool that an active client offers: called by whoever started the turn if it has it, else by the first that is connected,
/// else by the first that may come back.
pub(crate) fn call_client(
    step: &mut Step,
    uri: &ChannelUri,
    turn_id: &str,
    (run, number): (RunId, u64),
    tool: &ClientTool,
) {
    let name = &tool.name;
    let offer = find_offer(step, uri, name);
    let contributor = offer.as_ref().map(|offer| {
        ToolCallContributor::Client(ToolCallClientContributor {
            client_id: offer.client_id.clone(),
        })
    });
    let title = offer
        .as_ref()
        .and_then(|offer| offer.tool["title"].as_str());
    let title = title.unwrap_or(name);
    let start = ToolStart {
        name: name.clone(),
        display_name: title.to_owned(),
        contributor,
        ..ToolStart::default()
    };
    let Some(id) = start_call(step, uri, turn_id, number, Executor::Client, start) else {
        return; // the turn ended in an error that says why
    };
    let fields = json!({
        "turnId": turn_id,
        "toolCallId": id,
        "invocationMessage": format!("Running {title}"),
        "toolInput": input_text(&tool.input),
        "confirmed": "not-needed",
    });
    if !record_agent_action(step, uri, ActionKind::ChatToolCallReady, fields) {
        return; // likewise
    }
    if offer.is_none() {
        let why = format!("no client that is active in this session offers `{name}`");
        return fail_call(step, uri, &id, &why);
    }
    let timer = Timer::ClientTool {
        run,
        tool_call_id: id,
    };
    step.wake_in(timer, tool.timeout_ms);
}

/// A client that offers a tool, and its definition of it.
struct ToolOffer {
    client_id: String,
    tool: Value,
}

/// The active client that is to carry out a tool.
fn find_offer(kernel: &Kernel, uri: &ChannelUri, name: &str) -> Option<ToolOffer> {
    let author = kernel.chat(uri).private().author.as_ref();
    let clients = kernel.session_of(uri).state().active_clients.iter();
    let offers = clients.filter_map(|client| {
        let tools = client["tools"].as_array()?;
        let tool = tools.iter().find(|tool| tool["name"] == name)?;
        Some(ToolOffer {
            client_id: client["clientId"].as_str()?.to_owned(),
            tool: tool.clone(),
        })
    });
    offers.min_by_key(|offer| {
        let started_turn = author == Some(&offer.client_id);
        (
            !started_turn,
            !kernel.peers().is_connected(&offer.client_id),
        )
    })
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
