//! The reading half of a WebSocket connection: bytes to messages to inputs, pings to pongs, silence to a disconnect.
//!
//! Promises: no buffer is held while nothing comes; what was read whole is handed over in order before the peer is
//! reported gone; a kernel that is behind stops the reading of this socket only; no large message is read before there is room,
//! and none holds its room for longer than it may take to come.
//! Must not know: what messages mean.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use kernel::{HostGuard, Input, PeerId, Received};
use tokio::time::{Instant, sleep_until};
use wire::rpc::{self, JsonMeasure, Malformed, code};
use wire::{Id, RpcError};

use super::admission::Admission;
use super::inbound::InboundPermit;
use super::outbox::{CloseUrgency, Outbox, ReadDecision};
use super::registration::{KernelGone, PeerRegistration};
use super::socket::SharedStream;
use super::ws::frame::{FrameDecoder, WsEvent, close};

/// When the peer last showed that it is there. Shared by both halves.
pub(crate) struct Liveness {
    born: Instant,
    last_ms: AtomicU64,
    /// A ping and its pong can fall into one millisecond: whether anything came is counted, not timed.
    activities: AtomicU64,
}

impl Liveness {
    pub(super) fn new() -> Self {
        Self { born: Instant::now(), last_ms: AtomicU64::new(0), activities: AtomicU64::new(0) }
    }

    pub(super) fn record_activity(&self) {
        let ms = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(ms, Ordering::Relaxed);
        self.activities.fetch_add(1, Ordering::Relaxed);
    }

    fn activity_count(&self) -> u64 {
        self.activities.load(Ordering::Relaxed)
    }

    fn last_activity(&self) -> Instant {
        self.born + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }
}

/// How reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// The outbox knows the ending: the writer has a close frame to send.
    Closing,
    /// The other side is gone.
    Gone,
}

enum ReadWake {
    Readable,
    Stop,
    Silence,
    Overdue,
    Gone,
}

/// Texts above this are decoded on a thread of their own: others on the same worker must not wait for them.
const LARGE_BYTES: usize = 256 * 1_024;

pub(crate) struct SocketReader<'a, S> {
    pub socket: &'a S,
    pub outbox: &'a Outbox,
    pub liveness: &'a Liveness,
    pub admission: &'a Admission,
    pub registration: &'a mut PeerRegistration,
    /// What the large message that is being read has taken, and until when it must have come.
    pub room: Option<(InboundPermit, Instant)>,
}

