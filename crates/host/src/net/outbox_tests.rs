//! Windows, bounds and wakes, in virtual time.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use bytes::Bytes;
use kernel::Frame;
use tokio::time::{advance, timeout};

use super::*;
use crate::net::Link;

fn text(text: &str) -> Frame {
    Frame::Text(Bytes::copy_from_slice(text.as_bytes()))
}

async fn take(outbox: &Outbox) -> (Vec<String>, OutboxContents) {
    let (mut items, mut timer) = (Vec::new(), None);
    let taken = poll_fn(|context| outbox.poll_take(context, &mut items, &mut timer)).await;
    let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let read = |item: &LinkItem| match item {
        LinkItem::Frame(frame) => vec![read(&frame.to_bytes())],
        LinkItem::Run(run) => run.texts().iter().map(|text| read(text)).collect(),
    };
    (items.iter().flat_map(read).collect(), taken)
}

async fn is_empty_for(outbox: &Outbox, ms: u64) -> bool {
    timeout(Duration::from_millis(ms), take(outbox)).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_frame_without_a_window_takes_all_that_was_held_with_it_in_order() {
    let (link, outbox) = Link::detached(100, 1_000);
    link.push(text("a"), 50);
    link.push(text("b"), 20);
    assert!(is_empty_for(&outbox, 19).await);
    link.push(text("c"), 0);
    assert_eq!(take(&outbox).await.0, ["a", "b", "c"]);
    assert!(is_empty_for(&outbox, 1_000).await);
}

#[tokio::test(start_paused = true)]
async fn the_earliest_of_the_held_decides_and_the_clock_starts_at_the_push() {
    let (link, outbox) = Link::detached(100, 1_000);
    let start = Instant::now();
    link.push(text("a"), 50);
    advance(Duration::from_millis(10)).await;
    link.push(text("b"), 5);
    link.push(text("c"), 100);
    assert_eq!(take(&outbox).await.0, ["a", "b", "c"]);
    let waited = start.elapsed();
    assert!(waited >= Duration::from_millis(15) && waited < Duration::from_millis(18));
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_writer_is_woken_for_an_earlier_deadline() {
    let (link, outbox) = Link::detached(100, 1_000);
    link.push(text("slow"), 10_000);
    let start = Instant::now();
    let pushes = async {
        tokio::task::yield_now().await;
        link.push(text("quick"), 3);
    };
    let ((frames, _), ()) = tokio::join!(take(&outbox), pushes);
    assert_eq!(frames, ["slow", "quick"]);
    assert!(start.elapsed() < Duration::from_millis(6));
}

#[tokio::test(start_paused = true)]
async fn a_full_write_leaves_however_long_its_window_is() {
    let (link, outbox) = Link::detached(10_000, 1_000_000);
    for _ in 0..TAKE_FRAMES_MAX {
        link.push(text("x"), 10_000);
    }
    let start = Instant::now();
    assert_eq!(take(&outbox).await.0.len(), TAKE_FRAMES_MAX);
    assert!(start.elapsed() < Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn control_frames_do_not_release_held_frames() {
    let (link, outbox) = Link::detached(100, 1_000);
    link.push(text("a"), 50);
    outbox.pong(b"one".to_vec());
    outbox.pong(b"two".to_vec());
    outbox.ping();
    let (frames, taken) = take(&outbox).await;
    assert!(frames.is_empty() && taken.ping);
    assert_eq!(taken.pong.as_deref(), Some(&b"two"[..]));
    assert_eq!(take(&outbox).await.0, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn over_a_bound_the_link_is_cut_and_the_queue_dropped() {
    for (frames_max, bytes_max) in [(3, 1_000), (100, 3)] {
        let (link, outbox) = Link::detached(frames_max, bytes_max);
        for _ in 0..3 {
            link.push(text("x"), 1_000);
        }
        assert!(outbox.state.lock().ending.is_none());
        link.push(text("x"), 1_000);
        link.push(text("late"), 0);
        let (frames, taken) = take(&outbox).await;
        assert!(frames.is_empty());
        let ending = taken.ending.unwrap();
        assert_eq!((ending.code, ending.urgency), (1008, CloseUrgency::AtOnce));
        assert_eq!(ending.reason, "reading too slowly; reconnect");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_being_written_count_until_the_writer_asks_again() {
    let (link, outbox) = Link::detached(2, 1_000);
    link.push(text("a"), 0);
    link.push(text("b"), 0);
    assert_eq!(take(&outbox).await.0, ["a", "b"]);
    assert!(is_empty_for(&outbox, 1).await);
    link.push(text("c"), 0);
    assert_eq!(take(&outbox).await.0, ["c"]);
    link.push(text("d"), 0);
    link.push(text("e"), 0);
    assert!(outbox.state.lock().ending.is_some(), "c may still be in flight");
}

#[tokio::test(start_paused = true)]
async fn one_large_frame_alone_is_no_sign_of_a_slow_reader() {
    let (link, outbox) = Link::detached(10, 4);
    link.push(text("larger than four"), 0);
    assert_eq!(take(&outbox).await.0, ["larger than four"]);
}

#[tokio::test(start_paused = true)]
async fn behind_a_message_larger_than_the_bound_there_is_space_for_half_of_it() {
    let (link, outbox) = Link::detached(100, 10);
    let large = "x".repeat(1_000);
    link.push(text(&large), 0);
    for in_flight in [false, true] {
        link.push(text("12345"), 0);
        assert!(outbox.state.lock().ending.is_none(), "in flight: {in_flight}");
        if !in_flight {
            let (frames, _) = take(&outbox).await;
            assert_eq!(frames, [large.as_str(), "12345"]);
        }
    }
    link.push(text("1"), 0);
    let cut = outbox.state.lock().ending.clone().unwrap();
    assert_eq!(cut.code, 1008, "it takes nothing");
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_counts_by_what_is_left_of_it() {
    let (link, outbox) = Link::detached(100, 1_000);
    link.push(text(&"x".repeat(900)), 0);
    take(&outbox).await;
    let backlog = outbox.backlog().unwrap();
    // Half of the bound, and the other half for these.
    link.push(text(&"y".repeat(450)), 0);
    outbox.record_progress(100);
    assert_ne!(outbox.backlog().unwrap().takes, backlog.takes, "it reads");
    link.push(text(&"z".repeat(450)), 0);
    assert!(outbox.state.lock().ending.is_none());
    outbox.record_progress(0);
    link.push(text(&"z".repeat(101)), 0);
    assert!(outbox.state.lock().ending.is_some(), "all of these wait");
}

#[tokio::test(start_paused = true)]
async fn closing_comes_after_the_queue_and_cutting_before_it() {
    let (link, outbox) = Link::detached(1_000, 10_000);
    let pushed: Vec<String> = (0..TAKE_FRAMES_MAX + 44).map(|n| n.to_string()).collect();
    for frame in &pushed {
        link.push(text(frame), 60_000);
    }
    link.close(1002, "no common version");
    link.push(text("late"), 0);
    let (mut frames, taken) = take(&outbox).await;
    assert_eq!(taken.ending, None, "more is queued");
    let (rest, taken) = take(&outbox).await;
    frames.extend(rest);
    assert_eq!(frames, pushed);
    assert_eq!(taken.ending.map(|ending| ending.code), Some(1002));

    let (link, outbox) = Link::detached(100, 1_000);
    link.push(text("dropped"), 0);
    outbox.end(1008, "superseded", CloseUrgency::AtOnce);
    let (frames, taken) = take(&outbox).await;
    assert!(frames.is_empty());
    assert_eq!(taken.ending.map(|ending| ending.code), Some(1008));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_link_closes_after_the_queue() {
    let (link, outbox) = Link::detached(100, 1_000);
    link.push(text("last"), 1_000);
    drop(link);
    let (frames, taken) = take(&outbox).await;
    assert_eq!(frames, ["last"]);
    assert_eq!(taken.ending.map(|ending| ending.code), Some(1001));
}

#[tokio::test(start_paused = true)]
async fn a_burst_leaves_no_memory_behind() {
    let (link, outbox) = Link::detached(10_000, 1 << 20);
    for _ in 0..5_000 {
        link.push(text("x"), 0);
    }
    while !outbox.state.lock().held.is_empty() {
        take(&outbox).await;
    }
    assert_eq!(outbox.state.lock().held.capacity(), 0);
}

struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_sleeping_writer_with_something_to_do_is_woken() {
    let (link, outbox) = Link::detached(100, 1_000);
    let counter = Arc::new(Counter(AtomicUsize::new(0)));
    let waker = Waker::from(counter.clone());
    let mut context = Context::from_waker(&waker);
    let (mut frames, mut timer) = (Vec::new(), None);
    let wakes = || counter.0.swap(0, Ordering::Relaxed);

    assert!(outbox.poll_take(&mut context, &mut frames, &mut timer).is_pending());
    link.push(text("a"), 0);
    assert_eq!(wakes(), 1);
    link.push(text("b"), 0);
    link.push(text("c"), 0);
    assert_eq!(wakes(), 0, "it is awake already");
    assert!(outbox.poll_take(&mut context, &mut frames, &mut timer).is_ready());
    link.push(text("d"), 0);
    assert_eq!(wakes(), 0, "it is writing");
    assert!(outbox.poll_ending(&mut context).is_pending());
    link.push(text("e"), 0);
    assert_eq!(wakes(), 0, "it is blocked by the socket");
    assert!(outbox.poll_take(&mut context, &mut frames, &mut timer).is_ready());
    assert!(outbox.poll_take(&mut context, &mut frames, &mut timer).is_pending());
    link.push(text("f"), 20);
    assert_eq!(wakes(), 1, "the timer is to be set");
    assert!(outbox.poll_take(&mut context, &mut frames, &mut timer).is_pending());
    link.push(text("g"), 20);
    link.push(text("h"), 30);
    assert_eq!(wakes(), 0, "the timer is set");
    outbox.end(1008, "", CloseUrgency::AtOnce);
    assert_eq!(wakes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_paused_reader_waits_and_an_ending_stops_it() {
    let (link, outbox) = Link::detached(100, 1_000);
    let may_read = || poll_fn(|context| outbox.poll_may_read(context));
    assert_eq!(may_read().await, ReadDecision::Yes);
    link.pause();
    assert!(timeout(Duration::from_secs(9), may_read()).await.is_err());
    let resume = async { link.resume() };
    assert_eq!(tokio::join!(may_read(), resume).0, ReadDecision::Yes);
    link.pause();
    let close = async { link.close(1000, "") };
    assert_eq!(tokio::join!(may_read(), close).0, ReadDecision::Stop);
}
