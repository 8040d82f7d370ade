//! An answer on its way: bytes in, events out.
//!
//! Promises: what came is sent on before a fault ends it; silence and size have bounds.
//! Must not know: what requests and answers mean; whether to try again.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::{Instant, timeout};

use super::ProviderErrorKind::{Interrupted, Unreadable};
use super::endpoint::ModelEndpoint;
use super::failure::{no_answer_within, reason};
use super::lazy_timer::LazyTimer;
use super::silence::SilenceTimer;
use super::{Decode, ModelEvent, ModelEventSink, ProviderError, StreamFlow};

/// One answer, with all that surrounds its text on the wire: against a server that never stops.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How long a server that has stopped may take for usage and the end mark.
const AFTER_STOP: Duration = Duration::from_secs(10);
/// How long the end of the body may lag behind the end mark. If it comes, the connection can be used again.
const AFTER_DONE: Duration = Duration::from_millis(250);

/// How much of an answer was sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseProgress {
    Nothing,
    Something,
    /// Nothing, for so long that another try would take as long.
    TooLate,
}

/// An answer on its way.
pub(super) struct StreamedResponse<'a, D, L> {
    endpoint: &'a ModelEndpoint,
    response: Response,
    decoder: D,
    sink: &'a mut L,
    decoded: Vec<ModelEvent>,
    bytes: usize,
    progress: ResponseProgress,
    /// Since the last event that was sent on: a server that only keeps the line open is silent all the same.
    silence: SilenceTimer,
    /// For what comes too late; a piece that comes in time leaves it alone.
    timer: LazyTimer,
}

impl<'a, D: Decode, L: ModelEventSink> StreamedResponse<'a, D, L> {
    /// A response that began; nothing of its answer came for as long as the silence lasts.
    pub(super) fn new(
        endpoint: &'a ModelEndpoint,
        response: Response,
        silence: SilenceTimer,
        decoder: D,
        sink: &'a mut L,
    ) -> Self {
        Self {
            endpoint,
            response,
            decoder,
            sink,
            decoded: Vec::new(),
            bytes: 0,
            progress: ResponseProgress::Nothing,
            silence,
            timer: LazyTimer::default(),
        }
    }

    pub(super) fn progress(&self) -> ResponseProgress {
        self.progress
    }

    /// Reads the answer to its end and sends it on.
    pub(super) async fn forward(&mut self) -> Result<(), ProviderError> {
        loop {
            let flow = match self.next_bytes().await? {
                Some(Ok(Some(bytes))) => self.decode(&bytes),
                Some(Ok(None)) => self.decoder.end(&mut self.decoded).map(|()| StreamFlow::Done),
                Some(Err(fault)) => self.end_for(&format!("broke off ({})", reason(&fault))),
                None => self.end_for_silence(),
            };
            for event in self.decoded.drain(..) {
                // Figures of an answer that never came do not make it one.
                if !matches!(event, ModelEvent::Usage(_)) {
                    self.progress = ResponseProgress::Something;
                }
                self.silence.end();
                self.sink.accept(event).await?;
            }
            if flow? == StreamFlow::Done {
                let _ = timeout(AFTER_DONE, self.response.chunk()).await;
                return Ok(());
            }
        }
    }

    /// Reports how long nothing of the answer has come, if it is time; returns how long until the next report.
    async fn report_silence(&mut self) -> Result<Duration, ProviderError> {
        if let Some(elapsed) = self.silence.take_due() {
            self.sink.accept(ModelEvent::Silent(elapsed)).await?;
        }
        Ok(self.silence.next_pause())
    }

    /// What comes next; none if nothing came for too long. Any byte is a sign of life: a busy server keeps the connection
    /// open that way for as long as it takes, and whoever waits is told how long that is.
    async fn next_bytes(
        &mut self,
    ) -> Result<Option<reqwest::Result<Option<Bytes>>>, ProviderError> {
        let (began, most) = (Instant::now(), self.silence_max());
        loop {
            let left = most.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            // What comes after the answer is not waited for aloud.
            let pause = if self.decoder.has_stopped() {
                left
            } else {
                self.report_silence().await?.min(left)
            };
            self.timer.fire_by(Instant::now() + pause);
            tokio::select! {
                biased;
                came = self.response.chunk() => return Ok(Some(came)),
                () = self.timer.wait() => {}
            }
        }
    }

    /// How long the server may be silent now.
    fn silence_max(&self) -> Duration {
        let timeouts = self.endpoint.timeouts();
        match self.progress {
            _ if self.decoder.has_stopped() => AFTER_STOP.min(timeouts.idle),
            ResponseProgress::Something => timeouts.idle,
            ResponseProgress::Nothing | ResponseProgress::TooLate => timeouts.first_event,
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<StreamFlow, ProviderError> {
        self.bytes += bytes.len();
        if self.bytes > ANSWER_BYTES_MAX {
            let message =
                format!("the answer of the model server is larger than {ANSWER_BYTES_MAX} bytes");
            return Err(ProviderError::new(Unreadable, message));
        }
        self.decoder.read(bytes, &mut self.decoded)
    }

    /// Nothing more will come. An answer that has all its text is taken as it is.
    fn end_for(&mut self, cause: &str) -> Result<StreamFlow, ProviderError> {
        let ended = self.decoder.end(&mut self.decoded);
        ended.map(|()| StreamFlow::Done).map_err(|error| match error.kind {
            Interrupted => {
                let message = format!("the answer of the model server {cause}");
                ProviderError::new(Interrupted, message)
            }
            _ => error,
        })
    }

    fn end_for_silence(&mut self) -> Result<StreamFlow, ProviderError> {
        let most = self.silence_max();
        if self.progress == ResponseProgress::Nothing {
            self.progress = ResponseProgress::TooLate;
            return Err(no_answer_within(most));
        }
        let seconds = most.as_secs_f64();
        self.end_for(&format!("broke off (silent for {seconds} s)"))
    }
}
