//! What goes to a peer. A step never serialises a snapshot: it hands over what the writer needs to do so.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;
use wire::action::ChannelKind;
use wire::compat::{self, SnapshotOf};
use wire::published::commands::ContentEncoding;
use wire::state::{ChatState, PlainState, RootState, SessionState};
use wire::{ChannelUri, Generation, Id, Object, Origin, Timestamp, action, bounds, rpc};

use crate::ids::{PeerId, Seq};

/// What a state takes beside what is counted.
pub(crate) const HEAD_BYTES: usize = 4_096;

/// One frame, and who gets it.
#[derive(Debug, Clone)]
pub struct OutgoingFrame {
    pub recipients: Recipients,
    pub frame: Frame,
}

/// A peer that gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    pub peer: PeerId,
    /// How long the frame may be held back to travel with others; 0 sends it, and all that was held before it, at once.
    pub window_ms: u32,
}

/// Who gets a frame: one peer, or all who watch a channel. The list is shared by all frames until somebody comes or goes.
#[derive(Debug, Clone)]
pub enum Recipients {
    One(Recipient),
    Many(Arc<[Recipient]>),
}

impl Recipients {
    pub fn as_slice(&self) -> &[Recipient] {
        match self {
            Self::One(recipient) => std::slice::from_ref(recipient),
            Self::Many(recipients) => recipients,
        }
    }

    /// Without some connections; none if nobody is left.
    pub(crate) fn without(self, gone: &[PeerId]) -> Option<Self> {
        let is_gone = |recipient: &Recipient| gone.contains(&recipient.peer);
        if !self.as_slice().iter().any(is_gone) {
            return Some(self);
        }
        let left: Arc<[Recipient]> =
            self.as_slice().iter().filter(|to| !is_gone(to)).cloned().collect();
        (!left.is_empty()).then_some(Self::Many(left))
    }
}

/// A message, or what it will be made from.
#[derive(Debug, Clone)]
pub enum Frame {
    /// Encoded once, shared by all who get it.
    Text(Bytes),
    /// A response around snapshots or replayed actions, put together by the writer.
    Response(Arc<LateResponse>),
    /// A client's action that goes back to it, encoded by the writer: it may be large.
    Refused(Arc<RefusedAction>),
}

/// An action that was refused, as its sender knows it but for its large bodies (H-066, H-067, ADR 0028).
#[derive(Debug)]
pub struct RefusedAction {
    pub channel: ChannelUri,
    pub action: Arc<wire::Object>,
    pub seq: Seq,
    pub origin: Origin,
    pub reason: String,
}

impl RefusedAction {
    fn size_hint(&self) -> usize {
        let fields = self.action.iter().map(|(name, value)| name.len() + bounds::bytes_of(value));
        self.reason.len() + fields.sum::<usize>()
    }

    fn encode(&self) -> Bytes {
        let (origin, reason) = (Some(&self.origin), Some(self.reason.as_str()));
        action::encode(&self.channel, &self.action, self.seq.0, origin, reason).frame
    }
}

/// A response whose large parts are shared and joined only when written.
#[derive(Debug)]
pub struct LateResponse {
    pub id: Id,
    /// The version of whoever gets it.
    pub generation: Generation,
    pub body: LateResponseBody,
}

#[derive(Debug)]
pub enum LateResponseBody {
    Subscribe(Arc<ChannelSnapshot>),
    /// `InitializeResult`; `fields` without `snapshots`.
    Initialize {
        fields: wire::Object,
        snapshots: Vec<Arc<ChannelSnapshot>>,
    },
    ReconnectSnapshots(Vec<Arc<ChannelSnapshot>>),
    ReconnectReplay {
        replay: Arc<Replayed>,
        missing: Vec<String>,
    },
    /// `ResourceReadResult`.
    Content(EncodedContent),
    /// A JSON object, encoded already.
    Encoded(Bytes),
}

/// Content as it goes to a client, encoded where it was read: a step must not.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedContent {
    /// A JSON string, quotes included.
    pub data: Bytes,
    pub encoding: ContentEncoding,
    pub content_type: Option<String>,
}

/// Actions that were missed, joined at most once for all who missed the same.
#[derive(Debug)]
pub struct Replayed {
    pub envelopes: Vec<Bytes>,
    joined: OnceLock<Bytes>,
}

impl Replayed {
    pub fn new(envelopes: Vec<Bytes>) -> Self {
        Self { envelopes, joined: OnceLock::new() }
    }

    pub(crate) fn size_hint(&self) -> usize {
        self.envelopes.iter().map(|envelope| envelope.len() + 1).sum()
    }

    fn joined(&self) -> &Bytes {
        self.joined.get_or_init(|| {
            let mut joined = Vec::with_capacity(self.size_hint());
            for (index, envelope) in self.envelopes.iter().enumerate() {
                if index > 0 {
                    joined.push(b',');
                }
                joined.extend_from_slice(envelope);
            }
            Bytes::from(joined)
        })
    }
}

