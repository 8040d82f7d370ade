//! Model APIs: a request is encoded, a stream is decoded into events. Nothing else knows a vendor.
//!
//! Promises: text that came is never lost or reordered; a stream that ends early is an error, never a short answer; no
//! key reaches an error, an event or a log.
//! Must not know: turns, tools, channels.

mod answer_stream;
mod anthropic;
mod api;
mod back_off;
mod endpoint;
mod error_body;
mod failure;
mod gemini;
mod http;
mod items;
mod key;
mod key_command;
mod lazy_timer;
mod openai_chat;
mod openai_responses;
mod refusal;
mod server_facts;
mod silence;
mod sources;
mod sse;
#[cfg(test)]
mod stream_tests;
mod streamed_response;
mod thoughts;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use agent_api::Section;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;
use wire::Object;

pub use api::Api;
pub(crate) use endpoint::with_version;
pub use endpoint::{ModelEndpoint, ModelEndpointError, Timeouts};
pub use key::{ApiKey, KEY_BYTES_MAX, open_real_file as open_key_file};
pub use refusal::{MediaKind, RefusalCause};
pub use server_facts::ask_facts;
pub use tls::{with_system_roots as trusting_client_config, without_roots as plain_client_config};

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// The model's name at its server.
    pub model: String,
    /// Sections stay sections until the provider's own form is made.
    pub system: Vec<Section>,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolSpec>,
    /// Tools that the server itself carries out, in the shapes of the wire format.
    pub server_tools: Vec<Value>,
    /// The tools are named only because the conversation holds calls of them: the model is not to make any.
    pub forbids_calls: bool,
    pub max_output_tokens: Option<u64>,
    /// The user's settings for the model, by the names of its `configSchema`. `null` takes a field out of the request.
    pub settings: Object,
    /// Whether it holds something that it could do without: then a refusal is not answered by sending the same again.
    pub reducible: bool,
    /// Whether its server takes texts only where others take lists.
    pub strings_only: bool,
    /// Whether its server wants thoughts with each message of the model, if only empty ones.
    pub blank_reasoning: bool,
}

/// One message of a conversation as models take it.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelMessage {
    /// Its content in the shapes of the wire format: a text, or blocks.
    User(Value),
    Assistant {
        text: String,
        calls: Vec<ToolUse>,
        /// The same as its server wants it back, with signatures and what only the server can read; sent instead of the
        /// rest if it is there.
        items: Option<Arc<Vec<Value>>>,
    },
    /// The result of a call of the assistant message before.
    ToolResult {
        id: String,
        text: String,
        /// Bodies that came with it, in the shapes of the wire format.
        blocks: Vec<Value>,
    },
}

/// A call a model made: its id, and its input as the text the model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    pub id: String,
    pub name: String,
    pub input: String,
}

/// A tool as it is offered to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of its input.
    pub parameters: Value,
}

/// A piece of a model's answer, as it comes.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    Text(String),
    Reasoning(String),
    /// A call begins; `index` counts the calls of one answer from 0 and distinguishes parallel ones.
    CallStarted {
        index: usize,
        id: String,
        name: String,
    },
    /// More of the input of a call that began.
    CallInput {
        index: usize,
        text: String,
    },
    Refusal(String),
    /// A tool that the server itself carries out.
    ServerCall {
        id: String,
        name: String,
        input: String,
    },
    /// The result of a tool of the server.
    ServerResult {
        id: String,
        text: String,
        success: bool,
    },
    /// The whole answer as its server wants it back in later requests; at most once, before the end.
    Items(Vec<Value>),
    /// At most once an answer, before its end; a server that counts nothing gives none.
    Usage(Usage),
    /// The server is busy or unreachable and is tried again: for the user to read.
    Waiting(String),
    /// Nothing has come for so long.
    Silent(Duration),
    /// The last event of a stream that came whole.
    Stopped(StopReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The whole prompt, what came from the cache included.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    End,
    /// There is at least one call.
    ToolCalls,
    /// It ran into its output limit.
    Length,
    /// The server cut it off for its content.
    ContentFilter,
    /// The model does not want to answer.
    Refusal,
    /// The server's own tools take long: it goes on when it is sent back what it said.
    Paused,
    Other(String),
}

/// Why no answer, or no whole answer, came. The user reads the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    pub kind: ProviderErrorKind,
    pub message: String,
    /// Set if a request with less in it may do better.
    pub blame: Option<RefusalCause>,
    /// Whether the server says that it does not know the key: another one may do.
    pub refuses_key: bool,
    /// What to do about it, where that is known.
    pub advice: Option<&'static str>,
}

impl ProviderError {
    pub(crate) fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), blame: None, refuses_key: false, advice: None }
    }

    pub(crate) fn with_advice(self, advice: &'static str) -> Self {
        Self { advice: Some(advice), ..self }
    }
}

/// What to do about an address at which something else answers.
pub(crate) const CHECK_BASE_URL: &str =
    "Check the base URL: for most servers it ends in /v1, such as http://localhost:11434/v1.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderErrorKind {
    /// The server does not accept the key.
    Unauthorized,
    /// The server does not take this request: too long, unknown model, bad settings.
    Rejected,
    /// Busy, unreachable or failing, also after several tries.
    Unavailable,
    /// The connection died in mid-stream.
    Interrupted,
    /// The server sent an invalid response.
    Unreadable,
}

