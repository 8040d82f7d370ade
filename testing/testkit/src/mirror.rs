//! A channel as a client knows it: a snapshot, and every action since, reduced.

use serde_json::Value;
use wire::Action;
use wire::reduce::{reduce_chat, reduce_root, reduce_session};
use wire::state::{ChatState, RootState, SessionState};

/// The state of one channel on the client's side.
#[derive(Debug, Clone)]
pub enum Mirror {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
}

impl Mirror {
    /// Decoded by shape, as published clients do (H-051).
    pub fn from_snapshot(state: Value) -> Self {
        if state.get("agents").is_some() {
            Self::Root(Box::new(
                RootState::from_value(state).expect("a root state"),
            ))
        } else if state.get("lifecycle").is_some() {
            Self::Session(Box::new(
                SessionState::from_value(state).expect("a session state"),
            ))
        } else {
            Self::Chat(Box::new(
                ChatState::from_value(state).expect("a chat state"),
            ))
        }
    }

    pub fn apply(&mut self, action: &Value) {
        let Some(action) = Action::from_record(action.clone()) else {
            return;
        };
        match self {
            Self::Root(state) => reduce_root(state, &action),
            Self::Session(state) => reduce_session(state, &action),
            Self::Chat(state) => reduce_chat(state, &action),
        };
    }

    pub fn value(&self) -> Value {
        match self {
            Self::Root(state) => wire::action::to_value(state),
            Self::Session(state) => wire::action::to_value(state),
            Self::Chat(state) => state.value(),
        }
    }

    pub fn chat(&self) -> Option<&ChatState> {
        match self {
            Self::Chat(state) => Some(state),
            Self::Root(_) | Self::Session(_) => None,
        }
    }
}
