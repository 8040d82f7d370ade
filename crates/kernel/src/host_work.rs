//! What the host is asked to work out for the kernel, and what it answers: completions, models, content, messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use wire::published::commands::ContentEncoding;
use wire::state::Turn;
use wire::{ChannelUri, Digest};

use crate::bodies::BodyData;
use crate::client_file::ClientFile;
use crate::client_plugin::PluginOffer;
use crate::frame::EncodedContent;
use crate::host_facts::AgentFacts;
use crate::ids::ChannelId;

/// Completion request: text and cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionTask {
    pub context: MessageContext,
    pub working_directories: Vec<String>,
    pub text: String,
    /// In UTF-16 units.
    pub offset: u64,
    /// The contexts that clients send.
    pub contexts: Vec<String>,
}

/// Where a message is typed: its agent may know commands of its own there (AG-28), and customizations may be off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageContext {
    pub provider: String,
    pub session: ChannelUri,
    /// None before there is a chat.
    pub chat: Option<ChannelUri>,
    /// Who types it, as far as that decides whose tokens are used (H-318).
    pub principal: Option<String>,
    /// Ids of customizations that are switched off there.
    pub switched_off: BTreeSet<String>,
}

impl Default for MessageContext {
    /// Nowhere: no agent knows anything there.
    fn default() -> Self {
        Self {
            provider: String::new(),
            session: ChannelUri::root(),
            chat: None,
            principal: None,
            switched_off: BTreeSet::new(),
        }
    }
}

/// The answer to a completion request.
#[derive(Debug, Clone, PartialEq)]
pub enum CompletionAnswer {
    /// `CompletionItem`s.
    Items(Vec<Value>),
    /// The offset is not in the text.
    OutsideText,
}

/// What is to be done to the models of an agent, until the host stops (G-71).
#[derive(Debug, Clone, PartialEq)]
pub enum ModelChange {
    /// Add this one, as the configuration would have it.
    Add(wire::Object),
    /// Read those of the configuration again.
    Reload,
}

/// The result of a change of models.
#[derive(Debug, Clone)]
pub struct ModelsChanged {
    /// All agents as they are now.
    pub agents: Vec<AgentFacts>,
    /// What its peer is answered.
    pub answer: Value,
}

/// Content to be read for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchTask {
    pub digest: Digest,
    pub encoding: Option<ContentEncoding>,
    /// The most that its encoded data may take.
    pub bytes_max: usize,
}

/// What lies under a digest.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchedContent {
    Content(EncodedContent),
    Missing,
    TooLarge,
}

/// Whose customizations are to be looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyRequest {
    pub session: ChannelUri,
    pub session_id: ChannelId,
    pub provider: String,
    pub working_directories: Vec<String>,
    /// What its active clients bring along.
    pub plugins: Vec<PluginOffer>,
    /// The client that said so just now: a plugin of it without a nonce is read again.
    pub said_by: Option<String>,
}

/// A message whose meaning is to be found out.
#[derive(Debug, Clone, PartialEq)]
pub struct ComposeTask {
    pub context: MessageContext,
    /// As it was sent, without the bodies that were detached from it.
    pub message: wire::Object,
    /// Those bodies, by the index of their attachment.
    pub detached: Vec<(usize, BodyData)>,
    /// What was read from the client that sent it, or why it was not.
    pub client_files: Vec<ClientFile>,
    pub working_directories: Vec<String>,
    /// How many bytes may stay in one attachment, and in all of them.
    pub each_bytes: usize,
    pub left_bytes: usize,
}

/// A message that is not sent yet, and where it would be sent (G-71).
#[derive(Debug, Clone, PartialEq)]
pub struct MessageCheck {
    pub compose: ComposeTask,
    /// The agent, and the model that it would ask.
    pub provider: String,
    pub model: Option<String>,
    /// What the agent remembers of the model's refusals in this chat.
    pub refusals: Option<Bytes>,
    pub context_use: ContextUse,
}

/// What is known of how full a chat's context is.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextUse {
    /// No model was asked yet.
    Nothing,
    /// What was last reported, `UsageInfo`.
    Reported(Value),
    /// The last turn that is over says it, if anything does.
    Turn(Arc<Turn>),
    /// Everything before is a summary of so many bytes.
    Summary(usize),
}
