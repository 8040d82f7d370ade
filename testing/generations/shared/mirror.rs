//! The channels that a client follows, as its own types and reducers make them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::VERSION;
use super::super::ahp::reducers::{
    apply_action_to_annotations, apply_action_to_changeset, apply_action_to_chat,
    apply_action_to_resource_watch, apply_action_to_root, apply_action_to_session,
    apply_action_to_terminal,
};
use super::super::ahp_types::actions::StateAction;
use super::super::ahp_types::state::{
    AnnotationsState, ChangesetState, ChatState, ResourceWatchState, RootState, SessionState,
    TerminalState,
};
use super::judge::{known, read};

pub const ROOT: &str = "ahp-root://";

enum ChannelState {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
    Terminal(Box<TerminalState>),
    Changeset(Box<ChangesetState>),
    Annotations(Box<AnnotationsState>),
    Watch(Box<ResourceWatchState>),
}

/// A state as its own type reads it: what the type does not know is not in it.
fn typed<T: DeserializeOwned + Debug>(state: Value) -> Box<T> {
    let typed: T =
        read(&state).unwrap_or_else(|why| panic!("{VERSION} cannot read {state}: {why}"));
    let all_known = known("a state", &typed);
    assert_eq!(all_known, Ok(()), "{VERSION} {state}");
    Box::new(typed)
}

impl ChannelState {
    fn read(channel: &str, state: Value) -> Self {
        if channel == ROOT {
            Self::Root(typed(state))
        } else if channel.starts_with("ahp-chat:") {
            Self::Chat(typed(state))
        } else if channel.starts_with("ahp-terminal:") {
            Self::Terminal(typed(state))
        } else if channel.starts_with("ahp-resource-watch:") {
            Self::Watch(typed(state))
        } else if channel.contains("/changeset/") {
            Self::Changeset(typed(state))
        } else if channel.ends_with("/annotations") {
            Self::Annotations(typed(state))
        } else {
            Self::Session(typed(state))
        }
    }

    fn apply(&mut self, action: &StateAction) {
        // What an action changed is compared with what a newcomer is told.
        let _ = match self {
            Self::Root(state) => apply_action_to_root(state, action),
            Self::Session(state) => apply_action_to_session(state, action),
            Self::Chat(state) => apply_action_to_chat(state, action),
            Self::Terminal(state) => apply_action_to_terminal(state, action),
            Self::Changeset(state) => apply_action_to_changeset(state, action),
            Self::Annotations(state) => apply_action_to_annotations(state, action),
            Self::Watch(state) => apply_action_to_resource_watch(state, action),
        };
    }

    fn value(&self) -> Value {
        match self {
            Self::Root(state) => json!(state),
            Self::Session(state) => json!(state),
            Self::Chat(state) => json!(state),
            Self::Terminal(state) => json!(state),
            Self::Changeset(state) => json!(state),
            Self::Annotations(state) => json!(state),
            Self::Watch(state) => json!(state),
        }
    }

    /// Without what no action of this version tells, each with its reason.
    fn comparable(&self) -> Value {
        let mut value = self.value();
        match self {
            Self::Chat(_) => {
                value["title"] = Value::Null; // no action of a chat carries it (H-150)
                if VERSION < "1.0" {
                    // A chat's flags came with 1.0.
                    value["status"] = json!(value["status"].as_u64().unwrap_or(0) & 31);
                }
                // Reducers up to 0.8 took the time of their own clock.
                if VERSION < "0.9" {
                    value["modifiedAt"] = Value::Null;
                }
                if VERSION < "0.5" {
                    value["activity"] = Value::Null; // its action came with 0.5
                }
                if VERSION < "0.7" {
                    value["workingDirectory"] = Value::Null; // its actions came with 0.7
                }
            }
            Self::Session(_) => {
                if VERSION < "0.5" {
                    value["summary"]["modifiedAt"] = Value::Null;
                    value["summary"]["workingDirectory"] = Value::Null;
                } else if VERSION < "0.7" {
                    // No action up to 0.6 tells it: the list of sessions does.
                    value["workingDirectory"] = Value::Null;
                }
                let waits = value["inputNeeded"].as_array().is_some_and(|all| !all.is_empty());
                if VERSION >= "0.5.1" && VERSION < "0.6" && !waits {
                    // A wait for a sign-in was none to whoever was there: idle. When it is over a session is in progress by the
                    // rules of the newest version, and whoever comes then is told so.
                    let status = value["status"].as_u64().unwrap_or(0);
                    value["status"] = json!((status & !31) | 1);
                }
                if VERSION < "0.8"
                    && let Some(status) = value["status"].as_u64()
                {
                    // They count a tool that a client runs as waiting for the user.
                    value["status"] = json!(status & !16);
                }
            }
            Self::Root(_)
            | Self::Terminal(_)
            | Self::Changeset(_)
            | Self::Annotations(_)
            | Self::Watch(_) => {}
        }
        value
    }
}

/// One channel, and the seq of the snapshot that it began with.
struct Followed {
    state: ChannelState,
    from_seq: i64,
    /// The names of the actions that were applied and that nobody counted yet.
    heard: RefCell<BTreeSet<String>>,
}

#[derive(Default)]
pub struct Mirror {
    channels: BTreeMap<String, Followed>,
    pub seen: i64,
}

impl Mirror {
    pub fn takes_snapshot(&mut self, snapshot: &Value) {
        let channel = snapshot["resource"].as_str().expect("a channel");
        let from_seq = snapshot["fromSeq"].as_i64().expect("a seq");
        let state = ChannelState::read(channel, snapshot["state"].clone());
        let followed = Followed { state, from_seq, heard: RefCell::default() };
        self.channels.insert(channel.to_owned(), followed);
        self.seen = self.seen.max(from_seq);
    }

    pub fn applies(&mut self, channel: &str, action: &StateAction, seq: i64) {
        assert!(!matches!(action, StateAction::Unknown(_)), "{VERSION} does not know {action:?}");
        self.seen = self.seen.max(seq);
        // What was sent before the snapshot is in it.
        if let Some(followed) = self.channels.get_mut(channel)
            && seq > followed.from_seq
        {
            followed.state.apply(action);
            let name = json!(action)["type"].as_str().map(str::to_owned);
            followed.heard.borrow_mut().extend(name);
        }
    }

    /// The names of the actions that were applied to a channel since this was asked last.
    pub fn takes_heard(&self, channel: &str) -> BTreeSet<String> {
        let followed = self.channels.get(channel);
        followed.map_or_else(BTreeSet::new, |followed| followed.heard.take())
    }

    pub fn follows(&self, channel: &str) -> bool {
        self.channels.contains_key(channel)
    }

    pub fn leaves(&mut self, channel: &str) {
        self.channels.remove(channel);
    }

    pub fn names(&self) -> Vec<String> {
        self.channels.keys().cloned().collect()
    }

    /// A channel as JSON; null if it is not followed.
    pub fn value(&self, channel: &str) -> Value {
        let followed = self.channels.get(channel);
        followed.map_or(Value::Null, |followed| followed.state.value())
    }

    pub fn comparable(&self, channel: &str) -> Value {
        let followed = self.channels.get(channel);
        followed.map_or(Value::Null, |followed| followed.state.comparable())
    }

    pub fn chats(&self) -> BTreeMap<String, Value> {
        let chats = self.channels.iter().filter(|(_, followed)| matches!(followed.state, ChannelState::Chat(_)));
        chats.map(|(name, followed)| (name.clone(), followed.state.value())).collect()
    }
}
