//! How fast an agent may talk: as fast as most of those who hear it can follow. Without this, an agent that streams at
//! full speed would fill every outbox and have all its readers cut. One slow reader among others slows nobody down: it
//! falls behind and is cut; one that takes nothing at all does not even count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{Outgoing, PeerId, RunId};
use tokio::time::{Instant, sleep};

use crate::net::{Backlog, Link};

/// How often strained connections are looked at again.
const LOOK_MS: u64 = 1;
/// A blocked reader that took nothing for this long does not count.
const PATIENCE_MS: u64 = 10;
/// Who hears a run is looked up again after this many of its events, or when their number changes.
const RECOUNT_EVENTS: u32 = 256;

/// The connections that agents' words go to.
#[derive(Default)]
pub(crate) struct Pace {
    heard: Mutex<Heard>,
}

#[derive(Default)]
struct Heard {
    links: HashMap<PeerId, Arc<Link>>,
    runs: HashMap<RunId, Hearers>,
}

#[derive(Default)]
struct Hearers {
    peers: Vec<PeerId>,
    events: u32,
}

/// What one agent knows of readers that held it up.
#[derive(Default)]
pub(crate) struct Patience(HashMap<PeerId, (u64, Instant)>);

impl Pace {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn join(&self, peer: PeerId, link: Arc<Link>) {
        self.lock().links.insert(peer, link);
    }

    pub fn leave(&self, peer: PeerId) {
        self.lock().links.remove(&peer);
    }

    pub fn began(&self, run: RunId) {
        self.lock().runs.insert(run, Hearers::default());
    }

    /// Notes who hears what a run said. A run that has ended is not remembered again.
    pub fn heard(&self, run: RunId, frames: &[Outgoing]) {
        let mut heard = self.lock();
        let Some(hearers) = heard.runs.get_mut(&run) else {
            return; // the run has ended: what is still sent of it needs no pacing
        };
        hearers.events += 1;
        if hearers.peers.len() != frames.len() || hearers.events >= RECOUNT_EVENTS {
            hearers.peers = frames.iter().map(|frame| frame.peer).collect();
            hearers.events = 0;
        }
    }

    pub fn ended(&self, run: RunId) {
        self.lock().runs.remove(&run);
    }

    /// Waits while most of those who hear the run, and still read, have much waiting.
    pub async fn wait(&self, run: RunId, patience: &mut Patience) {
        while self.is_strained(run, patience) {
            sleep(Duration::from_millis(LOOK_MS)).await;
        }
    }

    fn is_strained(&self, run: RunId, patience: &mut Patience) -> bool {
        let heard = self.lock();
        let Some(hearers) = heard.runs.get(&run) else {
            return false;
        };
        let now = Instant::now();
        let mut strained = 0;
        for peer in &hearers.peers {
            match heard.links.get(peer).and_then(|link| link.backlog()) {
                Some(backlog) => strained += usize::from(patience.bears(*peer, backlog, now)),
                None => {
                    patience.0.remove(peer);
                }
            }
        }
        strained * 2 > hearers.peers.len()
    }
}

impl Patience {
    /// Whether this backlog is worth waiting for.
    fn bears(&mut self, peer: PeerId, backlog: Backlog, now: Instant) -> bool {
        let (takes, since) = self.0.entry(peer).or_insert((backlog.takes, now));
        if *takes != backlog.takes || !backlog.blocked {
            (*takes, *since) = (backlog.takes, now);
        }
        now.duration_since(*since) < Duration::from_millis(PATIENCE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_reader_among_others_slows_nobody_down() {
        let pace = Pace::default();
        let run = RunId(1);
        pace.began(run);
        let text = || kernel::Frame::Text(bytes::Bytes::from_static(b"x"));
        let mut frames = Vec::new();
        for peer in 1..=3 {
            let (link, _outbox) = Link::detached(100, 1_000_000);
            let strained = peer > 1;
            for _ in 0..if strained { 60 } else { 1 } {
                link.push(text(), 1_000);
            }
            pace.join(PeerId(peer), Arc::new(link));
            frames.push(Outgoing {
                peer: PeerId(peer),
                frame: text(),
                window_ms: 0,
            });
        }
        let waits = |pace: &Pace| pace.is_strained(run, &mut Patience::default());
        pace.heard(run, &frames[..2]);
        assert!(!waits(&pace), "one of two is slow");
        pace.heard(run, &frames);
        assert!(
            waits(&pace),
            "two of three are slow: the agent talks too fast"
        );
        pace.ended(run);
        assert!(!waits(&pace));
    }

    #[test]
    fn a_reader_that_takes_nothing_is_waited_for_only_a_moment() {
        let mut patience = Patience::default();
        let start = Instant::now();
        let after = |ms: u64| start + Duration::from_millis(ms);
        let blocked = |takes| Backlog {
            blocked: true,
            takes,
        };
        assert!(patience.bears(PeerId(1), blocked(1), start));
        assert!(patience.bears(PeerId(1), blocked(1), after(9)));
        assert!(!patience.bears(PeerId(1), blocked(1), after(10)));
        assert!(
            patience.bears(PeerId(1), blocked(2), after(11)),
            "it reads again"
        );
        let starved = Backlog {
            blocked: false,
            takes: 2,
        };
        assert!(
            patience.bears(PeerId(1), starved, after(500)),
            "this machine is slow, not the reader"
        );
    }
}
