//! The state of channels, as ours: unknown fields survive, maps keep their order, completed turns are shared bytes.
//!
//! Fields the reducers do not reason about live in `extra`, known to the protocol or not. The published structs drop
//! unknown fields, randomise maps and cannot share turns (ADR 0001).

mod annotations;
mod changeset;
mod chat;
mod plain;
mod resource_watch;
mod root;
mod session;
mod terminal;
mod turn;

pub use annotations::{Annotation, AnnotationEntry, AnnotationsState};
pub use changeset::ChangesetState;
pub use chat::{ActiveTurn, ChatState, PartList, PendingMessage, ResponsePart};
pub use plain::PlainState;
pub use resource_watch::ResourceWatchState;
pub use root::{ConfigState, RootState};
pub use session::{ChatSummary, SessionState};
pub use terminal::{TerminalPart, TerminalState};
pub use turn::{Outcome, Turn, TurnList};

use serde_json::Value;

use crate::Object;

/// Bits of the `status` field (H-178): 0 to 4 say what happens, 5 and up are flags of their own.
pub mod status {
    pub const IDLE: u32 = 1;
    pub const ERROR: u32 = 2;
    pub const IN_PROGRESS: u32 = 8;
    pub const INPUT_NEEDED: u32 = 24;
    pub const IS_READ: u32 = 32;
    pub const IS_ARCHIVED: u32 = 64;
    /// The bits of which exactly one value is set at a time.
    pub const ACTIVITY_MASK: u32 = 0b1_1111;

    pub fn with_activity(status: u32, activity: u32) -> u32 {
        (status & !ACTIVITY_MASK) | activity
    }

    pub fn with_flag(status: u32, flag: u32, on: bool) -> u32 {
        if on { status | flag } else { status & !flag }
    }
}

/// A JSON value that is not the state it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} has no usable `{field}`")]
pub struct StateError {
    pub what: &'static str,
    pub field: &'static str,
}

/// Takes fields out of an object one by one; what is left is `extra`.
pub(crate) struct Fields {
    what: &'static str,
    rest: Object,
}

impl Fields {
    pub(crate) fn of(what: &'static str, value: Value) -> Result<Self, StateError> {
        match value {
            Value::Object(rest) => Ok(Self { what, rest }),
            _ => Err(StateError { what, field: "(object)" }),
        }
    }

    pub(crate) fn missing(&self, field: &'static str) -> StateError {
        StateError { what: self.what, field }
    }

    pub(crate) fn take(&mut self, field: &'static str) -> Option<Value> {
        self.rest.shift_remove(field)
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<String, StateError> {
        self.optional_text(field).ok_or_else(|| self.missing(field))
    }

    pub(crate) fn optional_text(&mut self, field: &'static str) -> Option<String> {
        match self.take(field) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn status(&mut self) -> Result<u32, StateError> {
        self.take("status")
            .and_then(|v| v.as_u64())
            .and_then(|bits| u32::try_from(bits).ok())
            .ok_or_else(|| self.missing("status"))
    }

    pub(crate) fn list(&mut self, field: &'static str) -> Option<Vec<Value>> {
        match self.take(field) {
            Some(Value::Array(items)) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn texts(&mut self, field: &'static str) -> Option<Vec<String>> {
        let items = self.list(field)?;
        Some(items.into_iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
    }

    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, StateError> {
        match self.take(field) {
            Some(Value::Bool(flag)) => Ok(flag),
            _ => Err(self.missing(field)),
        }
    }

    /// A field whose JSON `null` means the same as its absence.
    pub(crate) fn present(&mut self, field: &'static str) -> Option<Value> {
        self.take(field).filter(|value| !value.is_null())
    }

    pub(crate) fn rest(self) -> Object {
        self.rest
    }
}
