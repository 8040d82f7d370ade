//! The parts of a turn before its first round: tools, servers, prompt, conversation so far.
//!
//! Promises: a worker gets only what its brief permits.
//! Must not know: what the rounds do with the parts.

use agent_api::{AgentEvent, EventSink, TurnInput, TurnOver};
use tokio::sync::Mutex;
use workspace::InstructionFile;
use workspace::discovery::Skill;

use super::call_events::ToolContext;
use super::compact::RequestHead;
use super::consent::PermissionMode;
use super::context::ContextMeter;
use super::customizations::TurnCustomizations;
use super::file_rules::FileRules;
use super::mcp::{TurnLocation, TurnServers};
use super::memory::ChatMemory;
use super::model_view::{HistoryEntry, ModelView};
use super::offered_tools::{OfferedTools, offers_within};
use super::orphans::inspect_orphans;
use super::stop::TurnStop;
use super::tool_scope::ToolScope;
use super::turn::TurnContext;
use super::{Model, NativeContext, exit_plan, model_settings, model_switch, prompt, todo_list};
use crate::permission::RuleContext;
use crate::prompt::Prompt;
use crate::provider::ModelRequest;
use crate::tool::{self, Tool};

/// Sources from which the parts of a turn are made.
pub(super) struct TurnOpening<'a> {
    pub shared: &'a NativeContext,
    pub context: &'a TurnContext<'a>,
    pub model: &'a Model,
    pub input: &'a TurnInput,
    pub events: &'a dyn EventSink,
}

impl<'a> TurnOpening<'a> {
    /// Resumes the meter with the server's count of the conversation so far.
    pub(super) fn resume_meter(
        &self,
        memory: &ChatMemory<'_>,
        view: &ModelView<'_>,
        earlier: &[HistoryEntry],
    ) -> ContextMeter {
        match self.input.compact {
            Some(_) => ContextMeter::default(), // the conversation is another one now
            None => ContextMeter::resume(memory.last_counted(&view.source()), self.model, earlier),
        }
    }

    /// Opens the model's view on the turn, with findings on calls that an earlier host left behind.
    pub(super) async fn open_view(&self) -> Result<ModelView<'a>, TurnStop> {
        let mut view = ModelView::new(self.shared, self.model, self.input, self.events);
        view.forget_other_models().await?;
        let findings = inspect_orphans(self.input, self.context.workspace, self.events).await?;
        view.set_findings(findings);
        Ok(view)
    }

    /// Makes the request with the conversation so far; a notice names what a change of model loses.
    pub(super) async fn begin_request(
        &self,
        view: &mut ModelView<'_>,
        entries: &[HistoryEntry],
        newest: usize,
    ) -> Result<ModelRequest, TurnOver> {
        let model = self.model;
        let settings = model_settings::read(model, &self.input.message);
        let messages = view.lower_conversation(entries, newest).await?;
        let described = view.described(entries, newest);
        let lost = model_switch::describe(self.shared, model, self.input, &described);
        if let Some(text) = lost {
            self.events.send(AgentEvent::Notice { text }).await?;
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

    /// Makes what the calls of the turn share.
    pub(super) fn tool_context(&self, scope: &ToolScope) -> ToolContext<'a> {
        ToolContext {
            client_files: client_files(self.input),
            shared: self.shared,
            model: self.model,
            workspace: self.context.workspace,
            agent_tools: scope.agent_tools(),
            events: self.events,
            rules: self.shared.rules.clone(),
            place: RuleContext {
                session: self.context.session.to_owned(),
                directories: self.context.workspace.real_directories(),
            },
            reported_rules: Mutex::new(false),
            exclusive: Mutex::new(()),
            asking: Mutex::new(()),
        }
    }

    /// Returns the head that a request would have now: prompt, own tools, tools of clients.
    pub(super) async fn request_head(
        &self,
        scope: &ToolScope,
        tools: &[&dyn Tool],
        servers: &TurnServers<'_>,
        prompt: &Prompt,
    ) -> Result<RequestHead, TurnStop> {
        let events = self.events;
        let offers =
            if self.model.calls_tools() { events.client_tools().await? } else { Vec::new() };
        let offers = offers_within(offers, scope);
        let offered = OfferedTools::with_servers(tools, servers.tools(scope), offers);
        let sections = prompt.render();
        Ok(RequestHead {
            system: events.render(sections.clone()).await?,
            sections,
            tools: offered.specs(),
        })
    }

    /// Builds the system prompt of the turn; returns it with the rules that do not hold yet.
    pub(super) async fn build_prompt(
        &self,
        tools: &[&dyn Tool],
        servers: &TurnServers<'_>,
        custom: TurnCustomizations,
    ) -> (Prompt, FileRules) {
        let input = self.input;
        let mut facts = self.shared.gatherer.gather(self.context.directories).await;
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

    /// Lists the agent's own tools that the model may call.
    pub(super) fn offered_tools(&self, skills: &[Skill], scope: &ToolScope) -> Vec<&'a dyn Tool> {
        if !self.model.calls_tools() {
            return Vec::new();
        }
        // A worker has no client of its own.
        let has_client_files = scope.brief.is_none() && !client_files(self.input).is_empty();
        let tools = self.context.tools.iter().map(|tool| &**tool);
        tools
            .filter(|tool| tool.name() != tool::SKILL || !skills.is_empty())
            .filter(|tool| tool.name() != tool::CLIENT_FILES || has_client_files)
            .filter(|tool| {
                if tool.name() == exit_plan::NAME {
                    // A worker has no plan of the session to show; all others must be able to.
                    scope.brief.is_none()
                } else {
                    scope.allows(tool.name())
                }
            })
            .collect()
    }

    /// Starts the session's MCP servers, if the model can call anything.
    pub(super) async fn start_servers(&self) -> Result<TurnServers<'a>, TurnOver> {
        let (context, input) = (self.context, self.input);
        let has_tools = self.model.calls_tools() && input.reaches_model;
        let (Some(settings), true) = (&self.shared.mcp, has_tools) else {
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
        let servers = context.servers.begin_turn(settings, place, self.events);
        Ok(TurnServers::new(servers.await?))
    }
}

/// Lists the addresses that the message's sender attached and that only its client can read.
fn client_files(input: &TurnInput) -> Vec<String> {
    let message = input.message.as_object();
    let named = message.map(compositor::ahp::client_resources).unwrap_or_default().into_iter();
    named.map(str::to_owned).collect()
}
