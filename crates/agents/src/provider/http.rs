//! Requests to model servers: sent, tried again, read under time-outs and bounds.
//!
//! Promises: a request is tried again only while nothing of its answer was sent on; every time-out, bound and fault becomes
//! a sentence for people; no sentence holds a key.
//! Must not know: what requests and answers mean.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Request, Response};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use super::ProviderErrorKind::{Interrupted, Unauthorized, Unavailable, Unreadable};
use super::endpoint::ModelEndpoint;
use super::error_body::ErrorBody;
use super::failure::{Failure, connection_failure, no_answer_within, reason, status_failure};
use super::key::Secret;
use super::{
    AnswerUnwanted, Decode, ModelEvent, ModelEventSink, ProviderError, StreamFlow, back_off,
};

/// What is read of the body of an error.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// A list of models; those of large brokers have a megabyte.
const LIST_BYTES_MAX: usize = 8 << 20;
/// One answer, with all that surrounds its text on the wire: against a server that never stops.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How long the body of an error or a list may take.
const SHORT_BODY: Duration = Duration::from_secs(10);
/// How long a server that has stopped may take for usage and the end mark.
const AFTER_STOP: Duration = Duration::from_secs(10);
/// How long the end of the body may lag behind the end mark. If it comes, the connection can be used again.
const AFTER_DONE: Duration = Duration::from_millis(250);

/// Sends a request until an answer begins, and sends on what the decoder makes of the answer.
pub(super) async fn stream<D: Decode>(
    endpoint: &ModelEndpoint,
    path: &[&str],
    body: Vec<u8>,
    decoder: impl Fn() -> D,
    mut sink: impl ModelEventSink,
) -> Result<(), ProviderError> {
    let body = Bytes::from(body);
    let request = prepare(endpoint, path, body.clone()).await?;
    match request.send_until_answered(&decoder, &mut sink).await {
        // A command may print another key by now. Of a refused request nothing was sent on.
        Err(error) if error.kind == Unauthorized && endpoint.forget_key().await => {
            let request = prepare(endpoint, path, body).await?;
            request.send_until_answered(&decoder, &mut sink).await
        }
        sent => sent,
    }
}

/// A request with the key as it is now.
async fn prepare<'a>(
    endpoint: &'a ModelEndpoint,
    path: &'a [&'a str],
    body: Bytes,
) -> Result<RetriedRequest<'a>, ProviderError> {
    let credentials = endpoint.credentials().await?;
    let mut request = RetriedRequest {
        endpoint,
        path,
        headers: credentials.headers,
        secrets: credentials.secrets,
        body,
    };
    request
        .headers
        .entry(CONTENT_TYPE)
        .or_insert(HeaderValue::from_static("application/json"));
    request
        .headers
        .entry(ACCEPT)
        .or_insert(HeaderValue::from_static("text/event-stream"));
    Ok(request)
}

/// The body of what a server answers, tried once; once more if a command may print another key by now.
pub(super) async fn get(endpoint: &ModelEndpoint, path: &[&str]) -> Result<Vec<u8>, ProviderError> {
    match get_once(endpoint, path).await {
        Err(error) if error.kind == Unauthorized && endpoint.forget_key().await => {
            get_once(endpoint, path).await
        }
        got => got,
    }
}

/// Whether something other than a web page is served under a path, as an empty request tells: it is refused by whoever
/// could have answered it.
pub(super) async fn is_served(
    endpoint: &ModelEndpoint,
    path: &[&str],
) -> Result<bool, ProviderError> {
    let credentials = endpoint.credentials().await?;
    let mut request = Request::new(reqwest::Method::POST, endpoint.url(path));
    *request.headers_mut() = credentials.headers;
    let json = HeaderValue::from_static("application/json");
    request.headers_mut().insert(CONTENT_TYPE, json);
    *request.body_mut() = Some("{}".into());
    let response = send(endpoint, request, SHORT_BODY)
        .await
        .map_err(|failure| {
            let failure = failure.redact(&credentials.secrets);
            let (Failure::Final(error) | Failure::Transient { error, .. }) = failure;
            error
        })?;
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let is_page = content_type.is_some_and(|kind| kind.starts_with("text/html"));
    let status = response.status().as_u16();
    Ok(!is_page && !matches!(status, 300..=399 | 404 | 405 | 501))
}

