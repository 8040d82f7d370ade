//! A mirror of the channels a client watches: snapshots plus actions give the host's confirmed state.
//!
//! Promises: equal to the host's state when the connection is quiet. What the host refused changes nothing.
//! Must not know: connections; actions that are not confirmed yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Action;
use wire::reduce::{Reduced, reduce_chat, reduce_plain, reduce_root, reduce_session};
use wire::state::{ChatState, PlainState, RootState, SessionState, StateError};

use crate::{Envelope, Snapshot};

/// The confirmed state of every channel a snapshot was taken of.
#[derive(Debug, Default)]
pub struct Mirror {
    channels: BTreeMap<String, Mirrored>,
    last_seen: u64,
}

#[derive(Debug)]
struct Mirrored {
    state: State,
    /// The newest seq that is in the state.
    seq: u64,
}

/// The state of one channel. A clone shares everything until one of the two changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    Root(Arc<RootState>),
    Session(Arc<SessionState>),
    Chat(Arc<ChatState>),
    /// Of a channel that is its state and nothing else.
    Plain(PlainState),
}

impl State {
    /// What a snapshot holds; none of a kind that is not mirrored.
    fn read(state: serde_json::Value) -> Result<Option<Self>, StateError> {
        let has = |field: &str| state.get(field).is_some();
        Ok(if has("turns") {
            Some(Self::Chat(Arc::new(ChatState::from_value(state)?)))
        } else if has("activeClients") {
            Some(Self::Session(Arc::new(SessionState::from_value(state)?)))
        } else if has("agents") {
            Some(Self::Root(Arc::new(RootState::from_value(state)?)))
        } else {
            PlainState::read(state)?.map(Self::Plain)
        })
    }

    /// Applies an action; what others share of the state stays as it is.
    pub(crate) fn reduce(&mut self, action: &Action) -> Reduced {
        match self {
            Self::Root(state) => reduce_root(Arc::make_mut(state), action),
            Self::Session(state) => reduce_session(Arc::make_mut(state), action),
            Self::Chat(state) => reduce_chat(Arc::make_mut(state), action),
            Self::Plain(state) => reduce_plain(state, action),
        }
    }

    pub(crate) fn root(&self) -> Option<&Arc<RootState>> {
        match self {
            Self::Root(state) => Some(state),
            Self::Session(_) | Self::Chat(_) | Self::Plain(_) => None,
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<SessionState>> {
        match self {
            Self::Session(state) => Some(state),
            Self::Root(_) | Self::Chat(_) | Self::Plain(_) => None,
        }
    }

    pub(crate) fn chat(&self) -> Option<&Arc<ChatState>> {
        match self {
            Self::Chat(state) => Some(state),
            Self::Root(_) | Self::Session(_) | Self::Plain(_) => None,
        }
    }

    pub(crate) fn plain(&self) -> Option<&PlainState> {
        match self {
            Self::Plain(state) => Some(state),
            Self::Root(_) | Self::Session(_) | Self::Chat(_) => None,
        }
    }
}

/// The effect of an envelope on the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyOutcome {
    Changed,
    Unchanged,
    /// The host refused the action.
    Rejected,
    /// No snapshot of the channel was taken, or the action is in its state already.
    NotHeld,
}

impl Mirror {
    /// Takes a snapshot; one of a kind that is not mirrored is left out.
    pub fn take_snapshot(&mut self, snapshot: Snapshot) -> Result<(), StateError> {
        let Snapshot { resource, state, from_seq } = snapshot;
        if let Some(state) = State::read(state)? {
            self.last_seen = self.last_seen.max(from_seq);
            let seq = from_seq;
            self.channels.insert(resource, Mirrored { state, seq });
        }
        Ok(())
    }

    pub fn apply(&mut self, envelope: &Envelope) -> ApplyOutcome {
        if envelope.rejection.is_some() {
            return ApplyOutcome::Rejected;
        }
        self.last_seen = self.last_seen.max(envelope.server_seq);
        let held = self.channels.get_mut(&envelope.channel);
        // Seqs rise strictly over what is recorded (G-17): anything else is in the state already.
        let Some(mirrored) = held.filter(|held| envelope.server_seq > held.seq) else {
            return ApplyOutcome::NotHeld;
        };
        mirrored.seq = envelope.server_seq;
        match mirrored.state.reduce(&envelope.action) {
            Reduced::Changed => ApplyOutcome::Changed,
            Reduced::Unchanged => ApplyOutcome::Unchanged,
        }
    }

    /// Forgets a channel that is watched no more.
    pub fn drop_channel(&mut self, channel: &str) {
        self.channels.remove(channel);
    }

    /// The highest `serverSeq` seen: where a reconnect goes on from.
    pub fn last_seen(&self) -> u64 {
        self.last_seen
    }

    pub fn root(&self) -> Option<&RootState> {
        let mut states = self.channels.values();
        states.find_map(|mirrored| mirrored.state.root().map(|state| &**state))
    }

    pub fn session(&self, channel: &str) -> Option<&SessionState> {
        self.state(channel)?.session().map(|state| &**state)
    }

    pub fn chat(&self, channel: &str) -> Option<&ChatState> {
        self.state(channel)?.chat().map(|state| &**state)
    }

    /// A changeset, annotations, a terminal or a watch.
    pub fn plain(&self, channel: &str) -> Option<&PlainState> {
        self.state(channel)?.plain()
    }

    pub(crate) fn state(&self, channel: &str) -> Option<&State> {
        self.channels.get(channel).map(|mirrored| &mirrored.state)
    }

    pub(crate) fn channels(&self) -> impl Iterator<Item = &str> {
        self.channels.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(seq: u64, title: &str, rejection: Option<&str>) -> Envelope {
        Envelope::from_value(json!({
            "channel": "x:/s",
            "action": {"type": "session/titleChanged", "title": title},
            "serverSeq": seq,
            "rejectionReason": rejection,
        }))
        .unwrap()
    }

    #[test]
    fn actions_after_the_snapshot_are_mirrored_and_refused_ones_are_not() {
        let mut mirror = Mirror::default();
        let state = json!({
            "provider": "p", "title": "", "status": 1, "lifecycle": "ready",
            "activeClients": [], "chats": [],
        });
        let snapshot = Snapshot { resource: "x:/s".to_owned(), state, from_seq: 5 };
        mirror.take_snapshot(snapshot).unwrap();
        assert_eq!(mirror.apply(&envelope(5, "old", None)), ApplyOutcome::NotHeld);
        assert_eq!(mirror.apply(&envelope(6, "new", None)), ApplyOutcome::Changed);
        assert_eq!(mirror.apply(&envelope(6, "twice", None)), ApplyOutcome::NotHeld);
        assert_eq!(mirror.apply(&envelope(6, "refused", Some("no"))), ApplyOutcome::Rejected);
        assert_eq!(mirror.session("x:/s").map(|session| session.title.as_str()), Some("new"));
        assert_eq!(mirror.last_seen(), 6);
        mirror.drop_channel("x:/s");
        assert_eq!(mirror.apply(&envelope(7, "gone", None)), ApplyOutcome::NotHeld);
    }

    #[test]
    fn the_root_is_recognised_under_all_its_names() {
        let mut mirror = Mirror::default();
        let snapshot = Snapshot {
            resource: "ahp-root://".to_owned(),
            state: json!({"agents": [{"provider": "p"}]}),
            from_seq: 0,
        };
        mirror.take_snapshot(snapshot).unwrap();
        assert_eq!(mirror.root().map(|root| root.agents.len()), Some(1));
        assert!(mirror.chat("ahp-root://").is_none());
    }
}
