//! Paces agents: one may stream as fast as most of its readers can follow. Without this, an agent that streams at full
//! speed would fill every outbox and have all its readers disconnected.
//!
//! Promises: one slow reader among others slows nobody down: it falls behind and is disconnected; one that takes nothing at
//! all does not count.
//! Must not know: what agents send.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kernel::{OutgoingFrame, PeerId, RunId};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::net::{Backlog, Link};

/// How often connections that are behind are checked again.
const RECHECK_MS: u64 = 1;
/// A blocked reader that took nothing for this long does not count.
const BLOCKED_MS_MAX: u64 = 10;
/// The recipients of a run are looked up again after this many of its events, or when their number changes.
const RECOUNT_EVENTS: u32 = 256;

/// Knows the connections that the events of each run go to.
#[derive(Default)]
pub(crate) struct Pacer {
    state: Mutex<PacerState>,
}

#[derive(Default)]
struct PacerState {
    links: HashMap<PeerId, Arc<Link>>,
    runs: HashMap<RunId, RunWatchers>,
}

#[derive(Default)]
struct RunWatchers {
    peers: Vec<PeerId>,
    events: u32,
}

/// The readers that held up one agent, and since when.
#[derive(Default)]
pub(crate) struct SlowReaders(HashMap<PeerId, (u64, Instant)>);

impl Pacer {
    pub(crate) fn add_peer(&self, peer: PeerId, link: Arc<Link>) {
        self.state.lock().links.insert(peer, link);
    }

    pub(crate) fn remove_peer(&self, peer: PeerId) {
        let mut state = self.state.lock();
        state.links.remove(&peer);
        if state.links.is_empty() {
            // With its room: there may be thousands of kernels at rest.
            state.links = HashMap::new();
        }
    }

    pub(crate) fn start_run(&self, run: RunId) {
        self.state.lock().runs.insert(run, RunWatchers::default());
    }

    /// Notes who an event of a run goes to.
    pub(crate) fn record_recipients(&self, run: RunId, frames: &[OutgoingFrame]) {
        let mut state = self.state.lock();
        let Some(recipients) = state.runs.get_mut(&run) else {
            return; // the run has ended: what is still sent of it needs no pacing
        };
        recipients.events += 1;
        let to = || frames.iter().flat_map(|frame| frame.recipients.as_slice());
        let count: usize = frames.iter().map(|frame| frame.recipients.as_slice().len()).sum();
        if recipients.peers.len() != count || recipients.events >= RECOUNT_EVENTS {
            recipients.peers = to().map(|to| to.peer).collect();
            recipients.events = 0;
        }
    }

    pub(crate) fn end_run(&self, run: RunId) {
        self.state.lock().runs.remove(&run);
    }

    /// Waits while most recipients of the run that still read are behind.
    pub(crate) async fn wait_for_readers(&self, run: RunId, slow_readers: &mut SlowReaders) {
        while self.must_wait(run, slow_readers) {
            sleep(Duration::from_millis(RECHECK_MS)).await;
        }
    }

    fn must_wait(&self, run: RunId, slow_readers: &mut SlowReaders) -> bool {
        let state = self.state.lock();
        let Some(recipients) = state.runs.get(&run) else { return false };
        let now = Instant::now();
        let mut behind = 0;
        for peer in &recipients.peers {
            match state.links.get(peer).and_then(|link| link.backlog()) {
                Some(backlog) => {
                    behind += usize::from(slow_readers.is_worth_waiting_for(*peer, backlog, now))
                }
                None => {
                    slow_readers.0.remove(peer);
                }
            }
        }
        behind * 2 > recipients.peers.len()
    }
}

impl SlowReaders {
    /// Whether the agent should wait for this reader: not for one that is blocked and takes nothing.
    fn is_worth_waiting_for(&mut self, peer: PeerId, backlog: Backlog, now: Instant) -> bool {
        let (takes, since) = self.0.entry(peer).or_insert((backlog.takes, now));
        if *takes != backlog.takes || !backlog.blocked {
            (*takes, *since) = (backlog.takes, now);
        }
        now.duration_since(*since) < Duration::from_millis(BLOCKED_MS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_reader_among_others_slows_nobody_down() {
        let pacer = Pacer::default();
        let run = RunId(1);
        pacer.start_run(run);
        let text = || kernel::Frame::Text(bytes::Bytes::from_static(b"x"));
        let mut frames = Vec::new();
        for peer in 1..=3 {
            let (link, _outbox) = Link::detached(100, 1_000_000);
            let behind = peer > 1;
            for _ in 0..if behind { 60 } else { 1 } {
                link.push(text(), 1_000);
            }
            pacer.add_peer(PeerId(peer), Arc::new(link));
            let (peer, window_ms) = (PeerId(peer), 0);
            frames.push(OutgoingFrame {
                recipients: kernel::Recipients::One(kernel::Recipient { peer, window_ms }),
                frame: text(),
            });
        }
        let waits = |pacer: &Pacer| pacer.must_wait(run, &mut SlowReaders::default());
        pacer.record_recipients(run, &frames[..2]);
        assert!(!waits(&pacer), "one of two is slow");
        pacer.record_recipients(run, &frames);
        assert!(waits(&pacer), "two of three are slow: the agent is too fast");
        pacer.end_run(run);
        assert!(!waits(&pacer));
    }

    #[test]
    fn a_reader_that_takes_nothing_is_waited_for_only_a_moment() {
        let mut slow_readers = SlowReaders::default();
        let start = Instant::now();
        let after = |ms: u64| start + Duration::from_millis(ms);
        let blocked = |takes| Backlog { blocked: true, takes };
        assert!(slow_readers.is_worth_waiting_for(PeerId(1), blocked(1), start));
        assert!(slow_readers.is_worth_waiting_for(PeerId(1), blocked(1), after(9)));
        assert!(!slow_readers.is_worth_waiting_for(PeerId(1), blocked(1), after(10)));
        assert!(
            slow_readers.is_worth_waiting_for(PeerId(1), blocked(2), after(11)),
            "it reads again"
        );
        let starved = Backlog { blocked: false, takes: 2 };
        assert!(
            slow_readers.is_worth_waiting_for(PeerId(1), starved, after(500)),
            "this machine is slow, not the reader"
        );
    }
}
