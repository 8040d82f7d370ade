//! Requests to model servers: sent, tried again, read under time-outs and bounds.
//!
//! Promises: a request is tried again only while nothing of its answer was sent on; every time-out, bound and fault becomes
//! a sentence for people; no sentence holds a key.
//! Must not know: what requests and answers mean.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Request, Response};
use tokio::time::{sleep, timeout};

use super::ProviderErrorKind::{Interrupted, Unauthorized, Unavailable, Unreadable};
use super::endpoint::ModelEndpoint;
use super::error_body::ErrorBody;
use super::failure::{Failure, connection_failure, no_answer_within, status_failure};
use super::key::Secret;
use super::silence::SilenceTimer;
use super::streamed_response::{ResponseProgress, StreamedResponse};
use super::{AnswerCancelled, Decode, ModelEvent, ModelEventSink, ProviderError, back_off};

/// What is read of the body of an error.
const ERROR_BODY_BYTES_MAX: usize = 64 << 10;
/// A list of models; those of large brokers have a megabyte.
const LIST_BYTES_MAX: usize = 8 << 20;

/// How long the body of an error or a list may take.
const SHORT_BODY: Duration = Duration::from_secs(10);

/// A request as it goes over the wire.
pub(super) struct WireRequest<'a> {
    pub path: &'a [&'a str],
    pub body: Bytes,
    /// Whether a refusal may be mended by leaving something out.
    pub reducible: bool,
}

