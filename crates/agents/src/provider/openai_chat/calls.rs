//! The calls of one answer, put together from pieces that do not always say where they belong.
//!
//! Promises: calls are numbered from 0 in the order they begin; every one has an id of its own; pieces of one call keep
//! their order.

use super::super::ProviderErrorKind::Unreadable;
use super::super::{ModelEvent, ProviderError, ToolUse};
use super::chunk::CallPiece;
use serde_json::Value;

/// More calls than this in one answer are no answer.
const CALLS_MAX: usize = 128;

pub(super) struct Calls {
    /// Of ids that are made here.
    prefix: String,
    calls: Vec<PartialCall>,
}

#[derive(Default)]
struct PartialCall {
    wire_index: Option<u64>,
    wire_id: Option<String>,
    id: String,
    /// Empty until it is known; the call begins then.
    name: String,
    input: String,
    /// What the server wants back with it.
    extra: Option<Value>,
}

impl Calls {
    pub(super) fn naming(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), calls: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn take(
        &mut self,
        piece: CallPiece,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let (index, is_repeated) = match self.index_of(&piece) {
            Some(index) => (index, self.calls[index].is_repeated_by(&piece)),
            None => (self.open(&piece)?, false),
        };
        let call = &mut self.calls[index];
        call.extra = piece.extra.or(call.extra.take());
        if is_repeated {
            return Ok(());
        }
        if call.wire_id.is_none() {
            call.wire_id = piece.id;
        }
        call.input.push_str(&piece.input);
        let mut news = piece.input;
        if call.name.is_empty() {
            let Some(name) = piece.name else {
                return Ok(()); // announced when its name comes
            };
            call.name.clone_from(&name);
            let id = call.id.clone();
            events.push(ModelEvent::CallStarted { index, id, name });
            news.clone_from(&call.input);
        }
        if !news.is_empty() {
            events.push(ModelEvent::CallInput { index, text: news });
        }
        Ok(())
    }

    /// Calls that never got a name begin after all, so that whoever answers them can say so.
    pub(super) fn start_nameless(&mut self, events: &mut Vec<ModelEvent>) {
        for (index, call) in self.calls.iter().enumerate() {
            if call.name.is_empty() {
                let (id, name) = (call.id.clone(), String::new());
                events.push(ModelEvent::CallStarted { index, id, name });
                if !call.input.is_empty() {
                    let text = call.input.clone();
                    events.push(ModelEvent::CallInput { index, text });
                }
            }
        }
    }

    /// The calls as they were made, and what the server wants back with each.
    pub(super) fn take_all(&mut self) -> (Vec<ToolUse>, Vec<Option<Value>>) {
        let calls = std::mem::take(&mut self.calls).into_iter();
        calls
            .map(|call| {
                let PartialCall { id, name, input, .. } = call;
                (ToolUse { id, name, input }, call.extra)
            })
            .unzip()
    }

    /// The call a piece goes on with, or none if it begins one.
    fn index_of(&self, piece: &CallPiece) -> Option<usize> {
        let last_where = |is_it: &dyn Fn(&PartialCall) -> bool| self.calls.iter().rposition(is_it);
        if let Some(index) = piece.index {
            // Servers that give all calls the same index begin another one by a name.
            return last_where(&|call| call.wire_index == Some(index))
                .filter(|index| !self.calls[*index].is_followed_by(piece));
        }
        let same_id = || {
            let id = piece.id.as_ref()?;
            last_where(&|call| call.wire_id.as_ref() == Some(id))
        };
        match (same_id(), &piece.name) {
            (Some(index), _) => Some(index),
            (None, Some(_)) => None,
            (None, None) => self.calls.len().checked_sub(1),
        }
    }

    fn open(&mut self, piece: &CallPiece) -> Result<usize, ProviderError> {
        let index = self.calls.len();
        if index == CALLS_MAX {
            let message = format!("the model makes more than {CALLS_MAX} calls at once");
            return Err(ProviderError::new(Unreadable, message));
        }
        let free = |id: &&String| self.calls.iter().all(|call| call.id != **id);
        let id = match piece.id.as_ref().filter(free) {
            Some(id) => id.clone(),
            None => format!("call_{}_{index}", self.prefix),
        };
        self.calls.push(PartialCall {
            wire_index: piece.index,
            wire_id: piece.id.clone(),
            id,
            ..PartialCall::default()
        });
        Ok(index)
    }
}

impl PartialCall {
    /// Whether a piece with the same index is another call: it has a name, and either another id or nothing to add to
    /// here.
    fn is_followed_by(&self, piece: &CallPiece) -> bool {
        if piece.name.is_none() || self.name.is_empty() {
            return false;
        }
        match (&self.wire_id, &piece.id) {
            (Some(ours), Some(other)) => ours != other,
            (Some(_), None) | (None, Some(_)) | (None, None) => {
                !piece.input.is_empty() && self.is_complete() && !self.is_repeated_by(piece)
            }
        }
    }

    /// Some servers send a call in pieces and then once more as a whole.
    fn is_repeated_by(&self, piece: &CallPiece) -> bool {
        piece.name.as_ref() == Some(&self.name)
            && piece.input == self.input
            && (piece.id.is_none() || piece.id == self.wire_id)
            && self.is_complete()
    }

    fn is_complete(&self) -> bool {
        serde_json::from_str::<serde_json::Map<_, _>>(&self.input).is_ok()
    }
}
