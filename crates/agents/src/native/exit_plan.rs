//! `exit_plan`: the model shows its plan, and the user decides whether and how it is carried out (G-68).
//!
//! Promises: the session leaves its mode only when somebody approved, and that is recorded before the model hears of it.
//! Whoever wants the planning to go on may say why, and the model reads it.
//! Must not know: which client decides.

use agent_api::{AgentEvent, AgentReply, ToolReady, TurnOver};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::published::common::StringOrMarkdown;
use workspace::Workspace;

use super::answer::{CallAnswer, RequestedCall};
use super::call::parse;
use super::call_events::{CallOutcome, ToolContext, complete_call, plan_to_ready, send_ready};
use super::consent::{PermissionMode, SETTING};
use crate::locale::Locale;
use crate::tool::{Plan, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

pub(super) const NAME: &str = "exit_plan";

const KEEP_PLANNING: &str = "keep-planning";

/// Longer plans are not read by anybody.
const PLAN_BYTES_MAX: usize = 64 * 1_024;

pub(super) struct ExitPlanTool;

#[async_trait]
impl Tool for ExitPlanTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            display_name: "Plan",
            description: "Shows the user your finished plan and asks whether to carry it out. Call it when you have read enough to say what \
         you would change, file by file, and how you would check it; not to ask a question. If the user agrees you go on \
         at once.",
            effect: ToolEffect::Reads,
            kind: None,
        }
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "plan": {"type": "string", "description": "The whole plan, in Markdown."},
            },
            "required": ["plan"],
            "additionalProperties": false,
        })
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let plan = input.get("plan").and_then(Value::as_str).unwrap_or("");
        let wrong = match plan.len() {
            0 => "`plan` is missing: give the whole plan, in Markdown",
            1..=PLAN_BYTES_MAX if plan.trim().is_empty() => "`plan` is empty",
            1..=PLAN_BYTES_MAX => return Ok(Plan { summary: plan.to_owned(), ..Plan::default() }),
            _ => "`plan` is too long: say it in less than 64 KiB",
        };
        Err(ToolError(wrong.to_owned()))
    }

    /// Not reached: the call is answered by the user, not by a tool.
    async fn run(
        &self,
        _input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        Err(ToolError("only the user can approve a plan".to_owned()))
    }
}

/// Asks about a plan; what the model gets of it.
pub(super) async fn run_exit_plan(
    context: &ToolContext<'_>,
    call: &RequestedCall,
) -> Result<CallAnswer, TurnOver> {
    let planned = match parse(&call.tool_use.input) {
        Ok(input) => {
            ExitPlanTool.plan(&input, context.workspace).await.map_err(|ToolError(text)| text)
        }
        Err(text) => Err(text),
    };
    let refused = match (planned, context.mode().await?) {
        (Err(text), _) => text,
        (Ok(plan), PermissionMode::Plan) => return ask(context, call, &plan.summary).await,
        (Ok(_), _) => "The session does not plan any more: go on with the work.".to_owned(),
    };
    let plan = Plan { summary: ExitPlanTool.display_name().to_owned(), ..Plan::default() };
    let reason = wire::published::state::ToolCallConfirmationReason::NotNeeded;
    send_ready(context, call, &plan, reason).await?;
    complete_call(context, call, CallOutcome::failed("Plan", refused)).await
}

async fn ask(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    plan: &str,
) -> Result<CallAnswer, TurnOver> {
    let words = context.shared.locale.words();
    let ready = ToolReady {
        invocation_message: StringOrMarkdown::Markdown { markdown: plan.to_owned() },
        confirmation_title: Some(words.carry_out_plan.to_owned().into()),
        options: options(context.shared.locale),
        editable: true,
        ..plan_to_ready(call, &Plan::default())
    };
    let question = AgentEvent::ToolReady { call: call.number, ready: Box::new(ready) };
    let reply = context.events.ask(question).await?;
    let AgentReply::ToolDecided { approved, input, selected_option, suggestion, .. } = reply else {
        return Err(TurnOver); // replies are routed by what they answer
    };
    let option = selected_option.as_ref().and_then(|option| option["id"].as_str());
    if !approved {
        let words = suggestion.as_ref().and_then(|message| message["text"].as_str());
        return Ok(keep_planning_text(words).into()); // a denied call is over already
    }
    let mode = match option {
        Some("accept-edits") => PermissionMode::AcceptEdits,
        _ => PermissionMode::Ask,
    };
    set_mode(context, mode).await?;
    let edited = input.filter(|input| *input != call.tool_use.input);
    let text = approved_text(mode, edited.as_deref());
    complete_call(context, call, CallOutcome::done("Approved the plan", text)).await
}

/// Records the mode, and waits until it is on the disk.
async fn set_mode(context: &ToolContext<'_>, mode: PermissionMode) -> Result<(), TurnOver> {
    let chosen = AgentEvent::SettingChosen { name: SETTING.to_owned(), value: json!(mode.name()) };
    context.events.send(chosen).await?;
    // The answer comes when all that was sent before is on the disk.
    context.events.settings().await.map(drop)
}

/// The choices under a plan. What approves comes first: a client without options means it by its yes.
fn options(locale: Locale) -> Vec<Value> {
    let words = locale.words();
    vec![
        json!({"id": PermissionMode::Ask.name(), "label": words.plan_then_ask, "kind": "approve", "group": 0}),
        json!({"id": PermissionMode::AcceptEdits.name(), "label": words.plan_then_accept_edits, "kind": "approve", "group": 0}),
        json!({"id": KEEP_PLANNING, "label": words.keep_planning, "kind": "deny", "group": 1}),
    ]
}

fn approved_text(mode: PermissionMode, edited: Option<&str>) -> String {
    let how = match mode {
        PermissionMode::AcceptEdits => "Files may be edited without asking",
        PermissionMode::Ask | PermissionMode::Plan | PermissionMode::FullAccess => {
            "The user is asked before each edit and command"
        }
    };
    let plan = match edited {
        Some(edited) => format!(" with changes; it is now {edited}"),
        None => String::new(),
    };
    format!("The user approved the plan{plan}. {how}. Carry it out now.")
}

/// The result of a plan that was not approved, for the model.
pub(super) fn keep_planning_text(words: Option<&str>) -> String {
    match words.filter(|words| !words.is_empty()) {
        Some(words) => format!("The user wants you to keep planning and says: {words}"),
        None => "The user wants you to keep planning. Ask what is missing, or improve the plan."
            .to_owned(),
    }
}
