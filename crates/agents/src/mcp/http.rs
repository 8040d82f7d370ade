//! Streamable HTTP: requests to a server by the HTTP client that the whole program uses.
//!
//! Promises: bodies and events are bounded (MC-8); a redirect is never followed, so that no header and no token goes
//! elsewhere; no error holds the address, which may have a key in it.
//! Must not know: what messages mean, where tokens come from.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, StatusCode, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};
use sse_stream::{Sse, SseStream};

use super::auth::{TokenChallenge, TokenReason};
use super::error::McpError;
use super::handler::McpShared;
use super::lines::MESSAGE_BYTES_MAX;
use super::sse::EventCounter;
use crate::provider::{plain_client_config, trusting_client_config};
use crate::task;

const CONNECT_MAX: Duration = Duration::from_secs(10);

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
pub(super) const EVENTS: &str = "text/event-stream";
pub(super) const JSON: &str = "application/json";

/// A server's declared address and headers, with the token for it.
pub(super) struct HttpEndpoint<'a> {
    pub url: &'a str,
    pub headers: &'a BTreeMap<String, String>,
    pub token: Option<&'a str>,
}

/// Makes the way to a server.
pub(super) async fn transport(
    endpoint: &HttpEndpoint<'_>,
    shared: &Arc<McpShared>,
) -> Result<StreamableHttpClientTransport<McpHttp>, McpError> {
    let unreachable = |why: &str| McpError::Unreachable(why.to_owned());
    let url = Url::parse(endpoint.url).map_err(|_| unreachable("its URL is not one"))?;
    let mut parsed = HashMap::new();
    for (name, value) in endpoint.headers {
        let name: Result<HeaderName, _> = name.parse();
        let name = name.map_err(|_| unreachable("a header's name is not possible"))?;
        let value: Result<HeaderValue, _> = value.parse();
        let mut value = value.map_err(|_| unreachable("a header's value is not possible"))?;
        value.set_sensitive(true);
        parsed.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(parsed)
        .max_sse_event_size(MESSAGE_BYTES_MAX);
    if let Some(token) = endpoint.token {
        config = config.auth_header(token);
    }
    let http = McpHttp { client: client(&url).await?, shared: Arc::clone(shared) };
    Ok(StreamableHttpClientTransport::with_client(http, config))
}

pub(super) async fn client(url: &Url) -> Result<Client, McpError> {
    let built = client_builder(url).await?.build();
    built.map_err(|error| McpError::Unreachable(error.without_url().to_string()))
}

/// A client for one address, before it is made.
pub(super) async fn client_builder(url: &Url) -> Result<ClientBuilder, McpError> {
    let encrypted = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(McpError::Unreachable("its URL is not http or https".to_owned())),
    };
    let unusable = |why: String| McpError::Unreachable(why);
    let trust = task::try_blocking(move || {
        if encrypted { trusting_client_config() } else { plain_client_config() }
    })
    .await
    .map_err(|error| unusable(error.to_string()))?;
    let mut builder = Client::builder()
        .tls_backend_preconfigured(trust.map_err(|error| unusable(error.to_string()))?)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_MAX);
    if is_this_machine(url) {
        // A proxy's "localhost" is another machine.
        builder = builder.no_proxy();
    }
    Ok(builder)
}

/// Whether an address is this machine for certain: what is sent there leaves it in no case. Names below `localhost` are not,
/// since resolvers may ask others for them.
pub(super) fn is_this_machine(url: &Url) -> bool {
    let is_own = |address: IpAddr| address.is_loopback() || address.is_unspecified();
    url.host_str() == Some("localhost") || literal(url).is_some_and(is_own)
}

/// The IP address that a URL has for a host, if it has one.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    let address: Option<IpAddr> = url.host_str()?.trim_matches(['[', ']']).parse().ok();
    // One of version 4 that is written as one of version 6 reaches the same.
    address.map(|address| address.to_canonical())
}

/// Our HTTP client, as the library wants one.
#[derive(Clone)]
pub(super) struct McpHttp {
    client: Client,
    shared: Arc<McpShared>,
}

/// What went wrong on the way, without an address.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFault {
    #[error("{0}")]
    Request(String),
    #[error("a body of more than {MESSAGE_BYTES_MAX} bytes")]
    TooLarge,
}

type HttpError = StreamableHttpError<HttpFault>;

fn fault(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    StreamableHttpError::Client(HttpFault::Request(innermost.to_string()))
}

