//! One step of a scene, as its script says it.
//!
//! Promises: every field is checked when the script is loaded. A step that the contract knows and this version does
//! not build is refused by name, so that no scene is played with a hole in it.

mod ask;
mod field;
mod spawn;
mod tool;

use serde_json::Value;

use compositor::lower::Target;

use super::number::Number;
use super::script::{ScriptError, at, object};
use field::{StepFields, flag, name, number, only_true, text, texts};

pub(super) use ask::Ask;
pub(super) use spawn::Spawn;
pub(super) use tool::{ClientToolStep, Confirm, ConfirmationPrompt, ScriptedOutcome, ToolStep};

/// What is done next. Strings and numbers are still as written: substitution comes when the scene is played.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScriptStep {
    Say(Vec<String>),
    Think(Vec<String>),
    Stream(Stream),
    Parts(Number),
    WaitMs(Number),
    Usage(Vec<(String, UsageField)>),
    Title(String),
    /// `None` clears it.
    Activity(Option<String>),
    Notify(String),
    ContentRef(ContentRef),
    Tool(Box<ToolStep>),
    ClientTool(ClientToolStep),
    Ask(Ask),
    Spawn(Spawn),
    Steer,
    ShowPrompt,
    /// What is sent to a target of the user's message.
    ShowLowered(String),
    Fail(Fail),
    Hang,
    Crash,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stream {
    pub(super) chunks: Number,
    pub(super) size: Number,
    pub(super) every_ms: Number,
    /// What stands before the first chunk, and behind each.
    pub(super) first: String,
    pub(super) end: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fail {
    pub(super) error_type: Option<String>,
    pub(super) message: Option<String>,
    pub(super) resumable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum UsageField {
    Count(Number),
    /// Handed on, with its strings substituted.
    Other(Value),
}

const BUILT: [&str; 20] = [
    "say",
    "think",
    "stream",
    "parts",
    "wait_ms",
    "tool",
    "client_tool",
    "ask",
    "spawn",
    "steer",
    "show_prompt",
    "notify",
    "content_ref",
    "usage",
    "title",
    "activity",
    "show_lowered",
    "fail",
    "hang",
    "crash",
];
/// The type of a content reference that names none.
const CONTENT_TYPE_DEFAULT: &str = "text/plain";
/// The size of a streamed chunk that names none.
const STREAM_SIZE_DEFAULT: u64 = 40;

impl ScriptStep {
    /// The steps of a scene or of a worker; `location` is the list's.
    pub(super) fn parse_all(steps: &[Value], location: &str) -> Result<Vec<Self>, ScriptError> {
        let steps = steps.iter().enumerate();
        steps.map(|(n, step)| Self::parse(step, &format!("{location}[{n}]"))).collect()
    }

    fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let step = object(value, location)?;
        let mut keys = step.iter();
        let (Some((name, value)), None) = (keys.next(), keys.next()) else {
            let what = format!("a step has exactly one key; this one has {}", step.len());
            return Err(at(location, what));
        };
        let inner = format!("{location}.{name}");
        let step_location = location;
        let location = inner.as_str();
        match name.as_str() {
            "say" => texts(value, location).map(Self::Say),
            "think" => texts(value, location).map(Self::Think),
            "stream" => Stream::parse(value, location).map(Self::Stream),
            "parts" => number(value, location).map(Self::Parts),
            "wait_ms" => number(value, location).map(Self::WaitMs),
            "usage" => usage(value, location).map(Self::Usage),
            "title" => text(value, location).map(Self::Title),
            "activity" if value.is_null() => Ok(Self::Activity(None)),
            "activity" => text(value, location).map(|text| Self::Activity(Some(text))),
            "notify" => text(value, location).map(Self::Notify),
            "content_ref" => ContentRef::parse(value, location).map(Self::ContentRef),
            "tool" => ToolStep::parse(value, location).map(|tool| Self::Tool(Box::new(tool))),
            "client_tool" => ClientToolStep::parse(value, location).map(Self::ClientTool),
            "ask" => Ask::parse(value, location).map(Self::Ask),
            "spawn" => Spawn::parse(value, location).map(Self::Spawn),
            "steer" => only_true(value, location).map(|()| Self::Steer),
            "show_prompt" => only_true(value, location).map(|()| Self::ShowPrompt),
            "show_lowered" => target(value, location).map(Self::ShowLowered),
            "fail" => Fail::parse(value, location).map(Self::Fail),
            "hang" => only_true(value, location).map(|()| Self::Hang),
            "crash" => only_true(value, location).map(|()| Self::Crash),
            _ => {
                let what = format!("unknown step `{name}`; known here: {}", BUILT.join(", "));
                Err(at(step_location, what))
            }
        }
    }
}

impl Stream {
    fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let known = ["chunks", "size", "every_ms", "first", "end"];
        let fields = StepFields::of(value, location, &known)?;
        let size = fields.optional("size", number)?;
        let every_ms = fields.optional("every_ms", number)?;
        Ok(Self {
            chunks: fields.required("chunks", number)?,
            size: size.unwrap_or(Number::Fixed(STREAM_SIZE_DEFAULT)),
            every_ms: every_ms.unwrap_or(Number::Fixed(0)),
            first: fields.optional("first", text)?.unwrap_or_default(),
            end: fields.optional("end", text)?.unwrap_or_default(),
        })
    }
}

impl Fail {
    fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let fields = StepFields::of(value, location, &["type", "message", "resumable"])?;
        Ok(Self {
            error_type: fields.optional("type", text)?,
            message: fields.optional("message", text)?,
            resumable: fields.optional("resumable", flag)?.unwrap_or(false), // G-04
        })
    }
}

/// The name of a target; one with a placeholder in it is looked at when it is played.
fn target(value: &Value, location: &str) -> Result<String, ScriptError> {
    let name = text(value, location)?;
    if !name.contains(['$', '{']) && Target::from_name(&name).is_none() {
        return Err(at(location, unknown_target(&name)));
    }
    Ok(name)
}

pub(super) fn unknown_target(name: &str) -> String {
    let known = Target::ALL.map(Target::name).join(", ");
    format!("`{name}` is not a target; there are {known}")
}

fn usage(value: &Value, location: &str) -> Result<Vec<(String, UsageField)>, ScriptError> {
    let fields = object(value, location)?.iter().map(|(key, value)| {
        let field = match key.as_str() {
            "inputTokens" | "outputTokens" | "cacheReadTokens" => {
                UsageField::Count(number(value, &format!("{location}.{key}"))?)
            }
            _ => UsageField::Other(value.clone()),
        };
        Ok((key.clone(), field))
    });
    fields.collect()
}

/// A part that clients fetch by reference.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ContentRef {
    pub(super) text: String,
    pub(super) content_type: String,
}

impl ContentRef {
    fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let fields = StepFields::of(value, location, &["text", "type"])?;
        let content_type = fields.optional("type", name)?;
        Ok(Self {
            text: fields.required("text", text)?,
            content_type: content_type.unwrap_or_else(|| CONTENT_TYPE_DEFAULT.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests;
