//! Recording and sending: the only place where a seq is given to an action and frames are made of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use wire::ActionKind;
use wire::action::{self, EncodedAction};
use wire::compat::{AfterAction, OlderForm};
use wire::methods::HostNotification;
use wire::reduce::Reduced;
use wire::state::PlainState;
use wire::{Action, ChannelUri, Generation, Id, Object, Origin, RpcError, compat, rpc};

use super::Step;
use crate::bodies::SentAction;
use crate::channels::PlainChannel;
use crate::follow_up::FollowUp;
use crate::frame::{Frame, OutgoingFrame, Recipient, Recipients, RefusedAction};
use crate::io::PeerId;
use crate::peers::Peers;
use crate::record::{ChannelId, Record, Seq};

/// The client behind an action. Its echo reaches it as a watcher of the channel (H-043, H-063); a refusal, or the answer
/// that nothing changed, reaches it in any case.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub peer: PeerId,
    pub origin: Origin,
    /// The action in the form of the sender's version, if that differs.
    pub as_sent: Option<Arc<Object>>,
}

impl Step<'_> {
    /// Applies an action to a channel that is in memory, records it and sends it to all who watch. `Unchanged` records nothing: the
    /// sender alone is answered (G-17).
    pub(crate) fn act(
        &mut self,
        uri: &ChannelUri,
        action: Action,
        sender: Option<&Sender>,
    ) -> Reduced {
        let now = self.now();
        let Some(reduced) = self.kernel.channels.reduce(uri, &action, now) else {
            unreachable!("{uri} is in memory");
        };
        if reduced == Reduced::Unchanged {
            self.answer_unchanged(uri, &action, sender);
            return reduced;
        }
        let id = self.id_of(uri);
        let bytes = self.record_action(uri, id, &action, sender);
        let over_head = action.kind.is_applied_over_head();
        let added = bytes_in_turn(&action, bytes);
        let channels = &mut self.kernel.channels;
        let turn_bytes = channels.note_recorded(uri, bytes, over_head, added);
        if added > 0 && turn_bytes > self.limits().turn_bytes_max {
            self.follow_up(FollowUp::BoundTurn(uri.clone()));
        }
        if sender.is_some() || !action.kind.streams() {
            self.note_changed(uri);
        }
        reduced
    }

    /// An action of the host's own. Whether it changed anything.
    pub(crate) fn act_as_host(
        &mut self,
        uri: &ChannelUri,
        kind: ActionKind,
        fields: Value,
    ) -> bool {
        self.act(uri, Action::host(kind, fields), None) == Reduced::Changed
    }

    /// Records and sends an action of an extension: no reducer knows it, so what it changes must follow in the same step.
    pub(crate) fn record_extension_action(
        &mut self,
        uri: &ChannelUri,
        action: &Action,
        sender: &Sender,
    ) {
        let id = self.id_of(uri);
        let bytes = self.record_action(uri, id, action, Some(sender));
        self.kernel.channels.note_recorded(uri, bytes, false, 0);
    }

    /// The same for the root channel.
    pub(crate) fn act_on_root(&mut self, action: &Action, sender: Option<&Sender>) -> Reduced {
        let uri = ChannelUri::root();
        if self.kernel.channels.reduce_root(action) == Reduced::Unchanged {
            self.answer_unchanged(&uri, action, sender);
            return Reduced::Unchanged;
        }
        self.record_action(&uri, ChannelId::ROOT, action, sender);
        Reduced::Changed
    }

    /// Sends all who watch a channel something that no state holds: it uses a seq and is never replayed. While nothing can be
    /// written nobody gets it.
    pub(crate) fn send_unrecorded(&mut self, uri: &ChannelUri, action: &Action) {
        if self.unwritable().is_some() || self.peers().watchers(uri).is_empty() {
            return; // no seq may be used while nothing can be written; or nobody watches
        }
        let seq = self.next_seq();
        let encoded = action::encode(uri, &action.body, seq.0, None, None);
        let knows = |generation| compat::knows(generation, action.kind);
        if let Some(recipients) = self.kernel.peers.recipients(uri, None, knows) {
            let frame = Frame::Text(encoded.frame);
            self.out.frames.push(OutgoingFrame { recipients, frame });
        }
    }

    pub(crate) fn answer_unchanged(
        &mut self,
        uri: &ChannelUri,
        action: &Action,
        sender: Option<&Sender>,
    ) {
        if let Some(sender) = sender {
            let seq = self.seq().0;
            let body = sender.as_sent.as_deref().unwrap_or(&action.body);
            let echo = action::encode(uri, body, seq, Some(&sender.origin), None);
            self.send(sender.peer, Frame::Text(echo.frame));
        }
    }

    fn record_action(
        &mut self,
        uri: &ChannelUri,
        id: ChannelId,
        action: &Action,
        sender: Option<&Sender>,
    ) -> usize {
        let origin = sender.map(|sender| &sender.origin);
        let (seq, envelope, frame) = self.kernel.log.push(id, |seq| {
            let EncodedAction { frame, envelope } =
                action::encode(uri, &action.body, seq.0, origin, None);
            (envelope, frame)
        });
        let bytes = envelope.len();
        self.out.records.push(Record::Action { seq, channel: id, envelope });
        // A client of an older generation is sent only what it knows, and the echo of its own actions (G-23).
        let served = self.send_older_forms(uri, action, seq, origin);
        let sender = sender.map(|sender| sender.peer);
        let unserved =
            |generation| compat::is_same(generation, action.kind) && !served.contains(&generation);
        let sender = sender.filter(|sender| !served.contains(&self.generation_of(*sender)));
        if let Some(recipients) = self.kernel.peers.recipients(uri, sender, unserved) {
            let frame = Frame::Text(frame);
            self.out.frames.push(OutgoingFrame { recipients, frame });
        }
        bytes
    }

    /// Sends an action to the watchers of older versions that have another form of it, once for each version. The versions
    /// that were sent something.
    fn send_older_forms(
        &mut self,
        uri: &ChannelUri,
        action: &Action,
        seq: Seq,
        origin: Option<&Origin>,
    ) -> BTreeSet<Generation> {
        let mut served = BTreeSet::new();
        for generation in self.kernel.peers.older_generations(uri) {
            if compat::is_same(generation, action.kind) {
                continue;
            }
            let channels = &self.kernel.channels;
            let after = match (channels.find_session(uri), channels.find_chat(uri)) {
                (Some(session), _) => AfterAction::Session(session.state()),
                (None, Some(chat)) => AfterAction::Chat(chat.state()),
                (None, None) => {
                    let plain = channels.find_plain(uri).map(PlainChannel::state);
                    let changeset = plain.and_then(PlainState::changeset);
                    changeset.map_or(AfterAction::Root, AfterAction::Changeset)
                }
            };
            let OlderForm::Instead(actions) = compat::down_action(generation, action, after) else {
                continue;
            };
            for body in actions {
                let encoded = action::encode(uri, &body, seq.0, origin, None);
                if let Some(recipients) = self.kernel.peers.recipients_of(uri, generation) {
                    let frame = Frame::Text(encoded.frame);
                    self.out.frames.push(OutgoingFrame { recipients, frame });
                    served.insert(generation);
                }
            }
        }
        served
    }

    fn generation_of(&self, peer: PeerId) -> Generation {
        let ready = self.peers().ready(peer);
        ready.map_or(Generation::V1_0, |ready| ready.generation)
    }

    /// An action for one connection alone: uses a seq, is not replayed (G-18).
    pub(crate) fn act_for_one(&mut self, peer: PeerId, uri: &ChannelUri, json: &[u8]) {
        let seq = self.next_seq();
        let generation = self.generation_of(peer);
        if generation < Generation::V0_9
            && let Some(action) = serde_json::from_slice(json).ok().and_then(Action::from_record)
            && let OlderForm::Instead(actions) =
                compat::down_action(generation, &action, AfterAction::Root)
        {
            for body in actions {
                let encoded = action::encode(uri, &body, seq.0, None, None);
                self.send(peer, Frame::Text(encoded.frame));
            }
            return;
        }
        let mut envelope = Vec::with_capacity(json.len() + 128);
        envelope.extend_from_slice(br#"{"channel":"#);
        envelope.extend_from_slice(&rpc::to_json(uri.as_str()));
        envelope.extend_from_slice(br#","action":"#);
        envelope.extend_from_slice(json);
        envelope.extend_from_slice(format!(r#","serverSeq":{}}}"#, seq.0).as_bytes());
        self.send(peer, Frame::Text(action::frame_of(&envelope)));
    }

    /// Sends a frame to one peer, at once and after all that was sent to it before.
    pub(crate) fn send(&mut self, peer: PeerId, frame: Frame) {
        if self.peers().contains(peer) {
            let recipients = Recipients::One(Recipient { peer, window_ms: 0 });
            self.out.frames.push(OutgoingFrame { recipients, frame });
        }
    }

    pub(crate) fn respond(&mut self, peer: PeerId, id: &Id, result: &Value) {
        self.send(peer, Frame::value(id, result));
    }

    pub(crate) fn fail(&mut self, peer: PeerId, id: &Id, error: &RpcError) {
        self.send(peer, Frame::error(id, error));
    }

    /// Sends a refused action back to its sender alone; nothing is recorded and no seq used (H-066, H-067).
    pub(crate) fn refuse(
        &mut self,
        sender: &Sender,
        uri: &ChannelUri,
        action: SentAction,
        reason: String,
    ) {
        let refused = RefusedAction {
            channel: uri.clone(),
            action: action.into_echo(),
            seq: self.seq(),
            origin: sender.origin.clone(),
            reason,
        };
        self.send(sender.peer, Frame::Refused(Arc::new(refused)));
    }

    /// A notification to everyone who watches a channel, whatever their version: one that is the same in all of them.
    pub(crate) fn notify_watchers(
        &mut self,
        uri: &ChannelUri,
        notification: HostNotification,
        params: &Value,
    ) {
        if let Some(recipients) = self.kernel.peers.recipients(uri, None, |_| true) {
            let frame = Frame::Text(rpc::notification(notification.name(), params));
            self.out.frames.push(OutgoingFrame { recipients, frame });
        }
    }

    /// A notification to everyone who watches the root channel (H-043), in the form their version knows, if it has one.
    pub(crate) fn notify_root(&mut self, notification: HostNotification, params: &Value) {
        self.notify_root_watchers(notification, params, |peers, root, generation| {
            peers.recipients_of(root, generation)
        });
    }

    /// The same for the clients of one principal.
    pub(crate) fn notify_root_of(
        &mut self,
        principal: Option<&str>,
        notification: HostNotification,
        params: &Value,
    ) {
        self.notify_root_watchers(notification, params, |peers, root, generation| {
            peers.recipients_of_principal(root, generation, principal)
        });
    }

    fn notify_root_watchers(
        &mut self,
        notification: HostNotification,
        params: &Value,
        recipients_of: impl Fn(&Peers, &ChannelUri, Generation) -> Option<Recipients>,
    ) {
        let root = ChannelUri::root();
        let older = self.kernel.peers.older_generations(&root);
        for generation in older.into_iter().chain([Generation::V1_0]) {
            let recipients = recipients_of(&self.kernel.peers, &root, generation);
            if let Some(recipients) = recipients
                && let Some(params) =
                    compat::down_notification(generation, notification, params.clone())
            {
                let frame = Frame::Text(rpc::notification(notification.name(), &params));
                self.out.frames.push(OutgoingFrame { recipients, frame });
            }
        }
    }
}

/// What an action adds to its turn, at most: of a stream its text, of everything else all of it.
fn bytes_in_turn(action: &Action, bytes: usize) -> usize {
    match action.kind {
        ActionKind::ChatDelta | ActionKind::ChatReasoning | ActionKind::ChatToolCallDelta => {
            action.text("content").map_or(0, rpc::text_bytes)
        }
        _ if action.body.contains_key("turnId") => bytes,
        _ => 0,
    }
}
