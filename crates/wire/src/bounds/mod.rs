//! Bounds of what a peer sends: how large each field may be, and how many entries it may have (G-43).
//!
//! `table.rs` says which bound each field has; the numbers are settings and come from the caller. A field that the table does
//! not name shares one bound with all others that it does not name, so no field is without.
//!
//! Promises: nothing is copied; what is over a bound is named by its path, with the bound.
//! Must not know: the numbers, what follows from a value that is too large.

mod table;

use std::fmt;

use serde_json::Value;

use crate::action::ActionKind;
use crate::content;
use crate::methods::Method;
use crate::{Object, action};

/// A bound, named like its setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    FieldBytes,
    IdBytes,
    UriBytes,
    TitleBytes,
    MessageBytes,
    Attachments,
    ContentRefs,
    ToolOutputBytes,
    ActiveClientBytes,
    ClientTools,
    TransformSections,
    Answers,
    AnswersBytes,
    Subscriptions,
    WorkingDirectories,
    ProtocolVersions,
    SelectionBytes,
    Chats,
    TurnBytes,
    AnnotationEntries,
    AnnotationBytes,
    ReviewedFiles,
}

impl Bound {
    pub const ALL: &[Self] = &[
        Self::FieldBytes,
        Self::IdBytes,
        Self::UriBytes,
        Self::TitleBytes,
        Self::MessageBytes,
        Self::Attachments,
        Self::ContentRefs,
        Self::ToolOutputBytes,
        Self::ActiveClientBytes,
        Self::ClientTools,
        Self::TransformSections,
        Self::Answers,
        Self::AnswersBytes,
        Self::Subscriptions,
        Self::WorkingDirectories,
        Self::ProtocolVersions,
        Self::SelectionBytes,
        Self::Chats,
        Self::TurnBytes,
        Self::AnnotationEntries,
        Self::AnnotationBytes,
        Self::ReviewedFiles,
    ];

    /// The key of the setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::FieldBytes => "field_bytes_max",
            Self::IdBytes => "id_bytes_max",
            Self::UriBytes => "uri_bytes_max",
            Self::TitleBytes => "title_bytes_max",
            Self::MessageBytes => "message_bytes_max",
            Self::Attachments => "attachments_max",
            Self::ContentRefs => "content_refs_max",
            Self::ToolOutputBytes => "tool_output_bytes_max",
            Self::ActiveClientBytes => "active_client_bytes_max",
            Self::ClientTools => "client_tools_max",
            Self::TransformSections => "transform_sections_max",
            Self::Answers => "answers_max",
            Self::AnswersBytes => "answers_bytes_max",
            Self::Subscriptions => "subscriptions_max",
            Self::WorkingDirectories => "working_directories_max",
            Self::ProtocolVersions => "protocol_versions_max",
            Self::SelectionBytes => "selection_bytes_max",
            Self::Chats => "chats_max",
            Self::TurnBytes => "turn_bytes_max",
            Self::AnnotationEntries => "annotation_entries_max",
            Self::AnnotationBytes => "annotation_bytes_max",
            Self::ReviewedFiles => "reviewed_files_max",
        }
    }
}

/// What is too large or too many, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct OverBound {
    /// Like `activeClient.tools`; empty for the whole.
    path: String,
    counts: Counts,
    bound: Bound,
    most: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Bytes,
    /// Of the fields that have no bound of their own, together.
    OtherBytes,
    Entries,
    References,
}

impl OverBound {
    fn inside(mut self, step: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for OverBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, most, setting) = (&self.path, self.most, self.bound.name());
        match (self.counts, path.as_str()) {
            (Counts::Bytes, "") => write!(f, "it has at most {most} bytes ({setting})"),
            (Counts::Bytes, _) => write!(f, "`{path}` has at most {most} bytes ({setting})"),
            (Counts::OtherBytes, "") => {
                write!(f, "its other fields have at most {most} bytes ({setting})")
            }
            (Counts::OtherBytes, _) => {
                write!(f, "other fields of `{path}` have at most {most} bytes ({setting})")
            }
            (Counts::Entries, _) => write!(f, "`{path}` has at most {most} entries ({setting})"),
            (Counts::References, _) => {
                write!(f, "it names content at most {most} times ({setting})")
            }
        }
    }
}

