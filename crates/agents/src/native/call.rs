//! Tool calls of one round: each is planned, consented to and run; edits and commands one at a time, reads together.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, mpsc};
use wire::Object;
use workspace::Workspace;

use super::consent::{self, Mode, Verdict};
use super::round::Called;
use super::{Approvals, Shared};
use crate::event::{AgentEvent, AgentReply};
use crate::sink::{EventSink, TurnOver};
use crate::tool::{Nature, Outcome, Plan, Tool, ToolError};

/// What the calls of a turn share.
pub(super) struct Desk<'a> {
    pub shared: &'a Shared,
    /// What the model was offered.
    pub tools: &'a [&'a dyn Tool],
    pub workspace: &'a Workspace,
    pub events: &'a EventSink,
    pub approved: &'a Approvals,
    /// Held by a call that edits or runs.
    pub acting: Mutex<()>,
}

/// Outputs that may wait to be shown while a tool runs.
const OUTPUTS_MAX: usize = 4;

/// How a call ended: what the model is told, and how people see it.
struct Ended {
    text: String,
    success: bool,
    summary: String,
    content: Vec<Value>,
    whole: Option<Vec<u8>>,
}

impl Ended {
    fn failed(name: &str, text: String) -> Self {
        Self {
            success: false,
            summary: format!("{name} failed"),
            content: Vec::new(),
            whole: None,
            text,
        }
    }
}

/// Carries out all calls of a round and returns what the model is told of each, in their order.
pub(super) async fn all(desk: &Desk<'_>, calls: &[Called]) -> Result<Vec<String>, TurnOver> {
    let each = calls.iter().map(|called| one(desk, called));
    join_all(each).await.into_iter().collect()
}

async fn one(desk: &Desk<'_>, called: &Called) -> Result<String, TurnOver> {
    let name = called.told.name.as_str();
    let tool = desk.tools.iter().find(|tool| tool.name() == name);
    let Some(tool) = tool else {
        let known: Vec<&str> = desk.tools.iter().map(|tool| tool.name()).collect();
        let text = format!(
            "There is no tool `{name}`. There are: {}.",
            known.join(", ")
        );
        return refuse(desk, called, name, text).await;
    };
    let input = match parse(&called.told.input) {
        Ok(input) => input,
        Err(text) => return refuse(desk, called, tool.display_name(), text).await,
    };
    let plan = match tool.plan(&input, desk.workspace).await {
        Ok(plan) => plan,
        Err(ToolError(text)) => return refuse(desk, called, tool.display_name(), text).await,
    };
    let tool = *tool;
    let key = key_of(tool, &plan);
    loop {
        match desk.verdict(tool.nature(), &key).await? {
            Verdict::Refuse => {
                return refuse(desk, called, tool.display_name(), READ_ONLY.to_owned()).await;
            }
            Verdict::Run => match unasked(desk, called, (tool, &input), &plan).await? {
                Some(told) => return Ok(told),
                None => continue,
            },
            Verdict::Ask => return asked(desk, called, (tool, input), plan).await,
        }
    }
}

/// What a model is told of a call that a session of readers does not make.
const READ_ONLY: &str = "This session is read only: the call was refused.";

impl Desk<'_> {
    /// What may be done without asking, as the session's settings are now.
    pub(super) async fn mode(&self) -> Result<Mode, TurnOver> {
        Ok(Mode::of(&self.events.settings().await?))
    }

    /// What is to be done about a call, as things are now: settings may change in mid-turn, and another chat may have
    /// been told something for the whole session.
    async fn verdict(&self, nature: Nature, key: &str) -> Result<Verdict, TurnOver> {
        if nature == Nature::Reads {
            return Ok(Verdict::Run);
        }
        let mode = self.mode().await?;
        let approved = self.approved.lock().await;
        Ok(consent::verdict(mode, nature, key, &approved))
    }
}

/// Carries out a call that nobody need be asked about; `None` if that is not so any more by the time it may begin.
async fn unasked(
    desk: &Desk<'_>,
    called: &Called,
    (tool, input): (&dyn Tool, &Value),
    plan: &Plan,
) -> Result<Option<String>, TurnOver> {
    let Some(_acting) = acting(desk, tool).await else {
        ready(desk, called, plan, Some("not-needed")).await?;
        let ended = run(desk, called, tool, input).await?;
        return complete(desk, called, ended).await.map(Some);
    };
    // Looked at again now that the calls before it are done: it is held to what it sees.
    let plan = match tool.plan(input, desk.workspace).await {
        Ok(plan) => plan,
        Err(ToolError(text)) => {
            let told = refuse(desk, called, tool.display_name(), text).await?;
            return Ok(Some(told));
        }
    };
    let verdict = desk.verdict(tool.nature(), &key_of(tool, &plan)).await?;
    if verdict != Verdict::Run {
        return Ok(None);
    }
    ready(desk, called, &plan, Some("setting")).await?;
    let ended = run(desk, called, tool, input).await?;
    complete(desk, called, ended).await.map(Some)
}

