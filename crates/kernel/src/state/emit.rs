//! Recording and sending: the only place where a seq is given to an action and frames are made of it.

use serde_json::Value;
use wire::ActionKind;
use wire::action::{self, EncodedAction};
use wire::reduce::Reduced;
use wire::{Action, ChannelUri, Generation, Id, Object, Origin, RpcError, compat, rpc};

use super::Step;
use crate::frame::{Frame, Outgoing};
use crate::io::PeerId;
use crate::record::{ChannelId, Record};

/// The client behind an action. Its echo reaches it as a watcher of the channel (H-043, H-063); a refusal, or the answer
/// that nothing changed, reaches it in any case.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub peer: PeerId,
    pub origin: Origin,
}

impl Step<'_> {
    /// Applies an action to a session or chat, records it and sends it to all who watch. `Unchanged` records nothing: the
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
        self.kernel.channels.note_recorded(uri, bytes, over_head);
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
        self.kernel.channels.note_recorded(uri, bytes, false);
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

    pub(crate) fn answer_unchanged(
        &mut self,
        uri: &ChannelUri,
        action: &Action,
        sender: Option<&Sender>,
    ) {
        if let Some(sender) = sender {
            let seq = self.seq().0;
            let echo = action::encode(uri, &action.body, seq, Some(&sender.origin), None);
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
        self.out.records.push(Record::Action {
            seq,
            channel: id,
            envelope,
        });
        for watcher in self.kernel.peers.watchers(uri) {
            // A client of an older generation hears only what it knows, and the echo of what it sent itself (G-23).
            let is_echo = sender.is_some_and(|sender| sender.peer == watcher.peer);
            if is_echo || compat::knows(watcher.generation, action.kind) {
                self.out.frames.push(Outgoing {
                    peer: watcher.peer,
                    frame: Frame::Text(frame.clone()),
                    window_ms: watcher.window_ms,
                });
            }
        }
        bytes
    }

    /// An action for one connection alone: uses a seq, is not replayed (G-18).
    pub(crate) fn act_for_one(&mut self, peer: PeerId, uri: &ChannelUri, json: &[u8]) {
        let seq = self.next_seq();
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
            self.out.frames.push(Outgoing {
                peer,
                frame,
                window_ms: 0,
            });
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
        action: &Object,
        reason: &str,
    ) {
        let seq = self.seq().0;
        let echo = action::encode(uri, action, seq, Some(&sender.origin), Some(reason));
        self.send(sender.peer, Frame::Text(echo.frame));
    }

    /// A notification to everyone who watches the root channel (H-043), in the form their generation knows.
    pub(crate) fn notify_root(&mut self, method: &str, params: &Value, older: Option<&Value>) {
        let text = rpc::notification(method, params);
        let older = older.map(|params| rpc::notification(method, params));
        for watcher in self.kernel.peers.watchers(&ChannelUri::root()) {
            let text = match watcher.generation {
                Generation::V1_0 => Some(&text),
                Generation::V0_9 => older.as_ref(),
            };
            if let Some(text) = text {
                self.out.frames.push(Outgoing {
                    peer: watcher.peer,
                    frame: Frame::Text(text.clone()),
                    window_ms: watcher.window_ms,
                });
            }
        }
    }
}
