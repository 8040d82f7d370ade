//! A model's input, parsed strictly: unknown fields are refused, and the error lists the known ones.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use workspace::IgnoreMode;

use super::ToolError;

pub(super) fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, ToolError> {
    if !input.is_object() {
        return Err(ToolError("the input must be a JSON object".to_owned()));
    }
    T::deserialize(input).map_err(|error| ToolError(format!("the input does not fit: {error}")))
}

/// The field `include_ignored`.
pub(super) fn ignore_mode(include_ignored: Option<bool>) -> IgnoreMode {
    match include_ignored {
        Some(true) => IgnoreMode::Disregard,
        Some(false) | None => IgnoreMode::Apply,
    }
}

/// A list of texts; models also send a single one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "OneOrMany")]
pub(super) struct Texts(pub(super) Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    None,
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Texts {
    fn from(texts: OneOrMany) -> Self {
        Self(match texts {
            OneOrMany::None => Vec::new(),
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        })
    }
}
