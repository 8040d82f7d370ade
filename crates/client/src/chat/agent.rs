//! The agents that a host offers, for whoever starts a session with one of them.

use crate::Live;

use super::OpenChat;

/// The agent that plays scripts: for a first look, and for tests.
const SCRIPTED: &str = "scripted";

/// An agent that the host offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOffer {
    pub id: String,
    /// What people call it.
    pub name: String,
    /// What it is, or why it cannot be used.
    pub description: String,
}

impl Live {
    /// The agents of the host, the one that new sessions have first.
    pub fn agents(&self) -> Vec<AgentOffer> {
        let root = self.root();
        let agents = root.iter().flat_map(|root| root.agents.iter());
        let offers = agents.filter_map(|agent| {
            let text = |key: &str| agent[key].as_str().unwrap_or_default().to_owned();
            let id = agent["provider"].as_str()?.to_owned();
            let name = text("displayName");
            Some(AgentOffer {
                name: if name.is_empty() { id.clone() } else { name },
                id,
                description: text("description"),
            })
        });
        offers.collect()
    }

    /// Whether there is an agent that does more than play scripts.
    pub fn has_real_agent(&self) -> bool {
        self.agents().iter().any(|agent| agent.id != SCRIPTED)
    }
}

impl OpenChat {
    /// The agents of the host.
    pub fn agents(&self) -> Vec<AgentOffer> {
        self.live.agents()
    }

    /// The agent of this session, for a new one; none if the host is to choose, since this one is gone or only plays scripts.
    pub fn agent_for_new_session(&self) -> Option<String> {
        let session = self.session_state()?;
        let mut agents = self.agents().into_iter().map(|agent| agent.id);
        agents.find(|id| *id == session.provider && id != SCRIPTED)
    }
}
