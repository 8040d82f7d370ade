//! One turn: prompt, stream, tools, back, until the model has nothing more to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use compositor::lower::Target;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use wire::Object;
use workspace::Workspace;
use workspace::discovery::Skill;

use super::call::{self, Desk};
use super::consent::{Approved, Mode};
use super::round::{self, Numbers, RoundError, Said};
use super::shown::{Shown, Told};
use super::{Approvals, Model, Shared, compact, history, prompt};
use crate::agent::{AgentError, TurnInput};
use crate::event::{AgentEvent, AgentReply};
use crate::message::UserMessage;
use crate::provider::{
    Endpoint, ModelMessage, ModelRequest, ProviderError, ProviderErrorKind, StopReason, ToolSpec,
    ToolUse, Usage,
};
use crate::sink::{EventSink, TurnOver};
use crate::tool::{self, Tool};

/// The shapes of the one wire format that is spoken.
const TARGET: Target = Target::OpenaiChat;

/// Rounds of one turn: a model that goes in circles stops here.
const ROUNDS_MAX: usize = 100;

/// Longest title made of a message.
const TITLE_CHARS_MAX: usize = 60;

/// Put after an answer that was cut off, so that the model goes on instead of starting over.
const GO_ON: &str = "Your answer was interrupted. Go on exactly where it stopped.";

pub(super) enum Stop {
    Over,
    Failed(AgentError),
}

impl From<TurnOver> for Stop {
    fn from(_: TurnOver) -> Self {
        Self::Over
    }
}

impl From<ProviderError> for Stop {
    fn from(error: ProviderError) -> Self {
        let error_type = match error.kind {
            ProviderErrorKind::Unauthorized => "modelUnauthorized",
            ProviderErrorKind::Rejected | ProviderErrorKind::Unfit => "modelRejected",
            ProviderErrorKind::Unavailable => "modelUnavailable",
            ProviderErrorKind::Interrupted => "modelInterrupted",
            ProviderErrorKind::Unreadable => "modelUnreadable",
        };
        Self::Failed(AgentError {
            error_type: error_type.to_owned(),
            message: error.message,
            resumable: error.kind.may_be_retried(),
        })
    }
}

/// Where a turn is played.
pub(super) struct Place<'a> {
    pub directories: &'a [String],
    pub workspace: &'a Workspace,
    pub approvals: &'a Approvals,
}

pub(super) async fn play(
    shared: &Shared,
    place: &Place<'_>,
    input: TurnInput,
    events: &EventSink,
) -> Result<(), AgentError> {
    match converse(shared, place, &input, events).await {
        Ok(()) | Err(Stop::Over) => Ok(()),
        Err(Stop::Failed(error)) => Err(error),
    }
}

