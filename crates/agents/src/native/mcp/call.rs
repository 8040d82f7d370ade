//! A call of a server's tool: consented to like a command (MC-7), carried out by the server.
//!
//! Promises: it runs only if the session's mode, a rule or a person says so, and with exactly the input that was agreed to.
//! Must not know: how servers are spoken to.

use agent_api::{AgentEvent, TurnOver};
use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::MutexGuard;
use wire::published::state::ToolCallConfirmationReason;

use super::super::answer::{CallAnswer, RequestedCall};
use super::super::call::{parse, refuse_call};
use super::super::call_events::{
    CallDecision, CallOutcome, ToolContext, ask_for_consent, complete_call, send_ready,
};
use super::super::consent::Verdict;
use super::super::rules::{offer_tool_rule, server_subject};
use super::sign_in::{SignIn, wait_for_sign_in};
use super::{elicitation, result, shown};
use crate::mcp::{CallHost, Elicitation, ElicitationAnswer, McpError, SessionTool};
use crate::tool::{Plan, ToolEffect};
use crate::trust::next_ask;

/// Carries out a call; what the model gets of it.
pub(in super::super) async fn run_mcp_call(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &SessionTool,
) -> Result<CallAnswer, TurnOver> {
    let title = &tool.tool.title;
    let input = match parse(&call.tool_use.input) {
        Ok(input) => input,
        Err(text) => return refuse_call(context, call, title, text).await,
    };
    let plan = Plan { summary: describe(tool), ..Plan::default() };
    let nature = nature_of(tool);
    let subject = server_subject(&tool.model_name, &call.tool_use.input);
    // People are asked in the order of the calls.
    let mut turn = Some(context.asking.lock().await);
    loop {
        match context.verdict(nature, &subject).await? {
            Verdict::Refuse(text) => return refuse_call(context, call, title, text).await,
            Verdict::Ask => return run_with_consent(context, call, tool, input, &plan, turn).await,
            Verdict::Run => {
                turn = None;
                let _exclusive = lock_exclusive(context, nature).await;
                // Looked at again now that the calls before it are done.
                if context.verdict(nature, &subject).await? == Verdict::Run {
                    let reason = if nature.changes() {
                        ToolCallConfirmationReason::Setting
                    } else {
                        ToolCallConfirmationReason::NotNeeded
                    };
                    send_ready(context, call, &plan, reason).await?;
                    let outcome = run(context, call, tool, input).await?;
                    return complete_call(context, call, outcome).await;
                }
            }
        }
    }
}

async fn run_with_consent(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &SessionTool,
    mut input: Value,
    plan: &Plan,
    turn: Option<MutexGuard<'_, ()>>,
) -> Result<CallAnswer, TurnOver> {
    let offered = offer_tool_rule(context, &tool.model_name).await;
    drop(turn);
    let (edited, scope) = match ask_for_consent(context, call, plan, offered.as_ref()).await? {
        CallDecision::Approved { edited, scope } => (edited, scope),
        CallDecision::Over { text } => return Ok(text.into()),
    };
    let nature = nature_of(tool);
    let mut subject = server_subject(&tool.model_name, &call.tool_use.input);
    let mut remark = None;
    if let Some(edited) = edited {
        input = match parse(&edited) {
            Ok(input) => input,
            Err(text) => {
                let outcome = CallOutcome::failed(&tool.tool.title, text);
                return complete_call(context, call, outcome).await;
            }
        };
        subject = server_subject(&tool.model_name, &edited);
        remark = Some(format!("The user changed the input to {edited}"));
    }
    context.remember(scope, offered.as_ref(), &subject).await?;
    let _exclusive = lock_exclusive(context, nature).await;
    // A session that only reads since the question was asked only reads, and what is denied since is not done.
    let mut outcome = match context.verdict(nature, &subject).await? {
        Verdict::Refuse(text) => CallOutcome::failed(&tool.tool.title, text),
        Verdict::Run | Verdict::Ask => run(context, call, tool, input).await?,
    };
    if let Some(remark) = remark {
        outcome.text = format!("{remark}\n{}", outcome.text);
    }
    complete_call(context, call, outcome).await
}

