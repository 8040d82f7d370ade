//! Tool calls of one round: each is planned, consented to and run; edits and commands one at a time, reads together, those of one
//! file in their order.

use agent_api::TurnOver;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::MutexGuard;
use wire::published::state::ToolCallConfirmationReason;

use super::answer::{CallAnswer, RequestedCall};
use super::call_events::{
    CallDecision, CallOutcome, ToolContext, ask_for_consent, complete_call, run_tool, send_ready,
};
use super::call_order::{CallPosition, order_calls};
use super::call_tool::CallTool;
use super::client_call::run_client_call;
use super::consent::{PermissionMode, Verdict};
use super::exit_plan::{self, run_exit_plan};
use super::host_call::{
    describe_other_model, effect_of_task, other_model, request_of, run_host_call, with_remark,
};
use super::mcp::run_mcp_call;
use super::offered_tools::{OfferedTool, OfferedTools};
use super::rules::{offer_rule, subject_of};
use crate::permission::CallSubject;
use crate::tool::{HostTask, Plan, Tool, ToolEffect, ToolError};

/// What a path means now is not what it meant when the call was approved.
const ANOTHER_FILE: &str =
    "The path leads to another file than when this was approved. Nothing was done.";

/// Carries out all calls of a round; what the model gets of each, in their order.
pub(super) async fn run_calls(
    context: &ToolContext<'_>,
    offered: &OfferedTools<'_>,
    calls: &[RequestedCall],
) -> Result<Vec<CallAnswer>, TurnOver> {
    let positions = order_calls(context.workspace, offered, calls);
    let outcomes = calls.iter().zip(positions).map(|(call, position)| async move {
        match offered.find(&call.tool_use.name) {
            Some(OfferedTool::Server(tool)) => run_mcp_call(context, call, tool).await,
            Some(OfferedTool::Client(tool)) => run_client_call(context, call, tool).await,
            Some(OfferedTool::Own(_)) | None => run_call(context, offered, call, &position).await,
        }
    });
    join_all(outcomes).await.into_iter().collect()
}

/// A call's input and what the tool would do with it.
struct PlannedCall<'a> {
    tool: &'a CallTool<'a>,
    input: Value,
    plan: Plan,
}

impl<'a> PlannedCall<'a> {
    async fn new(tool: &'a CallTool<'a>, input: Value) -> Result<Self, String> {
        let plan = tool.plan(&input).await.map_err(|ToolError(text)| text)?;
        Ok(Self { tool, input, plan })
    }

    /// Plans an input that a user wrote instead of the model's: it alone is what was approved.
    async fn of_edited(tool: &'a CallTool<'a>, edited: &str) -> Result<Self, String> {
        Self::new(tool, parse(edited)?).await
    }

    /// Names the subject of the call for the user's rules, as its paths lead now.
    async fn subject(&self, context: &ToolContext<'_>) -> CallSubject {
        subject_of(&**self.tool, &self.input, &self.plan, context.workspace).await
    }
}

async fn run_call(
    context: &ToolContext<'_>,
    offered: &OfferedTools<'_>,
    call: &RequestedCall,
    position: &CallPosition,
) -> Result<CallAnswer, TurnOver> {
    let name = call.tool_use.name.as_str();
    let tool = match offered.find(name) {
        Some(OfferedTool::Own(tool)) => tool,
        Some(OfferedTool::Server(_) | OfferedTool::Client(_)) | None => {
            let known: Vec<&str> = offered.names().collect();
            let known = known.join(", ");
            let text = format!("There is no tool `{name}`. There are: {known}.");
            return refuse_call(context, call, name, text).await;
        }
    };
    if name == exit_plan::NAME {
        return run_exit_plan(context, call).await;
    }
    let tool = &CallTool::new(tool, context.workspace);
    let input = match parse(&call.tool_use.input) {
        Ok(input) => input,
        Err(text) => return refuse_call(context, call, tool.display_name(), text).await,
    };
    position.wait_unasked().await;
    // People are asked in the order of the calls, however long it takes to find out what each is about.
    let turn = context.asking.lock().await;
    position.wait().await;
    let mut planned = match PlannedCall::new(tool, input).await {
        Ok(planned) => planned,
        Err(text) => return refuse_call(context, call, tool.display_name(), text).await,
    };
    if tool.host_request(&planned.input).is_some() {
        let known: Vec<&str> = offered.names().collect();
        return run_host_call_with_consent(context, call, planned, &known, turn).await;
    }
    let mut turn = Some(turn);
    loop {
        let subject = planned.subject(context).await;
        match context.verdict(tool.effect(), &subject).await? {
            Verdict::Refuse(text) => {
                return refuse_call(context, call, tool.display_name(), text).await;
            }
            Verdict::Run => {
                turn = None;
                match run_without_consent(context, call, &planned, &subject).await? {
                    Some(answer) => return Ok(answer),
                    // What it would do was looked at again meanwhile: that is what people are asked about.
                    None => match tool.plan(&planned.input).await {
                        Ok(plan) => planned.plan = plan,
                        Err(ToolError(text)) => {
                            return refuse_call(context, call, tool.display_name(), text).await;
                        }
                    },
                }
            }
            Verdict::Ask => return run_with_consent(context, call, planned, subject, turn).await,
        }
    }
}

