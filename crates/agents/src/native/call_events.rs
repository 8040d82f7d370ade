//! The events of one tool call: ready, perhaps a question, output, result.
//!
//! Promises: bodies are stored before an event refers to them.
//! Must not know: which calls need consent.

use agent_api::{AgentEvent, AgentReply, EventSink, ToolReady, ToolResult, TurnOver};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use wire::NamedBody;
use wire::published::state::ToolCallConfirmationReason;
use workspace::Workspace;

use super::answer::{CallAnswer, MARK, RequestedCall};
use super::call_tool::CallTool;
use super::consent::{self, OfferedRule};
use super::history::{media_of_result, text_of_result};
use super::rules::{ApprovalScope, Rules};
use super::{Model, NativeContext};
use crate::call_output::{forward_output, result_content};
use crate::permission::{FileSubject, ReadingLimits, RuleContext};
use crate::tool::{self, CallScope, Edits, Plan, ShowRequest, ToolEffect, ToolError, ToolOutcome};

/// What the calls of a turn share.
pub(super) struct ToolContext<'a> {
    pub shared: &'a NativeContext,
    /// The model of the chat.
    pub model: &'a Model,
    pub workspace: &'a Workspace,
    /// The tools of the custom agent that works here; none: all.
    pub agent_tools: Option<Vec<String>>,
    /// What the user attached that only the user's client has, by its addresses.
    pub client_files: Vec<String>,
    pub events: &'a dyn EventSink,
    /// The user's rules.
    pub rules: Rules,
    /// Where calls are made: which rules hold.
    pub place: RuleContext,
    /// Whether it was said in this turn that the rules cannot be used.
    pub reported_rules: Mutex<bool>,
    /// Held by a call that edits or runs.
    pub exclusive: Mutex<()>,
    /// Held while it is found out whether a call must be asked about.
    pub asking: Mutex<()>,
}

/// Outputs that may wait to be shown while a tool runs.
const OUTPUTS_MAX: usize = 4;

/// How a call ended: the text for the model, and how people see it.
pub(super) struct CallOutcome {
    pub text: String,
    success: bool,
    summary: String,
    content: Vec<Value>,
    whole: Option<Vec<u8>>,
    structured: Option<wire::Object>,
}

impl CallOutcome {
    pub(super) fn done(summary: &str, text: String) -> Self {
        Self {
            success: true,
            summary: summary.to_owned(),
            content: Vec::new(),
            whole: None,
            structured: None,
            text,
        }
    }

    pub(super) fn failed(name: &str, text: String) -> Self {
        Self {
            success: false,
            summary: format!("{name} failed"),
            content: Vec::new(),
            whole: None,
            structured: None,
            text,
        }
    }
}

pub(super) fn plan_to_ready(call: &RequestedCall, plan: &Plan) -> ToolReady {
    let mut ready = ToolReady::unconfirmed(plan.summary.clone(), call.tool_use.input.clone());
    let meta = Value::Object(call.meta.clone());
    ready.extra.insert("_meta".to_owned(), meta);
    ready
}

pub(super) async fn send_ready(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    plan: &Plan,
    confirmed: ToolCallConfirmationReason,
) -> Result<(), TurnOver> {
    let ready = Box::new(ToolReady { confirmed: Some(confirmed), ..plan_to_ready(call, plan) });
    let call = call.number;
    context.events.send(AgentEvent::ToolReady { call, ready }).await
}

/// A user's decision about a call.
pub(super) enum CallDecision {
    Approved {
        edited: Option<String>,
        scope: ApprovalScope,
    },
    /// Nothing is left to do: it was denied, or who was to carry it out gave it up.
    Over {
        text: String,
    },
}

