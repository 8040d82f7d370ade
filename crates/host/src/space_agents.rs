//! The agents of a space: there from its start, or made when one is first wanted, because most spaces of a node are at rest
//! (ADR 0149).
//!
//! Promises: they are made once, and from then on the kernel hears what they say between turns; that they can be made was tried
//! when the space was loaded.
//! Must not know: what an agent does, how one is made.

use std::sync::{Arc, OnceLock};

use agent_api::Agent;

use crate::config::Config;
use crate::kernel_queue::KernelQueue;
use crate::models::AgentRoster;
use crate::news::start_agents;
use crate::server::ServeError;

/// The settings of a space, for what is made later.
#[derive(Clone)]
pub(crate) struct SettingsSource(Arc<dyn Fn() -> Result<Config, ServeError> + Send + Sync>);

impl SettingsSource {
    /// These.
    pub(crate) fn of(config: &Config) -> Self {
        let config = config.clone();
        Self(Arc::new(move || Ok(config.clone())))
    }

    /// They are put together when they are wanted, so that a space at rest need not have them.
    pub(crate) fn on_demand(
        make: impl Fn() -> Result<Config, ServeError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn get(&self) -> Result<Config, ServeError> {
        (self.0)()
    }
}

/// Makes the agents of a space; may read files.
pub(crate) type MakeAgents = Box<dyn Fn() -> Result<AgentRoster, ServeError> + Send + Sync>;

/// A handle: clones share them.
#[derive(Clone)]
pub(crate) struct SpaceAgents(Arc<AgentsOfSpace>);

struct AgentsOfSpace {
    made: OnceLock<Arc<AgentRoster>>,
    /// None if they are there from the start.
    make: Option<MakeAgents>,
    /// Where goes what they say between turns, once there is a kernel.
    arrivals: OnceLock<KernelQueue>,
}

impl SpaceAgents {
    /// They are there.
    pub(crate) fn of(roster: AgentRoster) -> Self {
        Self(Arc::new(AgentsOfSpace {
            made: OnceLock::from(Arc::new(roster)),
            make: None,
            arrivals: OnceLock::new(),
        }))
    }

    /// They are made when one is wanted.
    pub(crate) fn on_demand(make: MakeAgents) -> Self {
        Self(Arc::new(AgentsOfSpace {
            made: OnceLock::new(),
            make: Some(make),
            arrivals: OnceLock::new(),
        }))
    }

    /// Agents of a test, beside a native one without models.
    #[cfg(test)]
    pub(crate) fn for_test(agents: Vec<Arc<dyn Agent>>) -> Self {
        let config = Config::default_for(std::path::PathBuf::from("data"));
        let native = Arc::new(agents::NativeAgent::new(Vec::new()).unwrap());
        Self::of(AgentRoster::new(&config, native, agents))
    }

    /// Has this kernel hear what they say between turns. Called once, where tasks can be started.
    pub(crate) fn start(&self, arrivals: KernelQueue) {
        let is_first = self.0.arrivals.set(arrivals).is_ok();
        assert!(is_first, "a space has one kernel");
        if let Some((roster, arrivals)) = self.0.made.get().zip(self.0.arrivals.get()) {
            start_agents(roster, arrivals.clone());
        }
    }

    /// They are made if they are not there; none if that fails, which is logged and tried again by the next who wants one.
    pub(crate) fn roster(&self) -> Option<Arc<AgentRoster>> {
        if let Some(roster) = self.0.made.get() {
            return Some(Arc::clone(roster));
        }
        let make = self.0.make.as_ref()?;
        let roster = match make() {
            Ok(roster) => Arc::new(roster),
            Err(error) => {
                tracing::error!(%error, "the agents of a space cannot be made; whoever wants one hears that it is missing");
                return None;
            }
        };
        let made = self.0.made.get_or_init(|| {
            if let Some(arrivals) = self.0.arrivals.get() {
                start_agents(&roster, arrivals.clone());
            }
            roster
        });
        Some(Arc::clone(made))
    }

    /// Those that are there already: only these can have something to forget.
    pub(crate) fn made(&self) -> &[Arc<dyn Agent>] {
        self.0.made.get().map_or(&[], |roster| roster.agents())
    }

    /// The agent of a provider.
    pub(crate) fn find(&self, provider: &str) -> Option<Arc<dyn Agent>> {
        let roster = self.roster()?;
        let mut agents = roster.agents().iter();
        agents.find(|agent| agent.info().provider == provider).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use agents::ScriptedAgent;

    use super::*;

    #[test]
    fn they_are_made_once_and_only_when_one_is_wanted() {
        let tries = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&tries);
        let agents = SpaceAgents::on_demand(Box::new(move || {
            if counter.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(ServeError::Model("not now".to_owned()));
            }
            let config = Config::default_for(std::path::PathBuf::from("data"));
            let native = Arc::new(agents::NativeAgent::new(Vec::new()).unwrap());
            let scripted: Arc<dyn Agent> = Arc::new(ScriptedAgent::builtin());
            Ok(AgentRoster::new(&config, native, vec![scripted]))
        }));
        assert!(agents.made().is_empty());
        assert_eq!(tries.load(Ordering::Relaxed), 0);
        assert!(agents.find("scripted").is_none(), "they could not be made");
        let other = agents.clone();
        assert!(other.find("scripted").is_some());
        assert!(agents.find("scripted").is_some() && agents.find("none").is_none());
        assert_eq!(tries.load(Ordering::Relaxed), 2, "made once");
        assert_eq!(agents.made().len(), 1);
    }
}
