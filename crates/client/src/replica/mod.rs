//! A client's own copy of the channels it watches, ahead of the host by what it has dispatched (write-ahead).
//!
//! Promises: what is dispatched shows at once; what the host confirms wins. When every answer has come, the copy equals the
//! host's state. No action is sent twice that could take effect twice, and none is dropped in silence (G-30). While
//! nothing is pending, the copy is the confirmed state itself and costs nothing.
//! Must not know: connections, time, tasks.

mod resend;
mod resume;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use wire::Action;
use wire::action::ChannelKind;
use wire::state::{ChatState, PlainState, RootState, SessionState, StateError};

use crate::mirror::State;
use crate::{ApplyOutcome, Envelope, Mirror, Snapshot};

pub use resend::DropReason;
pub use resume::{DroppedAction, ReconnectOutcome};

/// Actions that may wait for their answers: a client that runs further ahead than this is not reconciled but lost.
pub const PENDING_MAX: usize = 4_096;

/// The channels of one client: confirmed by the host, and ahead of it.
#[derive(Debug)]
pub struct Replica {
    client_id: String,
    confirmed: Mirror,
    /// Of each channel with pending actions: its state with them, made when it is asked for.
    ahead: BTreeMap<String, OnceLock<State>>,
    /// In the order they were dispatched.
    pending: VecDeque<PendingAction>,
    last_client_seq: i64,
}

/// An action that the host has not answered.
#[derive(Debug, Clone)]
pub struct PendingAction {
    pub client_seq: i64,
    pub channel: String,
    pub action: Arc<Action>,
    watch: EchoWatch,
    sending: Sending,
    /// How often it was handed to a connection.
    sends: u32,
}

/// Whether the echo of an action will come this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EchoWatch {
    Watched,
    /// The echo goes to those who watch the channel (H-043): acceptance is not reported.
    NotWatched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    Unsent,
    Sent,
}

/// What an envelope did, and to whose action.
#[derive(Debug, Clone, PartialEq)]
pub enum EnvelopeEffect {
    /// Confirmed, by the host or another client.
    Foreign(ApplyOutcome),
    /// The echo of this client's own action, or the answer that it changed nothing (G-17).
    Own { client_seq: i64, applied: ApplyOutcome },
    /// This client's own action was refused.
    Refused { channel: String, client_seq: i64, action: Arc<Action>, reason: String },
    /// A refusal of what another client did, which is for its sender alone (H-067), or of what was reported as dropped before.
    NotForUs,
}

/// Too much is pending to dispatch more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{PENDING_MAX} actions wait for the host's answer; this one was not taken")]
pub struct TooManyPending;

impl Replica {
    pub fn new(client_id: &str) -> Self {
        Self {
            client_id: client_id.to_owned(),
            confirmed: Mirror::default(),
            ahead: BTreeMap::new(),
            pending: VecDeque::new(),
            last_client_seq: 0,
        }
    }

    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The number up to which everything is sent. To be noted when a subscription is sent.
    pub fn sent_up_to(&self) -> i64 {
        let unsent = |pending: &&PendingAction| pending.sending == Sending::Unsent;
        let first_unsent = self.pending.iter().find(unsent); // in the order they are sent
        first_unsent.map_or(self.last_client_seq, |pending| pending.client_seq - 1)
    }

    /// Takes the snapshot that a subscription on a living connection was answered with; `sent_before` is what
    /// [`Replica::sent_up_to`] was when it was sent.
    pub fn take_snapshot(
        &mut self,
        snapshot: Snapshot,
        sent_before: i64,
    ) -> Result<(), StateError> {
        let channel = snapshot.resource.clone();
        self.confirmed.take_snapshot(snapshot)?;
        // What was sent to the channel before it was watched was decided before (H-065): it is in the snapshot, or
        // refused. Later ones are answered from now on.
        self.pending.retain(|pending| {
            pending.channel != channel
                || pending.watch == EchoWatch::Watched
                || pending.sending == Sending::Unsent
                || pending.client_seq > sent_before
        });
        for mut pending in std::mem::take(&mut self.pending) {
            pending.watch = self.watch_of(&pending.channel, &pending.action);
            self.pending.push_back(pending);
        }
        self.rebase(&channel);
        Ok(())
    }

    /// Forgets a channel that is watched no more. Actions pending on it are not answered unless they are refused.
    pub fn drop_channel(&mut self, channel: &str) {
        self.confirmed.drop_channel(channel);
        self.ahead.remove(channel);
        for pending in &mut self.pending {
            if pending.channel == channel {
                pending.watch = EchoWatch::NotWatched;
            }
        }
    }

    /// Dispatches an action: it shows at once and is handed out by [`Replica::take_unsent`]. Returns the number under
    /// which its answer comes.
    pub fn dispatch(&mut self, channel: &str, action: Action) -> Result<i64, TooManyPending> {
        if self.pending.len() >= PENDING_MAX {
            return Err(TooManyPending);
        }
        self.last_client_seq += 1;
        let watch = self.watch_of(channel, &action);
        if watch == EchoWatch::Watched {
            let ahead = self.ahead.entry(channel.to_owned()).or_default();
            if let Some(state) = ahead.get_mut() {
                state.reduce(&action);
            }
        }
        self.pending.push_back(PendingAction {
            client_seq: self.last_client_seq,
            channel: channel.to_owned(),
            action: Arc::new(action),
            watch,
            sending: Sending::Unsent,
            sends: 0,
        });
        Ok(self.last_client_seq)
    }

    /// The params of the next `dispatchAction` to be sent, in dispatch order; it counts as sent from then on.
    pub fn take_unsent(&mut self) -> Option<Value> {
        let next = self.pending.iter_mut().find(|pending| pending.sending == Sending::Unsent)?;
        next.sending = Sending::Sent;
        next.sends += 1;
        Some(json!({
            "channel": next.channel,
            "clientSeq": next.client_seq,
            "action": next.action.body,
        }))
    }

