//! Replies to an agent about its tool calls: decisions, and results of calls that a client carried out.

use agent_api::{AgentReply, ToolResult};
use serde_json::{Value, json};
use wire::ActionKind;
use wire::{ChannelUri, Object};

use super::check::{find_call, status_of};
use crate::channels::Executor;
use crate::io::Effect;
use crate::state::{Kernel, Step};

/// A tool call of the active turn.
pub(crate) fn call_of<'a>(kernel: &'a Kernel, uri: &ChannelUri, id: &str) -> Option<&'a Object> {
    let turn = kernel.find_chat(uri)?.state().active_turn.as_ref()?;
    find_call(&turn.parts, id)
}

/// The `ToolCallResult` of a completed call.
pub(super) fn result_of(kernel: &Kernel, uri: &ChannelUri, id: &str) -> Option<ToolResult> {
    let call = call_of(kernel, uri, id)?;
    if status_of(call) != "completed" {
        return None;
    }
    let fields = ["success", "pastTenseMessage", "content", "structuredContent", "error"];
    let result =
        fields.into_iter().filter_map(|field| Some((field.to_owned(), call.get(field)?.clone())));
    let result = ToolResult::from_object(result.collect());
    debug_assert!(result.is_ok(), "what is recorded was readable");
    result.ok()
}

/// Sends a reply to the run that made a call, and waits to hear of it. A run that is gone, or that the call does not belong
/// to, hears nothing; one that does not wait yet is answered when it does. Whether it was answered.
pub(super) fn reply_to_call(
    step: &mut Step,
    uri: &ChannelUri,
    id: &str,
    reply: impl FnOnce(u64, &Executor) -> AgentReply,
) -> bool {
    let Some(run) = step.run_mut(uri) else {
        return false; // the turn is over
    };
    let Some((number, executor)) = run.take_awaited(id) else {
        return false; // it does not wait, or not yet
    };
    let (run, reply) = (run.id(), reply(number, &executor));
    step.effect(Effect::Reply { run, reply });
    true
}

/// Reports to the agent how a call ended that somebody else carried out, unless its result is still to be reviewed.
pub(crate) fn report_if_over(step: &mut Step, uri: &ChannelUri, id: &str) {
    let Some(result) = result_of(step, uri, id) else {
        return; // the call is still under way, or its result waits for review
    };
    let answered = reply_to_call(step, uri, id, |call, _| AgentReply::ToolEnded { call, result });
    // Whoever carried it out has nothing to do with this turn any more.
    if answered && let Some(run) = step.run_mut(uri) {
        run.remove_call(id);
    }
}

/// A call that a client was to carry out fails, and the agent gets the reason.
pub(crate) fn fail_call(step: &mut Step, uri: &ChannelUri, id: &str, why: &str) {
    let Some(turn_id) = step.active_turn_id(uri) else {
        return; // the turn ended, and its calls with it
    };
    let mut result = json!({
        "success": false,
        "pastTenseMessage": why,
        "error": {"message": why},
    });
    // What it had shown so far stays: of a worker, that is its chat (H-152).
    if let Some(content) = call_of(step, uri, id).and_then(|call| call.get("content")) {
        result["content"] = content.clone();
    }
    let fields = json!({"turnId": turn_id, "toolCallId": id, "result": result});
    if step.act_as_host(uri, ActionKind::ChatToolCallComplete, fields) {
        report_if_over(step, uri, id);
    }
}

/// A client is not active in a session any more: what it was carrying out there comes to nothing (H-126).
pub(crate) fn fail_calls_of_client(step: &mut Step, session: &ChannelUri, client_id: &str) {
    for chat in step.channels().chats_in_memory(session) {
        let turn = step.chat(&chat).state().active_turn.as_ref();
        let parts = turn.into_iter().flat_map(|turn| turn.parts.iter());
        let calls: Vec<String> = parts
            .filter_map(|part| {
                let call = part.0.get("toolCall")?.as_object()?;
                let id = call.get("toolCallId")?.as_str()?;
                is_with_client(call, Some(client_id)).then(|| id.to_owned())
            })
            .collect();
        for id in calls {
            let why = "the client that offers this tool has left";
            fail_call(step, &chat, &id, why);
        }
    }
}

/// Whether a client, or this one, has a call to carry out.
pub(super) fn is_with_client(call: &Object, client_id: Option<&str>) -> bool {
    let status = call.get("status").and_then(Value::as_str);
    let contributor = call.get("contributor");
    contributor.is_some_and(|contributor| {
        matches!(status, Some("running" | "pending-confirmation"))
            && contributor["kind"] == "client"
            && client_id.is_none_or(|wanted| contributor["clientId"] == wanted)
    })
}