/// Sends a request until an answer begins, and sends on what the decoder makes of the answer.
pub(super) async fn stream<D: Decode>(
    endpoint: &ModelEndpoint,
    request: WireRequest<'_>,
    decoder: impl Fn() -> D,
    mut sink: impl ModelEventSink,
) -> Result<(), ProviderError> {
    let body = request.body;
    let (path, reducible) = (request.path, request.reducible);
    let request = prepare(endpoint, path, body.clone(), reducible).await?;
    match request.send_until_answered(&decoder, &mut sink).await {
        // A command may print another key by now. Of a refused request nothing was sent on.
        Err(error) if error.refuses_key && endpoint.forget_key().await => {
            let request = prepare(endpoint, path, body, reducible).await?;
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
    reducible: bool,
) -> Result<RetriedRequest<'a>, ProviderError> {
    let credentials = endpoint.credentials().await?;
    let mut request = RetriedRequest {
        endpoint,
        path,
        headers: credentials.headers,
        secrets: credentials.secrets,
        body,
        reducible,
    };
    for (name, value) in OWN_HEADERS {
        let value = HeaderValue::from_static(value);
        request.headers.entry(name).or_insert(value);
    }
    Ok(request)
}

/// Headers of every question, unless the configuration has others.
const OWN_HEADERS: [(HeaderName, &str); 2] =
    [(CONTENT_TYPE, "application/json"), (ACCEPT, "text/event-stream")];

/// The headers of a question, from those that its server's configuration adds to it.
pub(super) fn with_own_headers(mut headers: Vec<(String, String)>) -> Vec<(String, String)> {
    for (name, value) in OWN_HEADERS {
        if !headers.iter().any(|(known, _)| known == name.as_str()) {
            headers.push((name.as_str().to_owned(), value.to_owned()));
        }
    }
    headers
}

/// The body of what a server answers, tried once; once more if a command may print another key by now.
pub(super) async fn get(endpoint: &ModelEndpoint, path: &[&str]) -> Result<Vec<u8>, ProviderError> {
    fetch(endpoint, endpoint.url(path), None).await
}

/// Reads what lies beside the API of a server: its address without the version. With a question it is posted.
pub(super) async fn get_beside(
    endpoint: &ModelEndpoint,
    path: &[&str],
    question: Option<&serde_json::Value>,
) -> Result<Vec<u8>, ProviderError> {
    fetch(endpoint, endpoint.url_beside(path), question).await
}

async fn fetch(
    endpoint: &ModelEndpoint,
    url: reqwest::Url,
    question: Option<&serde_json::Value>,
) -> Result<Vec<u8>, ProviderError> {
    match fetch_once(endpoint, url.clone(), question).await {
        Err(error) if error.refuses_key && endpoint.forget_key().await => {
            fetch_once(endpoint, url, question).await
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
    let response = execute_soon(endpoint, request).await.map_err(|failure| {
        let failure = failure.redact(&credentials.secrets);
        let (Failure::Final(error) | Failure::Transient { error, .. }) = failure;
        error
    })?;
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_page = content_type.is_some_and(|kind| kind.starts_with("text/html"));
    let status = response.status().as_u16();
    Ok(!is_page && !matches!(status, 300..=399 | 404 | 405 | 501))
}

async fn fetch_once(
    endpoint: &ModelEndpoint,
    url: reqwest::Url,
    question: Option<&serde_json::Value>,
) -> Result<Vec<u8>, ProviderError> {
    let credentials = endpoint.credentials().await?;
    let fetched = async {
        let mut request = Request::new(reqwest::Method::GET, url);
        *request.headers_mut() = credentials.headers;
        if let Some(question) = question {
            *request.method_mut() = reqwest::Method::POST;
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Some(question.to_string().into());
        }
        let response = execute_soon(endpoint, request).await?;
        let mut response = check_status(endpoint, response, false).await?;
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
    reducible: bool,
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
                    Err(Failure::Transient { error, cause, retry_after }) => {
                        (error, cause, retry_after)
                    }
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
        let mut url = self.endpoint.url(self.path);
        for (name, value) in self.endpoint.api().query() {
            url.query_pairs_mut().append_pair(name, value);
        }
        let mut request = Request::new(reqwest::Method::POST, url);
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(self.body.clone().into());
        let mut silence = SilenceTimer::begin(self.endpoint.timeouts().silence_shown);
        let response = self.send_and_wait(request, &mut silence, sink).await?;
        let response = check_status(self.endpoint, response, self.reducible).await?;
        let mut answer = StreamedResponse::new(self.endpoint, response, silence, decoder, sink);
        let ended = answer.forward().await;
        let is_refused = |error: &ProviderError| {
            let blame = error.blame.as_ref();
            blame.is_some_and(|blame| blame.forbids_repeating(self.reducible))
        };
        ended.map_err(|error| match answer.progress() {
            ResponseProgress::Nothing if is_refused(&error) => Failure::Final(error),
            ResponseProgress::Nothing
                if error.kind.may_be_retried() && error.kind != Unauthorized =>
            {
                Failure::Transient {
                    cause: error.message.clone(),
                    error: ProviderError::new(Unavailable, error.message),
                    retry_after: None,
                }
            }
            ResponseProgress::Nothing | ResponseProgress::TooLate => Failure::Final(error),
            // A request that was answered was not refused.
            ResponseProgress::Something => {
                Failure::Final(ProviderError { blame: None, refuses_key: false, ..error })
            }
        })
    }
}

impl RetriedRequest<'_> {
    /// Sends the request and waits for the response to begin; whoever waits is told how long that takes.
    async fn send_and_wait(
        &self,
        request: Request,
        silence: &mut SilenceTimer,
        sink: &mut impl ModelEventSink,
    ) -> Result<Response, Failure> {
        let timeouts = self.endpoint.timeouts();
        let sending = execute(self.endpoint, request);
        tokio::pin!(sending);
        loop {
            let left = timeouts.first_event.saturating_sub(silence.elapsed());
            if left.is_zero() {
                // It would take as long again.
                return Err(Failure::Final(no_answer_within(timeouts.first_event)));
            }
            if let Some(elapsed) = silence.take_due() {
                sink.accept(ModelEvent::Silent(elapsed)).await.map_err(ProviderError::from)?;
            }
            let pause = silence.next_pause().min(left);
            if let Ok(sent) = timeout(pause, &mut sending).await {
                return sent;
            }
        }
    }
}

impl From<AnswerCancelled> for ProviderError {
    fn from(unwanted: AnswerCancelled) -> Self {
        Self::new(Interrupted, unwanted.to_string())
    }
}

async fn execute(endpoint: &ModelEndpoint, request: Request) -> Result<Response, Failure> {
    let client = endpoint.client().await?;
    client.execute(request).await.map_err(|fault| connection_failure(endpoint, &fault))
}

/// The same for what is answered at once.
async fn execute_soon(endpoint: &ModelEndpoint, request: Request) -> Result<Response, Failure> {
    match timeout(SHORT_BODY, execute(endpoint, request)).await {
        Ok(sent) => sent,
        Err(_) => Err(Failure::Final(no_answer_within(SHORT_BODY))),
    }
}

/// The response, if its status is one of success.
async fn check_status(
    endpoint: &ModelEndpoint,
    mut response: Response,
    reducible: bool,
) -> Result<Response, Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = header.and_then(|value| back_off::retry_after(value, Timestamp::now()));
    // The body may repeat what was sent, so that the number alone is for the log.
    tracing::warn!(status = status.as_u16(), "the model server refused a request");
    let (body, _) = read_body(&mut response, ERROR_BODY_BYTES_MAX).await;
    let error_body = ErrorBody::from_body(&body);
    Err(status_failure(endpoint, status, &error_body, retry_after, reducible))
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
    let extent = timeout(SHORT_BODY, reading).await.unwrap_or(BodyExtent::Partial);
    (body, extent)
}

fn random_byte() -> u8 {
    // Without randomness pauses are merely regular.
    getrandom::u32().map_or(0, |random| random.to_le_bytes()[0])
}
