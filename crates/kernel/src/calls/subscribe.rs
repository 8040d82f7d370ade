//! `subscribe` and `unsubscribe`: a snapshot and a place among the watchers, in one step (H-040 to H-054).

use std::sync::Arc;

use serde_json::Value;
use wire::published::commands::SubscribeParams;
use wire::rpc::code;
use wire::{ChannelUri, Id, RpcError};

use crate::Kernel;
use crate::channel::Body;
use crate::chore::Chore;
use crate::frame::{Frame, HEAD_BYTES, LateBody, LateResponse, Snapshot, SnapshotState};
use crate::io::PeerId;
use crate::load::{Flow, Memo};
use crate::peers::Subscription;
use crate::record::Record;

/// Longest delivery window taken (H-047 lets a host choose): keeps a held frame within a client's patience.
const WINDOW_MS_MAX: u32 = 10_000;

/// Stands for the oldest turn of a snapshot that held everything.
pub(crate) const FROM_THE_BEGINNING: &str = "";

/// Windows of one channel that are kept encoded for others who open the same at the same moment.
const SNAPSHOTS_KEPT: usize = 4;

/// How snapshots relate to what the client may hold from before (G-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serving {
    /// They take the place of everything: until the client shows that it has them, nothing is replayed onto what it
    /// had before.
    Anew,
    /// One more channel on a connection that goes on.
    More,
}