    pub fn has_unsent(&self) -> bool {
        self.pending.iter().rev().any(|pending| pending.sending == Sending::Unsent)
    }

    /// Applies what the host sent about an action, this client's or another's.
    pub fn receive(&mut self, envelope: &Envelope) -> EnvelopeEffect {
        let own = envelope
            .origin
            .as_ref()
            .filter(|origin| origin.client_id == self.client_id)
            .map(|origin| origin.client_seq);
        let answered = own.and_then(|client_seq| self.take_answered(client_seq));
        if let Some(reason) = &envelope.rejection {
            // What is not pending any more was on a channel that is gone, and reported when that was known (G-23a).
            let (Some(client_seq), Some(pending)) = (own, answered) else {
                return EnvelopeEffect::NotForUs;
            };
            self.rebase(&pending.channel);
            return EnvelopeEffect::Refused {
                channel: pending.channel,
                client_seq,
                action: pending.action,
                reason: reason.clone(),
            };
        }
        // Dropped first, so that what it shares with the confirmed state need not be copied.
        self.ahead.remove(&envelope.channel);
        let applied = self.confirmed.apply(envelope); // the echo's content, not the pending one's (H-075)
        self.rebase(&envelope.channel);
        if let Some(pending) = answered.filter(|pending| pending.channel != envelope.channel) {
            self.rebase(&pending.channel); // G-13: recorded on another channel than it was sent to
        }
        match own {
            Some(client_seq) => EnvelopeEffect::Own { client_seq, applied },
            None => EnvelopeEffect::Foreign(applied),
        }
    }

    /// Takes an answered action out of the pending ones. Earlier ones that are never answered are settled too.
    fn take_answered(&mut self, client_seq: i64) -> Option<PendingAction> {
        let position = self.pending.iter().position(|pending| pending.client_seq == client_seq);
        let answered = position.and_then(|position| self.pending.remove(position));
        self.pending.retain(|pending| {
            pending.watch == EchoWatch::Watched
                || pending.sending == Sending::Unsent
                || pending.client_seq > client_seq
        });
        answered
    }

    /// Makes what is ahead of a channel's confirmed state anew, the next time it is looked at.
    fn rebase(&mut self, channel: &str) {
        let is_ahead = self.confirmed.state(channel).is_some()
            && self
                .pending
                .iter()
                .any(|pending| pending.channel == channel && pending.watch == EchoWatch::Watched);
        if is_ahead {
            self.ahead.insert(channel.to_owned(), OnceLock::new());
        } else if !self.ahead.is_empty() {
            self.ahead.remove(channel);
        }
    }

    fn watch_of(&self, channel: &str, action: &Action) -> EchoWatch {
        let held = match self.confirmed.state(channel) {
            None => return EchoWatch::NotWatched,
            Some(State::Root(_)) => ChannelKind::Root,
            Some(State::Session(_)) => ChannelKind::Session,
            Some(State::Chat(_)) => ChannelKind::Chat,
            Some(State::Plain(state)) => state.kind(),
        };
        // An action of another kind of channel is recorded there, if anywhere (G-13).
        match action.kind.channel() {
            Some(kind) if kind != held => EchoWatch::NotWatched,
            Some(_) | None => EchoWatch::Watched,
        }
    }

    /// A channel's state with everything pending applied.
    fn state(&self, channel: &str) -> Option<&State> {
        let confirmed = self.confirmed.state(channel)?;
        let Some(ahead) = self.ahead.get(channel) else { return Some(confirmed) };
        Some(ahead.get_or_init(|| {
            let mut state = confirmed.clone();
            for pending in &self.pending {
                if pending.channel == channel && pending.watch == EchoWatch::Watched {
                    state.reduce(&pending.action);
                }
            }
            state
        }))
    }

    pub fn root(&self) -> Option<&Arc<RootState>> {
        let mut channels = self.confirmed.channels();
        channels.find_map(|channel| self.state(channel)?.root())
    }

    pub fn session(&self, channel: &str) -> Option<&Arc<SessionState>> {
        self.state(channel)?.session()
    }

    pub fn chat(&self, channel: &str) -> Option<&Arc<ChatState>> {
        self.state(channel)?.chat()
    }

    /// A changeset, annotations, a terminal or a watch.
    pub fn plain(&self, channel: &str) -> Option<&PlainState> {
        self.state(channel)?.plain()
    }

    /// The root as the host confirmed it, without what is pending.
    pub fn confirmed_root(&self) -> Option<&Arc<RootState>> {
        let mut channels = self.confirmed.channels();
        channels.find_map(|channel| self.confirmed.state(channel)?.root())
    }

    /// A session as the host confirmed it, without what is pending.
    pub fn confirmed_session(&self, channel: &str) -> Option<&Arc<SessionState>> {
        self.confirmed.state(channel)?.session()
    }

    /// A chat as the host confirmed it, without what is pending.
    pub fn confirmed_chat(&self, channel: &str) -> Option<&Arc<ChatState>> {
        self.confirmed.state(channel)?.chat()
    }

    /// The actions the host has not answered, in the order they were dispatched.
    pub fn pending(&self) -> impl DoubleEndedIterator<Item = &PendingAction> {
        self.pending.iter()
    }

    /// The channels whose state is held.
    pub fn channels(&self) -> impl Iterator<Item = &str> {
        self.confirmed.channels()
    }

    /// The highest `serverSeq` seen: where a reconnect goes on from.
    pub fn last_seen(&self) -> u64 {
        self.confirmed.last_seen()
    }
}