/// Carries out a call that somebody is asked about first.
async fn asked(
    desk: &Desk<'_>,
    called: &Called,
    (tool, mut input): (&dyn Tool, Value),
    plan: Plan,
) -> Result<String, TurnOver> {
    let (edited, scope) = match ask(desk, called, &plan).await? {
        Decision::Approved { edited, scope } => (edited, scope),
        Decision::Denied { text } => return Ok(text),
    };
    let mut key = key_of(tool, &plan);
    let mut remark = None;
    if let Some(edited) = edited {
        remark = Some(format!("The user changed the input to {edited}"));
        match replan(desk, tool, &edited).await {
            Ok(planned) => (input, key) = planned,
            Err(text) => {
                let ended = Ended::failed(tool.display_name(), text);
                return complete(desk, called, ended).await;
            }
        }
    }
    if scope == Scope::Session {
        remember(desk, &key).await?;
    }
    let _acting = acting(desk, tool).await;
    // A session that was made read only since the question is read only.
    let mut ended = match desk.mode().await? {
        Mode::ReadOnly => Ended::failed(tool.display_name(), READ_ONLY.to_owned()),
        Mode::Ask | Mode::AcceptEdits | Mode::FullAccess => run(desk, called, tool, &input).await?,
    };
    if let Some(remark) = remark {
        ended.text = format!("{remark}\n{}", ended.text);
    }
    complete(desk, called, ended).await
}

/// Waits until no other call edits or runs, if this one does.
async fn acting<'a>(desk: &'a Desk<'_>, tool: &dyn Tool) -> Option<MutexGuard<'a, ()>> {
    match tool.nature() {
        Nature::Reads => None,
        Nature::Edits | Nature::Runs => Some(desk.acting.lock().await),
    }
}

/// What "approve in this session" means: all edits, or this very command.
fn key_of(tool: &dyn Tool, plan: &Plan) -> String {
    match tool.nature() {
        Nature::Edits => "edits".to_owned(),
        Nature::Reads | Nature::Runs => format!("{}:{}", tool.name(), plan.consent_key),
    }
}

/// An input that somebody wrote in the place of the model's: it must be possible, and it alone is what was approved.
async fn replan(desk: &Desk<'_>, tool: &dyn Tool, edited: &str) -> Result<(Value, String), String> {
    let input = parse(edited)?;
    let plan = tool.plan(&input, desk.workspace).await;
    let plan = plan.map_err(|ToolError(text)| text)?;
    Ok((input, key_of(tool, &plan)))
}

async fn remember(desk: &Desk<'_>, key: &str) -> Result<(), TurnOver> {
    let mut known = desk.approved.lock().await;
    if known.add(key) {
        desk.events.send(AgentEvent::Noted(known.notes())).await?;
    }
    Ok(())
}

/// A model's input is JSON text; some models write nothing where they mean an empty object.
fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim();
    let text = if text.is_empty() { "{}" } else { text };
    match serde_json::from_str(text) {
        Ok(Value::Object(input)) => Ok(Value::Object(input)),
        Ok(_) => Err("The input must be a JSON object.".to_owned()),
        Err(error) => Err(format!(
            "The input is no JSON: {error}. Send the call again."
        )),
    }
}

/// A call that is not possible: it is shown as failed, and the model is told why.
async fn refuse(
    desk: &Desk<'_>,
    called: &Called,
    display_name: &str,
    text: String,
) -> Result<String, TurnOver> {
    let plan = Plan {
        summary: display_name.to_owned(),
        ..Plan::default()
    };
    ready(desk, called, &plan, Some("not-needed")).await?;
    complete(desk, called, Ended::failed(display_name, text)).await
}

fn ready_fields(called: &Called, plan: &Plan) -> Object {
    let mut fields = Object::new();
    fields.insert("invocationMessage".to_owned(), json!(plan.summary));
    fields.insert("toolInput".to_owned(), json!(called.told.input));
    fields
}

