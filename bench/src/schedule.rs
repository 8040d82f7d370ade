//! What the bare server pushes and when: the schedule of the scripted agent's `stream`, frames as large as the host's.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior, interval};
use wire::{Action, ChannelUri, action};

/// Frames pushed to each connection at a time where the stream has no pace: what its writer takes at a time.
const PUSH_MAX: u64 = 256;

/// A stream that is being pushed.
pub(crate) struct Stream {
    pub frame: Bytes,
    left: u64,
    ticks: Option<Interval>,
}

impl Stream {
    /// Three frames more than deltas: the host says that a turn and its part begin, and that the turn is over.
    pub(crate) fn parse(params: &Value, text: &str) -> Option<Self> {
        let mut words =
            text.strip_prefix("stream ")?.split(' ').map(|word| word.parse::<u64>().ok());
        let (chunks, size, every_ms) = (words.next()??, words.next()??, words.next()??);
        let turn_id = params["action"]["turnId"].as_str()?;
        let channel = ChannelUri::parse(params["channel"].as_str()?).ok()?;
        let content = "x".repeat(usize::try_from(size).ok()?);
        let delta = Action::delta(turn_id, "p123", content);
        let frame = action::encode(&channel, &delta.body, 1_234, None, None).frame;
        let ticks = (every_ms > 0).then(|| {
            let mut ticks = interval(Duration::from_millis(every_ms));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Some(Self { frame, left: chunks + 3, ticks })
    }

    /// How many frames are to be pushed now; they count as pushed.
    pub(crate) fn due(&mut self) -> u64 {
        let now = if self.ticks.is_some() { 1 } else { self.left.min(PUSH_MAX) };
        self.left -= now;
        now
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }
}

/// Waits until something is due.
pub(crate) async fn next_push(stream: &mut Option<Stream>) {
    match stream {
        Some(Stream { ticks: Some(ticks), .. }) => drop(ticks.tick().await),
        _ => tokio::task::yield_now().await,
    }
}
