//! The native agent: a model, a few tools, and the loop between them.
//!
//! Promises: nothing edits or runs without consent; an interrupted turn goes on from what it had; a cancel stops the
//! request and every process at once.
//! Must not know: channels, peers, sequence numbers; the wire format of any model.

mod answer;
mod answer_sender;
mod ask_model;
mod auto_compact;
mod budget;
mod call;
mod call_events;
mod call_order;
mod call_tool;
mod client_call;
mod compact;
mod consent;
mod context;
mod conversation;
mod customizations;
mod exit_plan;
mod fallback;
mod file_rules;
mod history;
mod host_call;
mod mcp;
mod memory;
mod model_facts;
mod model_list;
mod model_settings;
mod model_switch;
mod model_view;
mod models;
mod notices;
mod offered_tools;
mod options;
mod orphans;
mod outputs;
mod prompt;
mod recorded_call;
mod refusals;
mod refused_turns;
mod rules;
mod servers;
mod settings;
mod shorten;
mod stop;
mod title;
mod todo_list;
mod tool_scope;
mod trim;
mod turn;
mod turn_opening;
mod usage;
mod vendors;
mod work_state;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use agent_api::{
    Agent, AgentCommand, AgentError, AgentInfo, AgentResource, AgentSession, ClientPlugin,
    EventSink, HostNews, HostServices, McpRequest, ModelTerms, SESSION_BUDGET, Section,
    SessionFacts, SuggestedTitle, TurnInput, UserMessage,
};
use async_trait::async_trait;
use compositor::lower::CapabilityMap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use workspace::{Confinement, UserDirectories, Workspace};

use crate::isolation;
use crate::locale::Locale;
use crate::mcp::client_plugins;
use crate::mcp_settings::McpSettings;
use crate::prompt::{self as sections, ProjectFactsReader};
use crate::task::{detach_blocking, run_blocking};
use crate::tool::{self, ChatTools, Tool, ToolSettings};
use mcp::{ClientTokens, SessionMcp};
use model_list::ModelList;
use offered_tools::OfferedTools;
use title::TitleModel;

pub use context::CompactionSettings;
pub use model_list::{ADDED_MODELS_MAX, ReportedFacts, SharedModels};
pub use models::{Model, ModelError};
pub use vendors::{is_key_variable, models_of_environment};

/// The provider id.
pub const PROVIDER: &str = "native";

/// Chats whose tools share something, before those of which nothing runs are forgotten.
const CHATS_MAX: usize = 256;

/// Workspaces that stay open: each knows which files its session has read.
const WORKSPACES_MAX: usize = 64;

/// An agent behind which a model answers.
pub struct NativeAgent {
    shared: Arc<NativeContext>,
    workspaces: Mutex<VecDeque<(SessionFacts, Arc<Workspace>)>>,
    /// What tools left running, by chat.
    chats: Mutex<HashMap<String, Arc<ChatTools>>>,
    /// The MCP servers of sessions that have a chat in memory.
    servers: Mutex<HashMap<String, Arc<SessionMcp>>>,
    /// Tokens for MCP servers that clients brought.
    tokens: Arc<ClientTokens>,
    /// Where news goes, once the host has started.
    host: OnceLock<HostLink>,
}

/// What is needed between turns.
struct HostLink {
    news: Arc<dyn HostNews>,
    /// What the host asks for between turns may come from any thread.
    runtime: tokio::runtime::Handle,
}

/// What a model makes of a message in a chat where nothing was refused yet.
pub fn model_terms(known: &CapabilityMap, model: &Model, message: &UserMessage) -> ModelTerms {
    model_view::terms_of(known, model, None, message)
}

/// What all sessions have in common.
pub(crate) struct NativeContext {
    models: ModelList,
    tool_settings: Arc<ToolSettings>,
    locale: Locale,
    gatherer: ProjectFactsReader,
    capabilities: Arc<CapabilityMap>,
    confinement: Confinement,
    compaction: CompactionSettings,
    titles: TitleModel,
    rules: rules::Rules,
    user_directories: UserDirectories,
    /// None: the host knows no MCP servers.
    mcp: Option<Arc<McpSettings>>,
}

