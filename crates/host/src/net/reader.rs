//! The reading half of a WebSocket connection: bytes to messages to inputs, pings to pongs, silence to a disconnect.
//!
//! Promises: no buffer is held while nothing comes; what was read whole is handed over in order before the peer is
//! reported gone; a kernel that is behind stops the reading of this socket only.
//! Must not know: what messages mean.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use kernel::{Input, PeerId};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::admission::Admission;
use super::outbox::{MayRead, Outbox, Urgency};
use super::registration::{KernelGone, PeerRegistration};
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
        Self {
            born: Instant::now(),
            last_ms: AtomicU64::new(0),
            activities: AtomicU64::new(0),
        }
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
    Gone,
}

/// Texts above this are decoded on a thread of their own: others on the same worker must not wait for them.
const LARGE_BYTES: usize = 256 * 1_024;

pub(crate) struct SocketReader<'a> {
    pub socket: &'a TcpStream,
    pub outbox: &'a Outbox,
    pub liveness: &'a Liveness,
    pub admission: &'a Admission,
    pub registration: &'a mut PeerRegistration,
}

impl SocketReader<'_> {
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
            let woke = poll_fn(|context| {
                match self.outbox.poll_may_read(context) {
                    Poll::Ready(MayRead::Stop) => return Poll::Ready(ReadWake::Stop),
                    Poll::Ready(MayRead::Yes) => {}
                    Poll::Pending => {
                        was_paused = true;
                        return Poll::Pending;
                    }
                }
                if std::mem::take(&mut was_paused) {
                    // The silence was ours: nothing was read while paused.
                    self.liveness.record_activity();
                }
                match self.socket.poll_read_ready(context) {
                    Poll::Ready(Ok(())) => return Poll::Ready(ReadWake::Readable),
                    Poll::Ready(Err(_)) => return Poll::Ready(ReadWake::Gone),
                    Poll::Pending => {}
                }
                alarm.as_mut().poll(context).map(|()| ReadWake::Silence)
            });
            match woke.await {
                ReadWake::Stop => return ReadEnd::Closing,
                ReadWake::Gone => return ReadEnd::Gone,
                ReadWake::Readable => {
                    if let Some(end) = self.read_available(&mut decoder).await {
                        return end;
                    }
                }
                ReadWake::Silence => {
                    let (now, last) = (Instant::now(), self.liveness.last_activity());
                    match pinged.filter(|(_, count)| *count == self.liveness.activity_count()) {
                        Some((at, _)) if now >= at + silence_max => {
                            let reason = "no sign of life";
                            self.outbox.end(close::GOING_AWAY, reason, Urgency::AtOnce);
                            return ReadEnd::Closing;
                        }
                        Some((at, _)) => alarm.as_mut().reset(at + silence_max),
                        None if now >= last + silence_max => {
                            self.outbox.ping();
                            pinged = Some((now, self.liveness.activity_count()));
                            alarm.as_mut().reset(now + silence_max);
                        }
                        None => alarm.as_mut().reset(last + silence_max),
                    }
                }
            }
        }
    }

    async fn read_available(&mut self, decoder: &mut FrameDecoder) -> Option<ReadEnd> {
        let mut buffer = self.admission.read_buffers.take();
        let count = match self.socket.try_read(&mut buffer) {
            Ok(0) => return Some(ReadEnd::Gone),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(_) => return Some(ReadEnd::Gone),
        };
        self.liveness.record_activity();
        self.decode(decoder, &buffer[..count]).await
    }

    async fn decode(&mut self, decoder: &mut FrameDecoder, mut bytes: &[u8]) -> Option<ReadEnd> {
        loop {
            match decoder.next(&mut bytes) {
                Ok(None) => return None,
                Ok(Some(WsEvent::Message(text))) => {
                    let (peer, depth) = (
                        self.registration.peer(),
                        self.admission.limits.json_depth_max,
                    );
                    let input = match text.len() > LARGE_BYTES {
                        true => decode_large(peer, text, depth).await,
                        false => decode_input(peer, text, depth),
                    };
                    if let Err(KernelGone) = self.registration.send(input).await {
                        let reason = "the host is going down";
                        self.outbox.end(close::GOING_AWAY, reason, Urgency::AtOnce);
                        return Some(ReadEnd::Closing);
                    }
                }
                Ok(Some(WsEvent::Ping(payload))) => self.outbox.pong(payload),
                Ok(Some(WsEvent::Pong)) => {}
                Ok(Some(WsEvent::Close(code))) => {
                    self.outbox
                        .end(code.unwrap_or(close::NO_CODE), "", Urgency::AtOnce);
                    return Some(ReadEnd::Closing);
                }
                Err(fault) => {
                    tracing::debug!(
                        peer = self.registration.peer().0,
                        code = fault.code,
                        "closing: the peer broke the WebSocket protocol"
                    );
                    self.outbox.end(fault.code, fault.reason, Urgency::AtOnce);
                    return Some(ReadEnd::Closing);
                }
            }
        }
    }
}

/// Decodes a large text on a thread where nothing else waits for it.
async fn decode_large(peer: PeerId, text: String, json_depth_max: usize) -> Input {
    let decoded = tokio::task::spawn_blocking(move || decode_input(peer, text, json_depth_max));
    match decoded.await {
        Ok(input) => input,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Decodes one text into one message, or into something to be refused as malformed (H-002).
pub(crate) fn decode_input(peer: PeerId, text: String, json_depth_max: usize) -> Input {
    match wire::rpc::decode(&text, json_depth_max) {
        Ok(message) => Input::Received {
            peer,
            message,
            bytes: text.len(),
        },
        Err(malformed) => Input::Malformed { peer, malformed },
    }
}
