//! Replays that are still true: after a cut of the network many come back at once, and missed the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::frame::Replayed;
use crate::record::{ChannelId, Seq};

/// Replays kept for others who missed the same, and the largest that is.
const REPLAYS_MAX: usize = 2;
const REPLAY_BYTES_MAX: usize = 1_024 * 1_024;

#[derive(Default)]
pub(crate) struct ReplayCache {
    replays: Vec<CachedReplay>,
}

struct CachedReplay {
    from: BTreeMap<ChannelId, Seq>,
    /// Nothing was recorded since.
    seq: Seq,
    replay: Arc<Replayed>,
}

impl ReplayCache {
    pub(crate) fn find(&self, from: &BTreeMap<ChannelId, Seq>, seq: Seq) -> Option<Arc<Replayed>> {
        let mut replays = self.replays.iter();
        let cached = replays.find(|cached| cached.from == *from && cached.seq == seq)?;
        Some(Arc::clone(&cached.replay))
    }

    pub(crate) fn add(&mut self, from: BTreeMap<ChannelId, Seq>, seq: Seq, replay: &Arc<Replayed>) {
        if replay.size_hint() > REPLAY_BYTES_MAX || self.find(&from, seq).is_some() {
            return; // too large to keep, or kept already
        }
        self.replays.retain(|cached| cached.seq == seq);
        self.replays.truncate(REPLAYS_MAX - 1);
        let replay = Arc::clone(replay);
        self.replays.push(CachedReplay { from, seq, replay });
        debug_assert!(self.replays.len() <= REPLAYS_MAX, "the cache is bounded");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.replays.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.replays.clear();
    }
}
