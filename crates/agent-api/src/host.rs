//! What the host does for an agent: none of it is an event of the turn.
//!
//! Must not know: where bodies, messages and records lie.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;
use wire::NamedBody;
use wire::published::state::ContentRef;

use crate::budget::{CallEstimate, CallKind, CallPermit, CallUsage};
use crate::client_file::{ClientFileCall, ClientFileFailure, ClientFileReply};
use crate::message::UserMessage;
use crate::model_call::{CallEnd, CallId, ModelCall};
use crate::terminal::TerminalOffer;
use crate::turn::PastTurn;

/// What the host does for an agent without the kernel.
#[async_trait]
pub trait HostServices: Send + Sync {
    /// Stores a body, so that events can refer to it.
    async fn store_body(&self, body: Vec<u8>, content_type: &str)
    -> Result<ContentRef, StoreError>;

    /// The same for a body whose digest is known: it is not hashed again.
    async fn store_named_body(
        &self,
        body: NamedBody,
        content_type: &str,
    ) -> Result<ContentRef, StoreError>;

    /// Reads the typed parts of a message by its id; none if they cannot be read.
    async fn read_message(&self, id: String) -> Option<Arc<UserMessage>>;

    /// The turns before this one, oldest first, as [`crate::TurnInput::history`] has them for an agent that needs them in every
    /// turn; read when it is asked for.
    async fn read_history(&self) -> Result<Vec<PastTurn>, StoreError>;

    /// Stores what a model gets of the user's messages, for `inspect` (G-37). Clients never see it,
    /// and the turn goes on if it cannot be stored.
    async fn record_lowering(&self, lowering: Lowering);

    /// Stores what a model's server wants back of an answer in later requests (G-61): it comes with the turn's
    /// [history](crate::PastTurn). Clients never see it. What cannot be stored is not sent back.
    async fn record_output(&self, output: ModelOutput);

    /// Stores a request before it is sent, for whoever inspects the chat (G-37). Clients never see it. None if it is not
    /// stored: the turn goes on all the same.
    async fn record_call(&self, call: ModelCall) -> Option<CallId>;

    /// Stores how a call ended. Does not wait, so that it can be called for a call that is dropped.
    fn record_call_end(&self, call: CallId, end: CallEnd);

    /// Asks whether a model may be asked once more (G-69), before each call; what it will use is set aside. Ends with the
    /// next [usage](crate::AgentEvent::Usage) that is sent, or with [`HostServices::release_call`].
    async fn begin_call(
        &self,
        estimate: CallEstimate,
        kind: CallKind,
    ) -> Result<CallPermit, StoreError>;

    /// The call failed and used nothing.
    async fn release_call(&self);

    /// The call used this: for one that no usage is sent of, because its turn is over.
    async fn settle_call(&self, used: CallUsage);

    /// The user allows as much again of the budget whose limit [`HostServices::begin_call`] last reported as reached.
    async fn extend_budget(&self) -> Result<(), StoreError>;

    /// Shows people a terminal that a call runs a command in, from now to its end; the URI of its channel. An error if the
    /// host has no room for it: the command goes on unseen.
    async fn show_terminal(&self, offer: TerminalOffer) -> Result<String, StoreError> {
        drop(offer);
        Err(StoreError("this host shows no terminals".to_owned()))
    }

    /// Uses a file of the client that sent the turn's message, as far as that client lets it.
    async fn use_client_file(
        &self,
        call: ClientFileCall,
    ) -> Result<ClientFileReply, ClientFileFailure> {
        drop(call);
        Err(StoreError("this host asks no client".to_owned()).into())
    }
}

/// An answer of a model as its server wants it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOutput {
    /// Which request of the turn it answered.
    pub round: u64,
    /// Opaque.
    pub json: Bytes,
}

/// What a model gets of the user's messages of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowering {
    /// The name of the target that the messages were lowered for.
    pub target: &'static str,
    pub model: String,
    pub blocks: Vec<Value>,
    pub diagnostics: Vec<String>,
}

/// Something could not be stored, or not be read; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);
