//! A channel as a client knows it: a snapshot, and every action since, reduced.

use serde_json::Value;
use wire::Action;
use wire::reduce::{reduce_chat, reduce_plain, reduce_root, reduce_session};
use wire::state::{ChatState, PlainState, RootState, SessionState};

/// The state of one channel on the client's side.
#[derive(Debug, Clone)]
pub enum Mirror {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
    /// A channel that is its state and nothing else.
    Plain(PlainState),
}

impl Mirror {
    /// Decoded by shape, as published clients do (H-051).
    pub fn from_snapshot(state: Value) -> Self {
        if state.get("claim").is_some() {
            let terminal = PlainState::read(state).expect("a terminal state");
            return Self::Plain(terminal.expect("a terminal state"));
        }
        if state.get("agents").is_some() {
            Self::Root(Box::new(RootState::from_value(state).expect("a root state")))
        } else if state.get("activeClients").is_some() {
            Self::Session(Box::new(SessionState::from_value(state).expect("a session state")))
        } else if state.get("turns").is_some() {
            Self::Chat(Box::new(ChatState::from_value(state).expect("a chat state")))
        } else {
            let state = PlainState::read(state).expect("a state");
            Self::Plain(state.expect("a state of a known kind"))
        }
    }

    pub fn apply(&mut self, action: &Value) {
        let Some(action) = Action::from_record(action.clone()) else { return };
        match self {
            Self::Root(state) => reduce_root(state, &action),
            Self::Session(state) => reduce_session(state, &action),
            Self::Chat(state) => reduce_chat(state, &action),
            Self::Plain(state) => reduce_plain(state, &action),
        };
    }

    pub fn value(&self) -> Value {
        match self {
            Self::Root(state) => wire::action::to_value(state),
            Self::Session(state) => wire::action::to_value(state),
            Self::Chat(state) => state.value(),
            Self::Plain(state) => wire::action::to_value(state),
        }
    }

    pub fn chat(&self) -> Option<&ChatState> {
        match self {
            Self::Chat(state) => Some(state),
            Self::Root(_) | Self::Session(_) | Self::Plain(_) => None,
        }
    }
}
