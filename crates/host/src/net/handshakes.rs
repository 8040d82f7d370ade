//! Sockets that have not shown a token yet: how many there may be, and which one goes when another comes.
//!
//! Promises: never more than the bound; a new socket never waits longer than [`GRACE`] for those that say nothing: the oldest
//! of them is closed (ADR 0025).
//! Must not know: HTTP, what a socket is used for afterwards.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::sorted_map::SortedMap;

/// How long a socket may take to be answered before its place is given to another. When a thousand clients come back at once
/// they are accepted faster than they are answered; none of them is silent.
const GRACE: Duration = Duration::from_millis(100);

/// All of them, the oldest first.
#[derive(Clone)]
pub(crate) struct Handshakes {
    max: usize,
    waiting: Arc<Mutex<WaitingHandshakes>>,
    /// A place became free.
    freed: Arc<Notify>,
}

#[derive(Default)]
struct WaitingHandshakes {
    last: u64,
    begun: SortedMap<u64, BegunHandshake>,
}

struct BegunHandshake {
    at: Instant,
    evicted: CancellationToken,
}

/// One socket's place among them; free again when dropped.
pub(crate) struct Handshake {
    number: u64,
    evicted: CancellationToken,
    all: Handshakes,
}

impl Handshakes {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, waiting: Arc::default(), freed: Arc::default() }
    }

    /// Takes a place. If there is none, waits until one is free, or until the oldest has had its time and is closed.
    pub(crate) async fn begin(&self) -> Handshake {
        loop {
            match self.take_place() {
                Ok(handshake) => return handshake,
                Err(oldest_until) => tokio::select! {
                    () = self.freed.notified() => {}
                    () = sleep_until(oldest_until) => {}
                },
            }
        }
    }

    /// `Err`: none is free before this moment, unless a handshake ends.
    fn take_place(&self) -> Result<Handshake, Instant> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        while waiting.begun.len() >= self.max
            && let Some((_, oldest)) = waiting.begun.first_key_value()
        {
            let until = oldest.at + GRACE;
            if now < until {
                return Err(until);
            }
            waiting.evict_oldest();
        }
        Ok(self.insert(waiting, now))
    }

    fn insert(&self, mut waiting: MutexGuard<'_, WaitingHandshakes>, at: Instant) -> Handshake {
        assert!(waiting.begun.len() < self.max, "there is a place");
        waiting.last += 1;
        let (number, evicted) = (waiting.last, CancellationToken::new());
        let begun = BegunHandshake { at, evicted: evicted.clone() };
        waiting.begun.insert(number, begun);
        Handshake { number, evicted, all: self.clone() }
    }

    /// For want of something else than a place, such as file descriptors. False: there is none.
    pub(crate) fn evict_oldest(&self) -> bool {
        self.waiting.lock().evict_oldest()
    }
}

impl WaitingHandshakes {
    fn evict_oldest(&mut self) -> bool {
        match self.begun.pop_first() {
            Some((_, oldest)) => {
                oldest.evicted.cancel();
                true
            }
            None => false,
        }
    }
}

impl Handshake {
    /// Of a socket that takes no place from others.
    pub(crate) fn alone() -> Self {
        let all = Handshakes::new(1);
        all.insert(all.waiting.lock(), Instant::now())
    }

    /// Cancelled when the place is needed for another.
    pub(crate) fn eviction(&self) -> CancellationToken {
        self.evicted.clone()
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.waiting.lock().begun.remove(&self.number);
        self.all.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    fn is_evicted(handshake: &Handshake) -> bool {
        handshake.evicted.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_goes_when_there_is_no_place_left() {
        let handshakes = Handshakes::new(2);
        let (first, second) = (handshakes.begin().await, handshakes.begin().await);
        assert!(!is_evicted(&first));
        let third = handshakes.begin().await;
        assert!(is_evicted(&first) && !is_evicted(&second));
        drop(second);
        let fourth = handshakes.begin().await;
        assert!(!is_evicted(&third) && !is_evicted(&fourth), "one had ended");
        drop(first);
        assert!(handshakes.evict_oldest());
        assert!(is_evicted(&third) && !is_evicted(&fourth));
        assert!(handshakes.evict_oldest());
        assert!(!handshakes.evict_oldest());
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_came_just_now_are_answered_first() {
        let handshakes = Handshakes::new(1);
        let first = handshakes.begin().await;
        let began = Instant::now();
        let answered = async {
            sleep(GRACE / 2).await;
            assert!(!is_evicted(&first), "it may be answered any moment");
            drop(first);
        };
        let (second, ()) = tokio::join!(handshakes.begin(), answered);
        assert_eq!(began.elapsed().as_millis(), (GRACE / 2).as_millis());
        // This one says nothing, and nobody waits for it any more.
        sleep(GRACE).await;
        let began = Instant::now();
        let third = handshakes.begin().await;
        assert!(is_evicted(&second) && !is_evicted(&third));
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
