//! What waits for one peer: items in order, control frames, and how the connection is to end.
//!
//! Promises: first in, first out, always; what waits and what is left of what is being written together stay within the
//! bounds, but for one message that is larger than half of them; a push costs one short lock, and a wake only when the
//! writer sleeps and has something new to do. Something small may be written by whoever pushes it, if nothing is before it.
//! Must not know: what the frames mean, what kind of socket it is.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use super::socket::{SharedStream, write_some};
use super::text_run::LinkItem;
use super::ws::batch::FrameBatch;
use super::ws::frame::close;

/// Frames and bytes the writer takes at a time; what it took counts against the bounds until it asks again.
const TAKE_FRAMES_MAX: usize = 256;
const TAKE_BYTES: usize = 256 * 1_024;
/// What the pushing task writes itself: more would keep the kernel from its next batch.
const DIRECT_BYTES_MAX: usize = 4 * 1_024;
/// How long a connection that is to end may take to write what is left and to receive the peer's answer.
pub(crate) const CLOSE_WAIT_MS: u64 = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseUrgency {
    AfterQueue,
    AtOnce,
}

/// How the connection is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectionEnding {
    pub code: u16,
    pub reason: Cow<'static, str>,
    pub urgency: CloseUrgency,
    /// Whatever is not written by then is not written.
    pub deadline: Instant,
}

/// What the writer is to write, in this order: what has begun to leave, pong, ping, the frames, the close frame.
#[derive(Default)]
pub(crate) struct OutboxContents {
    pub begun: FrameBatch,
    pub pong: Option<Box<[u8]>>,
    pub ping: bool,
    pub ending: Option<ConnectionEnding>,
}

/// Who writes what is pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenBy {
    /// The connection's task, which is woken for it.
    Writer,
    /// Whoever pushes, if it is small and nothing is before it: nobody is woken.
    Pusher,
}

/// A socket that pushers may write to. When it is dropped, also because the connection's task was aborted, only the writer has the
/// socket.
pub(crate) struct AttachedSocket<'a>(&'a Outbox);

impl Drop for AttachedSocket<'_> {
    fn drop(&mut self) {
        self.0.state.lock().socket = None;
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadDecision {
    Yes,
    /// The connection is ending: nothing more is sent.
    Stop,
}

struct QueuedItem {
    item: LinkItem,
    frames: usize,
    bytes: usize,
}

/// A connection with much waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// The socket takes nothing: it is the reader who is slow, not this machine.
    pub blocked: bool,
    /// Rises while the reader takes anything at all.
    pub takes: u64,
}

/// When what is held has to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Never,
    At(Instant),
    Now,
}

/// What the sleeping writer is to be woken for.
enum WriterWaits {
    Busy,
    /// Anything due before this.
    ForDue(Due, Waker),
    /// It is blocked by the socket: only the end concerns it.
    ForEnding(Waker),
}

struct OutboxState {
    held: VecDeque<QueuedItem>,
    held_frames: usize,
    held_bytes: usize,
    /// Taken by the writer and perhaps not written yet; the bytes are what is left of them.
    in_flight_frames: usize,
    in_flight_bytes: usize,
    /// How often the writer came back for more, or got a part of a batch written.
    takes: u64,
    due: Due,
    ping: bool,
    /// Only the latest ping needs an answer (RFC 6455, 5.5.3), so a flood of them takes no space.
    pong: Option<Box<[u8]>>,
    ending: Option<ConnectionEnding>,
    paused: bool,
    writer: WriterWaits,
    reader: Option<Waker>,
    /// Where a pusher may write.
    socket: Option<Arc<dyn SharedStream>>,
    /// What a pusher wrote a part of; the writer goes on with it.
    begun: Option<Box<FrameBatch>>,
}

pub(crate) struct Outbox {
    frames_max: usize,
    bytes_max: usize,
    state: Mutex<OutboxState>,
}

impl Outbox {
    pub(crate) fn new(frames_max: usize, bytes_max: usize) -> Self {
        let state = OutboxState {
            held: VecDeque::new(),
            held_frames: 0,
            held_bytes: 0,
            in_flight_frames: 0,
            in_flight_bytes: 0,
            takes: 0,
            due: Due::Never,
            ping: false,
            pong: None,
            ending: None,
            paused: false,
            writer: WriterWaits::Busy,
            reader: None,
            socket: None,
            begun: None,
        };
        Self { frames_max, bytes_max, state: Mutex::new(state) }
    }