impl NativeAgent {
    /// An agent with these models; the first is the default.
    pub fn new(models: Vec<Model>) -> Result<Self, ModelError> {
        let list = ModelList::default();
        list.configure(models, ReportedFacts::default())?;
        Ok(Self {
            shared: Arc::new(NativeContext {
                models: list,
                tool_settings: Arc::default(),
                locale: Locale::of_environment(),
                gatherer: ProjectFactsReader::default(),
                capabilities: CapabilityMap::shared_built_in(),
                confinement: Confinement::none(),
                compaction: CompactionSettings::default(),
                titles: TitleModel::default(),
                rules: None,
                user_directories: UserDirectories::default(),
                mcp: None,
            }),
            workspaces: Mutex::default(),
            chats: Mutex::default(),
            servers: Mutex::default(),
            tokens: Arc::default(),
            host: OnceLock::new(),
        })
    }

    /// Replaces the models of the configuration, and what servers said of models; those that were added stay. Turns keep the
    /// model they began with.
    pub fn configure_models(
        &self,
        models: Vec<Model>,
        reported: ReportedFacts,
    ) -> Result<(), ModelError> {
        self.shared.models.configure(models, reported)
    }

    /// Adds a model behind the others; returns the id it goes by.
    pub fn add_model(&self, model: Model) -> Result<String, ModelError> {
        self.shared.models.add(model)
    }

    /// Whether it has any model: without one it cannot answer.
    pub fn has_models(&self) -> bool {
        self.shared.models.default_model().is_some()
    }

    /// What the tools of a chat share. Forgotten when nothing of it runs and many others are known.
    fn chat_tools(&self, chat: &str) -> Arc<ChatTools> {
        let mut chats = self.chats.lock();
        if chats.len() >= CHATS_MAX {
            chats.retain(|_, tools| Arc::strong_count(tools) > 1 || tools.is_in_use());
        }
        Arc::clone(chats.entry(chat.to_owned()).or_default())
    }

    /// Forgets what was allowed in a session that is gone, without keeping anybody waiting: its name may be used again.
    fn forget_rules(&self, session: &str) {
        let Some(rules) = self.shared.rules.clone() else {
            return; // this host stores none
        };
        let session = session.to_owned();
        let forget = move || {
            if let Err(error) = rules.remove_session(&session) {
                tracing::warn!(%error, "the rules of a session that is gone are not removed");
            }
        };
        detach_blocking(Box::new(forget));
    }

    fn workspace(&self, facts: &SessionFacts) -> Result<Arc<Workspace>, AgentError> {
        let mut open = self.workspaces.lock();
        let confinement = &self.shared.confinement;
        // The chats of a session share it.
        let facts = &SessionFacts {
            chat: String::new(),
            principal: None,     // files are the same for all
            plugins: Vec::new(), // they come and go; what is remembered of files stays
            ..facts.clone()
        };
        // A name may lead elsewhere by now: then what is remembered of the files is about others.
        open.retain(|(known, workspace)| known != facts || workspace.is_current(confinement));
        if let Some((_, workspace)) = open.iter().find(|(known, _)| known == facts) {
            return Ok(Arc::clone(workspace));
        }
        let (directories, copies) = (&facts.working_directories, facts.attachments.as_deref());
        let opened = Workspace::open_with_readable(
            directories,
            copies,
            &self.shared.user_directories,
            confinement,
        )
        .map_err(|error| AgentError {
            error_type: "workspace".to_owned(),
            message: error.to_string(),
            resumable: true,
        })?;
        let opened = Arc::new(opened);
        if open.len() >= WORKSPACES_MAX {
            open.pop_front();
        }
        open.push_back((facts.clone(), Arc::clone(&opened)));
        Ok(opened)
    }
}

