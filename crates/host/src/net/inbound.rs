//! How much of what peers send may be in memory at once, over all connections: being read, decoded, waiting, composed.
//!
//! Small messages have a share of their own, so that they get through while others send large ones. What a message costs beside
//! its own bytes (values that JSON is decoded into, copies that are made of what stays in state) is counted too, and is known
//! before anything is decoded.
//!
//! Promises: who finds no room waits, first come first served, and is not refused; a message takes its room once, so none waits
//! for another that waits for it; a message larger than all the room gets all of it.
//! Must not know: sockets, what messages mean.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::rpc::JsonMeasure;

use super::ws::frame::LARGE_MESSAGE_BYTES;

const MIB: usize = 1_024 * 1_024;

/// Copies of a message's own bytes that exist at once on its way into the journal and to its readers, beside the two that a
/// message may cost anyhow. Bodies are not copied.
const COPIES: usize = 8;
/// What a JSON value takes beside its text.
const VALUE_BYTES: usize = 80;
/// What all large messages together may cost beside their bytes.
const LARGE_EXTRA_BYTES: usize = 32 * MIB;
/// What part of the whole belongs to small messages, and no more than so much.
const SMALL_SHARE: usize = 4;
const SMALL_BYTES_MAX: usize = 16 * MIB;

/// The room there is for messages of all connections.
pub(crate) struct InboundBudget {
    small: Pool,
    large: Pool,
    large_extra: Pool,
}

/// What one message takes of it; given back when dropped.
#[derive(Default)]
pub(crate) struct InboundPermit {
    taken: Vec<OwnedSemaphorePermit>,
}

struct Pool {
    permits: Arc<Semaphore>,
    bytes: u32,
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
        Self { permits: Arc::new(Semaphore::new(bytes as usize)), bytes }
    }

    async fn take(&self, bytes: usize, permit: &mut InboundPermit) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.bytes);
        let taken = Arc::clone(&self.permits).acquire_many_owned(bytes).await;
        debug_assert!(taken.is_ok(), "nobody closes a pool");
        permit.taken.extend(taken.ok());
    }
}

impl InboundBudget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let small = (bytes_max / SMALL_SHARE).min(SMALL_BYTES_MAX);
        Self {
            small: Pool::new(small),
            large: Pool::new(bytes_max - small),
            large_extra: Pool::new(LARGE_EXTRA_BYTES),
        }
    }

    /// Waits for room for a large message of which only the size is known, before it is read.
    pub(crate) async fn admit_large(&self, bytes: usize) -> InboundPermit {
        let mut permit = InboundPermit::default();
        self.large.take(bytes, &mut permit).await;
        permit
    }

    /// Waits for what a message that was read costs to decode and to handle. `permit` is what was taken to read it.
    pub(crate) async fn admit(
        &self,
        mut permit: InboundPermit,
        bytes: usize,
        measure: JsonMeasure,
    ) -> InboundPermit {
        let copied = bytes.saturating_sub(measure.long_text_bytes);
        let extra = copied * COPIES + measure.values * VALUE_BYTES;
        if bytes <= LARGE_MESSAGE_BYTES {
            self.small.take(bytes + extra, &mut permit).await;
            return permit;
        }
        match permit.taken.first_mut() {
            // How large it would be was not known when it began.
            Some(taken) => drop(taken.split(taken.num_permits().saturating_sub(bytes))),
            // Read without asking, from where there is no other.
            None => self.large.take(bytes, &mut permit).await,
        }
        self.large_extra.take(extra, &mut permit).await;
        permit
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const LARGE: usize = LARGE_MESSAGE_BYTES + 1;

    async fn is_admitted<T>(admission: impl Future<Output = T>) -> Option<T> {
        timeout(Duration::from_secs(1), admission).await.ok()
    }

    fn one_text(bytes: usize) -> JsonMeasure {
        JsonMeasure { depth: 1, values: 10, long_text_bytes: bytes }
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_wait_for_each_other_and_small_ones_do_not_wait_for_them() {
        let room = InboundBudget::new(64 * MIB);
        let first = room.admit_large(32 * MIB).await;
        assert!(is_admitted(room.admit_large(32 * MIB)).await.is_none());
        let small = JsonMeasure::default();
        let small = is_admitted(room.admit(InboundPermit::default(), 1_000, small));
        assert!(small.await.is_some());
        drop(first);
        assert!(is_admitted(room.admit_large(32 * MIB)).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_larger_than_the_room_gets_all_of_it() {
        let room = InboundBudget::new(MIB);
        let permit = is_admitted(room.admit_large(64 * MIB)).await.unwrap();
        let dense = JsonMeasure { values: usize::MAX / VALUE_BYTES / 2, ..JsonMeasure::default() };
        assert!(is_admitted(room.admit(permit, LARGE, dense)).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_copied_and_what_is_dense_costs_more_than_its_bytes() {
        let room = InboundBudget::new(1_024 * MIB);
        let bytes = 4 * MIB;
        let read = room.admit_large(bytes).await;
        let copied = room.admit(read, bytes, JsonMeasure::default()).await;
        let again = async |measure| {
            let read = room.admit_large(bytes).await;
            is_admitted(room.admit(read, bytes, measure)).await
        };
        assert!(again(JsonMeasure::default()).await.is_none());
        drop(copied);
        let bodies = [again(one_text(bytes)).await, again(one_text(bytes)).await];
        assert!(bodies.iter().all(Option::is_some));
    }
}
