//! The reducers of the root channel, one function per action.

use serde_json::Value;

use super::{Reduced, configure, set, set_field};
use crate::Action;
use crate::state::RootState;

pub(super) fn set_agents(state: &mut RootState, action: &Action) -> Reduced {
    match action.get("agents") {
        Some(Value::Array(agents)) => set(&mut state.agents, agents.clone()),
        _ => Reduced::Unchanged,
    }
}

pub(super) fn set_active_sessions(state: &mut RootState, action: &Action) -> Reduced {
    match action.integer("activeSessions") {
        Some(count) => set(&mut state.active_sessions, Some(count)),
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_terminals(state: &mut RootState, action: &Action) -> Reduced {
    match action.get("terminals") {
        Some(terminals) => set_field(&mut state.extra, "terminals", Some(terminals)),
        None => Reduced::Unchanged,
    }
}

pub(super) fn change_config(state: &mut RootState, action: &Action) -> Reduced {
    configure(&mut state.config, action)
}
