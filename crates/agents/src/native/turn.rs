//! One turn: prompt, answer, tools, and again, until the model has nothing more to do.
//!
//! Promises: a resumed turn goes on from its response so far.
//! Must not know: the wire format of any model.

use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, EventSink, TurnInput, TurnOver};
use serde_json::Value;
use tokio::sync::Mutex;
use workspace::Workspace;
use workspace::discovery::Skill;

use super::answer::Numbers;
use super::budget::CallBudget;
use super::call_events::ToolContext;
use super::consent::PermissionMode;
use super::conversation::Conversation;
use super::history::Recalled;
use super::model_list::ModelEntry;
use super::model_view::{HistoryEntry, ModelView};
use super::notices::with_notices;
use super::offered_tools::OfferedTools;
use super::outputs::TurnOutputs;
use super::stop::TurnStop;
use super::usage::TurnUsage;
use super::{
    Model, NativeContext, compact, exit_plan, history, model_settings, model_switch, prompt,
    todo_list,
};
use crate::permission::CallPlace;
use crate::prompt::Prompt;
use crate::provider::{ModelMessage, ModelRequest};
use crate::tool::{self, Brief, Tool};

/// Longest title made of a message.
const TITLE_CHARS_MAX: usize = 60;

/// Put after an answer that was cut off, so that the model goes on instead of starting over.
const GO_ON: &str = "Your answer was interrupted. Go on exactly where it stopped.";

/// What a turn works with.
pub(super) struct TurnContext<'a> {
    pub directories: &'a [String],
    pub workspace: &'a Workspace,
    /// Names the conversation.
    pub session: &'a str,
    /// All of them, whatever the model may call.
    pub tools: &'a [Box<dyn Tool>],
}

/// Works on a turn to its end.
pub(super) async fn run(
    shared: &NativeContext,
    context: &TurnContext<'_>,
    input: TurnInput,
    events: &dyn EventSink,
) -> Result<(), AgentError> {
    match converse(shared, context, &input, events).await {
        Ok(()) | Err(TurnStop::Over | TurnStop::Ended) => Ok(()),
        Err(TurnStop::Failed(error)) => Err(error),
    }
}

async fn converse(
    shared: &NativeContext,
    context: &TurnContext<'_>,
    input: &TurnInput,
    events: &dyn EventSink,
) -> Result<(), TurnStop> {
    let chosen = choose_model(shared, &input.message)?;
    let (model, endpoint) = (&chosen.model, &chosen.endpoint);
    let skills = find_skills(context.workspace).await;
    let tools = offered_tools(context, model, &skills, input.brief.as_deref());
    let prompt = build_prompt(shared, context, input, &tools, &skills).await;
    let mut view = ModelView::new(shared, model, input, events);
    view.forget_other_models().await?;
    let mut usage = TurnUsage::resume(input.usage.as_ref());
    let mut budget = CallBudget::new(input.brief.is_some());
    let earlier = match input.compact {
        Some(_) => {
            let spending = (&mut usage, &mut budget);
            let summary = compact::summarise(model, endpoint, input, &mut view, spending).await?;
            let summary = summary.as_deref().map(compact::summary_entries);
            Recalled {
                entries: summary.into_iter().flatten().collect(),
                notices: Vec::new(),
            }
        }
        None => compact::recall(model, input, &view.source()),
    };
    if !input.reaches_model {
        return Ok(());
    }
    let outputs = TurnOutputs::read(&input.outputs, &view.source());
    let response =
        history::entries_of_parts(&input.response_parts, &mut std::iter::empty(), outputs);
    let rounds_before = count_rounds(&response);
    let newest = earlier.entries.len();
    let entries = build_conversation(earlier, input, response);
    let request = begin_request(shared, (model, input), &mut view, (&entries, newest)).await?;
    name_session(input, events).await?;
    let conversation = Conversation {
        model,
        endpoint,
        tools: &tools,
        left_out: Vec::new(),
        tool_context: build_tool_context(shared, context, events),
        view,
        prompt,
        sections: Vec::new(),
        entries,
        newest,
        request,
        numbers: Numbers::default(),
        usage,
        budget,
    };
    conversation.run_rounds(rounds_before).await
}

/// The request with the conversation so far. If the chat goes on with another model, it is said what that loses.
async fn begin_request(
    shared: &NativeContext,
    (model, input): (&Model, &TurnInput),
    view: &mut ModelView<'_>,
    (entries, newest): (&[HistoryEntry], usize),
) -> Result<ModelRequest, TurnOver> {
    let settings = model_settings::read(model, &input.message);
    let messages = view.lower_conversation(entries, newest).await?;
    let lost = model_switch::describe(shared, (model, input), view, (entries, newest));
    if let Some(text) = lost {
        view.events.send(AgentEvent::Notice { text }).await?;
    }
    Ok(ModelRequest {
        model: model.server_name().to_owned(),
        system: Vec::new(),
        messages,
        max_output_tokens: settings.max_output_tokens,
        settings: settings.fields,
        server_tools: model.server_tools.clone(),
        ..ModelRequest::default()
    })
}

/// What the calls of a turn share.
fn build_tool_context<'a>(
    shared: &'a NativeContext,
    context: &TurnContext<'a>,
    events: &'a dyn EventSink,
) -> ToolContext<'a> {
    ToolContext {
        shared,
        workspace: context.workspace,
        events,
        rules: shared.rules.clone(),
        place: CallPlace {
            session: context.session.to_owned(),
            directories: context.workspace.real_directories(),
        },
        reported_rules: Mutex::new(false),
        exclusive: Mutex::new(()),
    }
}

