//! Reducers: one file per channel kind. Pure, total, constant time for streamed text.
//!
//! Held equal to the published reducers by a property test over generated sequences (tests/reducers.rs). An action
//! that lacks what it needs does nothing: the published types would not have read it (H-078).

mod annotations;
mod changeset;
mod chat;
mod customization;
mod input_request;
mod pending_message;
mod root;
mod session;
mod terminal;
mod tool_call;
mod turn;

use std::ops::BitOr;
use std::sync::Arc;

use serde_json::Value;

use crate::action::{ActionKind, with_action_table};
use crate::state::{
    AnnotationsState, ChangesetState, ChatState, ConfigState, PlainState, ResourceWatchState,
    RootState, SessionState, TerminalState, status,
};
use crate::{Action, Object};

/// What an action did to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduced {
    /// The state is another one now.
    Changed,
    /// The state is what it was: an unknown id, a stale event, a value that was already there.
    Unchanged,
}

/// Two changes of one action: changed if either did.
impl BitOr for Reduced {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unchanged, Self::Unchanged) => Self::Unchanged,
            (Self::Changed, _) | (_, Self::Changed) => Self::Changed,
        }
    }
}

/// One function per channel: its actions go to the reducers that the table names.
macro_rules! define_reducers {
    (
        $(channel $channel:ident: $actions:ident, $reduce:ident($state:ident) {
            $($kind:ident $name:literal $sender:ident $(($action:ident))? $since:ident $record:ident
                $reducer:path $(, message $field:literal)?;)*
        } extensions {
            $($x_kind:ident $x_name:literal $x_sender:ident($x_action:ident) $x_since:ident $x_record:ident
                $x_reducer:path;)*
        })*
        others $others:tt
    ) => {
        $(
            /// Applies an action to the state of its channel. What belongs on another kind of channel changes nothing.
            pub fn $reduce(state: &mut $state, action: &Action) -> Reduced {
                match action.kind {
                    $(ActionKind::$kind => $reducer(state, action),)*
                    $(ActionKind::$x_kind => $x_reducer(state, action),)*
                    _ => Reduced::Unchanged,
                }
            }
        )*
    };
}

with_action_table!(define_reducers);

/// Applies an action to the state of a channel that is its state and nothing else. What others share of it stays as it is.
pub fn reduce_plain(state: &mut PlainState, action: &Action) -> Reduced {
    match state {
        PlainState::Changeset(state) => reduce_changeset(Arc::make_mut(state), action),
        PlainState::Annotations(state) => reduce_annotations(Arc::make_mut(state), action),
        PlainState::Terminal(state) => reduce_terminal(Arc::make_mut(state), action),
        PlainState::ResourceWatch(state) => reduce_resource_watch(Arc::make_mut(state), action),
    }
}

/// For an action that the host acts on and that is not part of any state.
fn leave_unchanged<T>(_: &mut T, _: &Action) -> Reduced {
    Reduced::Unchanged
}

/// Sets a value and says whether it was another before.
fn set<T: PartialEq>(current: &mut T, value: T) -> Reduced {
    if *current == value {
        return Reduced::Unchanged;
    }
    *current = value;
    Reduced::Changed
}

/// Sets or clears one flag of a status.
fn set_flag(status: &mut u32, flag: u32, on: Option<bool>) -> Reduced {
    match on {
        Some(on) => set(status, status::with_flag(*status, flag, on)),
        None => Reduced::Unchanged,
    }
}

/// Sets an optional field of an object, or removes it.
fn set_field(object: &mut Object, field: &str, value: Option<&Value>) -> Reduced {
    match value {
        Some(value) if object.get(field) == Some(value) => Reduced::Unchanged,
        Some(value) => {
            object.insert(field.to_owned(), value.clone());
            Reduced::Changed
        }
        None => match object.shift_remove(field) {
            Some(_) => Reduced::Changed,
            None => Reduced::Unchanged,
        },
    }
}

/// A field whose JSON `null` means the same as its absence.
fn present<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null())
}

/// The text of an optional field that an action sets or clears.
fn optional_text(action: &Action, field: &str) -> Option<String> {
    action.text(field).map(str::to_owned)
}

/// Replaces the first entry whose `key` is the same, at the same index, or appends.
fn upsert(list: &mut Vec<Value>, key: &str, entry: &Value) -> Reduced {
    match list.iter_mut().find(|old| old.get(key) == entry.get(key)) {
        Some(old) => set(old, entry.clone()),
        None => {
            list.push(entry.clone());
            Reduced::Changed
        }
    }
}

/// Removes the first entry whose `key` is `id`.
fn remove_entry(list: &mut Vec<Value>, key: &str, id: &str) -> Reduced {
    let position = list.iter().position(|entry| entry.get(key).and_then(Value::as_str) == Some(id));
    match position {
        Some(position) => {
            list.remove(position);
            Reduced::Changed
        }
        None => Reduced::Unchanged,
    }
}

fn add_directory(directories: &mut Option<Vec<String>>, action: &Action) -> Reduced {
    let Some(directory) = action.text("directory") else { return Reduced::Unchanged };
    let list = directories.get_or_insert_default();
    if list.iter().any(|known| known == directory) {
        return Reduced::Unchanged;
    }
    list.push(directory.to_owned());
    Reduced::Changed
}

/// Removes a directory; the list stays when it was the last (H-146: empty is not the same as absent).
fn remove_directory(directories: &mut Option<Vec<String>>, action: &Action) -> Reduced {
    let directory = action.text("directory");
    let Some(list) = directories else { return Reduced::Unchanged };
    match list.iter().position(|known| Some(known.as_str()) == directory) {
        Some(position) => {
            list.remove(position);
            Reduced::Changed
        }
        None => Reduced::Unchanged,
    }
}

/// Merges or replaces configuration values; without a published configuration there is nothing to change (H-096).
fn configure(config: &mut Option<ConfigState>, action: &Action) -> Reduced {
    let (Some(config), Some(Value::Object(values))) = (config, action.get("config")) else {
        return Reduced::Unchanged;
    };
    if action.flag("replace") == Some(true) {
        return set(&mut config.values, values.clone());
    }
    values.iter().fold(Reduced::Unchanged, |reduced, (key, value)| {
        reduced | set_field(&mut config.values, key, Some(value))
    })
}
