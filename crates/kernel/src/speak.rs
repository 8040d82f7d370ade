//! Recording and speaking: the only place where a seq is given to an action and frames are made of it.

use std::sync::Arc;

use serde_json::Value;
use wire::action::{self, EncodedAction};
use wire::reduce::{Reduced, reduce_chat, reduce_root, reduce_session};
use wire::{Action, ChannelUri, Generation, Id, Object, Origin, RpcError, compat, rpc};

use crate::Kernel;
use crate::channel::Body;
use crate::frame::{Frame, Outgoing};
use crate::io::{Owed, PeerId};
use crate::record::{ChannelId, ChannelRecord, Head, Kind, Record, Seq};

/// The client behind an action. Its echo reaches it as a watcher of the channel (H-043, H-063); a refusal, or the answer
/// that nothing changed, reaches it in any case.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub peer: PeerId,
    pub origin: Origin,
}

/// A head is written again, amortised, once more than this was streamed since.
const REHEAD_BYTES: usize = 256 * 1_024;

impl Kernel {
    /// Applies an action to a session or chat, records it and speaks it to all who watch. `Unchanged` records nothing:
    /// the sender alone is answered (G-17).
    pub(crate) fn act(
        &mut self,
        uri: &ChannelUri,
        action: Action,
        sender: Option<&Sender>,
    ) -> Reduced {
        let Some(channel) = self.channels.get_mut(uri) else {
            return Reduced::Unchanged;
        };
        let id = channel.id;
        let reduced = match &mut channel.body {
            Body::Session(session) => reduce_session(Arc::make_mut(&mut session.state), &action),
            Body::Chat(chat) => reduce_chat(Arc::make_mut(&mut chat.state), &action),
        };
        if reduced == Reduced::Unchanged {
            self.answer_unchanged(uri, &action, sender);
            return reduced;
        }
        channel.used = self.now;
        channel.snapshots.clear();
        let length = self.record(uri, id, &action, sender);
        if let Some(channel) = self.channels.get_mut(uri) {
            channel.unwritten += length;
            if !action.kind.streams() || channel.unwritten > REHEAD_BYTES.max(channel.head_bytes) {
                self.dirty.insert(uri.clone());
            }
        }
        self.undo.touch(uri);
        reduced
    }

    /// Records and speaks an action of an extension: no reducer knows it, so what it changes must follow in the same step.
    pub(crate) fn act_beside(&mut self, uri: &ChannelUri, action: &Action, sender: &Sender) {
        let Some(id) = self.channels.get(uri).map(|channel| channel.id) else {
            return;
        };
        self.record(uri, id, action, Some(sender));
        self.dirty.insert(uri.clone());
        self.undo.touch(uri);
    }

    /// The same for the root channel.
    pub(crate) fn act_root(&mut self, action: Action, sender: Option<&Sender>) -> Reduced {
        let uri = ChannelUri::root();
        self.undo.keep_root(&self.root);
        if reduce_root(Arc::make_mut(&mut self.root), &action) == Reduced::Unchanged {
            self.answer_unchanged(&uri, &action, sender);
            return Reduced::Unchanged;
        }
        self.root_snapshot = None;
        self.record(&uri, ChannelId::ROOT, &action, sender);
        self.dirty.insert(uri);
        Reduced::Changed
    }

    pub(crate) fn answer_unchanged(
        &mut self,
        uri: &ChannelUri,
        action: &Action,
        sender: Option<&Sender>,
    ) {
        if let Some(sender) = sender {
            let echo = action::encode(uri, &action.body, self.seq.0, Some(&sender.origin), None);
            self.say(sender.peer, Frame::Text(echo.frame));
        }
    }