pub(super) async fn ask_for_consent(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    plan: &Plan,
    rule: Option<&OfferedRule>,
) -> Result<CallDecision, TurnOver> {
    let mut ready = ToolReady {
        options: consent::options(context.shared.locale, rule),
        editable: true,
        ..plan_to_ready(call, plan)
    };
    if !plan.edits.is_empty() && store_all(context, &plan.bodies).await {
        ready.edits = plan.edits.clone();
    }
    let question = AgentEvent::ToolReady { call: call.number, ready: Box::new(ready) };
    let (approved, input, selected_option, suggestion) = match context.events.ask(question).await? {
        AgentReply::ToolDecided { approved, input, selected_option, suggestion, .. } => {
            (approved, input, selected_option, suggestion)
        }
        AgentReply::ToolEnded { result, .. } => {
            let text = text_of_result(&Value::Object(result.into_object()));
            return Ok(CallDecision::Over { text });
        }
        _ => return Err(TurnOver), // replies are routed by what they answer
    };
    if !approved {
        let suggestion = suggestion.as_ref().and_then(|message| message["text"].as_str());
        let text = consent::denied_text(suggestion);
        return Ok(CallDecision::Over { text });
    }
    let option = selected_option.as_ref().and_then(|option| option["id"].as_str());
    let scope = match option {
        Some(consent::APPROVE_IN_SESSION) => ApprovalScope::Session,
        Some(consent::APPROVE_IN_PROJECT) => ApprovalScope::Project,
        _ => ApprovalScope::Call,
    };
    let edited = input.filter(|input| *input != call.tool_use.input);
    Ok(CallDecision::Approved { edited, scope })
}

/// Stores what edits refer to, before anybody sees the edits. Whether all of it was stored.
async fn store_all(context: &ToolContext<'_>, bodies: &[NamedBody]) -> bool {
    for body in bodies {
        let body = body.clone();
        let stored = context.events.store_named_body(body, "text/plain").await;
        if stored.is_err() {
            return false;
        }
    }
    true
}

pub(super) async fn run_tool(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &CallTool<'_>,
    input: &Value,
    limits: Option<ReadingLimits>,
) -> Result<CallOutcome, TurnOver> {
    let mark = call.meta.get(MARK).and_then(Value::as_str).unwrap_or_default().to_owned();
    let call = call.number;
    if let Err(text) = record_start(context, call, tool, input).await? {
        return Ok(CallOutcome::failed(tool.display_name(), text));
    }
    let (sender, outputs) = mpsc::channel::<String>(OUTPUTS_MAX);
    let (show, shows) = mpsc::channel::<ShowRequest>(1);
    let forwarding = forward_output(context.events, call, outputs, shows);
    let scope = CallScope { mark, show: Some(show) };
    let limited = limits.map(|limits| limit_reading(tool.workspace(), limits));
    let workspace = limited.as_ref().unwrap_or(tool.workspace());
    let working = async move {
        let running = tool.run(input, workspace, &sender);
        tool::in_scope(scope, running).await
    };
    let (worked, forwarded) = tokio::join!(working, forwarding);
    forwarded?;
    Ok(match worked {
        Ok(outcome) => store_outcome(context, outcome).await,
        Err(ToolError(text)) => CallOutcome::failed(tool.display_name(), text),
    })
}

/// The files of a workspace without those that the user's rules keep from a call.
fn limit_reading(workspace: &Workspace, limits: ReadingLimits) -> Workspace {
    workspace.excluding(move |location| {
        limits
            .hides(FileSubject { root: location.root.clone(), relative: location.relative.clone() })
    })
}

/// Records that a call that edits or runs is about to begin and what it is about to do to files, and waits until that is on
/// the disk: from then on it can be undone, and looked for, also if nothing is heard of the call any more (G-67). An error is
/// the result of the call, which does not run.
async fn record_start(
    context: &ToolContext<'_>,
    call: u64,
    tool: &CallTool<'_>,
    input: &Value,
) -> Result<Result<(), String>, TurnOver> {
    let planned = match tool.effect() {
        ToolEffect::Reads | ToolEffect::Fetches => return Ok(Ok(())),
        ToolEffect::Edits => tool.edits(input).await,
        ToolEffect::Runs => Ok(Edits::default()), // nobody knows
    };
    let Edits { edits, bodies } = match planned {
        Ok(edits) => edits,
        // What cannot be previewed cannot be undone, and is not done.
        Err(ToolError(text)) => return Ok(Err(text)),
    };
    for body in bodies {
        if let Err(why) = context.events.store_named_body(body, "text/plain").await {
            return Ok(Err(format!(
                "Nothing was changed: what the file holds now could not be kept for an undo: {why}"
            )));
        }
    }
    let recorded = AgentEvent::ToolEdits { call, edits };
    context.events.send(recorded).await?;
    // The answer comes when all that was sent before is on the disk.
    context.events.settings().await?;
    Ok(Ok(()))
}