async fn converse(
    shared: &Shared,
    place: &Place<'_>,
    input: &TurnInput,
    events: &EventSink,
) -> Result<(), Stop> {
    let (model, endpoint) = chosen(shared, &input.message)?;
    let mode = Mode::of(&input.config);
    let skills = skills_of(place.workspace).await;
    let tools = tools_of(shared, model, &skills);
    let facts = shared.gatherer.gather(place.directories).await;
    let mut prompt = prompt::of(facts, &tools, mode);
    prompt.tool_instructions.skills = prompt::index_of(&skills);
    let mentioned = input.user.skills().into_iter().map(str::to_owned);
    prompt.runtime_instructions.skills = mentioned.collect();
    let mut capabilities = shared.capabilities.of(TARGET, Some(model.server_name()));
    if model.vision == Some(false) {
        capabilities.image = None;
    }
    let mut shown = Shown {
        outside: &input.outside,
        capabilities,
        model: model.id.clone(),
        events,
        described: BTreeMap::new(),
        decided: BTreeMap::new(),
    };
    let remembered = match input.compact {
        Some(_) => {
            let summary = compact::summarise(model, endpoint, input, &mut shown).await?;
            let summary = summary.as_deref().map(compact::summary);
            summary.into_iter().flatten().collect()
        }
        None => compact::remembered(model, input),
    };
    if !input.reaches_model {
        return Ok(());
    }
    let said = history::of_parts(&input.said, &mut std::iter::empty());
    let rounds = rounds_of(&said);
    let newest = remembered.len();
    let told = conversation(remembered, input, said);
    let mut request = ModelRequest {
        model: model.server_name().to_owned(),
        system: Vec::new(),
        messages: shown.all(&told, newest).await?,
        tools: tools.iter().map(|tool| spec_of(*tool)).collect(),
        max_output_tokens: model.output_tokens,
        settings: settings_of(model, &input.message),
    };
    if input.untitled
        && let Some(title) = title_of(&input.text)
    {
        events.send(AgentEvent::Title(title)).await?;
    }
    let noted = Approved::read(input.notes.as_deref());
    place.approvals.lock().await.join(noted);
    let desk = Desk {
        shared,
        tools: &tools,
        workspace: place.workspace,
        events,
        approved: place.approvals,
        acting: Mutex::new(()),
    };
    let mut numbers = Numbers::default();
    let mut usage = Usage::default();
    for round in 0..ROUNDS_MAX {
        if round > 0 {
            take_steering(&mut shown, &mut numbers, &mut request).await?;
            // It may have changed in the middle of the turn, and the model should know.
            let mode = desk.mode().await?;
            prompt::hold_to(&mut prompt, &tools, mode);
        }
        request.system = events.render(prompt.render()).await?;
        let said = loop {
            let asked = (rounds + round, &request);
            match round::play(shared, endpoint, asked, &mut numbers, events).await {
                Ok(said) => break said,
                Err(RoundError::Over) => return Err(Stop::Over),
                Err(RoundError::Provider(error)) => {
                    let shorter = shown.without_what_is_unfit(error, &told, newest).await?;
                    request.messages.splice(..told.len(), shorter);
                }
            }
        };
        usage = report(usage, said.usage, model, events).await?;
        if said.calls.is_empty() {
            return ended(&said, events).await;
        }
        let results = call::all(&desk, &said.calls).await?;
        let calls: Vec<ToolUse> = said
            .calls
            .iter()
            .map(|called| called.told.clone())
            .collect();
        let ids = calls.iter().map(|call| call.id.clone());
        let results: Vec<ModelMessage> = ids
            .zip(results)
            .map(|(id, text)| ModelMessage::ToolResult { id, text })
            .collect();
        request.messages.push(ModelMessage::Assistant {
            text: said.text,
            calls,
        });
        request.messages.extend(results);
    }
    Err(Stop::Failed(AgentError {
        error_type: "tooManyRounds".to_owned(),
        message: format!("the model was asked {ROUNDS_MAX} times in this turn; resume it to go on"),
        resumable: true,
    }))
}

/// The skills there are now.
async fn skills_of(workspace: &Workspace) -> Vec<Skill> {
    let workspace = workspace.clone();
    let looking = tokio::task::spawn_blocking(move || workspace.skills());
    match looking.await {
        Ok(skills) => skills,
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    }
}

/// What the model may call.
fn tools_of<'a>(shared: &'a Shared, model: &Model, skills: &[Skill]) -> Vec<&'a dyn Tool> {
    if !model.calls_tools() {
        return Vec::new();
    }
    let tools = shared.tools.iter().map(|tool| &**tool);
    tools
        .filter(|tool| tool.name() != tool::SKILL || !skills.is_empty())
        .collect()
}

/// The model a message names; the host lets no other through (G-12).
fn chosen<'a>(shared: &'a Shared, message: &Value) -> Result<(&'a Model, &'a Endpoint), Stop> {
    let wanted = message["model"]["id"].as_str();
    let found = match wanted {
        Some(id) => shared.models.iter().find(|(model, _)| model.id == id),
        None => shared.models.first(),
    };
    found
        .map(|(model, endpoint)| (model, endpoint))
        .ok_or_else(|| {
            let message = "the model of this message is not configured any more; choose another";
            Stop::Failed(AgentError {
                error_type: "modelMissing".to_owned(),
                message: message.to_owned(),
                resumable: false,
            })
        })
}