impl ProviderErrorKind {
    /// Whether the same request may do better later.
    pub fn may_be_retried(self) -> bool {
        match self {
            Self::Unavailable | Self::Interrupted | Self::Unauthorized => true,
            Self::Rejected | Self::Unreadable => false,
        }
    }
}

/// Where a model's answer goes, in the task that reads it: a piece goes through no queue.
pub trait ModelEventSink: Send {
    fn accept(
        &mut self,
        event: ModelEvent,
    ) -> impl Future<Output = Result<(), AnswerCancelled>> + Send;
}

/// The caller has stopped waiting for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not wanted any more")]
pub struct AnswerCancelled;

impl ModelEventSink for &mpsc::Sender<ModelEvent> {
    async fn accept(&mut self, event: ModelEvent) -> Result<(), AnswerCancelled> {
        self.send(event).await.map_err(|_| AnswerCancelled)
    }
}

/// A request as it is sent, but for what the endpoint adds to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRequest {
    path: Vec<String>,
    pub body: Bytes,
    reducible: bool,
}

impl EncodedRequest {
    fn path(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// Where it goes, and its headers, keys removed.
    pub fn describe_head(&self, endpoint: &ModelEndpoint) -> (String, Vec<(String, String)>) {
        let headers = http::with_own_headers(endpoint.describe_headers());
        (endpoint.describe_url(&self.path()), headers)
    }
}

/// Encodes a request for the server that it goes to.
pub fn encode(endpoint: &ModelEndpoint, request: &ModelRequest) -> EncodedRequest {
    let gemini_path = gemini::path(&request.model);
    let vertex_path = anthropic::vertex::path(&request.model);
    let (path, body): (&[&str], _) = match endpoint.api() {
        Api::Chat => {
            let body = openai_chat::encode(request, endpoint.host());
            (openai_chat::PATH, body)
        }
        Api::Anthropic if endpoint.is_vertex() => {
            let body = anthropic::vertex::encode_request(request);
            (&["models", &vertex_path], body)
        }
        Api::Anthropic => (anthropic::PATH, anthropic::encode(request)),
        Api::Responses => (openai_responses::PATH, openai_responses::encode(request)),
        Api::Gemini => (&["models", &gemini_path], gemini::encode(request)),
    };
    EncodedRequest {
        path: path.iter().map(|part| (*part).to_owned()).collect(),
        body: Bytes::from(body),
        reducible: request.reducible,
    }
}

/// Sends a request and its answer on until it stops. Dropping the future aborts the request.
pub async fn send(
    endpoint: &ModelEndpoint,
    request: EncodedRequest,
    sink: impl ModelEventSink,
) -> Result<(), ProviderError> {
    let wire = http::WireRequest {
        path: &request.path(),
        body: request.body.clone(),
        reducible: request.reducible,
    };
    match endpoint.api() {
        Api::Chat => http::stream(endpoint, wire, openai_chat::decoder, sink).await,
        Api::Anthropic => http::stream(endpoint, wire, anthropic::decoder, sink).await,
        Api::Responses => http::stream(endpoint, wire, openai_responses::decoder, sink).await,
        Api::Gemini => http::stream(endpoint, wire, gemini::decoder, sink).await,
    }
}

/// An answer as it goes back over a wire format in which the server adds nothing to it.
pub fn own_items(api: Api, text: &str, calls: &[ToolUse]) -> Option<Vec<Value>> {
    match api {
        Api::Chat => openai_chat::assistant_message(text, calls, false).map(|it| vec![it]),
        Api::Anthropic | Api::Responses | Api::Gemini => None,
    }
}

/// Whether an answer as it goes back holds something that its server added.
pub fn has_additions(api: Api, items: &[Value]) -> bool {
    match api {
        Api::Chat => items.iter().any(openai_chat::has_additions),
        // Their answers are recorded as they came.
        Api::Anthropic | Api::Responses | Api::Gemini => true,
    }
}

/// The names of the models a server lists. Tries once: the caller wants to know whether it answers.
pub async fn list_models(endpoint: &ModelEndpoint) -> Result<Vec<String>, ProviderError> {
    let body = http::get(endpoint, openai_chat::MODELS_PATH).await?;
    let names = openai_chat::model_names(&body)?;
    Ok(match endpoint.api() {
        Api::Gemini => names.iter().map(|name| gemini::short_name(name)).collect(),
        Api::Chat | Api::Anthropic | Api::Responses => names,
    })
}

/// Whether a server takes requests for answers at this address, as far as can be seen without asking a model: some have no
/// list of models.
pub async fn takes_requests(endpoint: &ModelEndpoint) -> Result<bool, ProviderError> {
    let path = match endpoint.api() {
        Api::Chat => openai_chat::PATH,
        // Their addresses name a model.
        Api::Gemini => return Ok(false),
        Api::Anthropic if endpoint.is_vertex() => return Ok(false),
        Api::Anthropic => anthropic::PATH,
        Api::Responses => openai_responses::PATH,
    };
    http::is_served(endpoint, path).await
}

/// Turns the bytes of an answer into events. The events do not depend on how the bytes were split.
trait Decode {
    fn read(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<ModelEvent>,
    ) -> Result<StreamFlow, ProviderError>;

    /// Nothing more comes: fails if the answer is not whole.
    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// Whether only usage can still come.
    fn has_stopped(&self) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamFlow {
    More,
    /// The answer is whole and its last event is out.
    Done,
}