async fn store_outcome(context: &ToolContext<'_>, mut outcome: ToolOutcome) -> CallOutcome {
    if !store_all(context, &outcome.bodies).await {
        outcome.content.clear();
    }
    outcome.into()
}

/// What an outcome refers to is stored.
impl From<ToolOutcome> for CallOutcome {
    fn from(outcome: ToolOutcome) -> Self {
        Self {
            text: outcome.text,
            success: outcome.success,
            summary: outcome.summary,
            content: outcome.content,
            whole: outcome.whole,
            structured: outcome.structured,
        }
    }
}

pub(super) async fn complete_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    outcome: CallOutcome,
) -> Result<CallAnswer, TurnOver> {
    let CallOutcome { text, content, whole, .. } = outcome;
    let content = result_content(context.events, &text, content, whole).await;
    let result = if outcome.success {
        ToolResult::new(true, outcome.summary)
    } else {
        ToolResult::failed(outcome.summary.clone(), &outcome.summary)
    };
    let media = media_of_result(&json!({"content": content}));
    let mut result = result.with_content(content);
    if let Some(structured) = outcome.structured {
        result = result.with_structured_content(structured);
    }
    let call = call.number;
    let completed = AgentEvent::ToolCompleted { call, result, review: false };
    context.events.send(completed).await?;
    Ok(CallAnswer { text, media })
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use workspace::Confinement;

    use super::super::{Model, NativeAgent};
    use super::*;
    use crate::provider::ToolUse;
    use crate::sink::PendingReplies;
    use crate::sink::testing::channel_sink;
    use crate::tool::{Tool, ToolFacts};

    /// A tool that would change files and cannot say how.
    struct Unrecordable;

    #[async_trait]
    impl Tool for Unrecordable {
        fn facts(&self) -> ToolFacts {
            ToolFacts {
                name: "blind",
                display_name: "Blind",
                description: "",
                effect: ToolEffect::Edits,
                kind: None,
            }
        }

        fn parameters(&self) -> Value {
            json!({})
        }

        async fn plan(&self, _: &Value, _: &Workspace) -> Result<Plan, ToolError> {
            Ok(Plan::default())
        }

        async fn edits(&self, _: &Value, _: &Workspace) -> Result<Edits, ToolError> {
            Err(ToolError("the file cannot be looked at".to_owned()))
        }

        async fn run(
            &self,
            _: &Value,
            _: &Workspace,
            _: &mpsc::Sender<String>,
        ) -> Result<ToolOutcome, ToolError> {
            panic!("what cannot be undone was done");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_recorded_is_not_done() {
        let (sender, _received) = mpsc::channel(8);
        let events = channel_sink(sender, PendingReplies::default());
        let agent = NativeAgent::new(vec![Model::parse("http://h/v1#m").unwrap()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        let place =
            RuleContext { session: "s".to_owned(), directories: workspace.real_directories() };
        let model = Model::parse("http://h/v1#m").unwrap();
        let context = ToolContext {
            shared: &agent.shared,
            model: &model,
            workspace: &workspace,
            agent_tools: None,
            client_files: Vec::new(),
            events: &events,
            rules: None,
            place,
            reported_rules: Mutex::new(false),
            exclusive: Mutex::new(()),
            asking: Mutex::new(()),
        };
        let call = RequestedCall {
            number: 1,
            tool_use: ToolUse {
                id: "c".to_owned(),
                name: "blind".to_owned(),
                input: "{}".to_owned(),
            },
            meta: wire::Object::new(),
        };
        let tool = CallTool::new(&Unrecordable, context.workspace);
        let outcome = run_tool(&context, &call, &tool, &json!({}), None).await.unwrap();
        assert!(!outcome.success);
        assert_eq!(outcome.text, "the file cannot be looked at");
    }
}
