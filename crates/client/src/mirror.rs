//! A mirror of the channels a client watches: snapshots plus actions give the host's confirmed state.
//!
//! Promises: equal to the host's state when the connection is quiet. What the host refused changes nothing.
//! Must not know: connections; actions that are not confirmed yet.

use std::collections::BTreeMap;

use wire::reduce::{Reduced, reduce_chat, reduce_root, reduce_session};
use wire::state::{ChatState, RootState, SessionState, StateError};

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
    from_seq: u64,
}

#[derive(Debug)]
enum State {
    Root(Box<RootState>),
    Session(Box<SessionState>),
    Chat(Box<ChatState>),
}

/// What an envelope did to the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    Changed,
    Unchanged,
    /// The host refused the action.
    Rejected,
    /// No snapshot of the channel was taken, or the action is older than it.
    NotHeld,
}

impl Mirror {
    /// Takes a snapshot; one of a kind that is not mirrored is left out.
    pub fn take_snapshot(&mut self, snapshot: Snapshot) -> Result<(), StateError> {
        let Snapshot {
            resource,
            state,
            from_seq,
        } = snapshot;
        let has = |field: &str| state.get(field).is_some();
        let state = if has("turns") {
            State::Chat(Box::new(ChatState::from_value(state)?))
        } else if has("lifecycle") {
            State::Session(Box::new(SessionState::from_value(state)?))
        } else if has("agents") {
            State::Root(Box::new(RootState::from_value(state)?))
        } else {
            return Ok(());
        };
        self.last_seen = self.last_seen.max(from_seq);
        self.channels.insert(resource, Mirrored { state, from_seq });
        Ok(())
    }

    pub fn apply(&mut self, envelope: &Envelope) -> Applied {
        if envelope.rejection.is_some() {
            return Applied::Rejected;
        }
        self.last_seen = self.last_seen.max(envelope.server_seq);
        let held = self.channels.get_mut(&envelope.channel);
        let Some(mirrored) = held.filter(|held| envelope.server_seq > held.from_seq) else {
            return Applied::NotHeld;
        };
        let reduced = match &mut mirrored.state {
            State::Root(state) => reduce_root(state, &envelope.action),
            State::Session(state) => reduce_session(state, &envelope.action),
            State::Chat(state) => reduce_chat(state, &envelope.action),
        };
        match reduced {
            Reduced::Changed => Applied::Changed,
            Reduced::Unchanged => Applied::Unchanged,
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
        self.channels
            .values()
            .find_map(|mirrored| match &mirrored.state {
                State::Root(state) => Some(&**state),
                State::Session(_) | State::Chat(_) => None,
            })
    }

    pub fn session(&self, channel: &str) -> Option<&SessionState> {
        match &self.channels.get(channel)?.state {
            State::Session(state) => Some(state),
            State::Root(_) | State::Chat(_) => None,
        }
    }

    pub fn chat(&self, channel: &str) -> Option<&ChatState> {
        match &self.channels.get(channel)?.state {
            State::Chat(state) => Some(state),
            State::Root(_) | State::Session(_) => None,
        }
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
        let snapshot = Snapshot {
            resource: "x:/s".to_owned(),
            state,
            from_seq: 5,
        };
        mirror.take_snapshot(snapshot).unwrap();
        assert_eq!(mirror.apply(&envelope(5, "old", None)), Applied::NotHeld);
        assert_eq!(mirror.apply(&envelope(6, "new", None)), Applied::Changed);
        assert_eq!(
            mirror.apply(&envelope(6, "refused", Some("no"))),
            Applied::Rejected
        );
        assert_eq!(
            mirror.session("x:/s").map(|session| session.title.as_str()),
            Some("new")
        );
        assert_eq!(mirror.last_seen(), 6);
        mirror.drop_channel("x:/s");
        assert_eq!(mirror.apply(&envelope(7, "gone", None)), Applied::NotHeld);
    }

    #[test]
    fn the_root_is_found_whatever_its_name() {
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