/// What every request has.
fn prepare(
    mut request: RequestBuilder,
    session: Option<&str>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    request = request.header(ACCEPT, format!("{EVENTS}, {JSON}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    match session {
        Some(session) => request.header(SESSION, session),
        None => request,
    }
}

/// What a request was refused with for want of a token; absent if it failed in another way.
pub(super) fn challenge_of(
    error: &DynamicTransportError,
    shared: &McpShared,
) -> Option<TokenChallenge> {
    read_challenge(error.error.source()?.downcast_ref()?, shared)
}

fn read_challenge(error: &HttpError, shared: &McpShared) -> Option<TokenChallenge> {
    let (reason, header) = match error {
        StreamableHttpError::AuthRequired(refusal) => {
            let reason =
                if shared.has_token { TokenReason::Expired } else { TokenReason::Required };
            (reason, &refusal.www_authenticate_header)
        }
        StreamableHttpError::InsufficientScope(refusal)
            if refusal.www_authenticate_header.contains("insufficient_scope") =>
        {
            let header = &refusal.www_authenticate_header;
            (TokenReason::InsufficientScope, header)
        }
        _ => return None, // a token would not help
    };
    let header = header.clone();
    Some(TokenChallenge { reason, header })
}

/// An answer that is none: who is asked wants a token, or something is wrong.
fn check_status(
    response: &Response,
    has_session: bool,
    shared: &McpShared,
) -> Result<(), HttpError> {
    let status = response.status();
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge.and_then(|challenge| challenge.to_str().ok());
    let refused = |error: HttpError| {
        if let Some(challenge) = read_challenge(&error, shared) {
            shared.note_challenge(challenge);
        }
        Err(error)
    };
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            let challenge = challenge.unwrap_or_default().to_owned();
            let error = AuthRequiredError::new(challenge);
            refused(StreamableHttpError::AuthRequired(error))
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            let error = InsufficientScopeError::new(challenge.to_owned(), None);
            refused(StreamableHttpError::InsufficientScope(error))
        }
        (StatusCode::NOT_FOUND, _) if has_session => Err(StreamableHttpError::SessionExpired),
        (StatusCode::METHOD_NOT_ALLOWED, _) => {
            shared.note_refusal();
            Err(StreamableHttpError::ServerDoesNotSupportSse)
        }
        (status, _) if status.is_server_error() => {
            Err(HttpStatusError::new(status.as_u16(), None).into())
        }
        (status, _) if status.is_success() || is_json(response) => Ok(()),
        (status, _) => {
            shared.note_refusal();
            Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}"))))
        }
    }
}

fn content_type(response: &Response) -> &str {
    let header = response.headers().get(CONTENT_TYPE);
    header.and_then(|header| header.to_str().ok()).unwrap_or_default()
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    content_type(response).starts_with(EVENTS)
}

fn is_json(response: &Response) -> bool {
    content_type(response).starts_with(JSON)
}

/// A whole body, as far as it may be.
async fn read_body(mut response: Response, shared: &McpShared) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(fault)? {
        if body.len() + chunk.len() > MESSAGE_BYTES_MAX {
            shared.fail(McpError::TooLarge(MESSAGE_BYTES_MAX));
            return Err(StreamableHttpError::Client(HttpFault::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The events of a body, each counted before it is kept.
pub(super) fn read_events(
    response: Response,
    shared: Arc<McpShared>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let state = (response, EventCounter::new(MESSAGE_BYTES_MAX), shared);
    let chunks = stream::try_unfold(state, |(mut response, mut counter, shared)| async move {
        let chunk =
            response.chunk().await.map_err(|error| std::io::Error::other(error.without_url()))?;
        let Some(chunk) = chunk else { return Ok::<_, std::io::Error>(None) };
        if let Err(error) = counter.count(&chunk) {
            shared.fail(McpError::TooLarge(MESSAGE_BYTES_MAX));
            return Err(std::io::Error::other(error));
        }
        Ok(Some((chunk, (response, counter, shared))))
    });
    SseStream::from_bytes_stream(Box::pin(chunks)).boxed()
}

impl StreamableHttpClient for McpHttp {
    type Error = HttpFault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let session = session_id.as_deref();
        let body = serde_json::to_vec(&message)?;
        let request = self.client.post(&*uri).header(CONTENT_TYPE, JSON).body(body);
        let request = prepare(request, session, auth_header, custom_headers);
        let response = request.send().await.map_err(fault)?;
        check_status(&response, session.is_some(), &self.shared)?;
        let is_answer_wanted = matches!(message, ClientJsonRpcMessage::Request(_));
        let is_accepted =
            matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
        if is_accepted || (!is_answer_wanted && response.content_length() == Some(0)) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = response.headers().get(SESSION);
        let session = session.and_then(|session| session.to_str().ok()).map(str::to_owned);
        let kind = content_type(&response).to_owned();
        if kind.starts_with(EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(
                read_events(response, Arc::clone(&self.shared)),
                session,
            ));
        }
        if !kind.starts_with(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        let body = read_body(response, &self.shared).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Err(_) if !is_answer_wanted => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let request = self.client.delete(&*uri);
        let request = prepare(request, Some(&session_id), auth_header, custom_headers);
        request.send().await.map_err(fault)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let session = session_id.as_deref();
        let mut request = prepare(self.client.get(&*uri), session, auth_header, custom_headers);
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT, id);
        }
        let response = request.send().await.map_err(fault)?;
        check_status(&response, session.is_some(), &self.shared)?;
        if content_type(&response).starts_with(EVENTS) {
            Ok(read_events(response, Arc::clone(&self.shared)))
        } else {
            Err(StreamableHttpError::ServerDoesNotSupportSse)
        }
    }
}