    /// Until the guard is dropped a pusher may write to this socket what need not be cut into fragments.
    pub(crate) fn attach(
        &self,
        socket: Arc<dyn SharedStream>,
        fragment_bytes: usize,
    ) -> AttachedSocket<'_> {
        if fragment_bytes >= DIRECT_BYTES_MAX {
            self.state.lock().socket = Some(socket);
        }
        AttachedSocket(self)
    }

    /// Items in order, under one lock and with at most one wake.
    pub(crate) fn push(&self, items: impl IntoIterator<Item = (LinkItem, u32)>, by: WrittenBy) {
        let mut state = self.state.lock();
        if state.ending.is_some() {
            return; // nothing is sent after the close frame
        }
        for (item, window_ms) in items {
            let (frames, bytes) = (item.frames(), item.bytes());
            let waiting = state.held_frames + state.in_flight_frames;
            let waiting_bytes = state.counted_bytes(self.bytes_max);
            // A single frame that nothing waits in front of is no sign of a slow reader, however large.
            let over = waiting + frames > self.frames_max
                || (waiting > 0 && waiting_bytes.saturating_add(bytes) > self.bytes_max);
            if over {
                drop(state);
                let reason = "reading too slowly; reconnect";
                return self.end(close::POLICY, reason, CloseUrgency::AtOnce);
            }
            state.held.push_back(QueuedItem { item, frames, bytes });
            state.held_frames += frames;
            state.held_bytes += bytes;
            // A full write is worth sending, whatever the window: it is the longest wait, not the shortest (H-047).
            let full = state.held_frames >= TAKE_FRAMES_MAX || state.held_bytes >= TAKE_BYTES;
            let window_ms = if full { 0 } else { window_ms };
            state.due = match (state.due, window_ms) {
                (_, 0) | (Due::Now, _) => Due::Now,
                (Due::At(at), window) => Due::At(at.min(after_ms(window.into()))),
                (Due::Never, window) => Due::At(after_ms(window.into())),
            };
        }
        if by == WrittenBy::Pusher {
            state.write_at_once();
        }
        let waker = state.writer_to_wake();
        drop(state);
        wake(waker);
    }

    /// The first ending decides code and reason; a later one can only make it more urgent.
    pub(crate) fn end(
        &self,
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        urgency: CloseUrgency,
    ) {
        let mut state = self.state.lock();
        match &mut state.ending {
            Some(ending) if ending.urgency == urgency => return, // it ends already
            Some(ending) if urgency == CloseUrgency::AtOnce => ending.urgency = urgency,
            Some(_) => return, // it ends sooner already
            None => {
                let deadline = after_ms(CLOSE_WAIT_MS);
                state.ending =
                    Some(ConnectionEnding { code, reason: reason.into(), urgency, deadline });
            }
        }
        if urgency == CloseUrgency::AtOnce {
            state.held = VecDeque::new();
            state.held_frames = 0;
            state.held_bytes = 0;
        }
        let writer = match std::mem::replace(&mut state.writer, WriterWaits::Busy) {
            WriterWaits::Busy => None,
            WriterWaits::ForDue(_, waker) | WriterWaits::ForEnding(waker) => Some(waker),
        };
        let reader = state.reader.take();
        drop(state);
        wake(writer);
        wake(reader);
    }

    /// Whether a quarter of the queue is used, and how far the writer has come.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        let state = self.state.lock();
        let frames = state.held_frames + state.in_flight_frames;
        let bytes = state.held_bytes + state.in_flight_bytes;
        let is_large = frames > self.frames_max / 4 || bytes > self.bytes_max / 4;
        let blocked = matches!(state.writer, WriterWaits::ForEnding(_));
        (is_large && state.ending.is_none()).then_some(Backlog { blocked, takes: state.takes })
    }

    /// The socket took a part of what the writer has, and so many bytes are left of it.
    pub(crate) fn record_progress(&self, left: usize) {
        let mut state = self.state.lock();
        state.in_flight_bytes = left;
        state.takes += 1;
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        let mut state = self.state.lock();
        state.paused = paused;
        let reader = if paused { None } else { state.reader.take() };
        drop(state);
        wake(reader);
    }

    /// Sends a ping.
    pub(crate) fn ping(&self) {
        let mut state = self.state.lock();
        state.ping = true;
        let waker = state.writer_to_wake();
        drop(state);
        wake(waker);
    }

    pub(crate) fn pong(&self, payload: Vec<u8>) {
        let mut state = self.state.lock();
        state.pong = Some(payload.into_boxed_slice());
        let waker = state.writer_to_wake();
        drop(state);
        wake(waker);
    }

    /// May the reader take from the socket? Pending while paused.
    pub(crate) fn poll_may_read(&self, context: &mut Context<'_>) -> Poll<ReadDecision> {
        let mut state = self.state.lock();
        if state.ending.is_some() {
            return Poll::Ready(ReadDecision::Stop);
        }
        store_waker(&mut state.reader, context);
        if state.paused { Poll::Pending } else { Poll::Ready(ReadDecision::Yes) }
    }

    /// The code the connection ends with, if it was ended from this side.
    pub(crate) fn ending_code(&self) -> Option<u16> {
        self.state.lock().ending.as_ref().map(|ending| ending.code)
    }

    /// For a writer blocked by the socket: ready when the connection is to end.
    pub(crate) fn poll_ending(&self, context: &mut Context<'_>) -> Poll<ConnectionEnding> {
        let mut state = self.state.lock();
        if let Some(ending) = &state.ending {
            return Poll::Ready(ending.clone());
        }
        state.writer = WriterWaits::ForEnding(context.waker().clone());
        Poll::Pending
    }

    /// Waits until something is due and takes it: they go to the end of `items`. Asking again means that what was
    /// taken before is written. `timer` is the writer's, so that an idle connection holds none.
    pub(crate) fn poll_take(
        &self,
        context: &mut Context<'_>,
        items: &mut Vec<LinkItem>,
        timer: &mut Option<Pin<Box<Sleep>>>,
    ) -> Poll<OutboxContents> {
        let mut state = self.state.lock();
        state.in_flight_frames = 0;
        state.in_flight_bytes = 0;
        state.takes += 1;
        if let Due::At(at) = state.due {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(context).is_ready() {
                state.due = Due::Now;
            }
        }
        if !state.has_work() {
            if state.due == Due::Never {
                *timer = None;
            }
            state.writer = WriterWaits::ForDue(state.due, context.waker().clone());
            return Poll::Pending;
        }
        state.writer = WriterWaits::Busy;
        let begun = state.begun.take().map_or_else(FrameBatch::default, |begun| *begun);
        state.in_flight_bytes = begun.left();
        let mut taken = OutboxContents {
            begun,
            pong: state.pong.take(),
            ping: std::mem::take(&mut state.ping),
            ending: None,
        };
        if state.due == Due::Now || state.ending.is_some() {
            state.take_items(items);
        }
        if state.held.is_empty() {
            taken.ending = state.ending.clone();
        }
        Poll::Ready(taken)
    }
}