    fn record(
        &mut self,
        uri: &ChannelUri,
        id: ChannelId,
        action: &Action,
        sender: Option<&Sender>,
    ) -> usize {
        let seq = self.next_seq();
        let EncodedAction { frame, envelope } = action::encode(
            uri,
            &action.body,
            seq.0,
            sender.map(|sender| &sender.origin),
            None,
        );
        let length = envelope.len();
        self.out.records.push(Record::Action {
            seq,
            channel: id,
            envelope: envelope.clone(),
        });
        self.tail.push(seq, id, envelope);
        for watcher in self.watchers.get(uri).map(Vec::as_slice).unwrap_or(&[]) {
            // A client of an older generation hears only what it knows, and the echo of what it sent itself (G-23).
            let is_echo = sender.is_some_and(|sender| sender.peer == watcher.peer);
            if is_echo || compat::knows(watcher.generation, action.kind) {
                let frame = Frame::Text(frame.clone());
                self.out.frames.push(Outgoing {
                    peer: watcher.peer,
                    frame,
                    window_ms: watcher.window_ms,
                });
            }
        }
        length
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
        self.say(peer, Frame::Text(action::frame_of(&envelope)));
    }

    /// Sends a frame to one peer, at once and after all that was said to it before.
    pub(crate) fn say(&mut self, peer: PeerId, frame: Frame) {
        if self.peers.contains_key(&peer) {
            self.out.frames.push(Outgoing {
                peer,
                frame,
                window_ms: 0,
            });
        }
    }

    pub(crate) fn respond(&mut self, peer: PeerId, id: &Id, result: &Value) {
        self.say(peer, Frame::value(id, result));
    }

    pub(crate) fn fail(&mut self, peer: PeerId, id: &Id, error: &RpcError) {
        self.say(peer, Frame::error(id, error));
    }

    /// Sends a refused action back to its sender alone; nothing is recorded and no seq used (H-066, H-067).
    pub(crate) fn refuse(
        &mut self,
        sender: &Sender,
        uri: &ChannelUri,
        action: &Object,
        reason: &str,
    ) {
        let echo = action::encode(uri, action, self.seq.0, Some(&sender.origin), Some(reason));
        self.say(sender.peer, Frame::Text(echo.frame));
    }

    /// A notification to everyone who watches the root channel (H-043), in the form their generation knows.
    pub(crate) fn notify_root(&mut self, method: &str, params: &Value, older: Option<&Value>) {
        let text = rpc::notification(method, params);
        let older = older.map(|params| rpc::notification(method, params));
        for watcher in self
            .watchers
            .get(&ChannelUri::root())
            .map(Vec::as_slice)
            .unwrap_or(&[])
        {
            let text = match watcher.generation {
                Generation::V1_0 => Some(&text),
                Generation::V0_9 => older.as_ref(),
            };
            if let Some(text) = text {
                let frame = Frame::Text(text.clone());
                self.out.frames.push(Outgoing {
                    peer: watcher.peer,
                    frame,
                    window_ms: watcher.window_ms,
                });
            }
        }
    }

    /// Notes who must be told if this step cannot be written.
    pub(crate) fn owe(&mut self, owed: Owed) {
        self.out.owed.push(owed);
    }

    /// Heads of all channels that changed in this step, as they are now.
    pub(crate) fn write_heads(&mut self) {
        for uri in std::mem::take(&mut self.dirty) {
            if uri.is_root() {
                self.out.records.push(Record::Channel(ChannelRecord {
                    id: ChannelId::ROOT,
                    uri,
                    kind: Kind::Root,
                    parent: None,
                    head: Head::Root(Arc::clone(&self.root)),
                    head_seq: self.seq,
                    duty: crate::Duty::default(),
                    private: bytes::Bytes::new(),
                }));
                continue;
            }
            self.write_head(&uri);
        }
    }

    /// The head of one session or chat as it is now.
    pub(crate) fn write_head(&mut self, uri: &ChannelUri) {
        let parent = self.chat(uri).map(|chat| chat.session_id);
        let seq: Seq = self.seq;
        let Some(channel) = self.channels.get_mut(uri) else {
            return;
        };
        // What a running turn has streamed is in its head from now on; the next one waits until it has doubled.
        channel.head_bytes = if channel.duty().open_turn {
            channel.head_bytes + channel.unwritten
        } else {
            0
        };
        channel.unwritten = 0;
        let record = ChannelRecord {
            id: channel.id,
            uri: uri.clone(),
            kind: channel.kind(),
            parent,
            head: channel.head(),
            head_seq: seq,
            duty: channel.duty(),
            private: channel.private(),
        };
        self.out.records.push(Record::Channel(record));
    }
}