async fn build_prompt(
    shared: &NativeContext,
    context: &TurnContext<'_>,
    input: &TurnInput,
    tools: &[&dyn Tool],
    skills: &[Skill],
) -> Prompt {
    let facts = shared.gatherer.gather(context.directories).await;
    let mode = PermissionMode::of(&input.config);
    let offered = OfferedTools::new(tools, Vec::new()).for_mode(mode);
    let mut prompt = prompt::build(facts, &offered, mode);
    prompt.tool_instructions.skills = prompt::list_skills(skills);
    prompt.runtime_instructions.is_worker = input.brief.is_some();
    let todo = todo_list::find_open(input).filter(|_| !tools.is_empty());
    prompt.runtime_instructions.todo = todo.map(|list| list.to_markdown());
    let mentioned = input.user.skills().into_iter().map(str::to_owned);
    prompt.runtime_instructions.skills = mentioned.collect();
    prompt
}

async fn find_skills(workspace: &Workspace) -> Vec<Skill> {
    let workspace = workspace.clone();
    let looking = tokio::task::spawn_blocking(move || workspace.skills());
    match looking.await {
        Ok(skills) => skills,
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    }
}

/// The tools that the model may call.
fn offered_tools<'a>(
    context: &TurnContext<'a>,
    model: &Model,
    skills: &[Skill],
    brief: Option<&[u8]>,
) -> Vec<&'a dyn Tool> {
    if !model.calls_tools() {
        return Vec::new();
    }
    let brief = brief.map(Brief::read);
    let tools = context.tools.iter().map(|tool| &**tool);
    tools
        .filter(|tool| tool.name() != tool::SKILL || !skills.is_empty())
        .filter(|tool| brief.as_ref().is_none_or(|brief| brief.allows(tool.name())))
        // The plan of the session is not a worker's to show.
        .filter(|tool| tool.name() != exit_plan::NAME || brief.is_none())
        .collect()
}

/// The model a message names; the host lets no other through (G-12), but it may be gone since: another is never taken in its
/// place.
fn choose_model(shared: &NativeContext, message: &Value) -> Result<Arc<ModelEntry>, TurnStop> {
    let id = message["model"]["id"].as_str();
    let model = match id {
        Some(id) => shared.models.find(id),
        None => shared.models.default_model(),
    };
    model.ok_or_else(|| {
        let others = name_some(&shared.models.ids());
        let message = match (id, others) {
            (_, None) => "no model is configured; add one with `greenroom models add URL#MODEL`".to_owned(),
            (Some(id), Some(others)) => format!(
                "the model `{id}` of this message is not configured any more; send it again with another: {others}"
            ),
            (None, Some(_)) => "this message names no model".to_owned(),
        };
        TurnStop::Failed(AgentError {
            error_type: "modelMissing".to_owned(),
            message,
            // It may come back.
            resumable: true,
        })
    })
}

/// The first few of a list of names, for people.
fn name_some(ids: &[String]) -> Option<String> {
    const SHOWN_MAX: usize = 8;
    let shown: Vec<&str> = ids.iter().take(SHOWN_MAX).map(String::as_str).collect();
    let shown = Some(shown.join(", ")).filter(|shown| !shown.is_empty())?;
    Some(match ids.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    })
}

/// Earlier turns, the user's message, and the response of a resumed turn so far.
fn build_conversation(
    earlier: Recalled,
    input: &TurnInput,
    response: Vec<HistoryEntry>,
) -> Vec<HistoryEntry> {
    let mut entries = earlier.entries;
    let user = with_notices(Arc::clone(&input.user), &earlier.notices);
    entries.push(HistoryEntry::User(user));
    if input.resume.is_some() {
        entries.extend(response);
        if let Some(HistoryEntry::Model(ModelMessage::Assistant { .. })) = entries.last() {
            entries.push(HistoryEntry::user(GO_ON));
        }
    }
    entries
}

/// Counts the rounds that are over: a text that was cut off goes on in the next.
fn count_rounds(response: &[HistoryEntry]) -> usize {
    let is_over = |entry: &&HistoryEntry| matches!(entry, HistoryEntry::Model(ModelMessage::Assistant { calls, .. }) if !calls.is_empty());
    response.iter().filter(is_over).count()
}

/// A session that nobody has named gets a title.
async fn name_session(input: &TurnInput, events: &dyn EventSink) -> Result<(), TurnOver> {
    match make_title(&input.text).filter(|_| input.untitled) {
        Some(title) => events.send(AgentEvent::Title(title)).await,
        None => Ok(()),
    }
}

/// The first line of what the user wants, as far as a title goes.
fn make_title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let mut title: String = line.chars().take(TITLE_CHARS_MAX).collect();
    if title.len() < line.len() {
        title = title.trim_end().to_owned();
        title.push('…');
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_cut_to_size() {
        assert_eq!(
            make_title("\n  fix the tests \nplease"),
            Some("fix the tests".to_owned())
        );
        let long = make_title(&"word ".repeat(30)).unwrap();
        assert!(
            long.ends_with('…') && long.chars().count() <= TITLE_CHARS_MAX + 1,
            "{long}"
        );
        assert_eq!(make_title(" \n"), None);
    }
}
