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
        let missing = |field| StateError { what: "a turn", field };
        let fields = value.as_object().ok_or_else(|| missing("(object)"))?;
        let text = |field| fields.get(field).and_then(Value::as_str);
        let id = text("id").ok_or_else(|| missing("id"))?.to_owned();
        let parts = fields
            .get("responseParts")
            .and_then(Value::as_array)
            .ok_or_else(|| missing("responseParts"))?;
        let outcome = match text("state") {
            Some("complete") => Outcome::Complete,
            Some("cancelled") => Outcome::Cancelled,
            Some("error") => {
                let last = parts.last().filter(|part| part["kind"] == "error");
                Outcome::Error { resumable: last.is_some_and(|part| part["resumable"] == true) }
            }
            _ => return Err(missing("state")),
        };
        Ok(Self { id, outcome, json: Bytes::from(to_json(value)) })
    }

    /// The whole turn; null if its bytes are not JSON, which only a damaged journal can cause.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// A turn from this size on is sent from where it lies; copying smaller ones into one text costs less than sending many.
const SHARED_BYTES_MIN: usize = 4_096;

/// The completed turns a chat holds in memory, oldest first, with the pieces of their JSON made at most once.
#[derive(Debug, Default)]
pub struct TurnList {
    items: Vec<Arc<Turn>>,
    pieces: OnceLock<Vec<Bytes>>,
}

impl Clone for TurnList {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), pieces: OnceLock::new() }
    }
}

impl PartialEq for TurnList {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl TurnList {
    pub fn new(items: Vec<Arc<Turn>>) -> Self {
        Self { items, pieces: OnceLock::new() }
    }

    pub fn as_slice(&self) -> &[Arc<Turn>] {
        &self.items
    }

    /// The list, to be changed; the pieces are made again when they are needed.
    pub fn items_mut(&mut self) -> &mut Vec<Arc<Turn>> {
        self.pieces = OnceLock::new();
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

    /// The JSON of the turns from `first` on, separated by commas, without brackets, in pieces to be sent one after the
    /// other. Those of all turns are made once and shared by every snapshot.
    pub fn pieces_from(&self, first: usize) -> Vec<Bytes> {
        match first {
            0 => self.pieces.get_or_init(|| pieces_of(&self.items)).clone(),
            first => pieces_of(self.items.get(first..).unwrap_or(&[])),
        }
    }
}

/// Large turns as they are; small ones, and the commas, copied together.
fn pieces_of(turns: &[Arc<Turn>]) -> Vec<Bytes> {
    let is_small = |turn: &&Arc<Turn>| turn.json.len() < SHARED_BYTES_MIN;
    let small = turns.iter().filter(is_small).map(|turn| turn.json.len());
    let mut copied = BytesMut::with_capacity(small.sum::<usize>() + turns.len());
    let mut pieces = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        if index > 0 {
            copied.extend_from_slice(b",");
        }
        if is_small(&turn) {
            copied.extend_from_slice(&turn.json);
            continue;
        }
        if !copied.is_empty() {
            pieces.push(copied.split().freeze());
        }
        pieces.push(turn.json.clone());
    }
    if !copied.is_empty() {
        pieces.push(copied.freeze());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: usize, bytes: usize) -> Arc<Turn> {
        Arc::new(Turn {
            id: format!("t{number}"),
            outcome: Outcome::Complete,
            json: Bytes::from(number.to_string().repeat(bytes)),
        })
    }

    #[test]
    fn large_turns_are_shared_and_small_ones_joined() {
        let (large, small) = (SHARED_BYTES_MIN, 3);
        let sizes = [small, small, large, large, small, large];
        let turns: Vec<_> =
            sizes.iter().enumerate().map(|(number, bytes)| turn(number, *bytes)).collect();
        let list = TurnList::new(turns.clone());
        for first in 0..=sizes.len() {
            let texts = turns[first..].iter().map(|turn| turn.json.to_vec());
            let expected = texts.collect::<Vec<_>>().join(&b","[..]);
            assert_eq!(list.pieces_from(first).concat(), expected, "from {first}");
        }
        let pieces = list.pieces_from(0);
        for shared in [2, 3, 5] {
            let at = |piece: &Bytes| piece.as_ptr() == turns[shared].json.as_ptr();
            assert!(pieces.iter().any(at), "turn {shared} was copied");
        }
        assert_eq!(pieces.len(), 6);
        assert!(TurnList::default().pieces_from(0).is_empty());
    }
}
