//! Fields of a step: read with their location, so that what is wrong can be found.

use serde_json::Value;

use super::super::number::Number;
use super::super::script::{ScriptError, at, list, object, only_keys};
use wire::Object;

pub(super) fn text(value: &Value, location: &str) -> Result<String, ScriptError> {
    value.as_str().map(str::to_owned).ok_or_else(|| at(location, "must be a string"))
}

pub(super) fn texts(value: &Value, location: &str) -> Result<Vec<String>, ScriptError> {
    each(value, location, text)
}

pub(super) fn number(value: &Value, location: &str) -> Result<Number, ScriptError> {
    Number::parse(value).map_err(|what| at(location, what))
}

pub(super) fn flag(value: &Value, location: &str) -> Result<bool, ScriptError> {
    value.as_bool().ok_or_else(|| at(location, "must be true or false"))
}

pub(super) fn only_true(value: &Value, location: &str) -> Result<(), ScriptError> {
    match value {
        Value::Bool(true) => Ok(()),
        _ => Err(at(location, "must be true")),
    }
}

/// A name that is shown or looked up: not empty.
pub(super) fn name(value: &Value, location: &str) -> Result<String, ScriptError> {
    match text(value, location) {
        Ok(name) if name.trim().is_empty() => Err(at(location, "must not be empty")),
        read => read,
    }
}

/// One of the words that stand there.
pub(super) fn one_of<T: Copy>(
    value: &Value,
    location: &str,
    words: &[(&str, T)],
) -> Result<T, ScriptError> {
    let known = words.iter().find(|(word, _)| value.as_str() == Some(word));
    known.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        at(location, format!("must be one of {}", words.join(", ")))
    })
}

/// Every item of a list, read at its own location.
pub(super) fn each<T>(
    value: &Value,
    location: &str,
    read: impl Fn(&Value, &str) -> Result<T, ScriptError>,
) -> Result<Vec<T>, ScriptError> {
    let items = list(Some(value), location)?.iter().enumerate();
    items.map(|(n, item)| read(item, &format!("{location}[{n}]"))).collect()
}

/// The fields of an object, each read at its own location.
pub(super) struct StepFields<'a> {
    pub(super) object: &'a Object,
    pub(super) location: &'a str,
}

impl<'a> StepFields<'a> {
    /// The fields of an object that may have these keys and no others.
    pub(super) fn of(
        value: &'a Value,
        location: &'a str,
        keys: &[&str],
    ) -> Result<Self, ScriptError> {
        let object = object(value, location)?;
        only_keys(object, location, keys)?;
        Ok(Self { object, location })
    }

    pub(super) fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value, &str) -> Result<T, ScriptError>,
    ) -> Result<Option<T>, ScriptError> {
        let location = self.at(key);
        let value = self.object.get(key);
        value.map(|value| read(value, &location)).transpose()
    }

    pub(super) fn required<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value, &str) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        self.optional(key, read)?.ok_or_else(|| at(&self.at(key), "is missing"))
    }

    pub(super) fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.location)
    }
}
