//! What the kernel knows of the host it decides for: its agents, its settings.

use std::collections::BTreeSet;

use agent_api::RenamedSetting;
use serde_json::{Value, json};
use wire::ext::system_message_transform::{CATALOGUE_FIELD, CATALOGUE_KEY, SystemMessageSection};

/// What the kernel gets once, at boot, about its host.
///
/// Hosts that are alike share one of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFacts {
    /// The first is the default.
    pub agents: Vec<AgentFacts>,
    /// `file:` URI of the directory sessions get when they name none.
    pub default_directory: Option<String>,
    pub version: String,
    /// Schema of the host's own settings and their values at start.
    pub config_schema: Value,
    pub config_values: wire::Object,
    /// Whether a client is connected only after it showed the host's token: some requests are for such clients alone.
    pub clients_have_token: bool,
}

/// What the kernel must know of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentFacts {
    pub provider: String,
    /// Clients are not offered it, and no session begins with it: it cannot answer yet.
    pub hidden: bool,
    /// `AgentInfo` as clients see it.
    pub info: Value,
    /// `SessionConfigSchema` of its sessions.
    pub config_schema: Value,
    /// Settings of its sessions that had other names before.
    pub renamed_settings: Vec<RenamedSetting>,
    pub default_model: Option<String>,
    /// Whether its turns get the turns before them from the journal, and it remembers nothing else.
    pub needs_history: bool,
    /// The sections of its system prompt, and which of them never leave the host.
    pub sections: Vec<SystemMessageSection>,
    /// Resources that a token was brought for and is good, each with whose it is (H-318).
    pub tokens: BTreeSet<(Option<String>, String)>,
}

impl AgentFacts {
    /// The resources that it cannot work without and that this principal brought no token for (H-315). One that does not say whether it is
    /// required is.
    pub(crate) fn missing_resources(&self, principal: Option<&str>) -> Vec<Value> {
        let advertised = self.info["protectedResources"].as_array().into_iter().flatten();
        let missing = advertised.filter(|known| {
            let resource = known["resource"].as_str().unwrap_or_default();
            let own = (principal.map(str::to_owned), resource.to_owned());
            known["required"] != false && !self.tokens.contains(&own)
        });
        missing.cloned().collect()
    }

    /// `AgentInfo` as clients see it, with the catalogue of sections.
    pub(crate) fn published(&self) -> Value {
        let mut info = self.info.clone();
        if !self.sections.is_empty() {
            info[CATALOGUE_FIELD] = wire::action::to_value(&self.sections);
        }
        info
    }
}

impl HostFacts {
    /// The agents that clients are offered, as they see them.
    pub(crate) fn published_agents(&self) -> Vec<Value> {
        self.offered_agents().map(AgentFacts::published).collect()
    }

    pub(crate) fn offered_agents(&self) -> impl Iterator<Item = &AgentFacts> {
        self.agents.iter().filter(|agent| !agent.hidden)
    }

    /// Further fields of the root state: the catalogue again, where typed clients can read it. Agents that are not offered yet
    /// are in it: no action could add them later.
    pub(crate) fn root_extra(&self) -> wire::Object {
        let agents = self.agents.iter().filter(|agent| !agent.sections.is_empty());
        let by_provider: wire::Object = agents
            .map(|agent| {
                let sections = wire::action::to_value(&agent.sections);
                (agent.provider.clone(), sections)
            })
            .collect();
        if by_provider.is_empty() {
            return wire::Object::new();
        }
        let meta = json!({CATALOGUE_KEY: by_provider});
        wire::Object::from_iter([("_meta".to_owned(), meta)])
    }
}
