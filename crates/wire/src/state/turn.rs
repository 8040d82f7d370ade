//! Completed turns: immutable, shared, and stored as the bytes that every snapshot sends.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::StateError;
use crate::rpc::to_json;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Complete,
    Cancelled,
    /// Ended by `chat/error`; `resumable` as its last part says (H-176).
    Error {
        resumable: bool,
    },
}

impl Outcome {
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cancelled => "cancelled",
            Self::Error { .. } => "error",
        }
    }

    /// A small number for a column of the journal.
    pub fn to_code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Cancelled => 1,
            Self::Error { resumable: false } => 2,
            Self::Error { resumable: true } => 3,
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Complete),
            1 => Some(Self::Cancelled),
            2 => Some(Self::Error { resumable: false }),
            3 => Some(Self::Error { resumable: true }),
            _ => None,
        }
    }
}

/// One completed turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub id: String,
    pub outcome: Outcome,
    /// The whole turn as JSON.
    pub json: Bytes,
}

impl Turn {
    /// A turn from its JSON object.
    pub fn from_value(value: &Value) -> Result<Self, StateError> {
        // Read in place: a turn may hold megabytes, and its JSON is all that is stored of it.
        let missing = |field| StateError {
            what: "a turn",
            field,
        };
        let fields = value.as_object().ok_or_else(|| missing("(object)"))?;
        let text = |field| fields.get(field).and_then(Value::as_str);
        let id = text("id").ok_or_else(|| missing("id"))?.to_owned();
        let parts = fields.get("responseParts").and_then(Value::as_array);
        let parts = parts.ok_or_else(|| missing("responseParts"))?;
        let outcome = match text("state") {
            Some("complete") => Outcome::Complete,
            Some("cancelled") => Outcome::Cancelled,
            Some("error") => {
                let last = parts.last().filter(|part| part["kind"] == "error");
                Outcome::Error {
                    resumable: last.is_some_and(|part| part["resumable"] == true),
                }
            }
            _ => return Err(missing("state")),
        };
        Ok(Self {
            id,
            outcome,
            json: Bytes::from(to_json(value)),
        })
    }

    /// The whole turn; null if its bytes are not JSON, which only a damaged journal can cause.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// The completed turns a chat holds in memory, oldest first, with their joined JSON made at most once.
#[derive(Debug, Default)]
pub struct TurnList {
    items: Vec<Arc<Turn>>,
    joined: OnceLock<Bytes>,
}

impl Clone for TurnList {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            joined: OnceLock::new(),
        }
    }
}

impl PartialEq for TurnList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl TurnList {
    pub fn new(items: Vec<Arc<Turn>>) -> Self {
        Self {
            items,
            joined: OnceLock::new(),
        }
    }

    pub fn as_slice(&self) -> &[Arc<Turn>] {
        &self.items
    }

    /// The list, to be changed; the joined JSON is made again when it is needed.
    pub fn items_mut(&mut self) -> &mut Vec<Arc<Turn>> {
        self.joined = OnceLock::new();
        &mut self.items
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn last(&self) -> Option<&Arc<Turn>> {
        self.items.last()
    }

    pub fn position(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|turn| turn.id == id)
    }

    /// The JSON of all turns, separated by commas, without brackets: made once and shared by every snapshot.
    pub fn joined(&self) -> Bytes {
        self.joined.get_or_init(|| join(&self.items)).clone()
    }

    /// The same for the turns from `first` on.
    pub fn joined_from(&self, first: usize) -> Bytes {
        if first == 0 {
            self.joined()
        } else {
            join(self.items.get(first..).unwrap_or(&[]))
        }
    }
}

fn join(turns: &[Arc<Turn>]) -> Bytes {
    if let [only] = turns {
        return only.json.clone();
    }
    let mut joined = BytesMut::with_capacity(turns.iter().map(|turn| turn.json.len() + 1).sum());
    for (index, turn) in turns.iter().enumerate() {
        if index > 0 {
            joined.extend_from_slice(b",");
        }
        joined.extend_from_slice(&turn.json);
    }
    joined.freeze()
}