/// How a value is bounded.
#[derive(Debug)]
enum FieldBound {
    /// All of it together.
    Bytes(Bound),
    /// Fields with bounds of their own; the others together have `rest`. `whole` bounds all of it.
    Fields { whole: Option<Bound>, rest: Bound, fields: &'static [(&'static str, FieldBound)] },
    /// Entries of an array or an object: how many, and each of them.
    Entries { most: Bound, each: &'static FieldBound },
    /// Base64 that is moved out of state: the frame it came in bounds it. Counts nothing.
    Body,
}

/// What a value takes, about.
pub fn bytes_of(value: &Value) -> usize {
    let mut walk = BoundsCheck { limit: &|_| usize::MAX, references: 0 };
    walk.size_of(value)
}

/// Checks the fields of a client's action, whatever its kind.
pub fn check_action(
    kind: ActionKind,
    action: &Object,
    limit: impl Fn(Bound) -> usize,
) -> Result<(), OverBound> {
    check(table::of_action(kind), action, &limit)
}

/// Checks the params of a request.
pub fn check_params(
    method: Method,
    params: &Value,
    limit: impl Fn(Bound) -> usize,
) -> Result<(), OverBound> {
    match params {
        Value::Object(params) => check(table::of_params(method), params, &limit),
        // Whatever is no object is refused by its decoder, unread.
        _ => Ok(()),
    }
}

/// Checks the state of a session that is imported.
pub fn check_imported_session(
    session: &Object,
    limit: impl Fn(Bound) -> usize,
) -> Result<(), OverBound> {
    check(&table::IMPORTED_SESSION, session, &limit)
}

/// Checks a turn that is imported.
pub fn check_imported_turn(turn: &Object, limit: impl Fn(Bound) -> usize) -> Result<(), OverBound> {
    check(&table::IMPORTED_TURN, turn, &limit)
}

fn check(
    shape: &FieldBound,
    object: &Object,
    limit: &dyn Fn(Bound) -> usize,
) -> Result<(), OverBound> {
    let mut walk = BoundsCheck { limit, references: 0 };
    match shape {
        FieldBound::Fields { whole, rest, fields } => walk.fields(object, *whole, *rest, fields),
        FieldBound::Bytes(_) | FieldBound::Entries { .. } | FieldBound::Body => {
            unreachable!("an action and params are objects with fields")
        }
    }?;
    if walk.references > limit(Bound::ContentRefs) {
        Err(walk.over(Counts::References, Bound::ContentRefs))
    } else {
        Ok(())
    }
}

/// One walk through a value.
struct BoundsCheck<'a> {
    limit: &'a dyn Fn(Bound) -> usize,
    /// Content that was named so far.
    references: usize,
}

