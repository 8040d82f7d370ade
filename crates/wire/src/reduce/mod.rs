//! Reducers: one file per channel kind. Pure, total, constant time for streamed text.
//!
//! Held equal to the published reducers by a property test over generated sequences (tests/reducers.rs). An action
//! that lacks what it needs does nothing: the published types would not have read it (H-078).

mod chat;
mod customization;
mod input_request;
mod root;
mod session;
mod tool_call;
mod turn;

pub use chat::reduce_chat;
pub use root::reduce_root;
pub use session::reduce_session;

use std::ops::BitOr;

use serde_json::Value;

use crate::state::ConfigState;
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

/// Puts a value into its place and says whether another one was there.
fn put<T: PartialEq>(place: &mut T, value: T) -> Reduced {
    if *place == value {
        return Reduced::Unchanged;
    }
    *place = value;
    Reduced::Changed
}

/// Sets an optional field of an object, or takes it away.
fn put_field(object: &mut Object, field: &str, value: Option<&Value>) -> Reduced {
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

/// Replaces the first entry whose `key` is the same, keeping its place, or appends.
fn upsert(list: &mut Vec<Value>, key: &str, entry: &Value) -> Reduced {
    match list.iter_mut().find(|old| old.get(key) == entry.get(key)) {
        Some(old) => put(old, entry.clone()),
        None => {
            list.push(entry.clone());
            Reduced::Changed
        }
    }
}

/// Takes away the first entry whose `key` is `id`.
fn remove_entry(list: &mut Vec<Value>, key: &str, id: &str) -> Reduced {
    let position = list
        .iter()
        .position(|entry| entry.get(key).and_then(Value::as_str) == Some(id));
    match position {
        Some(position) => {
            list.remove(position);
            Reduced::Changed
        }
        None => Reduced::Unchanged,
    }
}

fn add_directory(directories: &mut Option<Vec<String>>, action: &Action) -> Reduced {
    let Some(directory) = action.text("directory") else {
        return Reduced::Unchanged;
    };
    let list = directories.get_or_insert_default();
    if list.iter().any(|known| known == directory) {
        return Reduced::Unchanged;
    }
    list.push(directory.to_owned());
    Reduced::Changed
}

/// Takes a directory away; the list stays when it was the last (H-146: empty is not the same as absent).
fn remove_directory(directories: &mut Option<Vec<String>>, action: &Action) -> Reduced {
    let directory = action.text("directory");
    let Some(list) = directories else {
        return Reduced::Unchanged;
    };
    match list
        .iter()
        .position(|known| Some(known.as_str()) == directory)
    {
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
        return put(&mut config.values, values.clone());
    }
    values
        .iter()
        .fold(Reduced::Unchanged, |reduced, (key, value)| {
            reduced | put_field(&mut config.values, key, Some(value))
        })
}
