//! How fast an agent may talk: as fast as readers who keep reading can follow. Without this, an agent that streams at
//! full speed would fill every outbox and have all its readers cut; a reader that takes nothing slows nobody down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kernel::PeerId;
use tokio::time::{Instant, sleep};

use crate::net::{Link, Strain};

/// How often a strained connection is looked at again.
const LOOK_MS: u64 = 1;
/// A blocked reader that took nothing for this long is on its own: it will be cut.
const PATIENCE_MS: u64 = 10;

/// The connections an agent's words go to.
#[derive(Default)]
pub(crate) struct Pace {
    links: Mutex<HashMap<PeerId, Arc<Link>>>,
}

/// What one agent knows of readers that held it up.
#[derive(Default)]
pub(crate) struct Patience(HashMap<PeerId, (u64, Instant)>);

impl Pace {
    pub fn join(&self, peer: PeerId, link: Arc<Link>) {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).insert(peer, link);
    }

    pub fn leave(&self, peer: PeerId) {
        self.links.lock().unwrap_or_else(PoisonError::into_inner).remove(&peer);
    }

    /// Waits until nobody who is still reading has much waiting.
    pub async fn wait(&self, patience: &mut Patience) {
        while self.is_strained(patience) {
            sleep(Duration::from_millis(LOOK_MS)).await;
        }
    }

    fn is_strained(&self, patience: &mut Patience) -> bool {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut strained = false;
        for (peer, link) in links.iter() {
            match link.strain() {
                Some(strain) => strained |= patience.bears(*peer, strain, now),
                None => {
                    patience.0.remove(peer);
                }
            }
        }
        strained
    }
}

impl Patience {
    /// Whether this strain is worth waiting for.
    fn bears(&mut self, peer: PeerId, strain: Strain, now: Instant) -> bool {
        let (takes, since) = self.0.entry(peer).or_insert((strain.takes, now));
        if *takes != strain.takes || !strain.blocked {
            (*takes, *since) = (strain.takes, now);
        }
        now.duration_since(*since) < Duration::from_millis(PATIENCE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_takes_nothing_is_waited_for_only_a_moment() {
        let mut patience = Patience::default();
        let start = Instant::now();
        let after = |ms: u64| start + Duration::from_millis(ms);
        let blocked = |takes| Strain { blocked: true, takes };
        assert!(patience.bears(PeerId(1), blocked(1), start));
        assert!(patience.bears(PeerId(1), blocked(1), after(9)));
        assert!(!patience.bears(PeerId(1), blocked(1), after(10)));
        assert!(patience.bears(PeerId(1), blocked(2), after(11)), "it reads again");
        let starved = Strain { blocked: false, takes: 2 };
        assert!(patience.bears(PeerId(1), starved, after(500)), "this machine is slow, not the reader");
    }
}