/// The state of a channel at a seq: made in one step with the subscription, encoded at most once for all who get it.
#[derive(Debug)]
pub struct ChannelSnapshot {
    pub resource: ChannelUri,
    pub from_seq: Seq,
    pub state: SnapshotState,
    pub(crate) encoded: OnceLock<Vec<Bytes>>,
    /// The same for clients of older versions, by version.
    older: [OnceLock<Vec<Bytes>>; Generation::ALL.len()],
}

#[derive(Debug)]
pub enum SnapshotState {
    Root(Arc<RootState>),
    Session {
        state: Arc<SessionState>,
        created: Timestamp,
        modified: Timestamp,
    },
    /// A chat with its turns from index `first_turn` of the list on, and the cursor to the older ones.
    Chat {
        chat: Arc<ChatState>,
        first_turn: usize,
        cursor: Option<String>,
        /// Roughly the size of the running turn's response.
        streamed_bytes: usize,
    },
    /// A channel that is its state and nothing else.
    Plain(PlainState),
}

impl ChannelSnapshot {
    pub fn new(resource: ChannelUri, from_seq: Seq, state: SnapshotState) -> Self {
        Self { resource, from_seq, state, encoded: OnceLock::new(), older: Default::default() }
    }

    /// The snapshot for clients of a version, translated at most once for all of them.
    pub fn pieces_for(&self, generation: Generation) -> &[Bytes] {
        let older = self.older.get(generation as usize);
        // Of 0.9 only changesets differ in what their state says.
        let newest_other = match &self.state {
            SnapshotState::Plain(state) if state.kind() == ChannelKind::Changeset => {
                Generation::V0_9
            }
            _ => Generation::V0_8,
        };
        match older.filter(|_| generation <= newest_other) {
            Some(older) => older.get_or_init(|| vec![self.translate(generation)]),
            None => self.pieces(),
        }
    }

    fn translate(&self, generation: Generation) -> Bytes {
        let whole = self.pieces().concat();
        let Ok(Value::Object(mut snapshot)) = serde_json::from_slice(&whole) else {
            debug_assert!(false, "a snapshot is a JSON object");
            return Bytes::from(whole);
        };
        let mut listed = Object::new();
        let of = match &self.state {
            SnapshotState::Root(_) => SnapshotOf::Root,
            SnapshotState::Session { created, modified, .. } => {
                listed.insert("createdAt".to_owned(), created.to_rfc3339().into());
                listed.insert("modifiedAt".to_owned(), modified.to_rfc3339().into());
                SnapshotOf::Session { resource: self.resource.as_str(), summary: &listed }
            }
            SnapshotState::Chat { .. } => SnapshotOf::Chat,
            SnapshotState::Plain(state) => SnapshotOf::Plain(state.kind()),
        };
        if let Some(Value::Object(state)) = snapshot.get_mut("state") {
            compat::down_state(generation, of, state);
        }
        Bytes::from(rpc::to_json(&snapshot))
    }

    /// The snapshot as JSON, in pieces that are shared with every other response around it.
    pub fn pieces(&self) -> &[Bytes] {
        self.encoded.get_or_init(|| {
            let mut head = Vec::with_capacity(512);
            head.extend_from_slice(br#"{"resource":"#);
            head.extend_from_slice(&rpc::to_json(self.resource.as_str()));
            head.extend_from_slice(br#","fromSeq":"#);
            head.extend_from_slice(self.from_seq.0.to_string().as_bytes());
            head.extend_from_slice(br#","state":"#);
            match &self.state {
                SnapshotState::Root(state) => {
                    head.extend_from_slice(&rpc::to_json(&**state));
                    head.push(b'}');
                    vec![Bytes::from(head)]
                }
                SnapshotState::Session { state, .. } => {
                    head.extend_from_slice(&rpc::to_json(&**state));
                    head.push(b'}');
                    vec![Bytes::from(head)]
                }
                SnapshotState::Plain(state) => {
                    head.extend_from_slice(&rpc::to_json(state));
                    head.push(b'}');
                    vec![Bytes::from(head)]
                }
                SnapshotState::Chat { chat, first_turn, cursor, .. } => {
                    let (before, after) = chat.encode_around(cursor.as_deref());
                    head.extend_from_slice(&before);
                    let mut tail = after;
                    tail.push(b'}');
                    let mut pieces = vec![Bytes::from(head)];
                    pieces.extend(chat.turns.pieces_from(*first_turn));
                    pieces.push(Bytes::from(tail));
                    pieces
                }
            }
        })
    }

    /// Roughly how many bytes it will take on the wire, without encoding it.
    pub fn size_hint(&self) -> usize {
        match &self.state {
            SnapshotState::Root(_) => HEAD_BYTES,
            SnapshotState::Plain(state) => HEAD_BYTES + state.size_hint(),
            SnapshotState::Session { state: session, .. } => {
                HEAD_BYTES
                    + session.active_clients.len() * 2 * HEAD_BYTES
                    + session.chats.len() * 512
            }
            SnapshotState::Chat { chat, first_turn, streamed_bytes, .. } => {
                let turns = chat
                    .turns
                    .as_slice()
                    .get(*first_turn..)
                    .unwrap_or(&[])
                    .iter()
                    .map(|turn| turn.json.len() + 1)
                    .sum::<usize>();
                HEAD_BYTES + streamed_bytes + turns
            }
        }
    }
}

impl Frame {
    pub fn value<T: serde::Serialize + ?Sized>(id: &Id, result: &T) -> Self {
        Self::Text(rpc::response(id, result))
    }

    pub fn error(id: &Id, error: &wire::RpcError) -> Self {
        Self::Text(rpc::error_response(id, error))
    }

    pub fn size_hint(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Refused(refused) => HEAD_BYTES + refused.size_hint(),
            Self::Response(late) => match &late.body {
                LateResponseBody::Subscribe(snapshot) => snapshot.size_hint(),
                LateResponseBody::Initialize { snapshots, .. }
                | LateResponseBody::ReconnectSnapshots(snapshots) => {
                    snapshots.iter().map(|snapshot| snapshot.size_hint()).sum()
                }
                LateResponseBody::ReconnectReplay { replay, .. } => replay.size_hint(),
                LateResponseBody::Content(content) => content.data.len(),
                LateResponseBody::Encoded(json) => json.len(),
            },
        }
    }

    /// The message as pieces to be written one after the other.
    pub fn pieces(&self) -> Vec<Bytes> {
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Response(late) => late.pieces(),
            Self::Refused(refused) => vec![refused.encode()],
        }
    }

    /// The whole message in one piece.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => text.clone(),
            Self::Refused(refused) => refused.encode(),
            Self::Response(late) => Bytes::from(late.pieces().concat()),
        }
    }
}

