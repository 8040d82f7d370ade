//! Model APIs: a request is encoded, a stream is decoded into events. Nothing else knows a vendor.
//!
//! Promises: text that came is never lost or reordered; a stream that ends early is an error, never a short answer; no
//! key reaches an error, an event or a log.
//! Must not know: turns, tools, channels.

mod back_off;
mod endpoint;
mod error_body;
mod failure;
mod http;
mod key;
mod key_command;
mod openai_chat;
mod sse;
mod tls;

use agent_api::Section;
use serde_json::Value;
use tokio::sync::mpsc;
use wire::Object;

pub use endpoint::{ModelEndpoint, ModelEndpointError, Timeouts};
pub use key::ApiKey;

/// A request to a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelRequest {
    /// The model's name at its server.
    pub model: String,
    /// Sections stay sections until the provider's own form is made.
    pub system: Vec<Section>,
    pub messages: Vec<ModelMessage>,
    pub tools: Vec<ToolSpec>,
    pub max_output_tokens: Option<u64>,
    /// The user's settings for the model, by the names of its `configSchema`. `null` takes a field out of the request.
    pub settings: Object,
}

/// One message of a conversation as models take it.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelMessage {
    /// Its content in the shapes of the wire format: a text, or blocks.
    User(Value),
    Assistant {
        text: String,
        calls: Vec<ToolUse>,
    },
    /// What came of a call of the assistant message before.
    ToolResult {
        id: String,
        text: String,
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
    /// At most once an answer, before its end; a server that counts nothing gives none.
    Usage(Usage),
    /// The server is busy or unreachable and is tried again: for the user to read.
    Waiting(String),
    /// The last event of a stream that came whole.
    Stopped(StopReason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The whole prompt, what came from the cache included.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
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
    Other(String),
}

/// Why no answer, or no whole answer, came. The user reads the message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    pub kind: ProviderErrorKind,
    pub message: String,
    /// What to do about it, where that is known.
    pub advice: Option<&'static str>,
}

impl ProviderError {
    pub(crate) fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            advice: None,
        }
    }

    pub(crate) fn with_advice(self, advice: &'static str) -> Self {
        Self {
            advice: Some(advice),
            ..self
        }
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
    /// The server does not take an attachment in it: too large, or of a kind it does not know.
    MediaRejected,
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
            Self::Rejected | Self::MediaRejected | Self::Unreadable => false,
        }
    }
}

/// Where a model's answer goes, in the task that reads it: a piece goes through no queue.
pub trait ModelEventSink: Send {
    fn accept(
        &mut self,
        event: ModelEvent,
    ) -> impl Future<Output = Result<(), AnswerUnwanted>> + Send;
}

/// The caller has stopped waiting for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not wanted any more")]
pub struct AnswerUnwanted;

impl ModelEventSink for &mpsc::Sender<ModelEvent> {
    async fn accept(&mut self, event: ModelEvent) -> Result<(), AnswerUnwanted> {
        self.send(event).await.map_err(|_| AnswerUnwanted)
    }
}

/// Asks a model and sends its answer on until it stops. Dropping the future aborts the request.
pub async fn ask(
    endpoint: &ModelEndpoint,
    request: &ModelRequest,
    sink: impl ModelEventSink,
) -> Result<(), ProviderError> {
    let body = openai_chat::encode(request, openai_chat::limit_field(endpoint.host()));
    let decoder = openai_chat::ChatStreamDecoder::new;
    http::stream(endpoint, openai_chat::PATH, body, decoder, sink).await
}

/// The names of the models a server says it has. Tries once: whoever asks wants to know whether it answers.
pub async fn list_models(endpoint: &ModelEndpoint) -> Result<Vec<String>, ProviderError> {
    let body = http::get(endpoint, openai_chat::MODELS_PATH).await?;
    openai_chat::model_names(&body)
}

/// Whether a server takes requests for answers at this address, as far as can be seen without asking a model: some have no
/// list of models.
pub async fn takes_requests(endpoint: &ModelEndpoint) -> Result<bool, ProviderError> {
    http::is_served(endpoint, openai_chat::PATH).await
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
