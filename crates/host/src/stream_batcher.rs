//! Batching of streams, the one place that lets an agent's events wait (G-47): a piece that comes after a pause goes at once; pieces
//! that come soon after the last commit of their stream go together when that time is over.
//!
//! Pieces wait here whether they come through the kernel's queue or, while the kernel's task is going to look here anyway,
//! straight from an agent's task ([`StreamBatcher::hold`]): then nobody is woken for them.
//!
//! Promises: the events of a run keep their order; nothing but pieces of a stream waits; what waits is bounded in time and
//! bytes.
//! Must not know: what is committed, who reads it.

use std::collections::HashMap;
use std::time::Duration;

use agent_api::AgentEvent;
use kernel::RunId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// More than this does not wait.
const PENDING_BYTES_MAX: usize = 16 * 1_024;

/// However long the readers' delivery windows are, a piece waits no longer: a crash must not cost more.
const WINDOW_MAX: Duration = Duration::from_millis(25);

/// What the runtime's timers are late on average and more: a piece that is due this soon does not wait for one.
const TIMER_SLACK: Duration = Duration::from_millis(1);

/// The streams of runs, and their pieces that wait.
pub(crate) struct StreamBatcher {
    coalesce: Duration,
    streams: Mutex<HashMap<RunId, EventStream>>,
}

/// The stream of one run.
#[derive(Default)]
struct EventStream {
    /// When the last commit with a piece of it began.
    committed: Option<Instant>,
    /// The shortest delivery window of its readers, if all of them gave one.
    window: Duration,
    pending: Vec<AgentEvent>,
    pending_bytes: usize,
    /// When the oldest of them came.
    pending_since: Option<Instant>,
    /// Events of the agent that are in the kernel's queue: what comes after them must not overtake them.
    queued: usize,
    /// The pieces that were taken last had waited, so the next ones probably will.
    is_fast: bool,
    /// The kernel's task is going to look for pieces when they are due, whether there are any or not.
    watched: bool,
}

/// Whether a run still works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    Working,
    /// Its events were on their way when it was stopped.
    Stopped,
}

/// Events of a run that are due, in order, and since when the first of them waited.
#[derive(Debug)]
pub(crate) struct DueEvents {
    pub run: RunId,
    pub events: Vec<AgentEvent>,
    pub since: Instant,
}

impl StreamBatcher {
    /// Pieces wait for `coalesce` after a commit; with zero nothing ever waits.
    pub(crate) fn new(coalesce: Duration) -> Self {
        Self { coalesce, streams: Mutex::default() }
    }

    /// A run begins.
    pub(crate) fn begin(&self, run: RunId) {
        self.streams.lock().insert(run, EventStream::default());
    }

    /// Takes an event straight from an agent's task, if it can wait here without anybody being woken for it. Otherwise it
    /// is given back and has to go through the kernel's queue, to [`StreamBatcher::take`].
    pub(crate) fn hold(
        &self,
        run: RunId,
        event: AgentEvent,
        may_join: bool,
        now: Instant,
    ) -> Option<AgentEvent> {
        let mut streams = self.streams.lock();
        let Some(stream) = streams.get_mut(&run) else {
            return Some(event); // the run is over; the event is dropped when it leaves the queue
        };
        let bytes = piece_bytes(&event).filter(|bytes| {
            let waits = stream.due_at(self.coalesce).is_some_and(|due| due > now);
            let fits = stream.pending_bytes + bytes < PENDING_BYTES_MAX;
            waits && fits && stream.watched && stream.queued == 0
        });
        let Some(bytes) = bytes else {
            stream.queued += 1;
            return Some(event);
        };
        stream.add(event, bytes, may_join, now);
        None
    }

    /// Takes an event of a run from the kernel's queue; returns those that are due now. `may_join` says that texts which go
    /// together may become one.
    /// What a stopped run says is dropped, and no stream remembered for it: nothing would ever end that.
    pub(crate) fn take(
        &self,
        run: RunId,
        state: RunState,
        event: AgentEvent,
        may_join: bool,
        now: Instant,
    ) -> Option<DueEvents> {
        let mut streams = self.streams.lock();
        if state == RunState::Stopped {
            streams.remove(&run);
            return None;
        }
        let stream = streams.entry(run).or_default();
        stream.queued = stream.queued.saturating_sub(1);
        let Some(bytes) = piece_bytes(&event) else {
            // Whatever else a run says comes after the pieces before it, and takes them along.
            let mut due = stream.take_pending(run).unwrap_or(DueEvents {
                run,
                events: Vec::new(),
                since: now,
            });
            if matches!(event, AgentEvent::Completed | AgentEvent::Failed(_)) {
                streams.remove(&run);
            }
            due.events.push(event);
            return Some(due);
        };
        stream.add(event, bytes, may_join, now);
        let waits = stream.due_at(self.coalesce).is_some_and(|due| due > now);
        if waits && stream.pending_bytes < PENDING_BYTES_MAX {
            None
        } else {
            stream.is_fast = false;
            stream.take_pending(run)
        }
    }