impl OutboxState {
    fn has_work(&self) -> bool {
        let has_control = self.ping || self.pong.is_some();
        self.due == Due::Now || self.ending.is_some() || has_control || self.begun.is_some()
    }

    /// Writes what is due, if the writer sleeps, so that nothing is before it, and if it is little. What the socket does not
    /// take is left to the writer, and so is a socket that fails.
    fn write_at_once(&mut self) {
        let is_first = matches!(self.writer, WriterWaits::ForDue(..)) && self.begun.is_none();
        let is_alone = self.ending.is_none() && !self.ping && self.pong.is_none();
        let is_little = self.due == Due::Now && self.held_bytes <= DIRECT_BYTES_MAX;
        let Some(socket) = self.socket.as_ref().filter(|_| is_first && is_alone && is_little)
        else {
            return; // the writer does it
        };
        let mut batch = FrameBatch::default();
        for held in &self.held {
            if !batch.put_encoded(&held.item) {
                return; // it may take long to encode: the writer does it
            }
        }
        let Ok(written) = write_some(&**socket, &batch) else {
            return; // the writer finds out why, or waits
        };
        batch.advance(written);
        self.takes += 1;
        if !batch.is_empty() {
            self.in_flight_frames = self.held_frames;
            self.in_flight_bytes = batch.left();
            self.begun = Some(Box::new(batch));
        }
        self.held = VecDeque::new();
        self.held_frames = 0;
        self.held_bytes = 0;
        self.due = Due::Never;
    }

    /// What waits, as it counts against the bound. What is first counts for half of the bound at most: a message that was
    /// let in although it is larger must not be the reason that the next one is too much.
    fn counted_bytes(&self, bytes_max: usize) -> usize {
        let first = match self.in_flight_frames {
            0 => self.held.front().map_or(0, |held| held.bytes),
            _ => self.in_flight_bytes,
        };
        self.held_bytes + self.in_flight_bytes - first.saturating_sub(bytes_max / 2)
    }

    fn take_items(&mut self, items: &mut Vec<LinkItem>) {
        items.reserve_exact(self.held.len().min(TAKE_FRAMES_MAX));
        while self.in_flight_frames < TAKE_FRAMES_MAX && self.in_flight_bytes < TAKE_BYTES {
            let Some(held) = self.held.pop_front() else {
                break; // all of it is taken
            };
            self.held_frames -= held.frames;
            self.held_bytes -= held.bytes;
            self.in_flight_frames += held.frames;
            self.in_flight_bytes += held.bytes;
            items.push(held.item);
        }
        if self.held.is_empty() {
            self.due = Due::Never;
            // The memory of a burst must not stay as long as the connection.
            self.held = VecDeque::new();
        }
    }

    /// The writer's waker, if it sleeps and what is there now concerns it.
    fn writer_to_wake(&mut self) -> Option<Waker> {
        let concerned = match &self.writer {
            WriterWaits::Busy | WriterWaits::ForEnding(_) => false,
            WriterWaits::ForDue(armed, _) => self.has_work() || self.due != *armed,
        };
        if !concerned {
            return None;
        }
        match std::mem::replace(&mut self.writer, WriterWaits::Busy) {
            WriterWaits::ForDue(_, waker) => Some(waker),
            WriterWaits::Busy | WriterWaits::ForEnding(_) => None,
        }
    }
}

fn after_ms(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

fn store_waker(slot: &mut Option<Waker>, context: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(context.waker()),
        None => *slot = Some(context.waker().clone()),
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