impl BoundsCheck<'_> {
    fn over(&self, counts: Counts, bound: Bound) -> OverBound {
        OverBound { path: String::new(), counts, bound, most: (self.limit)(bound) }
    }

    /// The bytes of a value without its bodies, if it is within its bounds.
    fn value(&mut self, value: &Value, shape: &FieldBound) -> Result<usize, OverBound> {
        match (shape, value) {
            (FieldBound::Body, Value::String(_)) => Ok(0),
            (FieldBound::Fields { whole, rest, fields }, Value::Object(object)) => {
                self.fields(object, *whole, *rest, fields)
            }
            (FieldBound::Entries { most, each }, Value::Array(items)) => {
                self.count(items.len(), *most)?;
                let mut bytes = 0;
                for (index, item) in items.iter().enumerate() {
                    let item = self.value(item, each);
                    bytes += 1 + item.map_err(|over| over.inside(&format!("[{index}]")))?;
                }
                Ok(bytes)
            }
            (FieldBound::Entries { most, each }, Value::Object(entries)) => {
                self.count(entries.len(), *most)?;
                let mut bytes = 0;
                for (index, (key, value)) in entries.iter().enumerate() {
                    let value = self.value(value, each);
                    // By number: the key is the peer's own text.
                    bytes +=
                        key.len() + value.map_err(|over| over.inside(&format!("[{index}]")))?;
                }
                Ok(bytes)
            }
            (FieldBound::Bytes(bound), _) => {
                let bytes = self.size_of(value);
                self.within(bytes, Counts::Bytes, *bound)
            }
            // Not of the type that it should be: its decoder refuses it, and it must not be large before that.
            (FieldBound::Body | FieldBound::Fields { .. } | FieldBound::Entries { .. }, _) => {
                let bytes = self.size_of(value);
                self.within(bytes, Counts::Bytes, Bound::FieldBytes)
            }
        }
    }

    fn fields(
        &mut self,
        object: &Object,
        whole: Option<Bound>,
        rest: Bound,
        fields: &[(&'static str, FieldBound)],
    ) -> Result<usize, OverBound> {
        let (mut bytes, mut others) = (0, 0);
        for (name, value) in object {
            match fields.iter().find(|(known, _)| known == name) {
                Some((known, shape)) => {
                    let value = self.value(value, shape);
                    bytes += known.len() + value.map_err(|over| over.inside(known))?;
                }
                None => others += name.len() + self.size_of(value),
            }
        }
        self.within(others, Counts::OtherBytes, rest)?;
        match whole {
            Some(whole) => self.within(bytes + others, Counts::Bytes, whole),
            None => Ok(bytes + others),
        }
    }

    fn count(&self, entries: usize, most: Bound) -> Result<(), OverBound> {
        if entries > (self.limit)(most) { Err(self.over(Counts::Entries, most)) } else { Ok(()) }
    }

    fn within(&self, bytes: usize, counts: Counts, bound: Bound) -> Result<usize, OverBound> {
        if bytes > (self.limit)(bound) { Err(self.over(counts, bound)) } else { Ok(bytes) }
    }

    /// What a value takes, about: a text exactly, without quotes.
    fn size_of(&mut self, value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 4,
            Value::String(text) => {
                self.references += content::count_in(text);
                text.len()
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| 1 + self.size_of(item));
                2 + items.sum::<usize>()
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| key.len() + 4 + self.size_of(value));
                2 + fields.sum::<usize>()
            }
        }
    }
}

/// What an abridged copy keeps of a text, and of a list.
const ABRIDGED_TEXT_BYTES: usize = 256;
const ABRIDGED_ENTRIES: usize = 32;
/// What it keeps in all.
const ABRIDGED_BYTES: usize = 16 * 1_024;

/// A copy of an action that was too large, for its sender to recognise it by: long texts and lists are cut, its shape stays.
pub fn abridge(action: &Object) -> Object {
    let mut left = ABRIDGED_BYTES;
    let mut abridged = abridge_fields(action, &mut left);
    if let Some(kind) = action.get(action::TYPE_FIELD) {
        // Without its type it would be no action.
        let mut room = ABRIDGED_BYTES;
        let kind = abridge_value(kind, &mut room);
        abridged.insert(action::TYPE_FIELD.to_owned(), kind);
    }
    abridged
}

fn abridge_fields(fields: &Object, left: &mut usize) -> Object {
    let mut kept = Object::new();
    for (key, value) in fields.iter().take(ABRIDGED_ENTRIES) {
        if key.len() > ABRIDGED_TEXT_BYTES || *left <= key.len() {
            continue; // a name that nobody knows, or no room
        }
        *left -= key.len();
        kept.insert(key.clone(), abridge_value(value, left));
    }
    kept
}

fn abridge_value(value: &Value, left: &mut usize) -> Value {
    *left = left.saturating_sub(8);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => {
            let most = ABRIDGED_TEXT_BYTES.min(*left);
            let kept = &text[..text.floor_char_boundary(most)];
            *left -= kept.len();
            Value::String(kept.to_owned())
        }
        Value::Array(items) => {
            let mut kept = Vec::new();
            for item in items.iter().take(ABRIDGED_ENTRIES) {
                if *left == 0 {
                    break; // no room for more
                }
                kept.push(abridge_value(item, left));
            }
            Value::Array(kept)
        }
        Value::Object(fields) => Value::Object(abridge_fields(fields, left)),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
