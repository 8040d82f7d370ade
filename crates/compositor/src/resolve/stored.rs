//! A resolved reference as it is stored: a small object, and its body apart from it (C-021).

use std::sync::Arc;

use serde_json::{Value, json};
use wire::Object;

use super::{Resolved, WhyOmitted, WhyUnavailable};
use crate::part::{Range, Unit};

/// A resolved reference, ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResolution {
    pub about: Object,
    /// The text or the image.
    pub body: Option<Vec<u8>>,
}

impl Resolved {
    pub fn to_stored(&self) -> StoredResolution {
        let (about, body) = match self {
            Self::Text { text, label, range, size, mime } => (
                json!({"is": "text", "label": label, "range": range.map(of_range), "size": size, "mime": mime}),
                Some(text.clone().into_bytes()),
            ),
            Self::Media { mime, bytes, size } => {
                (json!({"is": "media", "mime": mime, "size": size}), Some(bytes.to_vec()))
            }
            Self::Omitted { why, size, mime } => {
                (json!({"is": "omitted", "why": why.as_str(), "size": size, "mime": mime}), None)
            }
            Self::Unavailable { why, lines } => {
                (json!({"is": "unavailable", "why": why.as_str(), "lines": lines}), None)
            }
        };
        let about = match about {
            Value::Object(about) => about,
            _ => unreachable!("each variant is written as an object"),
        };
        StoredResolution { about, body }
    }

    /// Reads what [`to_stored`](Self::to_stored) gave; `None` for anything else.
    pub fn from_stored(stored: StoredResolution) -> Option<Self> {
        let StoredResolution { about, body } = stored;
        let string = |key: &str| about.get(key).and_then(Value::as_str);
        let number = |key: &str| about.get(key).and_then(Value::as_u64);
        let owned = |key: &str| string(key).map(str::to_owned);
        Some(match string("is")? {
            "text" => Self::Text {
                text: String::from_utf8(body?).ok()?,
                label: owned("label")?,
                range: match about.get("range")? {
                    Value::Null => None,
                    range => Some(to_range(range)?),
                },
                size: number("size")?,
                mime: owned("mime")?,
            },
            "media" => {
                Self::Media { mime: owned("mime")?, bytes: Arc::from(body?), size: number("size")? }
            }
            "omitted" => Self::Omitted {
                why: WhyOmitted::from_name(string("why")?)?,
                size: number("size")?,
                mime: owned("mime")?,
            },
            "unavailable" => Self::Unavailable {
                why: WhyUnavailable::from_name(string("why")?)?,
                lines: number("lines"),
            },
            _ => return None,
        })
    }
}

impl WhyOmitted {
    fn from_name(name: &str) -> Option<Self> {
        [Self::TooLarge, Self::Binary].into_iter().find(|why| why.as_str() == name)
    }
}

impl WhyUnavailable {
    fn from_name(name: &str) -> Option<Self> {
        [
            Self::OutsideWorkspace,
            Self::NotFound,
            Self::InvalidPath,
            Self::InvalidRange,
            Self::RangeOutOfBounds,
        ]
        .into_iter()
        .find(|why| why.as_str() == name)
    }
}

fn of_range(range: Range) -> Value {
    let unit = match range.unit {
        Unit::Line => "line",
        Unit::Byte => "byte",
    };
    json!({"unit": unit, "start": range.start, "end": range.end})
}

fn to_range(value: &Value) -> Option<Range> {
    let unit = match value.get("unit")?.as_str()? {
        "line" => Unit::Line,
        "byte" => Unit::Byte,
        _ => return None,
    };
    Some(Range { unit, start: value.get("start")?.as_u64()?, end: value.get("end")?.as_u64()? })
}