impl<S: SharedStream> SocketReader<'_, S> {
    /// Reads until the connection ends and then reports the peer gone. `early` came with the request's head.
    pub(super) async fn run(mut self, early: Vec<u8>) -> ReadEnd {
        let end = self.read(early).await;
        self.registration.unregister().await;
        end
    }

    async fn read(&mut self, early: Vec<u8>) -> ReadEnd {
        let mut decoder = FrameDecoder::new(self.admission.limits.frame_in_bytes);
        if !early.is_empty()
            && let Some(end) = self.decode(&mut decoder, &early).await
        {
            return end;
        }
        drop(early);
        let silence_max = match self.admission.limits.keep_alive_ms {
            0 => Duration::from_secs(86_400 * 365),
            ms => Duration::from_millis(ms),
        };
        let mut alarm = pin!(sleep_until(self.liveness.last_activity() + silence_max));
        let mut pinged: Option<(Instant, u64)> = None;
        let mut was_paused = false;
        loop {
            let deadline = self.room.as_ref().map(|(_, deadline)| *deadline);
            // Boxed: few connections ever send a large message, and each must stay small.
            let mut overdue = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
            let woke = poll_fn(|context| {
                // Also while nothing is read because the peer does not read either.
                if let Some(overdue) = &mut overdue
                    && overdue.as_mut().poll(context).is_ready()
                {
                    return Poll::Ready(ReadWake::Overdue);
                }
                match self.outbox.poll_may_read(context) {
                    Poll::Ready(ReadDecision::Stop) => return Poll::Ready(ReadWake::Stop),
                    Poll::Ready(ReadDecision::Yes) => {}
                    Poll::Pending => {
                        was_paused = true;
                        return Poll::Pending;
                    }
                }
                if std::mem::take(&mut was_paused) {
                    // The silence was ours: nothing was read while paused.
                    self.liveness.record_activity();
                }
                match self.socket.poll_readable(context) {
                    Poll::Ready(Ok(())) => return Poll::Ready(ReadWake::Readable),
                    Poll::Ready(Err(_)) => return Poll::Ready(ReadWake::Gone),
                    Poll::Pending => {}
                }
                alarm.as_mut().poll(context).map(|()| ReadWake::Silence)
            });
            match woke.await {
                ReadWake::Stop => return ReadEnd::Closing,
                ReadWake::Gone => return ReadEnd::Gone,
                ReadWake::Overdue => {
                    let reason = "a message took longer than message_in_timeout_ms";
                    self.outbox.end(close::POLICY, reason, CloseUrgency::AtOnce);
                    return ReadEnd::Closing;
                }
                ReadWake::Readable => {
                    if let Some(end) = self.read_available(&mut decoder).await {
                        return end;
                    }
                }
                ReadWake::Silence => match self.check_silence(&mut pinged, silence_max) {
                    Some(next) => alarm.as_mut().reset(next),
                    None => return ReadEnd::Closing,
                },
            }
        }
    }

    /// Pings a peer that was silent, and ends the connection of one that stays so. When to look again; `None` if it ends.
    fn check_silence(
        &self,
        pinged: &mut Option<(Instant, u64)>,
        silence_max: Duration,
    ) -> Option<Instant> {
        let (now, last) = (Instant::now(), self.liveness.last_activity());
        match pinged.filter(|(_, count)| *count == self.liveness.activity_count()) {
            Some((at, _)) if now >= at + silence_max => {
                let reason = "no sign of life";
                self.outbox.end(close::GOING_AWAY, reason, CloseUrgency::AtOnce);
                None
            }
            Some((at, _)) => Some(at + silence_max),
            None if now >= last + silence_max => {
                self.outbox.ping();
                *pinged = Some((now, self.liveness.activity_count()));
                Some(now + silence_max)
            }
            None => Some(last + silence_max),
        }
    }

    async fn read_available(&mut self, decoder: &mut FrameDecoder) -> Option<ReadEnd> {
        let mut buffer = self.admission.room.read_buffers.take();
        let count = match self.socket.read_now(&mut buffer) {
            Ok(0) => return Some(ReadEnd::Gone),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => return Some(ReadEnd::Gone),
        };
        self.liveness.record_activity();
        self.decode(decoder, &buffer[..count]).await
    }

    /// A message that was read whole, decoded once there is room for what it costs.
    async fn admit_and_decode(&mut self, text: String) -> Input {
        let room = self.room.take().map(|(room, _)| room).unwrap_or_default();
        let (text, measure) = measure(text).await;
        let admitted = self.admission.room.inbound.admit(room, text.len(), measure);
        // A connection that ends waits for nobody: one that takes over from it waits for what it sent (G-20).
        let room = self.unless_closing(admitted).await.unwrap_or_default();
        let peer = self.registration.peer();
        decode_input(peer, text, measure, room, self.admission).await
    }

    /// Waits for something that may take long, unless the connection is to end. Whether the peer is silent is not known
    /// meanwhile.
    async fn unless_closing<T>(&self, waiting: impl Future<Output = T>) -> Option<T> {
        let mut waiting = pin!(waiting);
        let mut waited = false;
        let done = poll_fn(|context| {
            if let Poll::Ready(done) = waiting.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            waited = true;
            match self.outbox.poll_may_read(context) {
                Poll::Ready(ReadDecision::Stop) => Poll::Ready(None),
                Poll::Ready(ReadDecision::Yes) | Poll::Pending => Poll::Pending,
            }
        })
        .await;
        if waited {
            self.liveness.record_activity();
        }
        done
    }

    /// A space that is sent more than it may take slows down whoever sends it; `None` if the connection is to end.
    async fn wait_for_its_turn(&self) -> Option<()> {
        let delay =
            self.admission.bounds.as_ref().map_or(Duration::ZERO, |bounds| bounds.delay_of_input());
        if delay.is_zero() {
            return Some(());
        }
        self.unless_closing(Box::pin(sleep_until(Instant::now() + delay))).await
    }

    async fn decode(&mut self, decoder: &mut FrameDecoder, mut bytes: &[u8]) -> Option<ReadEnd> {
        loop {
            match decoder.next(&mut bytes) {
                Ok(None) => return None,
                Ok(Some(WsEvent::Large { bytes_max })) => {
                    let admitted = self.admission.room.inbound.admit_large(bytes_max);
                    match self.unless_closing(admitted).await {
                        Some(room) => {
                            // From now on: waiting for room was not the peer's doing.
                            let ms = self.admission.limits.message_in_timeout_ms;
                            let deadline = Instant::now() + Duration::from_millis(ms);
                            self.room = Some((room, deadline));
                        }
                        None => return Some(ReadEnd::Closing),
                    }
                }
                Ok(Some(WsEvent::Message(text))) => {
                    if self.wait_for_its_turn().await.is_none() {
                        return Some(ReadEnd::Closing);
                    }
                    let input = self.admit_and_decode(text).await;
                    if let Err(KernelGone) = self.registration.send(input).await {
                        let reason = "the host is going down";
                        self.outbox.end(close::GOING_AWAY, reason, CloseUrgency::AtOnce);
                        return Some(ReadEnd::Closing);
                    }
                }
                Ok(Some(WsEvent::Ping(payload))) => self.outbox.pong(payload),
                Ok(Some(WsEvent::Pong)) => {}
                Ok(Some(WsEvent::Close(code))) => {
                    self.outbox.end(code.unwrap_or(close::NO_CODE), "", CloseUrgency::AtOnce);
                    return Some(ReadEnd::Closing);
                }
                Err(fault) => {
                    tracing::debug!(
                        peer = self.registration.peer().0,
                        code = fault.code,
                        "closing: the peer broke the WebSocket protocol"
                    );
                    self.outbox.end(fault.code, fault.reason, CloseUrgency::AtOnce);
                    return Some(ReadEnd::Closing);
                }
            }
        }
    }
}

