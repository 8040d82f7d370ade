//! Calls that the host carries out for a tool: a question to the user, a worker in a chat of its own, a file that only the user's client has.
//!
//! Promises: a cancelled question is told to the model; a worker is asked of models that there are alone.
//! Must not know: how questions are shown, and what a worker does.

use agent_api::{AgentEvent, AgentReply, ClientFileCall, InputRequest, TurnOver, Worker};
use serde_json::Value;

use super::answer::{CallAnswer, RequestedCall};
use super::call_events::{CallOutcome, ToolContext, complete_call};
use super::history::{media_of_result, text_of_result};
use super::{Model, exit_plan};
use crate::tool::{
    HostTask, Tool, ToolEffect, ToolError, WorkerBrief, describe_answers, describe_failure,
    describe_reply, is_named,
};

/// What the host is to do for a call; an error says why it cannot be done. `known` are the tools that the model has.
pub(super) fn request_of(
    context: &ToolContext<'_>,
    tool: &dyn Tool,
    input: &Value,
    known: &[&str],
) -> Result<HostTask, String> {
    let mut request = tool
        .host_request(input)
        .ok_or_else(|| "The call is not possible.".to_owned())?
        .map_err(|ToolError(text)| text)?;
    if let HostTask::ClientFile(file) = &request {
        let (first, second) = file.uris();
        for uri in [Some(first), second].into_iter().flatten() {
            if !is_named(uri, &context.client_files) {
                return Err(format!(
                    "{uri} is no address of the user's program: only those with the scheme and host of something that the user attached to \
                     this message are. Nothing was done."
                ));
            }
        }
    }
    if let HostTask::Worker(worker) = &mut request {
        let brief = check_worker(context, worker, known)?;
        if let Some(tools) = &context.agent_tools {
            // A custom agent does not get more by letting others work.
            worker.brief = brief.within(tools).to_bytes();
        }
    }
    Ok(request)
}

/// The brief of a worker, if it can be started.
fn check_worker(
    context: &ToolContext<'_>,
    worker: &Worker,
    known: &[&str],
) -> Result<WorkerBrief, String> {
    let models = &context.shared.models;
    if let Some(id) = wanted_model(worker)
        && models.find(id).is_none()
    {
        let known = models.ids().join(", ");
        return Err(format!("There is no model `{id}`. There are: {known}."));
    }
    let brief = WorkerBrief::read(&worker.brief)
        .map_err(|error| format!("The task cannot be described: {error}"))?;
    let known: Vec<&str> = known.iter().copied().filter(|tool| is_for_workers(tool)).collect();
    let impossible = brief.impossible_tools(&known);
    if impossible.is_empty() {
        return Ok(brief);
    }
    let impossible = impossible.join("`, `");
    let known = known.join(", ");
    Err(format!(
        "A worker has no tool `{impossible}`. There are: {known}. Leave `tools` out to let it use all of them."
    ))
}

/// Whether any worker may have a tool. The plan of the session is not a worker's to show.
fn is_for_workers(tool: &str) -> bool {
    tool != exit_plan::NAME && WorkerBrief::default().allows(tool)
}

fn wanted_model(worker: &Worker) -> Option<&str> {
    worker.model.as_ref().and_then(|model| model["id"].as_str())
}

/// The model that a worker is to have, if it is another than the chat's: it may cost more.
pub(super) fn other_model(context: &ToolContext<'_>, request: &HostTask) -> Option<String> {
    match request {
        HostTask::Question(_) | HostTask::ClientFile(_) => None,
        HostTask::Worker(worker) => {
            let wanted = wanted_model(worker).filter(|id| *id != context.model.id)?;
            Some(wanted.to_owned())
        }
    }
}

/// What people read before they let a worker have another model.
pub(super) fn describe_other_model(context: &ToolContext<'_>, id: &str) -> String {
    let price = |model: &Model| {
        model.facts().prices.map(|prices| {
            format!(
                "{} costs ${} for a million tokens that it reads and ${} for a million that it writes",
                model.id, prices.input, prices.output
            )
        })
    };
    let wanted = context
        .shared
        .models
        .find(id)
        .and_then(|entry| price(&entry.model))
        .unwrap_or_else(|| format!("what {id} costs is not known"));
    let own = price(context.model);
    let own = own.map_or(String::new(), |own| format!("; {own}"));
    format!("This chat uses {}. {wanted}{own}.", context.model.id)
}