impl ToolContext<'_> {
    /// What may be done without asking, as the session's settings are now.
    pub(super) async fn mode(&self) -> Result<PermissionMode, TurnOver> {
        Ok(PermissionMode::of(&self.events.settings().await?))
    }
}

/// Carries out a call that needs no consent; `None` if it does by the time it may begin.
async fn run_without_consent(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    planned: &PlannedCall<'_>,
    subject: &CallSubject,
) -> Result<Option<CallAnswer>, TurnOver> {
    let (tool, input) = (planned.tool, &planned.input);
    let Ok(limits) = context.reading_limits(subject).await else {
        return Ok(None); // the rules cannot be read any more, so it is asked about
    };
    let Some(_exclusive) = lock_exclusive(context, &**tool).await else {
        let reason = match tool.effect() {
            ToolEffect::Reads => ToolCallConfirmationReason::NotNeeded,
            ToolEffect::Edits | ToolEffect::Runs | ToolEffect::Fetches => {
                ToolCallConfirmationReason::Setting
            }
        };
        send_ready(context, call, &planned.plan, reason).await?;
        let outcome = run_tool(context, call, tool, input, limits).await?;
        return complete_call(context, call, outcome).await.map(Some);
    };
    // Looked at again now that the calls before it are done: it is held to what it sees.
    let plan = match tool.plan(input).await {
        Ok(plan) => plan,
        Err(ToolError(text)) => {
            let answer = refuse_call(context, call, tool.display_name(), text).await?;
            return Ok(Some(answer));
        }
    };
    let subject = subject_of(&**tool, input, &plan, context.workspace).await;
    let verdict = context.verdict(tool.effect(), &subject).await?;
    if verdict != Verdict::Run {
        return Ok(None);
    }
    send_ready(context, call, &plan, ToolCallConfirmationReason::Setting).await?;
    let outcome = run_tool(context, call, tool, input, limits).await?;
    complete_call(context, call, outcome).await.map(Some)
}

/// Carries out a call after consent.
async fn run_with_consent(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    mut planned: PlannedCall<'_>,
    mut subject: CallSubject,
    turn: Option<MutexGuard<'_, ()>>,
) -> Result<CallAnswer, TurnOver> {
    let tool = planned.tool;
    let offered = offer_rule(context, &subject, tool.effect()).await;
    drop(turn);
    let decided = ask_for_consent(context, call, &planned.plan, offered.as_ref()).await?;
    let (edited, scope) = match decided {
        CallDecision::Approved { edited, scope } => (edited, scope),
        CallDecision::Over { text } => return Ok(text.into()),
    };
    let mut remark = None;
    if let Some(edited) = edited {
        remark = Some(format!("The user changed the input to {edited}"));
        planned = match PlannedCall::of_edited(tool, &edited).await {
            Ok(planned) => planned,
            Err(text) => {
                let outcome = CallOutcome::failed(tool.display_name(), text);
                return complete_call(context, call, outcome).await;
            }
        };
        subject = planned.subject(context).await;
    }
    context.remember(scope, offered.as_ref(), &subject).await?;
    let _exclusive = lock_exclusive(context, &**tool).await;
    // A session that only reads since the question was asked only reads, and what is denied since is not done.
    // And it is what was approved: a link in its place is not.
    let is_same = subject == planned.subject(context).await;
    let mut outcome = match context.verdict(tool.effect(), &subject).await? {
        _ if !is_same => CallOutcome::failed(tool.display_name(), ANOTHER_FILE.to_owned()),
        Verdict::Refuse(text) => CallOutcome::failed(tool.display_name(), text),
        Verdict::Run | Verdict::Ask => {
            // Whoever approved it while the rules cannot be read was told that.
            let limits = context.reading_limits(&subject).await.unwrap_or_default();
            run_tool(context, call, tool, &planned.input, limits).await?
        }
    };
    outcome.text = with_remark(remark.as_deref(), outcome.text);
    complete_call(context, call, outcome).await
}

