//! What the host sets of the native agent before it is used.
//!
//! Promises: each of these is for an agent that nobody else holds yet; later they change nothing.

use std::path::Path;
use std::sync::Arc;

use compositor::lower::CapabilityMap;
use workspace::{Confinement, UserDirectories};

use super::context::CompactionSettings;
use super::model_list::{ModelList, SharedModels};
use super::title::TitleModel;
use super::{McpSettings, NativeAgent};
use crate::permission::RuleStore;
use crate::prompt::Gatherer;
use crate::tool::ToolSettings;

impl NativeAgent {
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

    /// Has its models in common with other agents, where they are the same. Before any is configured.
    #[must_use]
    pub fn sharing_models(mut self, models: SharedModels) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.models = ModelList::sharing(models);
        }
        self
    }

    /// Replaces what the operator says of tools.
    #[must_use]
    pub fn with_tool_settings(mut self, settings: ToolSettings) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.tool_settings = Arc::new(settings);
        }
        self
    }

    /// Follows and remembers the permission rules in this data directory (G-63).
    #[must_use]
    pub fn with_rules(mut self, data: &Path) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.rules = Some(Arc::new(RuleStore::new(data)));
        }
        self
    }

    /// Reads what the user keeps for agents in these directories.
    #[must_use]
    pub fn with_user_directories(mut self, directories: UserDirectories) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.user_directories = directories;
        }
        self
    }

    /// Starts the MCP servers that are declared in these places.
    #[must_use]
    pub fn with_mcp(mut self, settings: Arc<McpSettings>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.mcp = Some(settings);
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

    /// Replaces what is known of what targets and models take, which agents may have in common.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Arc<CapabilityMap>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.capabilities = capabilities;
        }
        self
    }
}