#[async_trait]
impl Agent for NativeAgent {
    fn info(&self) -> AgentInfo {
        let models = self.shared.models.all();
        AgentInfo {
            provider: PROVIDER.to_owned(),
            display_name: "Greenroom".to_owned(),
            description:
                "Reads, edits and runs in your working directory with a model of your choice."
                    .to_owned(),
            models: models.iter().map(|offered| offered.model.info()).collect(),
            capabilities: json!({
                "multipleChats": {"fork": true, "sideChat": true},
                // Commands begin in the first; older clients take it for fixed.
                "multipleWorkingDirectories": {"immutablePrimary": true, "primaryReplacement": true},
            }),
            config_schema: config_schema(),
            renamed_settings: vec![consent::renamed_setting()],
            default_model: models.first().map(|offered| offered.model.id.clone()),
            sections: sections::catalogue(),
            protected_resources: Vec::new(),
            customizations: Vec::new(),
        }
    }

    fn start(&self, news: Arc<dyn HostNews>) {
        let runtime = tokio::runtime::Handle::current();
        let link = HostLink { news, runtime };
        let is_first = self.host.set(link).is_ok();
        debug_assert!(is_first, "a host starts its agents once");
    }

    fn commands(&self, facts: &SessionFacts) -> Vec<AgentCommand> {
        let session = self.running_servers(facts);
        session.map_or_else(Vec::new, |session| session.commands(facts.principal.as_deref()))
    }

    async fn prepare_commands(&self, facts: &SessionFacts, switched_off: &BTreeSet<String>) {
        self.start_servers_quietly(facts, switched_off).await;
    }

    async fn expand_command(
        &self,
        facts: &SessionFacts,
        name: &str,
        arguments: &[String],
    ) -> Result<String, String> {
        match self.running_servers(facts) {
            Some(session) => {
                session.expand_prompt(facts.principal.as_deref(), name, arguments).await
            }
            None => Err("no MCP server runs".to_owned()),
        }
    }

    async fn complete_argument(
        &self,
        facts: &SessionFacts,
        name: &str,
        arguments: &[String],
    ) -> Vec<String> {
        match self.running_servers(facts) {
            Some(session) => {
                session.complete_prompt(facts.principal.as_deref(), name, arguments).await
            }
            None => Vec::new(),
        }
    }

    async fn find_resources(&self, facts: &SessionFacts, typed: &str) -> Vec<AgentResource> {
        match self.running_servers(facts) {
            Some(session) => session.find_resources(facts.principal.as_deref(), typed).await,
            None => Vec::new(),
        }
    }

    async fn read_resource(&self, facts: &SessionFacts, uri: &str) -> Result<Vec<u8>, String> {
        match self.running_servers(facts) {
            Some(session) => session.read_resource(facts.principal.as_deref(), uri).await,
            None => Err("no MCP server runs".to_owned()),
        }
    }

    fn receive_token(&self, principal: Option<&str>, resource: &str, token: &str) {
        self.bring_token(principal, resource, token);
    }

    fn handle_mcp_request(&self, conversation: &str, id: &str, request: McpRequest) {
        self.request_server(conversation, id, request);
    }

    fn needs_history(&self) -> bool {
        true
    }

    fn joins_text(&self) -> bool {
        true
    }

    fn needs_attachment_files(&self) -> bool {
        true
    }

    fn reads_customizations(&self) -> bool {
        true
    }

    fn lowers_messages(&self) -> bool {
        true
    }

    fn model_terms(
        &self,
        model: Option<&str>,
        refusals: Option<&[u8]>,
        message: &UserMessage,
    ) -> Option<ModelTerms> {
        let models = &self.shared.models;
        let entry = match model {
            Some(id) => models.find(id),
            None => models.default_model(),
        }?;
        let known = &self.shared.capabilities;
        Some(model_view::terms_of(known, &entry.model, refusals, message))
    }