/// What a server says of its tools counts only where the user says so (MC-7).
fn nature_of(tool: &SessionTool) -> ToolEffect {
    let hints = tool.tool.hints;
    let is_closed = hints.read_only == Some(true) && hints.open_world == Some(false);
    if tool.server.declaration().trust_hints && is_closed {
        ToolEffect::Reads
    } else {
        ToolEffect::Runs
    }
}

/// What people read before they decide.
fn describe(tool: &SessionTool) -> String {
    let (title, hints) = (&tool.tool.title, tool.tool.hints);
    let server = shown(&tool.server.declaration().name);
    let mut text = format!("{title} (MCP server {server})");
    if hints.destructive == Some(true) {
        text.push_str("; the server says that it may destroy data");
    }
    if hints.open_world == Some(true) {
        text.push_str("; the server says that it reaches other machines");
    }
    text
}

async fn lock_exclusive<'a>(
    context: &'a ToolContext<'_>,
    nature: ToolEffect,
) -> Option<MutexGuard<'a, ()>> {
    if nature.changes() { Some(context.exclusive.lock().await) } else { None }
}

async fn run(
    context: &ToolContext<'_>,
    call: &RequestedCall,
    tool: &SessionTool,
    input: Value,
) -> Result<CallOutcome, TurnOver> {
    let number = call.number;
    // On the disk before it begins, so that a host that comes later knows that it may have done something (G-67).
    let edits = Vec::new();
    let begun = AgentEvent::ToolEdits { call: number, edits };
    context.events.send(begun).await?;
    context.events.settings().await?;
    let Value::Object(arguments) = input else {
        let text = "The input must be a JSON object.".to_owned();
        return Ok(CallOutcome::failed(&tool.tool.title, text));
    };
    let host = TurnHost {
        context,
        call: number,
        server: &tool.server.declaration().name,
        asked: Mutex::default(),
    };
    let name = &tool.tool.name;
    let mut called = if tool.without_token {
        tool.server.call_without_token(name, arguments.clone(), &host).await
    } else {
        tool.server.call(name, arguments.clone(), &host).await
    };
    // Whoever calls without a token waits for none: it would be somebody else's (H-318).
    if let Err(McpError::TokenWanted(_)) = &called
        && !tool.without_token
    {
        match wait_for_sign_in(context, number, &tool.server).await? {
            SignIn::Done => called = tool.server.call(name, arguments, &host).await,
            SignIn::GivenUp => {
                let text = "The call was given up: nobody signed in to its MCP server.".to_owned();
                return Ok(CallOutcome::failed(&tool.tool.title, text));
            }
            SignIn::NotWanted => {}
        }
    }
    Ok(match called {
        Ok(result) => result::to_outcome(tool, result, context.events).await.into(),
        Err(error) => {
            let server = shown(&tool.server.declaration().name);
            let text = format!("The MCP server `{server}` did not carry out the call: {error}.");
            CallOutcome::failed(&tool.tool.title, text)
        }
    })
}

/// What a call needs of its turn.
struct TurnHost<'a> {
    context: &'a ToolContext<'a>,
    call: u64,
    server: &'a str,
    /// The question that is open.
    asked: Mutex<Option<u64>>,
}

impl TurnHost<'_> {
    fn set_asked(&self, ask: Option<u64>) -> Option<u64> {
        std::mem::replace(&mut *self.asked.lock(), ask)
    }
}

