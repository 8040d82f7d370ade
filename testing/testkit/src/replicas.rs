//! The same channels as others mirror them: by the reducers that are published (1.0 and 0.9), and by our own client. They
//! hear what a simulated client hears, and must end where it ends.
//!
//! Must not know: what the host holds. The checker compares.

use std::collections::BTreeMap;

use ::client::{Envelope, Replica, Snapshot};
use serde_json::Value;

/// A mirror made of published types and reducers.
macro_rules! published_mirror {
    ($name:ident, $reducers:path, $types:path) => {
        mod $name {
            use serde_json::Value;
            use $reducers as reducers;
            use $types as types;

            use types::actions::StateAction;
            use types::state::{
                AnnotationsState, ChangesetState, ChatState, RootState, SessionState, TerminalState,
            };

            #[derive(Debug)]
            pub(super) enum Mirror {
                Root(Box<RootState>),
                Session(Box<SessionState>),
                Chat(Box<ChatState>),
                Annotations(Box<AnnotationsState>),
                Changeset(Box<ChangesetState>),
                Terminal(Box<TerminalState>),
            }

            impl Mirror {
                pub(super) fn from_state(state: Value) -> Self {
                    let published = "a state that the published types read";
                    if state.get("agents").is_some() {
                        Self::Root(serde_json::from_value(state).expect(published))
                    } else if state.get("activeClients").is_some() {
                        Self::Session(serde_json::from_value(state).expect(published))
                    } else if state["annotations"].is_array() {
                        Self::Annotations(serde_json::from_value(state).expect(published))
                    } else if state.get("files").is_some() {
                        Self::Changeset(serde_json::from_value(state).expect(published))
                    } else if state.get("claim").is_some() {
                        Self::Terminal(serde_json::from_value(state).expect(published))
                    } else {
                        Self::Chat(serde_json::from_value(state).expect(published))
                    }
                }

                pub(super) fn apply(&mut self, action: &Value) {
                    let action: StateAction =
                        serde_json::from_value(action.clone()).expect("an action");
                    match self {
                        Self::Root(state) => reducers::apply_action_to_root(state, &action),
                        Self::Session(state) => reducers::apply_action_to_session(state, &action),
                        Self::Chat(state) => reducers::apply_action_to_chat(state, &action),
                        Self::Annotations(state) => {
                            reducers::apply_action_to_annotations(state, &action)
                        }
                        Self::Changeset(state) => {
                            reducers::apply_action_to_changeset(state, &action)
                        }
                        Self::Terminal(state) => reducers::apply_action_to_terminal(state, &action),
                    };
                }

                pub(super) fn value(&self) -> Value {
                    let value = match self {
                        Self::Root(state) => serde_json::to_value(state),
                        Self::Session(state) => serde_json::to_value(state),
                        Self::Chat(state) => serde_json::to_value(state),
                        Self::Annotations(state) => serde_json::to_value(state),
                        Self::Changeset(state) => serde_json::to_value(state),
                        Self::Terminal(state) => serde_json::to_value(state),
                    };
                    value.expect("published states can be written")
                }
            }
        }
    };
}

published_mirror!(of_1_0, ahp::reducers, ahp_types);
published_mirror!(of_0_9, ahp_09::reducers, ahp_types_09);

/// A channel as a published client of some version mirrors it.
#[derive(Debug)]
enum Published {
    Of1_0(of_1_0::Mirror),
    Of0_9(of_0_9::Mirror),
}

impl Published {
    fn from_state(state: Value, is_old: bool) -> Self {
        if is_old {
            Self::Of0_9(of_0_9::Mirror::from_state(state))
        } else {
            Self::Of1_0(of_1_0::Mirror::from_state(state))
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Of1_0(mirror) => mirror.value(),
            Self::Of0_9(mirror) => mirror.value(),
        }
    }
}

/// The other mirrors of one client.
#[derive(Debug)]
pub struct Replicas {
    is_old: bool,
    published: BTreeMap<String, Published>,
    ours: Replica,
}

impl Replicas {
    pub fn new(client_id: &str, is_old: bool) -> Self {
        Self { is_old, published: BTreeMap::new(), ours: Replica::new(client_id) }
    }

    /// A subscription was answered.
    pub fn take_snapshot(&mut self, snapshot: &Value) {
        if snapshot["state"].is_null() {
            return; // a channel without state: there is nothing to mirror
        }
        self.take_published(snapshot);
        let sent = self.ours.sent_up_to();
        let taken = self.ours.take_snapshot(snapshot_of(snapshot), sent);
        taken.expect("a state that our client reads");
    }

    /// Every channel was served anew; what is not among them is gone (H-082).
    pub fn replace_all(&mut self, snapshots: &[Value]) {
        self.published.clear();
        for snapshot in snapshots {
            self.take_published(snapshot);
        }
        let snapshots = snapshots.iter().map(snapshot_of).collect();
        let applied = self.ours.apply_snapshots(snapshots);
        applied.expect("states that our client reads");
    }

    fn take_published(&mut self, snapshot: &Value) {
        let channel = snapshot["resource"].as_str().unwrap_or("").to_owned();
        if channel.starts_with("ahp-resource-watch:") {
            return; // its state never changes
        }
        let mirror = Published::from_state(snapshot["state"].clone(), self.is_old);
        self.published.insert(channel, mirror);
    }

    /// An envelope came on a living connection.
    pub fn receive(&mut self, envelope: &Value) {
        self.apply_published(envelope);
        self.ours.receive(&envelope_of(envelope));
    }

    /// What was missed came with a reconnect.
    pub fn replay(&mut self, envelopes: &[Value], missing: &[String]) {
        for envelope in envelopes {
            self.apply_published(envelope);
        }
        for channel in missing {
            self.published.remove(channel);
        }
        let envelopes: Vec<Envelope> = envelopes.iter().map(envelope_of).collect();
        self.ours.apply_replay(&envelopes, missing);
    }

    fn apply_published(&mut self, envelope: &Value) {
        let channel = envelope["channel"].as_str().unwrap_or("");
        match self.published.get_mut(channel) {
            Some(Published::Of1_0(mirror)) => mirror.apply(&envelope["action"]),
            Some(Published::Of0_9(mirror)) => mirror.apply(&envelope["action"]),
            None => {} // not watched any more
        }
    }

    /// How each of them sees a channel, beside how it would see `state` if it were served now.
    pub fn compare(&self, channel: &str, state: &Value) -> Vec<Compared> {
        let mut compared = Vec::new();
        if let Some(mirror) = self.published.get(channel) {
            let fresh = Published::from_state(state.clone(), self.is_old);
            compared.push(Compared {
                whose: "the published client",
                served: fresh.value(),
                mirrored: mirror.value(),
            });
        }
        let ours = self.ours.confirmed_chat(channel).map(|chat| chat.value());
        let ours = ours.or_else(|| {
            let session = self.ours.confirmed_session(channel)?;
            Some(wire::action::to_value(&**session))
        });
        if let Some(mirrored) = ours {
            compared.push(Compared { whose: "our client", served: state.clone(), mirrored });
        }
        compared
    }
}

/// A channel as it is served now, and as it is mirrored.
#[derive(Debug)]
pub struct Compared {
    pub whose: &'static str,
    pub served: Value,
    pub mirrored: Value,
}

fn snapshot_of(snapshot: &Value) -> Snapshot {
    Snapshot::from_value(snapshot.clone()).expect("a snapshot that our client reads")
}

fn envelope_of(envelope: &Value) -> Envelope {
    Envelope::from_value(envelope.clone()).expect("an envelope that our client reads")
}
