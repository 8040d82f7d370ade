//! The reducer of the root channel.

use ahp_types::actions::ActionType;
use serde_json::Value;

use super::{Reduced, configure, put, put_field};
use crate::Action;
use crate::families::{chat_actions, session_actions, side_channel_actions};
use crate::state::RootState;

pub fn reduce_root(state: &mut RootState, action: &Action) -> Reduced {
    match &action.kind {
        ActionType::RootAgentsChanged => match action.get("agents") {
            Some(Value::Array(agents)) => put(&mut state.agents, agents.clone()),
            _ => Reduced::Unchanged,
        },
        ActionType::RootActiveSessionsChanged => match action.integer("activeSessions") {
            Some(count) => put(&mut state.active_sessions, Some(count)),
            None => Reduced::Unchanged,
        },
        ActionType::RootTerminalsChanged => match action.get("terminals") {
            Some(terminals) => put_field(&mut state.extra, "terminals", Some(terminals)),
            None => Reduced::Unchanged,
        },
        ActionType::RootConfigChanged => configure(&mut state.config, action),
        session_actions!() => Reduced::Unchanged,
        chat_actions!() => Reduced::Unchanged,
        side_channel_actions!() => Reduced::Unchanged,
        ActionType::Unknown(_) => Reduced::Unchanged,
    }
}
