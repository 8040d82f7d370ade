//! Sockets that have not shown a token yet: how many there may be, and which one goes when another comes.
//!
//! Promises: never more than the bound; a new socket never waits for those that say nothing: the oldest of them is closed
//! (ADR 0025).
//! Must not know: HTTP, what a socket is used for afterwards.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All of them, the oldest first.
#[derive(Clone)]
pub(crate) struct Handshakes {
    max: usize,
    waiting: Arc<Mutex<WaitingHandshakes>>,
}

#[derive(Default)]
struct WaitingHandshakes {
    last: u64,
    evictions: BTreeMap<u64, CancellationToken>,
}

/// One socket's place among them; free again when dropped.
pub(crate) struct Handshake {
    number: u64,
    evicted: CancellationToken,
    all: Handshakes,
}

impl Handshakes {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            waiting: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingHandshakes> {
        // Every change here is complete before the lock is given back.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes space if there is none, and takes it.
    pub(crate) fn begin(&self) -> Handshake {
        let evicted = CancellationToken::new();
        let mut waiting = self.lock();
        while waiting.evictions.len() >= self.max && waiting.evict_oldest() {}
        waiting.last += 1;
        let number = waiting.last;
        waiting.evictions.insert(number, evicted.clone());
        drop(waiting);
        Handshake {
            number,
            evicted,
            all: self.clone(),
        }
    }

    /// For want of something else than a place, such as file descriptors. False: there is none.
    pub(crate) fn evict_oldest(&self) -> bool {
        self.lock().evict_oldest()
    }
}

impl WaitingHandshakes {
    fn evict_oldest(&mut self) -> bool {
        match self.evictions.pop_first() {
            Some((_, evicted)) => {
                evicted.cancel();
                true
            }
            None => false,
        }
    }
}

impl Handshake {
    /// Cancelled when the place is needed for another.
    pub(crate) fn eviction(&self) -> CancellationToken {
        self.evicted.clone()
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.all.lock().evictions.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_when_there_is_no_place_left() {
        let handshakes = Handshakes::new(2);
        let is_evicted = |handshake: &Handshake| handshake.evicted.is_cancelled();
        let (first, second) = (handshakes.begin(), handshakes.begin());
        assert!(!is_evicted(&first));
        let third = handshakes.begin();
        assert!(is_evicted(&first) && !is_evicted(&second));
        drop(second);
        let fourth = handshakes.begin();
        assert!(!is_evicted(&third) && !is_evicted(&fourth), "one had ended");
        drop(first);
        assert!(handshakes.evict_oldest());
        assert!(is_evicted(&third) && !is_evicted(&fourth));
        assert!(handshakes.evict_oldest());
        assert!(!handshakes.evict_oldest());
    }
}
