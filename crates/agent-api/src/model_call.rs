//! Records of an agent's calls of models, for `inspect` (G-37).
//!
//! Promises: nothing here holds a key.
//! Must not know: where it is stored, how long, who reads it.

use bytes::Bytes;
use compositor::Part;
use compositor::lower::LoweringDecision;
use serde_json::Value;

use crate::section::Section;

/// A request to a model, as it is about to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelCall {
    pub purpose: CallPurpose,
    /// Which round of the turn asks.
    pub round: u64,
    /// The name of the wire format.
    pub api: &'static str,
    /// The model by its id in the configuration.
    pub model: String,
    /// Where it goes, keys removed.
    pub url: String,
    /// Headers by name, keys removed.
    pub headers: Vec<(String, String)>,
    /// The bytes that are sent.
    pub body: Bytes,
    /// The system prompt as the agent put it together, and as the model reads it.
    pub sections_before: Vec<Section>,
    pub sections_after: Vec<Section>,
    /// How each part of the messages was sent.
    pub decisions: Vec<PartDecision>,
}

/// Why a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPurpose {
    /// It answers the user.
    Answer,
    /// It shortens the conversation.
    Compaction,
    /// It names the session.
    Title,
}

impl CallPurpose {
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Compaction => "compaction",
            Self::Title => "title",
        }
    }
}

/// How one part of a message was sent in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDecision {
    /// Which entry of the conversation, and which part of it.
    pub message: u64,
    pub part: u64,
    /// The part's type.
    pub kind: String,
    /// What people call it, if it has a name.
    pub name: Option<String>,
    pub treatment: PartTreatment,
    /// What it is in the request, as the compositor names it.
    pub became: String,
    pub why: Option<String>,
    /// What it takes of the request.
    pub bytes: u64,
    /// What the model is estimated to count for it; none if that cannot be known.
    pub tokens: Option<u64>,
}

/// Rough size of a token, in bytes of text: good enough to decide what to leave out.
pub const TOKEN_BYTES: usize = 4;

/// What models count for a picture, roughly.
pub const PICTURE_TOKENS: usize = 1_500;

impl PartDecision {
    /// What the compositor decided about a part of the entry at `position`.
    pub fn new(position: usize, part: Option<&Part>, decision: &LoweringDecision) -> Self {
        let kind = part.and_then(|part| part.object().get("type"));
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let treatment = PartTreatment::of(&decision.became);
        let tokens = match (treatment, decision.became.as_str()) {
            (PartTreatment::Native, "image") => Some(count(PICTURE_TOKENS)),
            // How long something takes, or how many pages it has, is not in its size.
            (PartTreatment::Native, _) => None,
            _ => Some(decision.bytes.div_ceil(count(TOKEN_BYTES))),
        };
        Self {
            message: count(position),
            part: count(decision.part),
            kind: kind.and_then(Value::as_str).unwrap_or("").to_owned(),
            name: part.and_then(name_of).map(str::to_owned),
            treatment,
            became: decision.became.clone(),
            why: decision.why.clone(),
            bytes: decision.bytes,
            tokens,
        }
    }
}

/// What people call a part.
pub fn name_of(part: &Part) -> Option<&str> {
    let part = part.object();
    let name = part
        .get("name")
        .or_else(|| part.get("ref")?.get("path"))
        .or_else(|| part.get("target")?.get("path"));
    name.and_then(Value::as_str)
}

/// How a part was treated, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartTreatment {
    /// Sent as text.
    Text,
    /// Sent as itself.
    Native,
    /// Described instead.
    Described,
    /// Nothing of it was sent.
    LeftOut,
}

impl PartTreatment {
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Native => "native",
            Self::Described => "described",
            Self::LeftOut => "left out",
        }
    }

    /// Parses a name of the compositor.
    pub fn of(became: &str) -> Self {
        match became {
            "image" | "document" | "audio" | "video" | "binary" => Self::Native,
            "text" | "file" | "chat" | "editor_context" => Self::Text,
            "nothing" => Self::LeftOut,
            _ => Self::Described,
        }
    }
}

/// Names a recorded call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId(pub u64);

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallEnd {
    pub outcome: ModelCallOutcome,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    /// In US dollars, if the model has prices.
    pub cost: Option<f64>,
    /// How often the same request was sent again because the server was busy or unreachable.
    pub repeats: u64,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ModelCallOutcome {
    /// Nobody waits for the answer any more.
    #[default]
    Abandoned,
    /// Why the model stopped.
    Answered(String),
    /// The server refused the request; its message.
    Refused(String),
    /// No answer came, or not all of it.
    Failed(String),
}

impl ModelCallOutcome {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Abandoned => "abandoned",
            Self::Answered(_) => "answered",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }

    /// The reason that goes with it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Abandoned => None,
            Self::Answered(reason) | Self::Refused(reason) | Self::Failed(reason) => Some(reason),
        }
    }
}