impl LateResponse {
    fn pieces(&self) -> Vec<Bytes> {
        let mut pieces = Pieces::default();
        pieces.text(br#"{"jsonrpc":"2.0","id":"#);
        pieces.text(&rpc::to_json(&self.id));
        pieces.text(br#","result":"#);
        if let LateResponseBody::Encoded(json) = &self.body {
            pieces.push_shared(std::slice::from_ref(json));
            pieces.text(b"}");
            return pieces.finish();
        }
        pieces.text(b"{");
        match &self.body {
            LateResponseBody::Encoded(_) => {} // done above
            LateResponseBody::Subscribe(snapshot) => {
                pieces.text(br#""snapshot":"#);
                pieces.push_shared(snapshot.pieces_for(self.generation));
            }
            LateResponseBody::Initialize { fields, snapshots } => {
                let fields = rpc::to_json(&Value::Object(fields.clone()));
                let inner = &fields[1..fields.len() - 1];
                pieces.text(inner);
                if !inner.is_empty() {
                    pieces.text(b",");
                }
                pieces.snapshots(snapshots, self.generation);
            }
            LateResponseBody::ReconnectSnapshots(snapshots) => {
                pieces.text(br#""type":"snapshot","#);
                pieces.snapshots(snapshots, self.generation);
            }
            LateResponseBody::ReconnectReplay { replay, missing } => {
                pieces.text(br#""type":"replay","missing":"#);
                pieces.text(&rpc::to_json(missing));
                pieces.text(br#","actions":["#);
                pieces.push_shared(std::slice::from_ref(replay.joined()));
                pieces.text(b"]");
            }
            LateResponseBody::Content(content) => {
                pieces.text(br#""encoding":"#);
                pieces.text(&rpc::to_json(&content.encoding));
                if let Some(content_type) = &content.content_type {
                    pieces.text(br#","contentType":"#);
                    pieces.text(&rpc::to_json(content_type));
                }
                pieces.text(br#","data":"#);
                pieces.push_shared(std::slice::from_ref(&content.data));
            }
        }
        pieces.text(b"}}");
        pieces.finish()
    }
}

/// Small text is gathered into one buffer, large shared bytes stay pieces of their own.
#[derive(Default)]
struct Pieces {
    done: Vec<Bytes>,
    text: Vec<u8>,
}

impl Pieces {
    fn text(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
    }

    fn push_shared(&mut self, pieces: &[Bytes]) {
        for piece in pieces {
            if piece.len() < 4_096 {
                self.text(piece);
            } else {
                if !self.text.is_empty() {
                    self.done.push(Bytes::from(std::mem::take(&mut self.text)));
                }
                self.done.push(piece.clone());
            }
        }
    }

    fn snapshots(&mut self, snapshots: &[Arc<ChannelSnapshot>], generation: Generation) {
        self.text(br#""snapshots":["#);
        for (index, snapshot) in snapshots.iter().enumerate() {
            if index > 0 {
                self.text(b",");
            }
            self.push_shared(snapshot.pieces_for(generation));
        }
        self.text(b"]");
    }

    fn finish(mut self) -> Vec<Bytes> {
        if !self.text.is_empty() {
            self.done.push(Bytes::from(self.text));
        }
        self.done
    }
}