impl Kernel {
    pub(crate) fn subscribe(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &SubscribeParams,
        memo: &Memo,
    ) -> Flow<()> {
        let uri = match self.parse_channel(&params.channel) {
            Ok(uri) => uri,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        let subscriptions = self.peers.get(&peer).map(|state| &state.subscriptions);
        let most = self.limits.subscriptions_max;
        if subscriptions.is_some_and(|all| all.len() >= most && !all.contains_key(&uri)) {
            let error = RpcError::new(
                code::INVALID_PARAMS,
                format!("at most {most} subscriptions per connection"),
            );
            return self.answer_error(peer, id, &error);
        }
        // The view is advisory: a number that makes no sense is no view (H-049).
        let turns = params
            .view
            .as_ref()
            .and_then(|view| view.turns)
            .and_then(|turns| u32::try_from(turns).ok());
        let turns = turns.map(|turns| turns.max(1));
        let latency = params
            .delivery
            .as_ref()
            .and_then(|delivery| delivery.max_latency_ms);
        let latency = latency
            .and_then(|ms| u32::try_from(ms).ok())
            .map(|ms| ms.min(WINDOW_MS_MAX));
        match self.need_channel_with(&uri, memo, turns.unwrap_or(u32::MAX)) {
            Flow::Ready(true) => {}
            Flow::Ready(false) => {
                let error = self.not_found(&uri);
                return self.answer_error(peer, id, &error);
            }
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        }
        if let Some(snapshot) = self
            .snapshots_for(peer, &[(uri, turns, latency)], Serving::More)
            .pop()
        {
            let body = LateBody::Subscribe(snapshot);
            self.say(
                peer,
                Frame::Response(Arc::new(LateResponse {
                    id: id.clone(),
                    body,
                })),
            );
        }
        Flow::Ready(())
    }

    /// Snapshots of channels that are in memory, all within one message (G-29), and the subscriptions to them.
    pub(crate) fn snapshots_for(
        &mut self,
        peer: PeerId,
        wanted: &[(ChannelUri, Option<u32>, Option<u32>)],
        serving: Serving,
    ) -> Vec<Arc<Snapshot>> {
        let mut room = self.limits.message_out_bytes;
        let mut snapshots = Vec::with_capacity(wanted.len());
        for (uri, view_turns, max_latency_ms) in wanted {
            let Some((snapshot, oldest_n)) = self.snapshot(uri, *view_turns, room) else {
                continue;
            };
            room = room.saturating_sub(snapshot.size_hint());
            let oldest_turn = match &snapshot.state {
                // Without a cursor it holds the whole history, also what comes before a turn yet to be.
                SnapshotState::Chat { cursor: None, .. } => Some(FROM_THE_BEGINNING.to_owned()),
                SnapshotState::Chat {
                    chat, first_turn, ..
                } => chat
                    .turns
                    .as_slice()
                    .get(*first_turn)
                    .map(|turn| turn.id.clone()),
                SnapshotState::Root(_) | SnapshotState::Session(_) => None,
            };
            let replaced = serving == Serving::Anew
                || self
                    .peers
                    .get(&peer)
                    .is_some_and(|state| state.served.contains(uri));
            let subscription = Subscription {
                floor: snapshot.from_seq,
                replaced,
                oldest_turn,
                view_turns: *view_turns,
                max_latency_ms: *max_latency_ms,
                oldest_n,
            };
            self.watch(peer, uri, subscription);
            snapshots.push(snapshot);
        }
        snapshots
    }

    /// A snapshot as of now, shared with whoever asked for the same window since the channel last changed.
    fn snapshot(
        &mut self,
        uri: &ChannelUri,
        view: Option<u32>,
        room: usize,
    ) -> Option<(Arc<Snapshot>, Option<u64>)> {
        let seq = self.seq;
        if uri.is_root() {
            let root = Arc::clone(&self.root);
            let make = || Arc::new(Snapshot::new(uri.clone(), seq, SnapshotState::Root(root)));
            let cached = self
                .root_snapshot
                .take()
                .filter(|snapshot| snapshot.from_seq == seq);
            let snapshot = cached.unwrap_or_else(make);
            self.root_snapshot = Some(Arc::clone(&snapshot));
            return Some((snapshot, None));
        }
        let now = self.now;
        let channel = self.channels.get_mut(uri)?;
        channel.used = now;
        let streamed_bytes = channel.head_bytes + channel.unwritten;
        let (first_turn, cursor, oldest_n) = match &channel.body {
            Body::Session(_) => (0, None, None),
            Body::Chat(chat) => {
                let turns = chat.state.turns.as_slice();
                let most = view.map_or(turns.len(), |view| turns.len().min(view as usize));
                let mut first = turns.len();
                let mut bytes = HEAD_BYTES + streamed_bytes;
                while first > turns.len() - most {
                    bytes += turns[first - 1].json.len() + 1;
                    // The latest turn is always there: a resume acts on it (H-239).
                    if bytes > room && first < turns.len() {
                        break;
                    }
                    first -= 1;
                }
                let cursor = (first > 0 || chat.older).then(|| {
                    turns
                        .get(first)
                        .map_or("newest".to_owned(), |turn| format!("before:{}", turn.id))
                });
                (
                    first,
                    cursor,
                    Some(chat.ns.get(first).copied().unwrap_or(chat.next_n)),
                )
            }
        };
        // A snapshot stays true until the channel changes, but its `fromSeq` must be this step's: a later one lets
        // fewer actions count as missed, and is what the client is told.
        let cached = channel
            .snapshots
            .iter()
            .find(|(first, kept)| *first == first_turn && kept.from_seq == seq);
        if let Some((_, snapshot)) = cached {
            return Some((Arc::clone(snapshot), oldest_n));
        }
        let state = match &channel.body {
            Body::Session(session) => SnapshotState::Session(Arc::clone(&session.state)),
            Body::Chat(chat) => SnapshotState::Chat {
                chat: Arc::clone(&chat.state),
                first_turn,
                cursor,
                streamed_bytes,
            },
        };
        let snapshot = Arc::new(Snapshot::new(uri.clone(), seq, state));
        channel.snapshots.retain(|(_, kept)| kept.from_seq == seq);
        channel.snapshots.truncate(SNAPSHOTS_KEPT - 1);
        channel.snapshots.push((first_turn, Arc::clone(&snapshot)));
        Some((snapshot, oldest_n))
    }

    /// Stops delivery at once; no answer (H-046). A client that was active in a session it leaves is active no more.
    pub(crate) fn unsubscribe(&mut self, peer: PeerId, params: &Value, memo: &Memo) -> Flow<()> {
        let uri = params["channel"]
            .as_str()
            .and_then(|text| ChannelUri::parse(text).ok());
        let (Some(uri), Some(ready)) = (uri, self.ready(peer).cloned()) else {
            return Flow::Ready(());
        };
        let watches = self
            .peers
            .get(&peer)
            .is_some_and(|state| state.subscriptions.contains_key(&uri));
        if !watches {
            return Flow::Ready(());
        }
        let active = self
            .active
            .get(&ready.client_id)
            .is_some_and(|sessions| sessions.contains(&uri));
        if active && let Flow::Ask(queries) = self.need_channel(&uri, memo) {
            return Flow::Ask(queries);
        }
        // Delivery stops whatever happens to the batch (H-046): what the journal then still says is made true later.
        self.undo.rewritten.push(ready.client_id.clone());
        self.set_watcher(&uri, peer, None);
        if let Some(state) = self.peers.get_mut(&peer) {
            state.subscriptions.remove(&uri);
            state.served.remove(&uri);
        }
        if self.unwritable().is_some() {
            self.mark_volatile(&ready.client_id);
            if active {
                self.postponed.push(Chore::RemoveActive {
                    session: uri,
                    client_id: ready.client_id,
                });
            }
            return Flow::Ready(());
        }
        let (client_id, channel) = (ready.client_id.clone(), uri.clone());
        self.out
            .records
            .push(Record::FloorGone { client_id, channel });
        if active {
            self.remove_active_client(&uri, &ready.client_id);
        }
        Flow::Ready(())
    }
}