/// A text and what can be said of it before it is decoded.
pub(super) async fn measure(text: String) -> (String, JsonMeasure) {
    run_apart(text.len() > LARGE_BYTES, move || {
        let measure = rpc::measure(&text);
        (text, measure)
    })
    .await
}

/// Decodes one text into one message, or into something to be refused as malformed (H-002). `room` is what was taken for it.
pub(super) async fn decode_input(
    peer: PeerId,
    text: String,
    measure: JsonMeasure,
    room: InboundPermit,
    admission: &Admission,
) -> Input {
    let values_max = admission.limits.json_values_max;
    if measure.values > values_max {
        let message = format!("a message has at most {values_max} JSON values (json_values_max)");
        let malformed =
            Malformed { id: Id::Null, error: RpcError::new(code::INVALID_REQUEST, message) };
        return Input::Malformed { peer, malformed };
    }
    let bytes = text.len();
    let (depth_max, inline) = (admission.limits.json_depth_max, admission.inline);
    run_apart(bytes > LARGE_BYTES, move || {
        let decoded = rpc::decode(&text, depth_max);
        // Before its bodies are decoded: no more than two copies of them exist at once.
        drop(text);
        match decoded {
            Ok(message) => {
                let received =
                    Received::new(message, bytes, inline).with_guard(HostGuard::new(room));
                Input::Received { peer, received }
            }
            Err(malformed) => Input::Malformed { peer, malformed },
        }
    })
    .await
}

/// Does what takes long on a thread where nothing else waits for it.
async fn run_apart<T: Send + 'static>(long: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
    if !long {
        return work();
    }
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