#[async_trait]
impl CallHost for TurnHost<'_> {
    async fn show_progress(&self, line: String) {
        let shown = AgentEvent::ToolContent {
            call: self.call,
            content: vec![json!({"type": "text", "text": line})],
        };
        // When the turn is over, the call is dropped.
        let _ = self.context.events.send(shown).await;
    }

    async fn elicit(&self, elicitation: Elicitation) -> ElicitationAnswer {
        let ask = next_ask();
        self.set_asked(Some(ask));
        let answered = elicitation::ask(self.server, elicitation, ask, self.context.events);
        let answer = answered.await.unwrap_or(ElicitationAnswer::Cancel);
        self.set_asked(None);
        answer
    }

    async fn withdraw(&self) {
        if let Some(ask) = self.set_asked(None) {
            let withdrawn = AgentEvent::QuestionWithdrawn { ask };
            // When the turn is over, so is the question.
            let _ = self.context.events.send(withdrawn).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use agent_api::AgentReply;
    use tokio::sync::mpsc;
    use workspace::{Confinement, Workspace};

    use super::super::super::{Model, NativeAgent};
    use super::*;
    use crate::mcp::testing::{declare, make_server, remote_server, token_wanted};
    use crate::mcp::{McpDeclaration, McpTool, McpTransport, ToolHints};
    use crate::permission::RuleContext;
    use crate::provider::ToolUse;
    use crate::sink::PendingReplies;
    use crate::sink::testing::channel_sink;

    /// A tool of a server that came to want a token, for a turn that has none of its own.
    fn tool_without_token() -> SessionTool {
        let server = remote_server("https://mcp.example/v1");
        server.set_state(token_wanted());
        SessionTool {
            server,
            tool: McpTool {
                name: "work".to_owned(),
                title: "Work".to_owned(),
                description: String::new(),
                schema: json!({}),
                hints: ToolHints::default(),
            },
            model_name: "s_work".to_owned(),
            without_token: true,
        }
    }

    #[test]
    fn mc_7_what_a_server_says_of_a_tool_counts_only_where_the_user_says_so() {
        let transport = McpTransport::Http {
            url: "https://mcp.example/v1".to_owned(),
            headers: BTreeMap::new(),
        };
        for (trust_hints, read_only, open_world, nature) in [
            (false, Some(true), Some(false), ToolEffect::Runs),
            (true, Some(true), Some(false), ToolEffect::Reads),
            (true, Some(true), Some(true), ToolEffect::Runs),
            (true, Some(true), None, ToolEffect::Runs),
            (true, None, Some(false), ToolEffect::Runs),
        ] {
            let mut tool = tool_without_token();
            tool.server = make_server(McpDeclaration { trust_hints, ..declare(transport.clone()) });
            tool.tool.hints = ToolHints { read_only, destructive: Some(true), open_world };
            assert_eq!(nature_of(&tool), nature, "{:?}", tool.tool.hints);
            let asked = describe(&tool);
            assert!(asked.contains("may destroy data"), "{asked}");
            let is_open = asked.contains("reaches other machines");
            assert_eq!(is_open, open_world == Some(true), "{asked}");
        }
    }

    #[tokio::test]
    async fn h_318_a_call_without_a_token_has_nobody_sign_in() {
        let (sender, mut received) = mpsc::channel(8);
        let replies = PendingReplies::default();
        let events = channel_sink(sender, replies.clone());
        let agent = NativeAgent::new(vec![Model::parse("http://h/v1#m").unwrap()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        let model = Model::parse("http://h/v1#m").unwrap();
        let context = ToolContext {
            shared: &agent.shared,
            model: &model,
            workspace: &workspace,
            agent_tools: None,
            client_files: Vec::new(),
            events: &events,
            rules: None,
            place: RuleContext {
                session: "s".to_owned(),
                directories: workspace.real_directories(),
            },
            reported_rules: tokio::sync::Mutex::new(false),
            exclusive: tokio::sync::Mutex::new(()),
            asking: tokio::sync::Mutex::new(()),
        };
        let call = RequestedCall {
            number: 1,
            tool_use: ToolUse {
                id: "c".to_owned(),
                name: "s_work".to_owned(),
                input: "{}".to_owned(),
            },
            meta: wire::Object::new(),
        };
        let tool = tool_without_token();
        let mut running = std::pin::pin!(run(&context, &call, &tool, json!({})));
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut running => break outcome.unwrap(),
                Some(event) = received.recv() => match event {
                    AgentEvent::SettingsRequested { ask } => {
                        let values = wire::Object::new();
                        replies.deliver(AgentReply::Settings { ask, values }).unwrap();
                    }
                    AgentEvent::ToolAuthRequired { .. } => panic!("nobody is to sign in for it"),
                    _ => {}
                },
            }
        };
        let why = McpError::OthersToken.to_string();
        assert!(outcome.text.contains(&why), "{}", outcome.text);
    }
}
