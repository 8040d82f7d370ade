//! Lowering: persisted parts become the blocks that a provider accepts.
//!
//! Promises: blocks in the order of the parts, none merged (but for `text_only`), none invented; whatever cannot be
//! sent is described instead, and the diagnostics say so; nothing here fails or panics, whatever the parts say.
//! Must not know: files, sockets, which provider is really behind a target's shapes.

mod acp;
mod anthropic;
pub mod capabilities;
mod gemini;
mod media;
mod openai_chat;
mod openai_responses;
mod part;
mod reference;
pub mod texts;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Part;
use crate::resolve::{InlineLimits, Resolved, Sources};

pub use capabilities::{BadCapabilities, Capabilities, CapabilityMap};

/// Which target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    Anthropic,
    OpenaiResponses,
    OpenaiChat,
    Gemini,
    Acp,
}

impl Target {
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::OpenaiResponses, Self::OpenaiChat, Self::Gemini, Self::Acp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiResponses => "openai_responses",
            Self::OpenaiChat => "openai_chat",
            Self::Gemini => "gemini",
            Self::Acp => "acp",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }

    fn text(self, text: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::text(text),
            Self::OpenaiResponses => openai_responses::text(text),
            Self::OpenaiChat => openai_chat::text(text),
            Self::Gemini => gemini::text(text),
            Self::Acp => acp::text(text),
        }
    }

    /// The block of a body; `None` if there is no shape for one of its class.
    fn media(self, media: &MediaBody<'_>) -> Option<Value> {
        match self {
            Self::Anthropic => anthropic::media(media),
            Self::OpenaiResponses => openai_responses::media(media),
            Self::OpenaiChat => openai_chat::media(media),
            Self::Gemini => gemini::media(media),
            Self::Acp => acp::media(media),
        }
    }
}

/// A body that becomes a block.
struct MediaBody<'a> {
    class: crate::media_type::Class,
    mime: &'a str,
    base64: &'a str,
    name: &'a str,
    /// The name of its content.
    uri: &'a dyn Fn() -> String,
}

/// A lowered message.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lowered {
    pub blocks: Vec<Value>,
    /// What could not be sent as it was, for the user.
    pub diagnostics: Vec<String>,
    /// What was made of each part, in their order.
    pub decisions: Vec<LoweringDecision>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoweringDecision {
    pub part: usize,
    /// `text`, `file`, `image`, `document`, `audio`, `video`, `binary`, `link`, `reference`, `descriptor`, `chat`,
    /// `editor_context`, `placeholder` or `nothing`.
    pub became: String,
    pub why: Option<String>,
    /// What it takes of the request.
    pub bytes: u64,
}

/// What a request has left for this message, and how much of references is inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestBudget {
    pub inline: InlineLimits,
    pub images_left: Option<u64>,
    pub bytes_left: Option<u64>,
    /// Pictures in the whole request, as far as is known: where there are many, each must be smaller.
    pub images_expected: u64,
    /// Parts of this message that a provider has refused: they are described.
    pub described: BTreeSet<usize>,
}

impl RequestBudget {
    /// A request with nothing in it.
    pub fn new(capabilities: &Capabilities) -> Self {
        Self {
            inline: InlineLimits::default(),
            images_left: capabilities.image.as_ref().and_then(|image| image.count),
            bytes_left: capabilities.request_bytes,
            images_expected: 0,
            described: BTreeSet::new(),
        }
    }
}

/// What is sent to a target of a message that has a request for itself.
pub fn lower(
    parts: &[Part],
    resolved: &BTreeMap<usize, Resolved>,
    target: Target,
    capabilities: &Capabilities,
    sources: &mut dyn Sources,
) -> Lowered {
    let mut budget = RequestBudget::new(capabilities);
    lower_into(&mut budget, parts, resolved, target, capabilities, sources)
}

/// The same for one message of several: what it uses is subtracted from the budget. Lower the newest message first.
/// References that are not in `resolved` are resolved now.
pub fn lower_into(
    budget: &mut RequestBudget,
    parts: &[Part],
    resolved: &BTreeMap<usize, Resolved>,
    target: Target,
    capabilities: &Capabilities,
    sources: &mut dyn Sources,
) -> Lowered {
    let mut lowering = part::MessageLowering {
        target,
        capabilities,
        sources,
        budget,
        resolved,
        texts: Vec::new(),
        diagnostics: crate::diagnostics::Diagnostics::default(),
        out: Lowered::default(),
    };
    lowering.lower_parts(parts);
    lowering.finish()
}

/// A message of a request, with what its references turned out to be.
#[derive(Debug, Clone, Copy)]
pub struct ResolvedMessage<'a> {
    pub parts: &'a [Part],
    pub resolved: &'a BTreeMap<usize, Resolved>,
    /// Parts of it that the provider has refused.
    pub described: &'a BTreeSet<usize>,
}

/// What is sent to a target of all messages of one request, oldest first. They share its budget; where it is too
/// small the older ones are described.
pub fn lower_all(
    messages: &[ResolvedMessage<'_>],
    inline: InlineLimits,
    target: Target,
    capabilities: &Capabilities,
    sources: &mut dyn Sources,
) -> Vec<Lowered> {
    let mut budget = RequestBudget {
        inline,
        images_expected: messages.iter().map(part::count_images_in).sum(),
        ..RequestBudget::new(capabilities)
    };
    let newest_first = messages.iter().rev().map(|message| {
        budget.described = message.described.clone();
        let (parts, resolved) = (message.parts, message.resolved);
        lower_into(&mut budget, parts, resolved, target, capabilities, sources)
    });
    let mut lowered: Vec<Lowered> = newest_first.collect();
    lowered.reverse();
    lowered
}

/// The text blocks of a lowering joined by a newline (G-06).
pub fn text_of(lowered: &Lowered) -> String {
    let texts: Vec<&str> = lowered.blocks.iter().filter_map(text_in_block).collect();
    texts.join("\n")
}

fn text_in_block(block: &Value) -> Option<&str> {
    match block.get("type").and_then(Value::as_str) {
        None | Some("text" | "input_text") => block.get("text")?.as_str(),
        Some(_) => None,
    }
}

/// The `content` of a Chat Completions message: servers that know only strings get one where one will do (4.3).
pub fn chat_content(lowered: &Lowered) -> Value {
    match lowered.blocks.as_slice() {
        [only] if text_in_block(only).is_some() => only["text"].clone(),
        blocks => Value::Array(blocks.to_vec()),
    }
}