/// What the message says to the model, as far as the model has a setting of that name (G-22).
fn settings_of(model: &Model, message: &Value) -> Object {
    let known = model.settings.as_ref().and_then(Value::as_object);
    let told = message["model"]["config"].as_object();
    let mut settings = told.cloned().unwrap_or_default();
    settings.retain(|name, _| known.is_some_and(|known| known.contains_key(name)));
    settings
}

fn spec_of(tool: &dyn Tool) -> ToolSpec {
    ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        parameters: tool.parameters(),
    }
}

/// What is remembered, the user's message, and what a resumed turn said so far.
fn conversation(remembered: Vec<Told>, input: &TurnInput, said: Vec<Told>) -> Vec<Told> {
    let mut told = remembered;
    told.push(Told::User(Arc::clone(&input.user)));
    if input.resume.is_some() {
        told.extend(said);
        if let Some(Told::Model(ModelMessage::Assistant { .. })) = told.last() {
            told.push(Told::user(GO_ON));
        }
    }
    told
}

/// Rounds that are over: a text that was cut off goes on in the next.
fn rounds_of(said: &[Told]) -> usize {
    let is_over = |told: &&Told| matches!(told, Told::Model(ModelMessage::Assistant { calls, .. }) if !calls.is_empty());
    said.iter().filter(is_over).count()
}

/// The first line of what the user wants, as far as a title goes.
fn title_of(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARS_MAX).collect();
    if title.len() < line.len() {
        title = title.trim_end().to_owned();
        title.push('…');
    }
    Some(title)
}

/// Usage is told per turn: each round adds to it.
async fn report(
    before: Usage,
    round: Usage,
    model: &Model,
    events: &EventSink,
) -> Result<Usage, Stop> {
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
    };
    let total = Usage {
        input_tokens: sum(before.input_tokens, round.input_tokens),
        output_tokens: sum(before.output_tokens, round.output_tokens),
        cache_read_tokens: sum(before.cache_read_tokens, round.cache_read_tokens),
    };
    if round != Usage::default() {
        let mut told = json!({"model": model.id});
        for (key, value) in [
            ("inputTokens", total.input_tokens),
            ("outputTokens", total.output_tokens),
            ("cacheReadTokens", total.cache_read_tokens),
        ] {
            if let Some(value) = value {
                told[key] = json!(value);
            }
        }
        events.send(AgentEvent::Usage(told)).await?;
    }
    Ok(total)
}

/// The model has nothing more to do; if it was stopped, the user is told.
async fn ended(said: &Said, events: &EventSink) -> Result<(), Stop> {
    let text = match &said.stop {
        Some(StopReason::Length) => "The answer was cut off: it reached the model's output limit.",
        Some(StopReason::ContentFilter) => "The model's server cut the answer off.",
        Some(StopReason::End | StopReason::ToolCalls | StopReason::Other(_)) | None => {
            return Ok(());
        }
    };
    let text = text.to_owned();
    Ok(events.send(AgentEvent::Notice { text }).await?)
}

/// A round is over: is there a word from the user? The host makes it a part of the turn as it hands it over.
async fn take_steering(
    shown: &mut Shown<'_>,
    numbers: &mut Numbers,
    request: &mut ModelRequest,
) -> Result<(), Stop> {
    let steer = numbers.next();
    let taken = shown.events.ask(AgentEvent::SteerPoint { steer }).await?;
    if let AgentReply::Steered {
        message: Some(message),
        user,
        ..
    } = taken
    {
        let text = message["text"].as_str().unwrap_or("");
        let user = user.unwrap_or_else(|| Arc::new(UserMessage::text(text)));
        request.messages.push(shown.one(user).await?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_to_size() {
        assert_eq!(
            title_of("\n  fix the tests \nplease"),
            Some("fix the tests".to_owned())
        );
        let long = title_of(&"word ".repeat(30)).unwrap();
        assert!(
            long.ends_with('…') && long.chars().count() <= TITLE_CHARS_MAX + 1,
            "{long}"
        );
        assert_eq!(title_of(" \n"), None);
    }
}
