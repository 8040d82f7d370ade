//! The steps that call a tool: of the script's own, or of a client.

use serde_json::{Value, json};

use super::super::number::Number;
use super::super::script::{ScriptError, at, object};
use super::super::shape::{Shape, ShapedValue};
use super::field::{StepFields, each, flag, name, number, one_of, texts};
use wire::Object;

/// How long an owner of a client tool may be silent where the script does not say.
const TIMEOUT_MS_DEFAULT: u64 = 30_000;

/// A tool call that the script plays itself.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ToolStep {
    pub(in super::super) name: String,
    pub(in super::super) display: Option<String>,
    /// None, and no chunks: an empty object.
    pub(in super::super) input: Option<Object>,
    /// Streamed text; together it is the input where no other is given.
    pub(in super::super) input_chunks: Vec<String>,
    pub(in super::super) confirm: Confirm,
    pub(in super::super) confirmation: ConfirmationPrompt,
    /// Asks again while it runs, with these words.
    pub(in super::super) reconfirm: Option<ShapedValue>,
    /// Output so far, one list after the other.
    pub(in super::super) updates: Vec<Vec<ShapedValue>>,
    pub(in super::super) result: Option<ScriptedOutcome>,
    pub(in super::super) confirm_result: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Confirm {
    Auto,
    Ask,
}

/// What is shown when someone is asked.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ConfirmationPrompt {
    pub(in super::super) title: Option<ShapedValue>,
    /// None given: the host's own two.
    pub(in super::super) options: Vec<ShapedValue>,
    pub(in super::super) editable: bool,
    pub(in super::super) edits: Vec<ShapedValue>,
}

/// What the tool comes to.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ScriptedOutcome {
    pub(in super::super) success: bool,
    pub(in super::super) message: Option<ShapedValue>,
    pub(in super::super) content: Option<Vec<ShapedValue>>,
    pub(in super::super) structured: Option<Object>,
    pub(in super::super) error: Option<Value>,
}

/// A call to a tool that an active client offers.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct ClientToolStep {
    pub(in super::super) name: String,
    pub(in super::super) input: Object,
    pub(in super::super) timeout_ms: Number,
}

const TOOL_KEYS: [&str; 13] = [
    "name",
    "display",
    "input",
    "input_chunks",
    "confirm",
    "title",
    "options",
    "editable",
    "edits",
    "reconfirm",
    "updates",
    "result",
    "confirm_result",
];

impl ToolStep {
    pub(super) fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let fields = StepFields::of(value, location, &TOOL_KEYS)?;
        let words = [("auto", Confirm::Auto), ("ask", Confirm::Ask)];
        Ok(Self {
            name: fields.required("name", name)?,
            display: fields.optional("display", name)?,
            input: fields.optional("input", |value, location| object(value, location).cloned())?,
            input_chunks: fields.optional("input_chunks", texts)?.unwrap_or_default(),
            confirm: fields
                .optional("confirm", |value, location| one_of(value, location, &words))?
                .unwrap_or(Confirm::Auto),
            confirmation: ConfirmationPrompt::parse(&fields)?,
            reconfirm: fields.optional("reconfirm", words_of)?,
            updates: fields
                .optional("updates", |value, location| each(value, location, contents))?
                .unwrap_or_default(),
            result: fields.optional("result", ScriptedOutcome::parse)?,
            confirm_result: fields.optional("confirm_result", flag)?.unwrap_or(false),
        })
    }
}

impl ConfirmationPrompt {
    fn parse(fields: &StepFields) -> Result<Self, ScriptError> {
        Ok(Self {
            title: fields.optional("title", words_of)?,
            options: fields.optional("options", options)?.unwrap_or_default(),
            editable: fields.optional("editable", flag)?.unwrap_or(false),
            edits: fields.optional("edits", edits)?.unwrap_or_default(),
        })
    }
}

fn options(value: &Value, location: &str) -> Result<Vec<ShapedValue>, ScriptError> {
    let read = |value: &Value, location: &str| ShapedValue::parse(Shape::Choice, value, location);
    let options = each(value, location, read)?;
    if options.is_empty() {
        return Err(at(location, "must not be empty"));
    }
    unique(&options, "id", location)?;
    Ok(options)
}

/// Clients answer by name: two things of one name could not be distinguished.
pub(super) fn unique(items: &[ShapedValue], key: &str, location: &str) -> Result<(), ScriptError> {
    for (n, item) in items.iter().enumerate() {
        let name = item.field(key);
        if let Some(name) = name
            && items[..n].iter().any(|other| other.field(key) == Some(name))
        {
            let what = format!("the {key} {name:?} occurs twice");
            return Err(at(&format!("{location}[{n}]"), what));
        }
    }
    Ok(())
}

/// A list of `FileEdit`, or the collection it goes out as.
fn edits(value: &Value, location: &str) -> Result<Vec<ShapedValue>, ScriptError> {
    let read = |value: &Value, location: &str| ShapedValue::parse(Shape::Edit, value, location);
    if !value.is_object() {
        return each(value, location, read);
    }
    let collection = StepFields::of(value, location, &["items"])?;
    collection.required("items", |value, location| each(value, location, read))
}

fn contents(value: &Value, location: &str) -> Result<Vec<ShapedValue>, ScriptError> {
    each(value, location, |value, location| ShapedValue::parse(Shape::Content, value, location))
}

fn words_of(value: &Value, location: &str) -> Result<ShapedValue, ScriptError> {
    ShapedValue::parse(Shape::Words, value, location)
}

impl ScriptedOutcome {
    fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let keys = ["success", "message", "content", "structured", "error"];
        let fields = StepFields::of(value, location, &keys)?;
        Ok(Self {
            success: fields.optional("success", flag)?.unwrap_or(true),
            message: fields.optional("message", words_of)?,
            content: fields.optional("content", contents)?,
            structured: fields
                .optional("structured", |value, location| object(value, location).cloned())?,
            error: fields.optional("error", error)?,
        })
    }
}

/// The details of a failure: words, or an object that has a `message`.
fn error(value: &Value, location: &str) -> Result<Value, ScriptError> {
    match value {
        Value::String(message) => Ok(json!({"message": message})),
        Value::Object(fields) if fields.get("message").is_some_and(Value::is_string) => {
            Ok(value.clone())
        }
        _ => Err(at(location, "must be a string or {\"message\": \"...\"}")),
    }
}

impl ClientToolStep {
    pub(super) fn parse(value: &Value, location: &str) -> Result<Self, ScriptError> {
        let fields = StepFields::of(value, location, &["name", "input", "timeout_ms"])?;
        Ok(Self {
            name: fields.required("name", name)?,
            input: fields
                .optional("input", |value, location| object(value, location).cloned())?
                .unwrap_or_default(),
            timeout_ms: fields
                .optional("timeout_ms", number)?
                .unwrap_or(Number::Fixed(TIMEOUT_MS_DEFAULT)),
        })
    }
}
