//! Snapshots of channels in memory: the newest turns that fit, shared by all who ask for the same at the same moment.

use std::sync::Arc;

use wire::{ChannelUri, Timestamp};

use super::{ChannelBody, Channels, Chat};
use crate::frame::{ChannelSnapshot, HEAD_BYTES, SnapshotState};
use crate::record::Seq;

/// Stands for the oldest turn of a snapshot that held everything.
pub(crate) const FROM_THE_BEGINNING: &str = "";

/// Windows of one channel that stay encoded for others who open the same at the same moment.
const SNAPSHOTS_KEPT: usize = 4;

/// A snapshot, and how far back it goes.
pub(crate) struct SnapshotWindow {
    pub snapshot: Arc<ChannelSnapshot>,
    /// The number of its oldest turn.
    pub oldest_n: Option<u64>,
}

impl SnapshotWindow {
    /// The id of its oldest turn; without a cursor it holds the whole history, also what comes before a turn yet to be.
    pub(crate) fn oldest_turn(&self) -> Option<String> {
        match &self.snapshot.state {
            SnapshotState::Chat { cursor: None, .. } => Some(FROM_THE_BEGINNING.to_owned()),
            SnapshotState::Chat { chat, first_turn, .. } => {
                chat.turns.as_slice().get(*first_turn).map(|turn| turn.id.clone())
            }
            SnapshotState::Root(_) | SnapshotState::Session { .. } | SnapshotState::Plain(_) => {
                None
            }
        }
    }
}

impl Channels {
    /// A snapshot as of `seq`, shared with whoever asked for the same window in the same moment; `None` if the channel is
    /// not in memory.
    pub(crate) fn snapshot(
        &mut self,
        uri: &ChannelUri,
        view: Option<u32>,
        bytes_max: usize,
        seq: Seq,
        now: Timestamp,
    ) -> Option<SnapshotWindow> {
        if uri.is_root() {
            return Some(self.root_snapshot(uri, seq));
        }
        let channel = self.in_memory.get_mut(uri)?;
        channel.used = now;
        let streamed_bytes = channel.head_bytes + channel.unwritten;
        let (first_turn, cursor, oldest_n) = match &channel.body {
            ChannelBody::Session(_) | ChannelBody::Plain(_) => (0, None, None),
            ChannelBody::Chat(chat) => window_of(chat, view, streamed_bytes, bytes_max),
        };
        // A snapshot stays true until the channel changes, but its `fromSeq` must be this step's: a later one lets
        // fewer actions count as missed, and is what the client is told.
        let cached = channel
            .snapshots
            .iter()
            .find(|(first, cached)| *first == first_turn && cached.from_seq == seq);
        if let Some((_, snapshot)) = cached {
            let snapshot = Arc::clone(snapshot);
            return Some(SnapshotWindow { snapshot, oldest_n });
        }
        let state = match &channel.body {
            ChannelBody::Session(session) => SnapshotState::Session {
                state: session.shared_state(),
                created: session.created(),
                modified: session.modified(),
            },
            ChannelBody::Chat(chat) => SnapshotState::Chat {
                chat: chat.shared_state(),
                first_turn,
                cursor,
                streamed_bytes,
            },
            ChannelBody::Plain(plain) => SnapshotState::Plain(plain.state().clone()),
        };
        let snapshot = Arc::new(ChannelSnapshot::new(uri.clone(), seq, state));
        channel.snapshots.retain(|(_, cached)| cached.from_seq == seq);
        channel.snapshots.truncate(SNAPSHOTS_KEPT - 1);
        channel.snapshots.push((first_turn, Arc::clone(&snapshot)));
        debug_assert!(channel.snapshots.len() <= SNAPSHOTS_KEPT, "few windows stay encoded");
        Some(SnapshotWindow { snapshot, oldest_n })
    }

    fn root_snapshot(&mut self, uri: &ChannelUri, seq: Seq) -> SnapshotWindow {
        let root = Arc::clone(&self.root);
        let make = || Arc::new(ChannelSnapshot::new(uri.clone(), seq, SnapshotState::Root(root)));
        let cached = self.root_snapshot.take().filter(|snapshot| snapshot.from_seq == seq);
        let snapshot = cached.unwrap_or_else(make);
        self.root_snapshot = Some(Arc::clone(&snapshot));
        SnapshotWindow { snapshot, oldest_n: None }
    }
}

/// The first turn of a window, the cursor to what lies before it, and the number of that turn.
fn window_of(
    chat: &Chat,
    view: Option<u32>,
    streamed_bytes: usize,
    bytes_max: usize,
) -> (usize, Option<String>, Option<u64>) {
    let turns = chat.state().turns.as_slice();
    let most = view.map_or(turns.len(), |view| turns.len().min(view as usize));
    let mut first = turns.len();
    let mut bytes = HEAD_BYTES + streamed_bytes;
    while first > turns.len() - most {
        bytes += turns[first - 1].json.len() + 1;
        // The latest turn is always there: a resume acts on it (H-239).
        if bytes > bytes_max && first < turns.len() {
            break;
        }
        first -= 1;
    }
    let cursor = (first > 0 || chat.has_older()).then(|| {
        turns.get(first).map_or("newest".to_owned(), |turn| format!("before:{}", turn.id))
    });
    let oldest_n = chat.number_at(first).unwrap_or(chat.next_n());
    (first, cursor, Some(oldest_n))
}
