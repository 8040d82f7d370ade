//! Batching of streams, the one place that lets anything wait (G-47): a piece that comes after a pause goes at once; pieces
//! that come soon after the last commit of their stream go together when that time is over.
//!
//! Promises: the events of a run keep their order; nothing but pieces of a stream waits; what waits is bounded in time and
//! bytes.
//! Must not know: what is committed, who reads it.

use std::collections::HashMap;
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
    streams: HashMap<RunId, EventStream>,
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
            streams: HashMap::new(),
        }
    }

    /// Takes an event of a run; returns those that are due now. `may_join` says that texts which go together may become one.
    /// What a stopped run says is dropped, and no stream remembered for it: nothing would ever end that.
    pub(crate) fn take(
        &mut self,
        run: RunId,
        state: RunState,
        event: AgentEvent,
        may_join: bool,
        now: Instant,
    ) -> Option<DueEvents> {
        if state == RunState::Stopped {
            self.end(run);
            return None;
        }
        let coalesce = self.coalesce;
        let Some(bytes) = piece_bytes(&event) else {
            // Whatever else a run says comes after the pieces before it, and takes them along.
            let stream = self.streams.get_mut(&run);
            let due = stream.and_then(|stream| stream.take_pending(run));
            if matches!(event, AgentEvent::Completed | AgentEvent::Failed(_)) {
                self.streams.remove(&run);
            }
            let mut due = due.unwrap_or(DueEvents {
                run,
                events: Vec::new(),
                since: now,
            });
            due.events.push(event);
            return Some(due);
        };
        let stream = self.streams.entry(run).or_default();
        stream.add(event, bytes, may_join, now);
        let waits = stream.due_at(coalesce).is_some_and(|due| due > now);
        match waits && stream.pending_bytes < PENDING_BYTES_MAX {
            true => None,
            false => stream.take_pending(run),
        }
    }

    /// When the next pieces that wait are due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let waiting = self.streams.values();
        let waiting = waiting.filter(|stream| !stream.pending.is_empty());
        waiting
            .filter_map(|stream| stream.due_at(self.coalesce))
            .min()
    }

    /// Takes all pieces that are due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<DueEvents> {
        let coalesce = self.coalesce;
        self.take_where(|stream| stream.due_at(coalesce).is_none_or(|at| at <= now))
    }

    /// Takes all pieces, due or not: nothing comes after them.
    pub(crate) fn take_all(&mut self) -> Vec<DueEvents> {
        self.take_where(|_| true)
    }

    fn take_where(&mut self, is_due: impl Fn(&EventStream) -> bool) -> Vec<DueEvents> {
        let streams = self.streams.iter_mut();
        let due = streams.filter(|(_, stream)| is_due(stream));
        let due = due.filter_map(|(run, stream)| stream.take_pending(*run));
        let mut due: Vec<DueEvents> = due.collect();
        due.sort_by_key(|due| due.run);
        due
    }

    /// A piece of a run is about to be committed; `window_ms` is the shortest delivery window of its readers, 0 if one gave
    /// none.
    pub(crate) fn note_commit(&mut self, run: RunId, window_ms: u32, now: Instant) {
        // A run that ended meanwhile streams no more.
        if let Some(stream) = self.streams.get_mut(&run) {
            stream.committed = Some(now);
            // Most of a window is for waiting here, the rest for the commit and the network.
            stream.window = Duration::from_millis(window_ms.into()).min(WINDOW_MAX) * 4 / 5;
        }
    }

    /// A run is over or was stopped: what it still had to say is dropped.
    pub(crate) fn end(&mut self, run: RunId) {
        self.streams.remove(&run);
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
        let (mut batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
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
        assert_eq!(batcher.next_due(), None);
        let later = start + ms(18);
        assert_eq!(
            texts(batcher.take(RUN, RunState::Working, text("d"), true, later)),
            ["d"]
        );
    }

    #[test]
    fn pieces_that_may_not_be_joined_go_together_as_they_are() {
        let (mut batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
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
            let mut batcher = StreamBatcher::new(ms(8));
            batcher.take(RUN, RunState::Working, text("a"), true, start);
            batcher.note_commit(RUN, window_ms, start);
            batcher.take(RUN, RunState::Working, text("b"), true, start);
            assert_eq!(batcher.next_due(), Some(start + ms(due_ms)), "{window_ms}");
        }
    }

    #[test]
    fn much_text_does_not_wait_and_neither_does_anything_without_a_time_to_wait() {
        let (mut batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.note_commit(RUN, 0, start);
        let much = "x".repeat(PENDING_BYTES_MAX);
        assert!(
            batcher
                .take(RUN, RunState::Working, text(&much), true, start)
                .is_some()
        );
        let mut never = StreamBatcher::new(ms(0));
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
        let (mut batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.note_commit(RUN, 0, start);
        batcher.take(RUN, RunState::Working, text("b"), true, start);
        let due = batcher.take(RUN, RunState::Working, AgentEvent::Completed, true, start);
        assert_eq!(texts(due).len(), 2, "what was pending goes before the end");
        batcher.note_commit(RUN, 0, start);
        assert!(batcher.streams.is_empty());
        batcher.take(RUN, RunState::Working, text("c"), true, start);
        batcher.end(RUN);
        assert!(batcher.streams.is_empty());
    }

    #[test]
    fn no_stream_of_a_stopped_run_is_remembered() {
        let (mut batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
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
            assert!(batcher.streams.is_empty());
        }
        // It was ended before, as its effect does: what is late does not bring the stream back.
        batcher.take(RUN, RunState::Working, text("a"), true, start);
        batcher.end(RUN);
        batcher.note_commit(RUN, 0, start);
        batcher.take(RUN, RunState::Stopped, text("b"), true, start);
        assert!(batcher.streams.is_empty());
        assert_eq!(batcher.next_due(), None);
        assert!(batcher.take_all().is_empty());
    }
}
