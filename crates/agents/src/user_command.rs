//! A command that the user gives in a message (`!ls`): it runs in a terminal, and is kept as a call, so that a model that is asked later
//! knows of it.
//!
//! Promises: exactly what the user wrote is run; nobody else is asked.
//! Must not know: models, channels.

use agent_api::{AgentError, AgentEvent, EventSink, ToolReady, ToolResult, ToolStart, TurnOver};
use serde_json::json;
use terminals::new_mark;
use tokio::sync::mpsc;
use wire::published::state::ToolCallConfirmationReason;
use workspace::Workspace;

use crate::call_output::{forward_output, result_content};
use crate::tool::{CallScope, ShowRequest, ToolError, ToolOutcome, in_scope, run_for_user};

/// The only call of such a turn.
const CALL: u64 = 1;

/// Runs a command of the user, who does not get these variables of the host.
pub async fn run(
    command: &str,
    workspace: &Workspace,
    secrets: &[String],
    events: &dyn EventSink,
) -> Result<(), AgentError> {
    match run_as_call(command, workspace, secrets, events).await {
        // Nobody listens any more.
        Ok(()) | Err(TurnOver) => Ok(()),
    }
}

async fn run_as_call(
    command: &str,
    workspace: &Workspace,
    secrets: &[String],
    events: &dyn EventSink,
) -> Result<(), TurnOver> {
    let meta = json!({wire::meta::TOOL_KIND: "terminal"});
    let start = ToolStart {
        name: "bash".to_owned(),
        display_name: "Run".to_owned(),
        meta: meta.as_object().cloned(),
        ..ToolStart::default()
    };
    let call = CALL;
    let start = Box::new(start);
    events.send(AgentEvent::ToolStarted { call, start }).await?;
    let input = json!({"command": command}).to_string();
    let mut ready = ToolReady::unconfirmed(format!("Run {command}"), input);
    ready.confirmed = Some(ToolCallConfirmationReason::UserAction);
    ready.extra.insert("_meta".to_owned(), meta);
    let ready = Box::new(ready);
    events.send(AgentEvent::ToolReady { call, ready }).await?;
    // Whoever looks for what it changes begins here.
    let edits = Vec::new();
    events.send(AgentEvent::ToolEdits { call, edits }).await?;
    events.settings().await?;
    let (sender, outputs) = mpsc::channel::<String>(4);
    let (show, shows) = mpsc::channel::<ShowRequest>(1);
    let scope = CallScope { mark: new_mark(), show: Some(show) };
    let working = async move {
        let work = run_for_user(command, workspace, secrets, &sender);
        in_scope(scope, work).await
    };
    let (worked, forwarded) = tokio::join!(working, forward_output(events, call, outputs, shows));
    forwarded?;
    let outcome = worked.unwrap_or_else(|ToolError(text)| ToolOutcome {
        summary: text.clone(),
        text,
        ..ToolOutcome::default()
    });
    let ToolOutcome { text, content, whole, .. } = outcome;
    let content = result_content(events, &text, content, whole).await;
    let result = if outcome.success {
        ToolResult::new(true, outcome.summary)
    } else {
        ToolResult::failed(outcome.summary.clone(), &outcome.summary)
    };
    let completed =
        AgentEvent::ToolCompleted { call, result: result.with_content(content), review: false };
    events.send(completed).await
}
