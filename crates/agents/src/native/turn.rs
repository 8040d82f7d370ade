//! One turn: prompt, answer, tools, and again, until the model has nothing more to do.
//!
//! Promises: a resumed turn goes on from its response so far.
//! Must not know: the wire format of any model.

use std::sync::Arc;

use agent_api::{AgentError, AgentEvent, ClientPlugin, EventSink, TurnInput, TurnOver};
use serde_json::Value;
use tokio::sync::Mutex;
use workspace::discovery::Skill;
use workspace::{InstructionFile, Workspace};

use super::answer::Numbers;
use super::budget::CallBudget;
use super::call_events::ToolContext;
use super::compact::{RequestHead, Summariser};
use super::consent::PermissionMode;
use super::context::{CompactionSettings, ContextMeter, Window};
use super::conversation::Conversation;
use super::customizations::{self, TurnCustomizations};
use super::file_rules::FileRules;
use super::history::RecalledHistory;
use super::mcp::{SessionMcp, TurnLocation, TurnServers};
use super::memory::ChatMemory;
use super::model_list::ModelEntry;
use super::model_view::{HistoryEntry, ModelView};
use super::notices::with_notices;
use super::offered_tools::{OfferedTools, offers_within};
use super::orphans::inspect_orphans;
use super::outputs::TurnOutputs;
use super::stop::TurnStop;
use super::title::make_title;
use super::tool_scope::ToolScope;
use super::usage::TurnUsage;
use super::{
    Model, NativeContext, compact, exit_plan, history, model_settings, model_switch, prompt,
    todo_list,
};
use crate::permission::RuleContext;
use crate::prompt::Prompt;
use crate::provider::{ModelMessage, ModelRequest};
use crate::tool::{self, Tool, WorkerBrief};

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
    let custom = customizations::read(context.workspace, input).await?;
    let brief = input.brief.as_deref().map(read_brief).transpose()?;
    let scope = ToolScope::new(brief, custom.agent_tools());
    let tools = offered_tools(context, (model, input), &custom.skills, &scope);
    let servers = start_servers(shared, context, (model, input), events).await?;
    let offered = (tools.as_slice(), &servers);
    let (prompt, file_rules) = build_prompt(shared, context, input, offered, custom).await;
    let mut view = open_view(shared, model, input, (context.workspace, events)).await?;
    let mut usage = TurnUsage::resume(input.usage.as_ref());
    let mut budget = CallBudget::new(input.brief.is_some());
    let window = Window::new(model, shared.compaction);
    let memory = match input.compact {
        Some(_) => {
            let head = begin_requests((model, &scope), offered, &prompt, events).await?;
            let summariser = Summariser {
                model,
                endpoint,
                window,
                view: &mut view,
                input,
                spending: (&mut usage, &mut budget),
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
    let request = begin_request(shared, (model, input), &mut view, (&entries, newest)).await?;
    name_session(input, events).await?;
    let earlier = entries.get(..newest).unwrap_or_default();
    let meter = resume_meter(input, (&memory, &view), (model, earlier));
    let conversation = Conversation {
        model,
        endpoint,
        tools: &tools,
        tool_context: build_tool_context(shared, context, (model, &scope), (input, events)),
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

/// What the server counted of the conversation so far.
fn resume_meter(
    input: &TurnInput,
    (memory, view): (&ChatMemory, &ModelView<'_>),
    (model, earlier): (&Model, &[HistoryEntry]),
) -> ContextMeter {
    match input.compact {
        Some(_) => ContextMeter::default(), // the conversation is another one now
        None => ContextMeter::resume(memory.last_counted(&view.source()), model, earlier),
    }
}

/// The model's view on the turn, with what is known of calls that an earlier host left behind.
async fn open_view<'a>(
    shared: &NativeContext,
    model: &Model,
    input: &'a TurnInput,
    (workspace, events): (&Workspace, &'a dyn EventSink),
) -> Result<ModelView<'a>, TurnStop> {
    let mut view = ModelView::new(shared, model, input, events);
    view.forget_other_models().await?;
    view.set_findings(inspect_orphans(input, workspace, events).await?);
    Ok(view)
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
    (model, scope): (&'a Model, &ToolScope),
    (input, events): (&TurnInput, &'a dyn EventSink),
) -> ToolContext<'a> {
    ToolContext {
        client_files: client_files(input),
        shared,
        model,
        workspace: context.workspace,
        agent_tools: scope.agent_tools(),
        events,
        rules: shared.rules.clone(),
        place: RuleContext {
            session: context.session.to_owned(),
            directories: context.workspace.real_directories(),
        },
        reported_rules: Mutex::new(false),
        exclusive: Mutex::new(()),
        asking: Mutex::new(()),
    }
}

/// The response of a resumed turn so far, without what a summary covers, and how many rounds it had.
fn recall_response(
    input: &TurnInput,
    memory: &ChatMemory<'_>,
    view: &ModelView<'_>,
) -> (Vec<HistoryEntry>, usize) {
    let outputs = TurnOutputs::read(&input.outputs, &view.source());
    let summarised = memory.summarised_rounds_of_active();
    let parts = (input.response_parts.as_slice(), summarised);
    let response = history::entries_of_parts(parts, &mut std::iter::empty(), outputs);
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

/// The prompt and the tools of the agent and of clients, as a request to the model would begin now.
async fn begin_requests(
    (model, scope): (&Model, &ToolScope),
    (tools, servers): (&[&dyn Tool], &TurnServers<'_>),
    prompt: &Prompt,
    events: &dyn EventSink,
) -> Result<RequestHead, TurnStop> {
    let offers = if model.calls_tools() { events.client_tools().await? } else { Vec::new() };
    let offers = offers_within(offers, scope);
    let offered = OfferedTools::with_servers(tools, servers.tools(scope), offers);
    let sections = prompt.render();
    Ok(RequestHead {
        system: events.render(sections.clone()).await?,
        sections,
        tools: offered.specs(),
    })
}

async fn build_prompt(
    shared: &NativeContext,
    context: &TurnContext<'_>,
    input: &TurnInput,
    (tools, servers): (&[&dyn Tool], &TurnServers<'_>),
    custom: TurnCustomizations,
) -> (Prompt, FileRules) {
    let mut facts = shared.gatherer.gather(context.directories).await;
    let is_on = |file: &InstructionFile| !custom.switched_off.contains(&file.path);
    facts.instructions.retain(is_on);
    facts.instructions.extend(custom.rules);
    let mode = PermissionMode::of(&input.config);
    let offered = OfferedTools::new(tools, Vec::new()).for_mode(mode);
    let mut prompt = prompt::build(facts, &offered, mode);
    prompt.tool_instructions.skills = prompt::list_skills(&custom.skills);
    prompt.custom_instructions.listed = custom.file_rules.listed();
    let agent = custom.agent.map(|agent| (agent.name, agent.instructions));
    prompt.runtime_instructions.agent = agent;
    prompt.tool_instructions.servers = servers.instructions();
    prompt.runtime_instructions.is_worker = input.brief.is_some();
    let todo = todo_list::find_open(input).filter(|_| !tools.is_empty());
    prompt.runtime_instructions.todo = todo.map(|list| list.to_markdown());
    let mentioned = input.user.skills().into_iter().map(str::to_owned);
    prompt.runtime_instructions.skills = mentioned.collect();
    (prompt, custom.file_rules)
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

/// The addresses that the message's sender attached and that only its client can read.
fn client_files(input: &TurnInput) -> Vec<String> {
    let message = input.message.as_object();
    let named = message.map(compositor::ahp::client_resources).unwrap_or_default().into_iter();
    named.map(str::to_owned).collect()
}

/// The tools that the model may call.
fn offered_tools<'a>(
    context: &TurnContext<'a>,
    (model, input): (&Model, &TurnInput),
    skills: &[Skill],
    scope: &ToolScope,
) -> Vec<&'a dyn Tool> {
    if !model.calls_tools() {
        return Vec::new();
    }
    // A worker has no client of its own.
    let has_client_files = scope.brief.is_none() && !client_files(input).is_empty();
    let tools = context.tools.iter().map(|tool| &**tool);
    tools
        .filter(|tool| tool.name() != tool::SKILL || !skills.is_empty())
        .filter(|tool| tool.name() != tool::CLIENT_FILES || has_client_files)
        .filter(|tool| {
            if tool.name() == exit_plan::NAME {
                // The plan of the session is not a worker's to show; whoever else plans must be able to.
                scope.brief.is_none()
            } else {
                scope.allows(tool.name())
            }
        })
        .collect()
}

/// Starts the session's MCP servers, if the model can call anything.
async fn start_servers<'a>(
    shared: &NativeContext,
    context: &TurnContext<'a>,
    (model, input): (&Model, &TurnInput),
    events: &dyn EventSink,
) -> Result<TurnServers<'a>, TurnOver> {
    let has_tools = model.calls_tools() && input.reaches_model;
    let (Some(settings), true) = (&shared.mcp, has_tools) else {
        return Ok(TurnServers::none());
    };
    let place = TurnLocation {
        session: context.session,
        principal: context.principal,
        directories: &context.workspace.real_directories(),
        roots: context.directories,
        plugins: context.plugins,
        may_ask: input.brief.is_none(),
        switched_off: &input.switched_off,
    };
    let servers = context.servers.begin_turn(settings, place, events);
    Ok(TurnServers::new(servers.await?))
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
