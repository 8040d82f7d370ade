//! Batching of streams, the one place that lets anything wait (G-47): a piece that comes after a pause goes at once; pieces
//! that come soon after the last commit of their stream go together when that time is over.
//!
//! Pieces wait here whether they come through the kernel's queue or, while the kernel's task is going to look here anyway,
//! straight from an agent's task ([`StreamBatcher::hold`]): then nobody is woken for them.
//!
//! Promises: the events of a run keep their order; nothing but pieces of a stream waits; what waits is bounded in time and
//! bytes.
//! Must not know: what is committed, who reads it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_api::AgentEvent;
use kernel::RunId;
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
    /// What it says was on its way when it was stopped.
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
        Self {
            coalesce,
            streams: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, EventStream>> {
        // Every change is complete before the lock is released, so a panic elsewhere leaves nothing half done.
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins.
    pub(crate) fn begin(&self, run: RunId) {
        self.lock().insert(run, EventStream::default());
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
        let mut streams = self.lock();
        let Some(stream) = streams.get_mut(&run) else {
            return Some(event); // the run is over; whoever takes it from the queue drops it
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
        let mut streams = self.lock();
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
        match waits && stream.pending_bytes < PENDING_BYTES_MAX {
            true => None,
            false => {
                stream.is_fast = false;
                stream.take_pending(run)
            }
        }
    }

    /// When to look for pieces that are due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let streams = self.lock();
        let waiting = streams.values();
        let waiting = waiting.filter(|stream| stream.watched || !stream.pending.is_empty());
        waiting
            .filter_map(|stream| stream.due_at(self.coalesce))
            .min()
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
        let mut streams = self.lock();
        let streams = streams.iter_mut();
        let due = streams.filter(|(_, stream)| is_due(stream));
        let due = due.filter_map(|(run, stream)| {
            stream.is_fast = !stream.pending.is_empty();
            stream.watched = false;
            stream.take_pending(*run)
        });
        let mut due: Vec<DueEvents> = due.collect();
        due.sort_by_key(|due| due.run);
        due
    }

    /// A piece of a run is about to be committed; `window_ms` is the shortest delivery window of its readers, 0 if one gave
    /// none.
    pub(crate) fn note_commit(&self, run: RunId, window_ms: u32, now: Instant) {
        // A run that ended meanwhile streams no more.
        if let Some(stream) = self.lock().get_mut(&run) {
            stream.committed = Some(now);
            // Most of a window is for waiting here, the rest for the commit and the network.
            stream.window = Duration::from_millis(window_ms.into()).min(WINDOW_MAX) * 4 / 5;
            stream.watched = stream.is_fast;
        }
    }

    /// A run is over or was stopped: what it still had to say is dropped.
    pub(crate) fn end(&self, run: RunId) {
        self.lock().remove(&run);
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
        (
            AgentEvent::Text { part, text },
            AgentEvent::Text {
                part: of,
                text: more,
            },
        ) if *part == of => {
            text.push_str(&more);
            None
        }
        (
            AgentEvent::ToolInput { call, text },
            AgentEvent::ToolInput {
                call: of,
                text: more,
            },
        ) if *call == of => {
            text.push_str(&more);
            None
        }
        (_, event) => Some(event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId(1);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn text(text: &str) -> AgentEvent {
        AgentEvent::Text {
            part: 1,
            text: text.to_owned(),
        }
    }

    fn texts(due: Option<DueEvents>) -> Vec<String> {
        let events = due.map(|due| due.events).unwrap_or_default();
        let events = events.into_iter();
        events
            .map(|event| match event {
                AgentEvent::Text { text, .. } => text,
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn the_first_piece_after_a_pause_goes_at_once_and_the_next_ones_together() {
        let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        assert_eq!(
            texts(batcher.take(RUN, RunState::Working, text("a"), true, start)),
            ["a"]
        );
        batcher.note_commit(RUN, 0, start);
        assert!(
            batcher
                .take(RUN, RunState::Working, text("b"), true, start + ms(2))
                .is_none()
        );
        assert!(
            batcher
                .take(RUN, RunState::Working, text("c"), true, start + ms(5))
                .is_none()
        );
        assert_eq!(batcher.next_due(), Some(start + ms(7)));
        assert!(batcher.take_due(start + ms(6)).is_empty());
        let due = batcher.take_due(start + ms(8));
        assert_eq!(due.len(), 1);
        let due = due.into_iter().next();
        assert_eq!(due.as_ref().map(|due| due.since), Some(start + ms(2)));
        assert_eq!(texts(due), ["bc"]);
        batcher.note_commit(RUN, 0, start + ms(8));
        assert!(batcher.take_due(start + ms(15)).is_empty());
        assert_eq!(batcher.next_due(), None);
        let later = start + ms(18);
        assert_eq!(
            texts(batcher.take(RUN, RunState::Working, text("d"), true, later)),
            ["d"]
        );
    }

    #[test]
    fn pieces_that_may_not_be_joined_go_together_as_they_are() {
        let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        batcher.take(RUN, RunState::Working, text("a"), false, start);
        batcher.note_commit(RUN, 0, start);
        assert!(
            batcher
                .take(RUN, RunState::Working, text("b"), false, start)
                .is_none()
        );
        assert!(
            batcher
                .take(RUN, RunState::Working, text("c"), false, start)
                .is_none()
        );
        // Anything else comes after them, at once.
        let notice = AgentEvent::Notice {
            text: "n".to_owned(),
        };
        let due = batcher.take(RUN, RunState::Working, notice, false, start);
        let due = texts(due);
        assert_eq!(due.len(), 3);
        assert_eq!(due[..2], ["b", "c"]);
    }

    #[test]
    fn a_window_that_every_reader_gave_makes_it_longer_and_never_shorter() {
        let start = Instant::now();
        for (window_ms, due_ms) in [(0, 7), (5, 7), (20, 15), (1_000, 19)] {
            let batcher = StreamBatcher::new(ms(8));
            batcher.take(RUN, RunState::Working, text("a"), true, start);
            batcher.note_commit(RUN, window_ms, start);
            batcher.take(RUN, RunState::Working, text("b"), true, start);
            assert_eq!(batcher.next_due(), Some(start + ms(due_ms)), "{window_ms}");
        }
    }

    #[test]
    fn much_text_does_not_wait_and_neither_does_anything_without_a_time_to_wait() {
        let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.note_commit(RUN, 0, start);
        let much = "x".repeat(PENDING_BYTES_MAX);
        assert!(
            batcher
                .take(RUN, RunState::Working, text(&much), true, start)
                .is_some()
        );
        let never = StreamBatcher::new(ms(0));
        for _ in 0..2 {
            assert!(
                never
                    .take(RUN, RunState::Working, text("a"), true, start)
                    .is_some()
            );
            never.note_commit(RUN, 20, start);
        }
    }

    #[test]
    fn a_run_that_is_over_is_forgotten() {
        let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.note_commit(RUN, 0, start);
        batcher.take(RUN, RunState::Working, text("b"), true, start);
        let due = batcher.take(RUN, RunState::Working, AgentEvent::Completed, true, start);
        assert_eq!(texts(due).len(), 2, "what was pending goes before the end");
        batcher.note_commit(RUN, 0, start);
        assert!(batcher.lock().is_empty());
        batcher.take(RUN, RunState::Working, text("c"), true, start);
        batcher.end(RUN);
        assert!(batcher.lock().is_empty());
    }

    /// A batcher whose run streams so fast that its last pieces had waited.
    fn fast_stream(start: Instant) -> StreamBatcher {
        let batcher = StreamBatcher::new(ms(8));
        batcher.begin(RUN);
        assert!(batcher.hold(RUN, text("a"), true, start).is_some());
        assert!(
            batcher
                .take(RUN, RunState::Working, text("a"), true, start)
                .is_some()
        );
        batcher.note_commit(RUN, 0, start);
        assert!(batcher.hold(RUN, text("b"), true, start).is_some());
        assert!(
            batcher
                .take(RUN, RunState::Working, text("b"), true, start)
                .is_none()
        );
        assert_eq!(batcher.take_due(start + ms(7)).len(), 1);
        batcher.note_commit(RUN, 0, start + ms(7));
        batcher
    }

    #[test]
    fn a_fast_stream_holds_pieces_without_the_queue_and_they_are_looked_for() {
        let start = Instant::now();
        let batcher = fast_stream(start);
        assert_eq!(
            batcher.next_due(),
            Some(start + ms(14)),
            "also without a piece"
        );
        for word in ["c", "d"] {
            assert!(batcher.hold(RUN, text(word), true, start + ms(9)).is_none());
        }
        let due = batcher.take_due(start + ms(14)).into_iter().next();
        assert_eq!(texts(due), ["cd"]);
        // Nobody looks any more before the next commit.
        assert_eq!(batcher.next_due(), None);
        assert!(batcher.hold(RUN, text("e"), true, start + ms(14)).is_some());
    }

    #[test]
    fn no_piece_overtakes_what_is_in_the_queue() {
        let start = Instant::now();
        let batcher = fast_stream(start);
        let notice = AgentEvent::Notice {
            text: "n".to_owned(),
        };
        let at = start + ms(8);
        assert!(batcher.hold(RUN, text("c"), true, at).is_none());
        let notice = batcher.hold(RUN, notice, true, at);
        let after = batcher.hold(RUN, text("d"), true, at);
        let after = after.expect("the notice is in the queue before it");
        let due = batcher.take(
            RUN,
            RunState::Working,
            notice.expect("it is not a piece"),
            true,
            at,
        );
        assert_eq!(
            texts(due).len(),
            2,
            "the piece that was held, and the notice"
        );
        assert!(
            batcher
                .take(RUN, RunState::Working, after, true, at)
                .is_none()
        );
        assert!(batcher.hold(RUN, text("e"), true, at).is_none());
        let due = batcher.take_all().into_iter().next();
        assert_eq!(texts(due), ["de"]);
    }

    #[test]
    fn a_run_that_was_stopped_holds_nothing() {
        let start = Instant::now();
        let batcher = fast_stream(start);
        batcher.end(RUN);
        assert!(batcher.hold(RUN, text("c"), true, start + ms(8)).is_some());
        assert!(batcher.lock().is_empty());
    }

    #[test]
    fn no_stream_of_a_stopped_run_is_remembered() {
        let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        // It is stopped with a piece pending, and says more that was on its way.
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.note_commit(RUN, 0, start);
        batcher.take(RUN, RunState::Working, text("b"), true, start);
        for late in [text("c"), AgentEvent::Completed, text("d")] {
            assert!(
                batcher
                    .take(RUN, RunState::Stopped, late, true, start)
                    .is_none()
            );
            assert!(batcher.lock().is_empty());
        }
        // It was ended before, as its effect does: what is late does not bring the stream back.
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.end(RUN);
        batcher.note_commit(RUN, 0, start);
        batcher.take(RUN, RunState::Stopped, text("b"), true, start);
        assert!(batcher.lock().is_empty());
        assert_eq!(batcher.next_due(), None);
        assert!(batcher.take_all().is_empty());
    }
}