    /// When to look for pieces that are due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let streams = self.streams.lock();
        let waiting =
            streams.values().filter(|stream| stream.watched || !stream.pending.is_empty());
        waiting.filter_map(|stream| stream.due_at(self.coalesce)).min()
    }

    /// Takes all pieces that are due.
    pub(crate) fn take_due(&self, now: Instant) -> Vec<DueEvents> {
        let coalesce = self.coalesce;
        self.take_where(|stream| stream.due_at(coalesce).is_none_or(|at| at <= now))
    }

    /// Takes all pieces, due or not: nothing comes after them.
    pub(crate) fn take_all(&self) -> Vec<DueEvents> {
        self.take_where(|_| true)
    }

    fn take_where(&self, is_due: impl Fn(&EventStream) -> bool) -> Vec<DueEvents> {
        let mut streams = self.streams.lock();
        let streams = streams.iter_mut();
        let mut due: Vec<DueEvents> = streams
            .filter(|(_, stream)| is_due(stream))
            .filter_map(|(run, stream)| {
                stream.is_fast = !stream.pending.is_empty();
                stream.watched = false;
                stream.take_pending(*run)
            })
            .collect();
        due.sort_by_key(|due| due.run);
        due
    }

    /// A piece of a run is about to be committed; `window_ms` is the shortest delivery window of its readers, 0 if one gave
    /// none.
    pub(crate) fn note_commit(&self, run: RunId, window_ms: u32, now: Instant) {
        // A run that ended meanwhile streams no more.
        if let Some(stream) = self.streams.lock().get_mut(&run) {
            stream.committed = Some(now);
            // Most of a window is for waiting here, the rest for the commit and the network.
            stream.window = Duration::from_millis(window_ms.into()).min(WINDOW_MAX) * 4 / 5;
            stream.watched = stream.is_fast;
        }
    }

    /// A run is over or was stopped: what it still had to say is dropped.
    pub(crate) fn end(&self, run: RunId) {
        self.streams.lock().remove(&run);
    }
}

impl EventStream {
    /// Until when pieces wait; `None` if nothing was committed yet, so that nothing has to.
    fn due_at(&self, coalesce: Duration) -> Option<Instant> {
        if coalesce.is_zero() {
            return None;
        }
        let committed = self.committed?;
        let wait = coalesce.max(self.window).saturating_sub(TIMER_SLACK);
        Some(committed + wait)
    }

    fn add(&mut self, event: AgentEvent, bytes: usize, may_join: bool, now: Instant) {
        self.pending_bytes += bytes;
        self.pending_since.get_or_insert(now);
        let last = self.pending.last_mut().filter(|_| may_join);
        let rest = match last {
            Some(last) => join(last, event),
            None => Some(event),
        };
        self.pending.extend(rest);
    }

    fn take_pending(&mut self, run: RunId) -> Option<DueEvents> {
        let since = self.pending_since.take()?;
        self.pending_bytes = 0;
        let events = std::mem::take(&mut self.pending);
        Some(DueEvents { run, events, since })
    }
}

/// The bytes of a piece of a stream; `None` if the event is not one.
fn piece_bytes(event: &AgentEvent) -> Option<usize> {
    match event {
        AgentEvent::Text { text, .. } | AgentEvent::ToolInput { text, .. } => Some(text.len()),
        _ => None,
    }
}

/// Appends a piece to one that goes before it, if both are of the same part or call; otherwise gives it back.
fn join(last: &mut AgentEvent, event: AgentEvent) -> Option<AgentEvent> {
    match (last, event) {
        (AgentEvent::Text { part, text }, AgentEvent::Text { part: of, text: more })
            if *part == of =>
        {
            text.push_str(&more);
            None
        }
        (AgentEvent::ToolInput { call, text }, AgentEvent::ToolInput { call: of, text: more })
            if *call == of =>
        {
            text.push_str(&more);
            None
        }
        (_, event) => Some(event),
    }
}

#[cfg(test)]
#[path = "stream_batcher_tests.rs"]
mod tests;
