//! Parts, exactly as they are persisted (C-001 to C-006).
//!
//! A part is its JSON object and stays it: what we do not know in it survives with the order of its keys. What we do
//! know is read through [`Part::view`], which never fails: a shape we cannot read becomes unknown.

use serde_json::{Value, json};
use wire::Object;

/// One part of a message: an object with a `type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part(Object);

/// The types of the first version (C-004).
const KINDS: [&str; 6] =
    ["text", "file-ref", "file-attachment", "command", "mention", "editor-context"];

/// The key of a command that is for the agent.
pub(crate) const AGENT_COMMAND: &str = "agent_command";

/// A value that is not a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a part is an object with a `type`")]
pub struct NotAPart;

/// What a part says.
#[derive(Debug, Clone, PartialEq)]
pub enum View<'a> {
    Text(Text<'a>),
    FileRef(FileRef<'a>),
    Attachment(Attachment<'a>),
    Command(Command<'a>),
    Mention(Mention<'a>),
    EditorContext(EditorContext<'a>),
    /// A type we do not know, or a known one in a shape we cannot read (C-086).
    Unknown {
        kind: &'a str,
        text: Option<&'a str>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Text<'a> {
    pub text: &'a str,
    pub intent: Option<&'a str>,
    /// The part it was made from at submission: it is not what the user typed.
    pub derived_from: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FileRef<'a> {
    pub location: Location<'a>,
    pub range: Option<Range>,
    pub name: Option<&'a str>,
    pub mime: Option<&'a str>,
    pub size: Option<u64>,
}

/// Where the body of a reference is (C-020).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location<'a> {
    Path(&'a str),
    Url(&'a str),
    ContentId(&'a str),
}

/// A slice of a file (C-013): lines count from 1 and include both ends, bytes from 0 without the end. As it was sent:
/// lowering checks whether it makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub unit: Unit,
    pub start: u64,
    pub end: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Line,
    Byte,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Attachment<'a> {
    pub name: &'a str,
    pub mime: &'a str,
    pub body: Body<'a>,
    pub size: Option<u64>,
    /// Where tools can read a copy of the body.
    pub path: Option<&'a str>,
    pub sniffed_mime: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// Base64.
    Inline(&'a str),
    /// In the blob store, as `sha256:<hex>`.
    Stored(&'a str),
    /// Only described.
    Absent,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Command<'a> {
    /// With its slash.
    pub id: &'a str,
    pub args: &'a Object,
    /// What the agent calls it that it is for, without a slash (AG-28).
    pub agent_command: Option<&'a str>,
}

impl Command<'_> {
    /// Whether the host does it itself.
    pub fn is_action(&self) -> bool {
        self.agent_command.is_none() && crate::command::is_action(self.id)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mention<'a> {
    pub target: MentionTarget<'a>,
    pub derived_from: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MentionTarget<'a> {
    Skill {
        name: &'a str,
        unresolved: bool,
    },
    File {
        path: &'a str,
        range: Option<Range>,
    },
    /// `@selection` and its like.
    Context {
        name: &'a str,
    },
    /// Something the host or its embedder knows.
    Entity {
        kind: &'a str,
        target: &'a Object,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct EditorContext<'a> {
    pub kind: &'a str,
    pub source: Option<&'a str>,
    pub payload: &'a Object,
    pub emitted_at: Option<i64>,
    pub derived_from: Option<usize>,
}

impl Part {
    pub fn from_value(value: Value) -> Result<Self, NotAPart> {
        match value {
            Value::Object(object) if object.get("type").is_some_and(Value::is_string) => {
                Ok(Self(object))
            }
            _ => Err(NotAPart),
        }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::new(json!({"type": "text", "text": text.into()}))
    }

    /// A part that is made here; `value` is an object.
    pub(crate) fn new(value: Value) -> Self {
        match value {
            Value::Object(object) => Self(object),
            _ => unreachable!("parts are made from objects"),
        }
    }

    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or("")
    }

    pub fn object(&self) -> &Object {
        &self.0
    }

    pub fn into_object(self) -> Object {
        self.0
    }

    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The text of the message that represents this part.
    pub fn anchor(&self) -> Option<&str> {
        self.0.get("anchor").and_then(Value::as_str)
    }

    pub fn view(&self) -> View<'_> {
        let known = match self.kind() {
            "text" => self.as_text().map(View::Text),
            "file-ref" => self.as_file_ref().map(View::FileRef),
            "file-attachment" => self.as_attachment().map(View::Attachment),
            "command" => self.as_command().map(View::Command),
            "mention" => self.as_mention().map(View::Mention),
            "editor-context" => self.as_editor_context().map(View::EditorContext),
            _ => None,
        };
        known.unwrap_or(View::Unknown { kind: self.kind(), text: self.string("text") })
    }

    /// Whether a part of a type that we know says what it has to say. A command that was completed has no arguments yet.
    pub(crate) fn is_readable(&self) -> bool {
        let is_bare_command =
            self.kind() == "command" && self.string("id").is_some() && !self.0.contains_key("args");
        match self.view() {
            View::Unknown { kind, .. } => is_bare_command || !KINDS.contains(&kind),
            _ => true,
        }
    }

    fn string(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn derived_from(&self) -> Option<usize> {
        let part = self.0.get("derived_from")?.get("part")?.as_u64()?;
        usize::try_from(part).ok()
    }

    fn as_text(&self) -> Option<Text<'_>> {
        Some(Text {
            text: self.string("text")?,
            intent: self.string("intent"),
            derived_from: self.derived_from(),
        })
    }

    fn as_file_ref(&self) -> Option<FileRef<'_>> {
        let of = self.0.get("ref")?.as_object()?;
        let string = |key: &str| of.get(key).and_then(Value::as_str);
        let location = match string("kind")? {
            "path" => Location::Path(string("path")?),
            "url" => Location::Url(string("url")?),
            "content-id" => Location::ContentId(string("content_id")?),
            _ => return None,
        };
        Some(FileRef {
            location,
            range: range_in(of)?,
            name: string("name"),
            mime: string("mime"),
            size: of.get("size").and_then(Value::as_u64),
        })
    }

    fn as_attachment(&self) -> Option<Attachment<'_>> {
        let body = match (self.0.get("data"), self.0.get("content_id")) {
            (Some(data), _) => Body::Inline(data.as_str()?),
            (None, Some(id)) => Body::Stored(id.as_str()?),
            (None, None) => Body::Absent,
        };
        Some(Attachment {
            name: self.string("name")?,
            mime: self.string("mime")?,
            body,
            size: self.0.get("size").and_then(Value::as_u64),
            path: self.string("path"),
            sniffed_mime: self.string("sniffed_mime"),
        })
    }

    fn as_command(&self) -> Option<Command<'_>> {
        Some(Command {
            id: self.string("id")?,
            args: self.0.get("args")?.as_object()?,
            agent_command: self.string(AGENT_COMMAND),
        })
    }

    fn as_mention(&self) -> Option<Mention<'_>> {
        let of = self.0.get("target")?.as_object()?;
        let string = |key: &str| of.get(key).and_then(Value::as_str);
        let target = match string("kind")? {
            "skill" => MentionTarget::Skill {
                name: string("name")?,
                unresolved: of.get("unresolved") == Some(&Value::Bool(true)),
            },
            "file" => MentionTarget::File { path: string("path")?, range: range_in(of)? },
            "context" => MentionTarget::Context { name: string("name")? },
            kind => MentionTarget::Entity { kind, target: of },
        };
        Some(Mention { target, derived_from: self.derived_from() })
    }

    fn as_editor_context(&self) -> Option<EditorContext<'_>> {
        Some(EditorContext {
            kind: self.string("kind")?,
            source: self.string("source"),
            payload: self.0.get("payload")?.as_object()?,
            // Readers tolerate its absence (C-072).
            emitted_at: self.0.get("emitted_at").and_then(Value::as_i64),
            derived_from: self.derived_from(),
        })
    }
}

/// The range of a reference: absent is fine, one that cannot be read is not. Numbers below zero are read as zero, which
/// is no line either.
#[allow(clippy::option_option)]
fn range_in(of: &Object) -> Option<Option<Range>> {
    let Some(range) = of.get("range") else { return Some(None) };
    let number = |key: &str| {
        let value = range.get(key)?;
        value.as_u64().or_else(|| value.as_i64().and(Some(0)))
    };
    let unit = match range.get("unit").map(Value::as_str) {
        None | Some(Some("line")) => Unit::Line,
        Some(Some("byte")) => Unit::Byte,
        Some(_) => return None,
    };
    Some(Some(Range { unit, start: number("start")?, end: number("end")? }))
}
