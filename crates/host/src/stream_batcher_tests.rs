//! When pieces of streams go: at once, together, or joined.

use super::*;

const RUN: RunId = RunId(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn text(text: &str) -> AgentEvent {
    AgentEvent::Text { part: 1, text: text.to_owned() }
}

fn texts(due: Option<DueEvents>) -> Vec<String> {
    let events = due.map(|due| due.events).unwrap_or_default().into_iter();
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
    assert_eq!(texts(batcher.take(RUN, RunState::Working, text("a"), true, start)), ["a"]);
    batcher.note_commit(RUN, 0, start);
    assert!(batcher.take(RUN, RunState::Working, text("b"), true, start + ms(2)).is_none());
    assert!(batcher.take(RUN, RunState::Working, text("c"), true, start + ms(5)).is_none());
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
    assert_eq!(texts(batcher.take(RUN, RunState::Working, text("d"), true, later)), ["d"]);
}

#[test]
fn pieces_that_may_not_be_joined_go_together_as_they_are() {
    let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
    batcher.take(RUN, RunState::Working, text("a"), false, start);
    batcher.note_commit(RUN, 0, start);
    assert!(batcher.take(RUN, RunState::Working, text("b"), false, start).is_none());
    assert!(batcher.take(RUN, RunState::Working, text("c"), false, start).is_none());
    // Anything else comes after them, at once.
    let notice = AgentEvent::Notice { text: "n".to_owned() };
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
    assert!(batcher.take(RUN, RunState::Working, text(&much), true, start).is_some());
    let never = StreamBatcher::new(ms(0));
    for _ in 0..2 {
        assert!(never.take(RUN, RunState::Working, text("a"), true, start).is_some());
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
    assert!(batcher.streams.lock().is_empty());
    batcher.take(RUN, RunState::Working, text("c"), true, start);
    batcher.end(RUN);
    assert!(batcher.streams.lock().is_empty());
}

/// A batcher whose run streams so fast that its last pieces had waited.
fn fast_stream(start: Instant) -> StreamBatcher {
    let batcher = StreamBatcher::new(ms(8));
    batcher.begin(RUN);
    assert!(batcher.hold(RUN, text("a"), true, start).is_some());
    assert!(batcher.take(RUN, RunState::Working, text("a"), true, start).is_some());
    batcher.note_commit(RUN, 0, start);
    assert!(batcher.hold(RUN, text("b"), true, start).is_some());
    assert!(batcher.take(RUN, RunState::Working, text("b"), true, start).is_none());
    assert_eq!(batcher.take_due(start + ms(7)).len(), 1);
    batcher.note_commit(RUN, 0, start + ms(7));
    batcher
}

#[test]
fn a_fast_stream_holds_pieces_without_the_queue_and_they_are_looked_for() {
    let start = Instant::now();
    let batcher = fast_stream(start);
    assert_eq!(batcher.next_due(), Some(start + ms(14)), "also without a piece");
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
    let notice = AgentEvent::Notice { text: "n".to_owned() };
    let at = start + ms(8);
    assert!(batcher.hold(RUN, text("c"), true, at).is_none());
    let notice = batcher.hold(RUN, notice, true, at);
    let after =
        batcher.hold(RUN, text("d"), true, at).expect("the notice is in the queue before it");
    let due = batcher.take(RUN, RunState::Working, notice.expect("it is not a piece"), true, at);
    assert_eq!(texts(due).len(), 2, "the piece that was held, and the notice");
    assert!(batcher.take(RUN, RunState::Working, after, true, at).is_none());
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
    assert!(batcher.streams.lock().is_empty());
}

#[test]
fn no_stream_of_a_stopped_run_is_remembered() {
    let (batcher, start) = (StreamBatcher::new(ms(8)), Instant::now());
    // It is stopped with a piece pending, and says more that was on its way.
    batcher.take(RUN, RunState::Working, text("a"), true, start);
    batcher.note_commit(RUN, 0, start);
    batcher.take(RUN, RunState::Working, text("b"), true, start);
    for late in [text("c"), AgentEvent::Completed, text("d")] {
        assert!(batcher.take(RUN, RunState::Stopped, late, true, start).is_none());
        assert!(batcher.streams.lock().is_empty());
    }
    // It was ended before, as its effect does: what is late does not bring the stream back.
    batcher.take(RUN, RunState::Working, text("a"), true, start);
    batcher.end(RUN);
    batcher.note_commit(RUN, 0, start);
    batcher.take(RUN, RunState::Stopped, text("b"), true, start);
    assert!(batcher.streams.lock().is_empty());
    assert_eq!(batcher.next_due(), None);
    assert!(batcher.take_all().is_empty());
}