async fn ready(
    desk: &Desk<'_>,
    called: &Called,
    plan: &Plan,
    confirmed: Option<&str>,
) -> Result<(), TurnOver> {
    let mut fields = ready_fields(called, plan);
    if let Some(confirmed) = confirmed {
        fields.insert("confirmed".to_owned(), json!(confirmed));
    }
    let call = called.number;
    desk.events
        .send(AgentEvent::ToolReady { call, fields })
        .await
}

enum Decision {
    Approved {
        edited: Option<String>,
        scope: Scope,
    },
    Denied {
        text: String,
    },
}

/// How far a yes goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Call,
    Session,
}

async fn ask(desk: &Desk<'_>, called: &Called, plan: &Plan) -> Result<Decision, TurnOver> {
    let mut fields = ready_fields(called, plan);
    fields.insert("options".to_owned(), consent::options(desk.shared.locale));
    fields.insert("editable".to_owned(), json!(true));
    if !plan.edits.is_empty() && keep_all(desk, &plan.bodies).await? {
        fields.insert("edits".to_owned(), json!({"items": plan.edits}));
    }
    let call = called.number;
    let asked = AgentEvent::ToolReady { call, fields };
    let AgentReply::ToolDecided {
        approved,
        input,
        selected_option,
        suggestion,
        ..
    } = desk.events.ask(asked).await?
    else {
        return Err(TurnOver);
    };
    if !approved {
        let suggestion = suggestion
            .as_ref()
            .and_then(|message| message["text"].as_str());
        let text = consent::denied_text(suggestion);
        return Ok(Decision::Denied { text });
    }
    let option = selected_option
        .as_ref()
        .and_then(|option| option["id"].as_str());
    let scope = match option {
        Some(consent::APPROVE_IN_SESSION) => Scope::Session,
        _ => Scope::Call,
    };
    let edited = input.filter(|input| *input != called.told.input);
    Ok(Decision::Approved { edited, scope })
}

/// Edits are shown by reference: what they refer to is kept before anybody is told. Whether all of it was.
async fn keep_all(desk: &Desk<'_>, bodies: &[Vec<u8>]) -> Result<bool, TurnOver> {
    for body in bodies {
        if desk.events.keep(body.clone(), "text/plain").await?.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn run(
    desk: &Desk<'_>,
    called: &Called,
    tool: &dyn Tool,
    input: &Value,
) -> Result<Ended, TurnOver> {
    let (sender, mut outputs) = mpsc::channel::<String>(OUTPUTS_MAX);
    let call = called.number;
    let showing = async {
        while let Some(text) = outputs.recv().await {
            let content = vec![json!({"type": "text", "text": text})];
            desk.events
                .send(AgentEvent::ToolContent { call, content })
                .await?;
        }
        Ok::<(), TurnOver>(())
    };
    let working = async move { tool.run(input, desk.workspace, &sender).await };
    let (worked, shown) = tokio::join!(working, showing);
    shown?;
    Ok(match worked {
        Ok(outcome) => ended(desk, outcome).await?,
        Err(ToolError(text)) => Ended::failed(tool.display_name(), text),
    })
}

async fn ended(desk: &Desk<'_>, outcome: Outcome) -> Result<Ended, TurnOver> {
    let content = match keep_all(desk, &outcome.bodies).await? {
        true => outcome.content,
        false => Vec::new(),
    };
    Ok(Ended {
        text: outcome.text,
        success: outcome.success,
        summary: outcome.summary,
        content,
        whole: outcome.whole,
    })
}

async fn complete(desk: &Desk<'_>, called: &Called, ended: Ended) -> Result<String, TurnOver> {
    let mut content = vec![json!({"type": "text", "text": ended.text})];
    content.extend(ended.content);
    if let Some(whole) = ended.whole {
        match desk.events.keep(whole, "text/plain").await? {
            Ok(mut kept) => {
                kept["type"] = json!("resource");
                content.push(kept);
            }
            Err(why) => {
                let text = format!("(The whole output could not be kept: {why})");
                content.push(json!({"type": "text", "text": text}));
            }
        }
    }
    let mut result = json!({
        "success": ended.success,
        "pastTenseMessage": ended.summary,
        "content": content,
    });
    if !ended.success {
        result["error"] = json!({"message": ended.summary});
    }
    let call = called.number;
    let completed = AgentEvent::ToolCompleted {
        call,
        result,
        review: false,
    };
    desk.events.send(completed).await?;
    Ok(ended.text)
}