async fn get_once(endpoint: &ModelEndpoint, path: &[&str]) -> Result<Vec<u8>, ProviderError> {
    let credentials = endpoint.credentials().await?;
    let fetched = async {
        let mut request = Request::new(reqwest::Method::GET, endpoint.url(path));
        *request.headers_mut() = credentials.headers;
        let response = send(endpoint, request, SHORT_BODY).await?;
        let mut response = check_status(endpoint, response).await?;
        let (body, extent) = read_body(&mut response, LIST_BYTES_MAX).await;
        match extent {
            BodyExtent::Whole => Ok(body),
            BodyExtent::Partial => Err(Failure::Final(ProviderError::new(
                Unreadable,
                format!(
                    "the list of the server at {} is larger than {LIST_BYTES_MAX} bytes or did not come whole",
                    endpoint.authority()
                ),
            ))),
        }
    };
    fetched.await.map_err(|failure| {
        let failure = failure.redact(&credentials.secrets);
        let (Failure::Final(error) | Failure::Transient { error, .. }) = failure;
        error
    })
}

/// A request that may be sent several times.
struct RetriedRequest<'a> {
    endpoint: &'a ModelEndpoint,
    path: &'a [&'a str],
    headers: HeaderMap,
    secrets: Vec<Secret>,
    body: Bytes,
}

impl RetriedRequest<'_> {
    async fn send_until_answered<D: Decode>(
        &self,
        decoder: impl Fn() -> D,
        sink: &mut impl ModelEventSink,
    ) -> Result<(), ProviderError> {
        let mut tries = 0;
        loop {
            let sent = self.send_once(decoder(), sink).await;
            let (error, cause, retry_after) =
                match sent.map_err(|failure| failure.redact(&self.secrets)) {
                    Ok(()) => return Ok(()),
                    Err(Failure::Final(error)) => return Err(error),
                    Err(Failure::Transient {
                        error,
                        cause,
                        retry_after,
                    }) => (error, cause, retry_after),
                };
            tries += 1;
            let base = self.endpoint.timeouts().back_off;
            let Some(pause) = back_off::pause(tries, base, retry_after, random_byte()) else {
                return Err(error);
            };
            let seconds = back_off::describe(pause);
            let waiting = ModelEvent::Waiting(format!("{cause}; trying again in {seconds}"));
            sink.accept(waiting).await?;
            sleep(pause).await;
        }
    }

    async fn send_once(
        &self,
        decoder: impl Decode,
        sink: &mut impl ModelEventSink,
    ) -> Result<(), Failure> {
        let mut request = Request::new(reqwest::Method::POST, self.endpoint.url(self.path));
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(self.body.clone().into());
        let response = send(self.endpoint, request, self.endpoint.timeouts().first_event).await?;
        let response = check_status(self.endpoint, response).await?;
        let mut answer = StreamedResponse {
            endpoint: self.endpoint,
            response,
            decoder,
            sink,
            decoded: Vec::new(),
            bytes: 0,
            progress: ResponseProgress::Nothing,
        };
        let ended = answer.forward().await;
        ended.map_err(|error| match answer.progress {
            ResponseProgress::Nothing
                if error.kind.may_be_retried() && error.kind != Unauthorized =>
            {
                Failure::Transient {
                    cause: error.message.clone(),
                    error: ProviderError::new(Unavailable, error.message),
                    retry_after: None,
                }
            }
            ResponseProgress::Nothing | ResponseProgress::Something | ResponseProgress::TooLate => {
                Failure::Final(error)
            }
        })
    }
}

/// How much of an answer was sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseProgress {
    Nothing,
    Something,
    /// Nothing, for so long that another try would take as long.
    TooLate,
}

