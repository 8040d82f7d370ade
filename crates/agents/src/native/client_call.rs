//! A call of a tool that a client offers: consented to like a command, carried out by the client (G-73).
//!
//! Promises: it runs only if the session's mode, an approval that is remembered, or a person says so.
//! Must not know: which client carries it out.

use agent_api::{AgentEvent, ToolResult, TurnOver};
use serde_json::json;
use wire::published::state::ToolCallConfirmationReason;

use super::answer::{CallAnswer, RequestedCall};
use super::call::parse;
use super::call_events::{CallDecision, ToolContext, ask_for_consent, plan_to_ready, send_ready};
use super::consent::Verdict;
use super::host_call::ask_until_ended;
use super::offered_tools::OfferedClientTool;
use super::rules::{client_subject, offer_rule};
use crate::permission::CallSubject;
use crate::tool::{Plan, ToolEffect};

/// How long a client may take: a task in an editor may build a whole project, or ask its user.
const TIMEOUT_MS: u64 = 30 * 60 * 1_000;

/// Carries out a call; what the model gets of it.
pub(super) async fn run_client_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &OfferedClientTool,
) -> Result<CallAnswer, TurnOver> {
    let subject = client_subject(&tool.name, &call.tool_use.input);
    let plan = Plan { summary: tool.title.clone(), ..Plan::default() };
    if let Err(text) = parse(&call.tool_use.input) {
        return refuse(context, call, &plan, text).await;
    }
    loop {
        match context.verdict(ToolEffect::Runs, &subject).await? {
            Verdict::Refuse(text) => return refuse(context, call, &plan, text).await,
            Verdict::Ask => return run_with_consent(context, call, &plan, &subject).await,
            Verdict::Run => {
                let _exclusive = context.exclusive.lock().await;
                // Looked at again now that the calls before it are done.
                if context.verdict(ToolEffect::Runs, &subject).await? == Verdict::Run {
                    let reason = ToolCallConfirmationReason::Setting;
                    send_ready(context, call, &plan, reason).await?;
                    return await_end(context, call).await;
                }
            }
        }
    }
}

/// The client begins as soon as somebody approves, so the call waits for no other that edits or runs.
async fn run_with_consent(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    plan: &Plan,
    subject: &CallSubject,
) -> Result<CallAnswer, TurnOver> {
    let offered = offer_rule(context, subject, ToolEffect::Runs).await;
    let (edited, scope) = match ask_for_consent(context, call, plan, offered.as_ref()).await? {
        CallDecision::Approved { edited, scope } => (edited, scope),
        CallDecision::Over { text } => return Ok(text.into()),
    };
    let input = edited.as_deref().unwrap_or(&call.tool_use.input);
    let subject = client_subject(&subject.tool, input);
    context.remember(scope, offered.as_ref(), &subject).await?;
    let mut answer = await_end(context, call).await?;
    if let Some(edited) = edited {
        answer.text = format!("The user changed the input to {edited}\n{}", answer.text);
    }
    Ok(answer)
}

/// A call that is not possible: no client gets to see it run, and the model gets the reason.
async fn refuse(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    plan: &Plan,
    text: String,
) -> Result<CallAnswer, TurnOver> {
    let summary = format!("{} failed", plan.summary);
    let content = vec![json!({"type": "text", "text": text})];
    let refused = AgentEvent::ToolRefused {
        call: call.number,
        ready: Box::new(plan_to_ready(call, plan)),
        result: ToolResult::failed(summary.clone(), &summary).with_content(content),
    };
    context.events.send(refused).await?;
    Ok(text.into())
}

async fn await_end(
    context: &ToolContext<'_>,
    call: &RequestedCall,
) -> Result<CallAnswer, TurnOver> {
    let waiting = AgentEvent::ClientToolAwaited { call: call.number, timeout_ms: TIMEOUT_MS };
    ask_until_ended(context, waiting).await
}