/// Carries out a call that the host does, if the user's rules let it. Most are never asked about: they talk to the user, or
/// a worker asks for itself. A worker with another model is: it may cost more. `known` are the tools that the model has.
async fn run_host_call_with_consent(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    mut planned: PlannedCall<'_>,
    known: &[&str],
    turn: MutexGuard<'_, ()>,
) -> Result<CallAnswer, TurnOver> {
    let tool = planned.tool;
    let request = match request_of(context, &**tool, &planned.input, known) {
        Ok(request) => request,
        Err(text) => return refuse_call(context, call, tool.display_name(), text).await,
    };
    if let Some(model) = other_model(context, &request) {
        let words = describe_other_model(context, &model);
        planned.plan.summary = format!("{}. {words}", planned.plan.summary);
    }
    let nature = effect_of_task(context, &**tool, &request);
    let subject = planned.subject(context).await;
    let mut turn = Some(turn);
    loop {
        let verdict = context.verdict(nature, &subject).await?;
        drop(turn.take());
        match verdict {
            Verdict::Refuse(text) => {
                return refuse_call(context, call, tool.display_name(), text).await;
            }
            Verdict::Ask => {
                return run_approved_host_call(context, call, planned, request, known).await;
            }
            Verdict::Run => {}
        }
        let exclusive = lock_for_task(context, &request).await;
        // Looked at again now that the calls before it are done.
        if exclusive.is_some() && context.verdict(nature, &subject).await? != Verdict::Run {
            continue;
        }
        let reason = match nature {
            ToolEffect::Reads => ToolCallConfirmationReason::NotNeeded,
            ToolEffect::Edits | ToolEffect::Runs | ToolEffect::Fetches => {
                ToolCallConfirmationReason::Setting
            }
        };
        send_ready(context, call, &planned.plan, reason).await?;
        return run_host_call(context, call, &**tool, &planned.input, request, None).await;
    }
}

/// Asks about a call that the host does, and carries it out if it may be done then.
async fn run_approved_host_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    mut planned: PlannedCall<'_>,
    mut request: HostTask,
    known: &[&str],
) -> Result<CallAnswer, TurnOver> {
    let tool = planned.tool;
    let edited = match ask_for_consent(context, call, &planned.plan, None).await? {
        CallDecision::Over { text } => return Ok(text.into()),
        CallDecision::Approved { edited, .. } => edited,
    };
    if let Some(edited) = &edited {
        let again = PlannedCall::of_edited(tool, edited).await;
        let asked = again.and_then(|planned| {
            let request = request_of(context, &**tool, &planned.input, known)?;
            Ok((planned, request))
        });
        match asked {
            Ok(asked) => (planned, request) = asked,
            Err(text) => {
                let outcome = CallOutcome::failed(tool.display_name(), text);
                return complete_call(context, call, outcome).await;
            }
        }
    }
    let remark = edited.map(|edited| format!("The user changed the input to {edited}"));
    let _exclusive = lock_for_task(context, &request).await;
    // A session that only reads since the question was asked only reads, and what is denied since is not done.
    let nature = effect_of_task(context, &**tool, &request);
    let subject = planned.subject(context).await;
    if let Verdict::Refuse(text) = context.verdict(nature, &subject).await? {
        let text = with_remark(remark.as_deref(), text);
        let outcome = CallOutcome::failed(tool.display_name(), text);
        return complete_call(context, call, outcome).await;
    }
    run_host_call(context, call, &**tool, &planned.input, request, remark.as_deref()).await
}

/// Waits until no other call edits or runs, if the host is to change something.
async fn lock_for_task<'a>(
    context: &'a ToolContext<'_>,
    request: &HostTask,
) -> Option<MutexGuard<'a, ()>> {
    match request {
        HostTask::ClientFile(file) if file.changes() => Some(context.exclusive.lock().await),
        HostTask::ClientFile(_) | HostTask::Question(_) | HostTask::Worker(_) => None,
    }
}

/// Waits until no other call edits or runs, if this one does.
async fn lock_exclusive<'a>(
    context: &'a ToolContext<'_>,
    tool: &dyn Tool,
) -> Option<MutexGuard<'a, ()>> {
    match tool.effect() {
        ToolEffect::Reads | ToolEffect::Fetches => None,
        ToolEffect::Edits | ToolEffect::Runs => Some(context.exclusive.lock().await),
    }
}

/// A model's input is JSON text; some models write nothing where they mean an empty object.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let text = if text.is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(Value::Object(input)),
        Ok(_) => Err("The input must be a JSON object.".to_owned()),
        Err(error) => Err(format!("The input is not JSON: {error}. Send the call again.")),
    }
}

/// A call that is not possible: it is shown as failed, and the model gets the reason.
pub(super) async fn refuse_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    display_name: &str,
    text: String,
) -> Result<CallAnswer, TurnOver> {
    let plan = Plan { summary: display_name.to_owned(), ..Plan::default() };
    send_ready(context, call, &plan, ToolCallConfirmationReason::NotNeeded).await?;
    complete_call(context, call, CallOutcome::failed(display_name, text)).await
}
