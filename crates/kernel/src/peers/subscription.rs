//! A subscription of a peer, as the journal needs it and as fan-out needs it.

use wire::{ChannelUri, Generation};

use crate::frame::Recipient;
use crate::io::PeerId;
use crate::record::{FloorRecord, Seq};

/// What a peer subscribed to, and what it was sent of it.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub floor: Seq,
    pub replaced: bool,
    pub oldest_turn: Option<String>,
    pub view_turns: Option<u32>,
    pub max_latency_ms: Option<u32>,
    /// The number of the oldest turn this connection was sent.
    pub oldest_n: Option<u64>,
}

/// A subscription, as fan-out needs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watcher {
    pub peer: PeerId,
    pub generation: Generation,
    pub window_ms: u32,
}

impl Watcher {
    pub(super) fn recipient(&self) -> Recipient {
        Recipient { peer: self.peer, window_ms: self.window_ms }
    }
}

impl Subscription {
    /// The subscription as the journal stores it for the client's reconnect (G-20).
    pub(crate) fn to_floor(&self, uri: &ChannelUri) -> FloorRecord {
        FloorRecord {
            channel: uri.clone(),
            floor: self.floor,
            replaced: self.replaced,
            oldest_turn: self.oldest_turn.clone(),
            view_turns: self.view_turns,
            max_latency_ms: self.max_latency_ms,
        }
    }
}