    async fn opening_prompt(
        &self,
        facts: SessionFacts,
        config: wire::Object,
    ) -> Option<Vec<Section>> {
        let gatherer = &self.shared.gatherer;
        let facts = gatherer.gather(&facts.working_directories).await;
        let tools = all_tools(&self.shared.tool_settings, &Arc::default());
        let tools = tools.iter().map(|tool| &**tool);
        // It is there with a message that names such files.
        let tools: Vec<&dyn Tool> =
            tools.filter(|tool| tool.name() != tool::CLIENT_FILES).collect();
        let mode = consent::PermissionMode::of(&config);
        let offered = OfferedTools::new(&tools, Vec::new()).for_mode(mode);
        Some(prompt::build(facts, &offered, mode).render())
    }

    async fn suggest_title(&self, text: String, host: &dyn HostServices) -> Option<SuggestedTitle> {
        let titles = &self.shared.titles;
        // One that is gone since the host was started names nothing.
        let model = self.shared.models.find(titles.id.as_deref()?)?;
        titles.suggest(&model, &text, host).await
    }

    /// A host that died when a session was disposed of did not come to forget its rules.
    async fn begin_session(&self, conversation: &str) -> Result<(), AgentError> {
        let Some(rules) = self.shared.rules.clone() else {
            return Ok(()); // this host stores none
        };
        let session = conversation.to_owned();
        run_blocking(move || rules::forget_session(&rules, &session)).await
    }

    async fn open(&self, facts: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError> {
        let chat = self.chat_tools(&facts.chat);
        let workspace = self.workspace(&facts)?;
        workspace.use_plugins(client_plugins(&facts.plugins));
        Ok(Box::new(NativeSession {
            workspace,
            tools: all_tools(&self.shared.tool_settings, &chat),
            chat,
            servers: self.session_servers(&facts),
            session: facts.conversation,
            principal: facts.principal,
            directories: facts.working_directories,
            plugins: facts.plugins,
            shared: Arc::clone(&self.shared),
        }))
    }

    fn end_chat(&self, chat: &str) {
        self.leave_servers(chat);
        let mut chats = self.chats.lock();
        if let Some(tools) = chats.remove(chat) {
            tools.end();
        }
        drop(chats);
        self.forget_rules(chat);
    }

    fn unload_chat(&self, chat: &str) {
        self.leave_servers(chat);
    }
}

/// The tools of a chat, and the one that only this agent's sessions have.
fn all_tools(settings: &Arc<ToolSettings>, chat: &Arc<ChatTools>) -> Vec<Box<dyn Tool>> {
    let mut tools = tool::all(settings, chat);
    tools.push(Box::new(exit_plan::ExitPlanTool));
    tools
}

fn config_schema() -> Value {
    let properties = json!({
        consent::SETTING: consent::schema(),
        SESSION_BUDGET: budget::schema(),
    });
    let mut schema = json!({"type": "object", "properties": properties});
    isolation::add_settings(&mut schema);
    schema
}

struct NativeSession {
    shared: Arc<NativeContext>,
    directories: Vec<String>,
    plugins: Vec<ClientPlugin>,
    workspace: Arc<Workspace>,
    session: String,
    principal: Option<String>,
    tools: Vec<Box<dyn Tool>>,
    chat: Arc<ChatTools>,
    servers: Arc<SessionMcp>,
}

/// Ends what a worker left running: nobody looks at it any more.
struct EndWithTurn<'a>(&'a ChatTools);

impl Drop for EndWithTurn<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[async_trait]
impl AgentSession for NativeSession {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError> {
        let _ends = input.brief.is_some().then(|| EndWithTurn(&self.chat));
        let context = turn::TurnContext {
            directories: &self.directories,
            plugins: &self.plugins,
            workspace: &self.workspace,
            session: &self.session,
            principal: self.principal.as_deref(),
            tools: &self.tools,
            servers: &self.servers,
        };
        turn::run(&self.shared, &context, input, events).await
    }
}
