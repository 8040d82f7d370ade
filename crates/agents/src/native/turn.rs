//! One turn: prompt, answer, tools, and again, until the model has nothing more to do.
//!
//! Promises: a resumed turn goes on from its response so far.
//! Must not know: the wire format of any model.

use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, ClientPlugin, EventSink, TurnInput, TurnOver};
use serde_json::Value;
use workspace::Workspace;

use super::answer::Numbers;
use super::budget::CallBudget;
use super::compact::Summariser;
use super::context::{CompactionSettings, Window};
use super::conversation::Conversation;
use super::customizations;
use super::history::RecalledHistory;
use super::mcp::SessionMcp;
use super::memory::ChatMemory;
use super::model_list::ModelEntry;
use super::model_view::{HistoryEntry, ModelView};
use super::notices::with_notices;
use super::outputs::TurnOutputs;
use super::stop::TurnStop;
use super::title::make_title;
use super::tool_scope::ToolScope;
use super::turn_opening::TurnOpening;
use super::usage::TurnUsage;
use super::{Model, NativeContext, compact, history};
use crate::provider::ModelMessage;
use crate::tool::{Tool, WorkerBrief};

/// Put after an answer that was cut off, so that the model goes on instead of starting over.
const GO_ON: &str = "Your answer was interrupted. Go on exactly where it stopped.";

/// What a turn works with.
pub(super) struct TurnContext<'a> {
    pub directories: &'a [String],
    /// What clients brought along.
    pub plugins: &'a [ClientPlugin],
    pub workspace: &'a Workspace,
    /// Names the conversation.
    pub session: &'a str,
    /// Whose tokens are used.
    pub principal: Option<&'a str>,
    /// All of them, whatever the model may call.
    pub tools: &'a [Box<dyn Tool>],
    /// The MCP servers of the session.
    pub servers: &'a Arc<SessionMcp>,
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
    let opening = TurnOpening { shared, context, model, input, events };
    let custom = customizations::read(context.workspace, input).await?;
    let brief = input.brief.as_deref().map(read_brief).transpose()?;
    let scope = ToolScope::new(brief, custom.agent_tools());
    let tools = opening.offered_tools(&custom.skills, &scope);
    let servers = opening.start_servers().await?;
    let (prompt, file_rules) = opening.build_prompt(&tools, &servers, custom).await;
    let mut view = opening.open_view().await?;
    let mut usage = TurnUsage::resume(input.usage.as_ref());
    let mut budget = CallBudget::new(input.brief.is_some());
    let window = Window::new(model, shared.compaction);
    let memory = match input.compact {
        Some(_) => {
            let head = opening.request_head(&scope, &tools, &servers, &prompt).await?;
            let summariser = Summariser {
                model,
                endpoint,
                window,
                view: &mut view,
                input,
                usage: &mut usage,
                budget: &mut budget,
                may_be_last: true,
            };
            compact::compact_by_command(summariser, input, head).await?
        }
        None => ChatMemory::of_turn(input),
    };
    if !input.reaches_model {
        return Ok(());
    }
    let earlier = recall(&memory, model, shared.compaction, &view);
    let (response, rounds_before) = recall_response(input, &memory, &view);
    let newest = earlier.entries.len();
    let entries = build_conversation(earlier, input, response);
    let answered = count_answered(&entries, newest);
    let request = opening.begin_request(&mut view, &entries, newest).await?;
    name_session(input, events).await?;
    let meter = opening.resume_meter(&memory, &view, entries.get(..newest).unwrap_or_default());
    let conversation = Conversation {
        model,
        endpoint,
        tools: &tools,
        tool_context: opening.tool_context(&scope),
        servers,
        scope,
        left_out: Vec::new(),
        view,
        prompt,
        file_rules,
        sections: Vec::new(),
        entries,
        newest,
        answered,
        request,
        numbers: Numbers::default(),
        usage,
        budget,
        input,
        meter,
        memory,
        compaction: shared.compaction,
        window,
        summaries: 0,
    };
    conversation.run_rounds(rounds_before).await
}

/// The response of a resumed turn so far, without what a summary covers, and how many rounds it had.
fn recall_response(
    input: &TurnInput,
    memory: &ChatMemory<'_>,
    view: &ModelView<'_>,
) -> (Vec<HistoryEntry>, usize) {
    let outputs = TurnOutputs::read(&input.outputs, &view.source());
    let summarised = memory.summarised_rounds_of_active();
    let steering = &mut std::iter::empty();
    let response = history::entries_of_parts(&input.response_parts, summarised, steering, outputs);
    let rounds = count_rounds(&response) + usize::try_from(summarised).unwrap_or(usize::MAX);
    (response, rounds)
}

/// The earlier turns for the request: all of them where they are summarised when they get long, otherwise what fits.
fn recall(
    memory: &ChatMemory<'_>,
    model: &Model,
    compaction: CompactionSettings,
    view: &ModelView<'_>,
) -> RecalledHistory {
    let most = if compaction.auto {
        u64::MAX
    } else {
        // Half of what fits is left for this turn.
        model.context() / 2
    };
    memory.recall(most, &view.source())
}

/// The brief of a worker. One whose brief cannot be read does nothing: nobody knows what it may use.
fn read_brief(brief: &[u8]) -> Result<WorkerBrief, TurnStop> {
    WorkerBrief::read(brief).map_err(|error| {
        TurnStop::Failed(AgentError {
            error_type: "briefUnreadable".to_owned(),
            message: format!(
                "what this worker may use cannot be read ({error}); give the task to another one"
            ),
            resumable: false,
        })
    })
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
    earlier: RecalledHistory,
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

/// How many entries were in a request that was answered: a turn that was resumed had rounds before.
fn count_answered(entries: &[HistoryEntry], newest: usize) -> usize {
    let is_answer =
        |entry: &HistoryEntry| matches!(entry, HistoryEntry::Model(ModelMessage::Assistant { .. }));
    let last = entries.iter().rposition(is_answer);
    last.filter(|last| *last > newest).unwrap_or(newest)
}

/// A session that nobody has named gets a title.
async fn name_session(input: &TurnInput, events: &dyn EventSink) -> Result<(), TurnOver> {
    match make_title(&input.text).filter(|_| input.untitled) {
        Some(title) => events.send(AgentEvent::Title(title)).await,
        None => Ok(()),
    }
}
