//! What clients do to tool calls: consent to them, review their results, carry out their own.

use agent_api::{AgentReply, ToolResult};
use wire::reduce::Reduced;
use wire::{Action, ChannelUri};

use super::check::status_of;
use super::reply::{call_of, reply_to_call, report_if_over, result_of};
use crate::channels::Executor;
use crate::state::{Sender, Step};

/// A client decides whether a call may run.
pub(crate) fn confirm_call(step: &mut Step, uri: &ChannelUri, action: Action, sender: &Sender) {
    let id = action.text("toolCallId").unwrap_or("").to_owned();
    let approved = action.flag("approved") == Some(true);
    let (suggestion, reason) =
        (action.present("userSuggestion").cloned(), action.present("reasonMessage").cloned());
    if step.act(uri, action, Some(sender)) == Reduced::Unchanged {
        return; // the sender was answered
    }
    let call = call_of(step, uri, &id);
    debug_assert!(
        call.is_some_and(|call| status_of(call) != "pending-confirmation"),
        "a call is decided on once"
    );
    let input = call.and_then(|call| call.get("toolInput")?.as_str()).map(str::to_owned);
    let selected_option = call.and_then(|call| call.get("selectedOption")).cloned();
    reply_to_call(step, uri, &id, |call, _| AgentReply::ToolDecided {
        call,
        approved,
        input,
        selected_option,
        suggestion,
        reason,
    });
}

/// A client decides whether the agent may see a result.
pub(crate) fn confirm_result(step: &mut Step, uri: &ChannelUri, action: Action, sender: &Sender) {
    let id = action.text("toolCallId").unwrap_or("").to_owned();
    let approved = action.flag("approved") == Some(true);
    if step.act(uri, action, Some(sender)) == Reduced::Unchanged {
        return; // the sender was answered
    }
    let result = if approved { result_of(step, uri, &id).unwrap_or_else(denied) } else { denied() };
    reply_to_call(step, uri, &id, |call, executor| match executor {
        Executor::Client | Executor::Worker(_) => AgentReply::ToolEnded { call, result },
        Executor::Agent => AgentReply::ResultDecided { call, approved },
    });
}

/// A client carried out its tool, or somebody gave up a call that waited for authentication.
pub(crate) fn complete_call(step: &mut Step, uri: &ChannelUri, action: Action, sender: &Sender) {
    let id = action.text("toolCallId").unwrap_or("").to_owned();
    if step.act(uri, action, Some(sender)) == Reduced::Changed {
        report_if_over(step, uri, &id);
    }
}

pub(super) fn denied() -> ToolResult {
    ToolResult::failed("Denied by the user", "denied by the user")
}
