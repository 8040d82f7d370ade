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
mod client_call;
mod compact;
mod consent;
mod context;
mod conversation;
mod fallback;
mod history;
mod memory;
mod model_list;
mod model_view;
mod models;
mod notices;
mod offered_tools;
mod orphans;
mod outputs;
mod prompt;
mod refusals;
mod settings;
mod shorten;
mod stop;
mod title;
mod turn;
mod usage;
mod vendors;
mod work_state;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use agent_api::{
    Agent, AgentError, AgentInfo, AgentSession, EventSink, Section, SessionFacts, SuggestedTitle,
    TurnInput,
};
use async_trait::async_trait;
use compositor::lower::CapabilityMap;
use serde_json::{Value, json};
use workspace::{Confinement, Workspace};

use crate::locale::Locale;
use crate::prompt::{self as sections, Gatherer};
use crate::tool::{self, Tool};
use model_list::ModelList;
use offered_tools::OfferedTools;
use title::TitleModel;

pub use context::CompactionSettings;
pub use model_list::ADDED_MODELS_MAX;
pub use models::{Model, ModelError, Prices};

/// The provider id.
pub const PROVIDER: &str = "native";

/// Workspaces that stay open: each knows which files its session has read.
const WORKSPACES_MAX: usize = 64;

/// An agent behind which a model answers.
pub struct NativeAgent {
    shared: Arc<NativeContext>,
    workspaces: Mutex<VecDeque<(SessionFacts, Arc<Workspace>)>>,
    approvals: Mutex<HashMap<String, Weak<Approvals>>>,
}

/// The approvals of a session. Its turns share them as long as any of them runs, so that none misses an approval given in
/// another; between turns they are in the session's notes.
type Approvals = tokio::sync::Mutex<consent::Approved>;

/// What all sessions have in common.
pub(crate) struct NativeContext {
    models: ModelList,
    tools: Vec<Box<dyn Tool>>,
    locale: Locale,
    gatherer: Gatherer,
    capabilities: CapabilityMap,
    confinement: Confinement,
    compaction: CompactionSettings,
    titles: TitleModel,
}

impl NativeAgent {
    /// An agent with these models; the first is the default.
    pub fn new(models: Vec<Model>) -> Result<Self, ModelError> {
        let list = ModelList::default();
        list.configure(models)?;
        Ok(Self {
            shared: Arc::new(NativeContext {
                models: list,
                tools: tool::all(&[]),
                locale: Locale::of_environment(),
                gatherer: Gatherer::default(),
                capabilities: CapabilityMap::built_in(),
                confinement: Confinement::none(),
                compaction: CompactionSettings::default(),
                titles: TitleModel::default(),
            }),
            workspaces: Mutex::default(),
            approvals: Mutex::default(),
        })
    }

    /// Works in no directory that this does not allow, and looks for instructions of the project above working directories
    /// too, as far as it does.
    #[must_use]
    pub fn confined_to(mut self, confinement: Confinement) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.gatherer = Gatherer::confined_to(confinement.clone());
            shared.confinement = confinement;
        }
        self
    }

    /// Passes these variables of the host's environment on to commands, beside the usual ones (G-51).
    #[must_use]
    pub fn with_command_variables(mut self, names: &[String]) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.tools = tool::all(names);
        }
        self
    }

    /// Has sessions named by the model with this id.
    #[must_use]
    pub fn with_title_model(mut self, id: Option<String>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.titles = TitleModel::new(id);
        }
        self
    }

    /// Summarises conversations by themselves as these say.
    #[must_use]
    pub fn with_compaction(mut self, settings: CompactionSettings) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.compaction = settings;
        }
        self
    }

    /// Replaces what is known of what targets and models take.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: CapabilityMap) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.capabilities = capabilities;
        }
        self
    }

    /// Replaces the models of the configuration; those that were added stay. Turns keep the model they began with.
    pub fn configure_models(&self, models: Vec<Model>) -> Result<(), ModelError> {
        self.shared.models.configure(models)
    }

    /// Adds a model behind the others; returns the id it goes by.
    pub fn add_model(&self, model: Model) -> Result<String, ModelError> {
        self.shared.models.add(model)
    }

    /// Whether it has any model: without one it cannot answer.
    pub fn has_models(&self) -> bool {
        self.shared.models.default_model().is_some()
    }

    fn approvals(&self, conversation: &str) -> Arc<Approvals> {
        let mut known = self
            .approvals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.get(conversation).and_then(Weak::upgrade) {
            return shared;
        }
        known.retain(|_, shared| shared.strong_count() > 0);
        let shared = Arc::default();
        known.insert(conversation.to_owned(), Arc::downgrade(&shared));
        shared
    }

    fn workspace(&self, facts: &SessionFacts) -> Result<Arc<Workspace>, AgentError> {
        let mut open = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let confinement = &self.shared.confinement;
        // A name may lead elsewhere by now: then what is remembered of the files is about others.
        open.retain(|(known, workspace)| known != facts || workspace.is_current(confinement));
        if let Some((_, workspace)) = open.iter().find(|(known, _)| known == facts) {
            return Ok(Arc::clone(workspace));
        }
        let (directories, copies) = (&facts.working_directories, facts.attachments.as_deref());
        let opened = Workspace::open_with_readable(directories, copies, confinement);
        let opened = opened.map_err(|error| AgentError {
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
            capabilities: json!({"multipleChats": {"fork": true, "sideChat": true}}),
            config_schema: config_schema(),
            renamed_settings: vec![consent::renamed_setting()],
            default_model: models.first().map(|offered| offered.model.id.clone()),
            sections: sections::catalogue(),
        }
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

    fn lowers_messages(&self) -> bool {
        true
    }

    async fn opening_prompt(
        &self,
        facts: SessionFacts,
        config: wire::Object,
    ) -> Option<Vec<Section>> {
        let gatherer = &self.shared.gatherer;
        let facts = gatherer.gather(&facts.working_directories).await;
        let tools: Vec<&dyn Tool> = self.shared.tools.iter().map(|tool| &**tool).collect();
        let mode = consent::PermissionMode::of(&config);
        let offered = OfferedTools::new(&tools, Vec::new());
        Some(prompt::build(facts, &offered, mode).render())
    }

    async fn suggest_title(&self, text: String) -> Option<SuggestedTitle> {
        let titles = &self.shared.titles;
        // One that is gone since the host was started names nothing.
        let model = self.shared.models.find(titles.id.as_deref()?)?;
        titles.suggest(&model, &text).await
    }

    async fn open(&self, facts: SessionFacts) -> Result<Box<dyn AgentSession>, AgentError> {
        Ok(Box::new(NativeSession {
            workspace: self.workspace(&facts)?,
            approvals: self.approvals(&facts.conversation),
            directories: facts.working_directories,
            shared: Arc::clone(&self.shared),
        }))
    }
}

fn config_schema() -> Value {
    json!({"type": "object", "properties": {consent::SETTING: consent::schema()}})
}

struct NativeSession {
    shared: Arc<NativeContext>,
    directories: Vec<String>,
    workspace: Arc<Workspace>,
    approvals: Arc<Approvals>,
}

#[async_trait]
impl AgentSession for NativeSession {
    async fn turn(&mut self, input: TurnInput, events: &dyn EventSink) -> Result<(), AgentError> {
        let context = turn::TurnContext {
            directories: &self.directories,
            workspace: &self.workspace,
            approvals: &self.approvals,
        };
        turn::run(&self.shared, &context, input, events).await
    }
}
