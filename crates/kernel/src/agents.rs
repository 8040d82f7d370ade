//! The agents that clients are offered: how they change while the host runs, and how clients are notified (H-105, G-71).
//!
//! What the host has is a fact: it is not undone if its announcement cannot be written, but announced when it can be.

use serde_json::{Value, json};
use wire::methods::HostNotification;
use wire::{Action, ActionKind, ChannelUri};

use crate::background_task::BackgroundTask;
use crate::customization::survey_sessions_of;
use crate::io::{AgentFacts, Effect, ModelsChanged};
use crate::state::{Kernel, Step};

/// Replaces the host's agents. Returns the answer to the request that caused it.
pub(crate) fn replace(step: &mut Step, changed: ModelsChanged) -> Value {
    step.set_agents(changed.agents);
    if step.unwritable().is_none() {
        announce(step); // otherwise when the journal can be written again
    }
    changed.answer
}

/// Replaces the description of one agent.
pub(crate) fn replace_one(step: &mut Step, changed: AgentFacts) {
    let mut agents = step.facts().agents.clone();
    let mut known = agents.iter_mut();
    let Some(known) = known.find(|agent| agent.provider == changed.provider) else {
        debug_assert!(false, "the host speaks of the agents that it has");
        return;
    };
    let provider = changed.provider.clone();
    *known = changed;
    step.set_agents(agents);
    survey_sessions_of(step, &provider);
    if step.unwritable().is_none() {
        announce(step); // otherwise when the journal can be written again
    }
}

/// A principal's token for an agent ran out: their clients are notified (H-317). Servers of sessions say so by their states (H-306).
pub(crate) fn announce_token_end(
    step: &mut Step,
    provider: &str,
    principal: Option<&str>,
    resource: &str,
) {
    step.note_token(provider, principal, resource, false);
    let Some(metadata) = find_advertised(step, provider, resource) else {
        return; // a server of a session wanted it, or the agent is another one by now
    };
    let channel = ChannelUri::root();
    let params = json!({"channel": channel.as_str(), "resource": metadata, "reason": "expired"});
    step.notify_root_of(principal, HostNotification::AuthRequired, &params);
}

/// A principal was signed out for good: no turn of theirs, also none that waits, uses what they brought (H-318).
pub(crate) fn forget_tokens(step: &mut Step, principal: String) {
    step.forget_tokens_of(&principal);
    step.effect(Effect::ForgetTokens { principal });
}

/// What an agent advertises of a resource that it takes tokens for.
fn find_advertised(kernel: &Kernel, provider: &str, resource: &str) -> Option<Value> {
    let mut agents = kernel.facts().offered_agents();
    let agent = agents.find(|agent| agent.provider == provider)?;
    let mut known = agent.info["protectedResources"].as_array()?.iter();
    known.find(|known| known["resource"] == resource).cloned()
}

/// Announces the agents if clients know others. A step that cannot be written takes the announcement back: it is made again.
pub(crate) fn announce(step: &mut Step) {
    let task = BackgroundTask::AnnounceAgents(ChannelUri::root());
    step.recovery_mut().note_done(task);
    announce_changed(step);
}

/// The same, for a task that is noted already.
pub(crate) fn announce_changed(step: &mut Step) {
    let agents = step.facts().published_agents();
    if step.channels().root().agents != agents {
        let fields = json!({"agents": agents});
        step.act_on_root(&Action::host(ActionKind::RootAgentsChanged, fields), None);
    }
}
