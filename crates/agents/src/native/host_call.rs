//! Calls that the host carries out for a tool: a question to the user, and a worker in a chat of its own.
//!
//! Promises: a cancelled question is told to the model; a worker is asked of models that there are alone.
//! Must not know: how questions are shown, and what a worker does.

use agent_api::{AgentEvent, AgentReply, InputRequest, TurnOver, Worker};
use serde_json::Value;
use wire::published::state::ToolCallConfirmationReason;

use super::answer::{CallAnswer, RequestedCall};
use super::call::refuse_call;
use super::call_events::{CallOutcome, ToolContext, complete_call, send_ready};
use super::history::{media_of_result, text_of_result};
use crate::tool::{HostTask, Plan, Tool, ToolError, describe_answers};

/// Carries out a call that was planned; what the model gets of it.
pub(super) async fn run_host_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    (tool, input): (&dyn Tool, &Value),
    plan: &Plan,
    request: Result<HostTask, ToolError>,
) -> Result<CallAnswer, TurnOver> {
    match request {
        Ok(HostTask::Question(request)) => ask(context, call, (tool, input), plan, request).await,
        Ok(HostTask::Worker(worker)) => delegate(context, call, tool, plan, worker).await,
        Err(ToolError(text)) => refuse_call(context, call, tool.display_name(), text).await,
    }
}

async fn ask(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    (tool, input): (&dyn Tool, &Value),
    plan: &Plan,
    request: InputRequest,
) -> Result<CallAnswer, TurnOver> {
    send_ready(context, call, plan, ToolCallConfirmationReason::NotNeeded).await?;
    let question = AgentEvent::InputRequested {
        ask: call.number,
        request,
    };
    let AgentReply::Answered {
        response, answers, ..
    } = context.events.ask(question).await?
    else {
        return Err(TurnOver); // replies are routed by what they answer
    };
    let outcome = match describe_answers(input, &response, &answers) {
        Ok(outcome) => CallOutcome::from(outcome),
        Err(ToolError(text)) => CallOutcome::failed(tool.display_name(), text),
    };
    complete_call(context, call, outcome).await
}

async fn delegate(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &dyn Tool,
    plan: &Plan,
    worker: Box<Worker>,
) -> Result<CallAnswer, TurnOver> {
    let models = &context.shared.models;
    let wanted = worker.model.as_ref().and_then(|model| model["id"].as_str());
    if let Some(id) = wanted
        && models.find(id).is_none()
    {
        let known = models.ids().join(", ");
        let text = format!("There is no model `{id}`. There are: {known}.");
        return refuse_call(context, call, tool.display_name(), text).await;
    }
    send_ready(context, call, plan, ToolCallConfirmationReason::NotNeeded).await?;
    let number = call.number;
    let spawned = AgentEvent::Spawned {
        call: number,
        worker,
    };
    match context.events.ask(spawned).await? {
        // The call is complete: who worked on it reported to the chat.
        AgentReply::ToolEnded { result, .. } => {
            let result = Value::Object(result.into_object());
            Ok(CallAnswer {
                text: text_of_result(&result),
                media: media_of_result(&result),
            })
        }
        _ => Err(TurnOver), // replies are routed by what they answer
    }
}
