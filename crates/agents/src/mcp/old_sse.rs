//! The HTTP of servers from before streamable HTTP: a stream of events from the server, and an address that it names for what is
//! sent to it (MC-1).
//!
//! Promises: bounded like the newer one; what is sent goes to the origin that the user knows, whatever address the server names;
//! no redirect is followed.
//! Must not know: what messages mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use super::error::McpError;
use super::handler::McpShared;
use super::http::{self, EVENTS, HttpEndpoint, JSON};

/// A stream of events, and where to answer.
pub(super) struct OldSseTransport {
    events: BoxStream<'static, Result<Sse, SseError>>,
    way_back: MessagePoster,
    shared: Arc<McpShared>,
}

/// How messages are sent.
#[derive(Clone)]
struct MessagePoster {
    client: Client,
    address: Url,
    headers: BTreeMap<String, String>,
    token: Option<String>,
}

impl MessagePoster {
    fn prepare(&self, mut request: RequestBuilder) -> RequestBuilder {
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

impl OldSseTransport {
    /// Opens the stream, and waits for the address that the server names first.
    pub(super) async fn open(
        endpoint: &HttpEndpoint<'_>,
        shared: &Arc<McpShared>,
    ) -> Result<Self, McpError> {
        let unreachable = |why: &str| McpError::Unreachable(why.to_owned());
        let url = Url::parse(endpoint.url).map_err(|_| unreachable("its URL is not one"))?;
        let mut way_back = MessagePoster {
            client: http::client(&url).await?,
            address: url.clone(),
            headers: endpoint.headers.clone(),
            token: endpoint.token.map(str::to_owned),
        };
        let request = way_back.client.get(url.clone()).header(ACCEPT, EVENTS);
        let response = way_back
            .prepare(request)
            .send()
            .await
            .map_err(|error| McpError::Unreachable(error.without_url().to_string()))?;
        if !response.status().is_success() || !http::is_event_stream(&response) {
            let why = format!("it answers with HTTP {}", response.status());
            return Err(McpError::Unreachable(why));
        }
        let mut events = http::read_events(response, Arc::clone(shared));
        let named = loop {
            match events.next().await {
                Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => break event.data,
                Some(Ok(_)) => {} // nothing else means anything yet
                Some(Err(_)) | None => return Err(unreachable("its stream ended at once")),
            }
        };
        let address = named.and_then(|named| url.join(named.trim()).ok());
        way_back.address = address
            .filter(|address| address.origin() == url.origin())
            .ok_or_else(|| unreachable("it wants to be answered at another origin"))?;
        Ok(Self { events, way_back, shared: Arc::clone(shared) })
    }
}

impl Transport<RoleClient> for OldSseTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), std::io::Error>> + Send + 'static {
        let way_back = self.way_back.clone();
        async move {
            let body = serde_json::to_vec(&message)?;
            let request = way_back
                .client
                .post(way_back.address.clone())
                .header(CONTENT_TYPE, JSON)
                .body(body);
            let sent = way_back
                .prepare(request)
                .send()
                .await
                .map_err(|error| std::io::Error::other(error.without_url()))?;
            if sent.status().is_success() {
                Ok(())
            } else {
                Err(std::io::Error::other(format!("HTTP {}", sent.status())))
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let Ok(event) = self.events.next().await? else {
                return None; // too large, or cut off: what ended it is known
            };
            let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
            let Some(data) = event.data.filter(|_| is_message) else {
                continue; // a sign of life
            };
            match serde_json::from_str(&data) {
                Ok(message) => return Some(message),
                Err(_) => self.shared.log.push_line("(an event that is no message)"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), std::io::Error> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}