/// Carries out a call that people were shown; what the model gets of it. `remark` says what a person changed.
pub(super) async fn run_host_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &dyn Tool,
    input: &Value,
    request: HostTask,
    remark: Option<&str>,
) -> Result<CallAnswer, TurnOver> {
    let mut outcome = match request {
        HostTask::Question(request) => ask(context, call, tool, input, request).await?,
        HostTask::ClientFile(file) => use_client_file(context, tool, *file).await,
        HostTask::Worker(worker) => {
            // The call is complete: who worked on it reported to the chat.
            let mut answer = delegate(context, call, worker).await?;
            answer.text = with_remark(remark, answer.text);
            return Ok(answer);
        }
    };
    outcome.text = with_remark(remark, outcome.text);
    complete_call(context, call, outcome).await
}

pub(super) fn with_remark(remark: Option<&str>, text: String) -> String {
    match remark {
        Some(remark) => format!("{remark}\n{text}"),
        None => text,
    }
}

/// What a task of the host is like, for the user's rules and the session's mode.
pub(super) fn effect_of_task(
    context: &ToolContext<'_>,
    tool: &dyn Tool,
    request: &HostTask,
) -> ToolEffect {
    match request {
        HostTask::ClientFile(file) => nature_of_use(context, file),
        HostTask::Worker(_) if other_model(context, request).is_some() => ToolEffect::Fetches,
        HostTask::Question(_) | HostTask::Worker(_) => tool.effect(),
    }
}

/// How a file of the client is used: to read again what the user attached needs nobody's consent, to look beside it does, and what changes
/// something is like a command.
fn nature_of_use(context: &ToolContext<'_>, file: &ClientFileCall) -> ToolEffect {
    let is_attached = context.client_files.iter().any(|it| it == file.uris().0);
    if file.changes() {
        ToolEffect::Runs
    } else if is_attached {
        ToolEffect::Reads
    } else {
        ToolEffect::Fetches
    }
}

async fn use_client_file(
    context: &ToolContext<'_>,
    tool: &dyn Tool,
    file: ClientFileCall,
) -> CallOutcome {
    match context.events.use_client_file(file.clone()).await {
        Ok(reply) => {
            let (text, summary) = describe_reply(&file, reply);
            CallOutcome::done(&summary, text)
        }
        Err(failure) => CallOutcome::failed(tool.display_name(), describe_failure(&failure)),
    }
}

async fn ask(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &dyn Tool,
    input: &Value,
    request: InputRequest,
) -> Result<CallOutcome, TurnOver> {
    let question = AgentEvent::InputRequested { ask: call.number, request };
    let AgentReply::Answered { response, answers, .. } = context.events.ask(question).await? else {
        return Err(TurnOver); // replies are routed by what they answer
    };
    Ok(match describe_answers(input, &response, &answers) {
        Ok(outcome) => CallOutcome::from(outcome),
        Err(ToolError(text)) => CallOutcome::failed(tool.display_name(), text),
    })
}

async fn delegate(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    worker: Box<Worker>,
) -> Result<CallAnswer, TurnOver> {
    let number = call.number;
    let spawned = AgentEvent::Spawned { call: number, worker };
    ask_until_ended(context, spawned).await
}

/// Hands a call over to somebody else, and waits for its end; what the model gets of it.
pub(super) async fn ask_until_ended(
    context: &ToolContext<'_>,
    event: AgentEvent,
) -> Result<CallAnswer, TurnOver> {
    match context.events.ask(event).await? {
        AgentReply::ToolEnded { result, .. } => {
            let result = Value::Object(result.into_object());
            Ok(CallAnswer { text: text_of_result(&result), media: media_of_result(&result) })
        }
        _ => Err(TurnOver), // replies are routed by what they answer
    }
}
