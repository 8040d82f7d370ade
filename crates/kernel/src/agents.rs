//! The agents that clients are offered: how they change while the host runs, and that everybody hears of it (H-105, G-71).
//!
//! What the host has is a fact: it is not undone if its announcement cannot be written, but announced when it can be.

use serde_json::{Value, json};
use wire::{Action, ActionKind};

use crate::io::{AgentFacts, ModelsChanged};
use crate::state::Step;

/// The host's agents are others now. Returns what whoever caused it is answered.
pub(crate) fn replace(step: &mut Step, changed: ModelsChanged) -> Value {
    step.set_agents(changed.agents);
    if step.unwritable().is_none() {
        announce(step); // otherwise when the journal can be written again
    }
    changed.answer
}

/// One of them is not what it said of itself before.
pub(crate) fn replace_one(step: &mut Step, changed: AgentFacts) {
    let mut agents = step.facts().agents.clone();
    let mut known = agents.iter_mut();
    let Some(known) = known.find(|agent| agent.provider == changed.provider) else {
        debug_assert!(false, "the host speaks of the agents that it has");
        return;
    };
    *known = changed;
    step.set_agents(agents);
    if step.unwritable().is_none() {
        announce(step); // otherwise when the journal can be written again
    }
}

/// Announces the agents if clients know others.
pub(crate) fn announce(step: &mut Step) {
    let agents = step.facts().published_agents();
    if step.channels().root().agents != agents {
        let fields = json!({"agents": agents});
        step.act_on_root(&Action::host(ActionKind::RootAgentsChanged, fields), None);
    }
}