/// An answer on its way.
struct StreamedResponse<'a, D, L> {
    endpoint: &'a ModelEndpoint,
    response: Response,
    decoder: D,
    sink: &'a mut L,
    decoded: Vec<ModelEvent>,
    bytes: usize,
    progress: ResponseProgress,
}

impl<D: Decode, L: ModelEventSink> StreamedResponse<'_, D, L> {
    async fn forward(&mut self) -> Result<(), ProviderError> {
        loop {
            let flow = match self.next_bytes().await {
                Ok(Ok(Some(bytes))) => self.decode(&bytes),
                Ok(Ok(None)) => self
                    .decoder
                    .end(&mut self.decoded)
                    .map(|()| StreamFlow::Done),
                Ok(Err(fault)) => self.end_for(&format!("broke off ({})", reason(&fault))),
                Err(_) => self.end_for_silence(),
            };
            for event in self.decoded.drain(..) {
                self.progress = ResponseProgress::Something;
                self.sink.accept(event).await?;
            }
            if flow? == StreamFlow::Done {
                let _ = timeout(AFTER_DONE, self.response.chunk()).await;
                return Ok(());
            }
        }
    }

    /// What comes next, or that nothing came for too long.
    async fn next_bytes(&mut self) -> Result<reqwest::Result<Option<Bytes>>, Elapsed> {
        timeout(self.silence_max(), self.response.chunk()).await
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
        ended
            .map(|()| StreamFlow::Done)
            .map_err(|error| match error.kind {
                Interrupted => {
                    let message = format!("the answer of the model server {cause}");
                    ProviderError::new(Interrupted, message)
                }
                _ => error,
            })
    }

    fn end_for_silence(&mut self) -> Result<StreamFlow, ProviderError> {
        let seconds = self.silence_max().as_secs_f64();
        if self.progress == ResponseProgress::Nothing {
            self.progress = ResponseProgress::TooLate;
            return Err(no_answer_within(seconds));
        }
        self.end_for(&format!("broke off (silent for {seconds} s)"))
    }
}

impl From<AnswerUnwanted> for ProviderError {
    fn from(unwanted: AnswerUnwanted) -> Self {
        Self::new(Interrupted, unwanted.to_string())
    }
}

async fn send(
    endpoint: &ModelEndpoint,
    request: Request,
    wait_max: Duration,
) -> Result<Response, Failure> {
    let client = endpoint.client().await?;
    match timeout(wait_max, client.execute(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(fault)) => Err(connection_failure(endpoint, &fault)),
        // It would take as long again.
        Err(_) => Err(Failure::Final(no_answer_within(wait_max.as_secs_f64()))),
    }
}

/// The response, if its status is one of success.
async fn check_status(
    endpoint: &ModelEndpoint,
    mut response: Response,
) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let header = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    let retry_after = header.and_then(|value| back_off::retry_after(value, Timestamp::now()));
    // The body may repeat what was sent, so that the number alone is for the log.
    tracing::warn!(
        status = status.as_u16(),
        "the model server refused a request"
    );
    let (body, _) = read_body(&mut response, ERROR_BODY_BYTES_MAX).await;
    let error_body = ErrorBody::from_body(&body);
    Err(status_failure(endpoint, status, &error_body, retry_after))
}

enum BodyExtent {
    Whole,
    /// Cut at the bound, by a fault or by the clock.
    Partial,
}

async fn read_body(response: &mut Response, bytes_max: usize) -> (Vec<u8>, BodyExtent) {
    let mut body = Vec::new();
    let reading = async {
        loop {
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    let space = bytes_max - body.len();
                    body.extend_from_slice(&bytes[..bytes.len().min(space)]);
                    if bytes.len() > space {
                        return BodyExtent::Partial;
                    }
                }
                Ok(None) => return BodyExtent::Whole,
                Err(_) => return BodyExtent::Partial,
            }
        }
    };
    let extent = timeout(SHORT_BODY, reading)
        .await
        .unwrap_or(BodyExtent::Partial);
    (body, extent)
}

fn random_byte() -> u8 {
    // Without randomness pauses are merely regular.
    getrandom::u32().map_or(0, |random| random.to_le_bytes()[0])
}
