//! What the host sets of the native agent before it is used.
//!
//! Promises: an agent is set up before any conversation holds its context; setting it up later is a defect, and fails.

use std::path::Path;
use std::sync::Arc;

use compositor::lower::CapabilityMap;
use workspace::{Confinement, UserDirectories};

use super::context::CompactionSettings;
use super::model_list::{ModelList, SharedModels};
use super::title::TitleModel;
use super::{McpSettings, NativeAgent, NativeContext};
use crate::permission::RuleStore;
use crate::prompt::ProjectFactsReader;
use crate::tool::ToolSettings;

impl NativeAgent {
    fn set_up(mut self, change: impl FnOnce(&mut NativeContext)) -> Self {
        let Some(shared) = Arc::get_mut(&mut self.shared) else {
            unreachable!("a native agent is set up before its first conversation");
        };
        change(shared);
        self
    }

    /// Works in no directory that this does not allow, and looks for instructions of the project above working directories
    /// too, as far as it does.
    #[must_use]
    pub fn with_confinement(self, confinement: Confinement) -> Self {
        self.set_up(|shared| {
            shared.gatherer = ProjectFactsReader::with_confinement(confinement.clone());
            shared.confinement = confinement;
        })
    }

    /// Has its models in common with other agents, where they are the same. Before any is configured.
    #[must_use]
    pub fn sharing_models(self, models: SharedModels) -> Self {
        self.set_up(|shared| {
            assert!(shared.models.all().is_empty(), "models that were configured would be lost");
            shared.models = ModelList::sharing(models);
        })
    }

    /// Replaces what the operator says of tools.
    #[must_use]
    pub fn with_tool_settings(self, settings: ToolSettings) -> Self {
        self.set_up(|shared| shared.tool_settings = Arc::new(settings))
    }

    /// Follows and remembers the permission rules in this data directory (G-63).
    #[must_use]
    pub fn with_rules(self, data: &Path) -> Self {
        self.set_up(|shared| shared.rules = Some(Arc::new(RuleStore::new(data))))
    }

    /// Reads what the user keeps for agents in these directories.
    #[must_use]
    pub fn with_user_directories(self, directories: UserDirectories) -> Self {
        self.set_up(|shared| shared.user_directories = directories)
    }

    /// Starts the MCP servers that are declared in these places.
    #[must_use]
    pub fn with_mcp(self, settings: Arc<McpSettings>) -> Self {
        self.set_up(|shared| shared.mcp = Some(settings))
    }

    /// Has sessions named by the model with this id.
    #[must_use]
    pub fn with_title_model(self, id: Option<String>) -> Self {
        self.set_up(|shared| shared.titles = TitleModel::new(id))
    }

    /// Summarises conversations by themselves as these say.
    #[must_use]
    pub fn with_compaction(self, settings: CompactionSettings) -> Self {
        self.set_up(|shared| shared.compaction = settings)
    }

    /// Replaces what is known of what targets and models take, which agents may have in common.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Arc<CapabilityMap>) -> Self {
        self.set_up(|shared| shared.capabilities = capabilities)
    }
}
