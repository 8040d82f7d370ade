//! What was resolved, in a form that can be kept: a small object, and the body apart from it (C-021).

use std::sync::Arc;

use serde_json::{Value, json};
use wire::Object;

use super::{Resolved, WhyOmitted, WhyUnavailable};
use crate::part::{Range, Unit};

/// What is kept of something resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    pub about: Object,
    /// The text or the picture.
    pub body: Option<Vec<u8>>,
}

impl Resolved {
    pub fn freeze(&self) -> Frozen {
        let (about, body) = match self {
            Self::Text {
                text,
                label,
                range,
                size,
                mime,
            } => (
                json!({"is": "text", "label": label, "range": range.map(of_range), "size": size, "mime": mime}),
                Some(text.clone().into_bytes()),
            ),
            Self::Media { mime, bytes, size } => (
                json!({"is": "media", "mime": mime, "size": size}),
                Some(bytes.to_vec()),
            ),
            Self::Omitted { why, size, mime } => (
                json!({"is": "omitted", "why": why.as_str(), "size": size, "mime": mime}),
                None,
            ),
            Self::Unavailable { why, lines } => (
                json!({"is": "unavailable", "why": why.as_str(), "lines": lines}),
                None,
            ),
        };
        let about = match about {
            Value::Object(about) => about,
            _ => Object::new(),
        };
        Frozen { about, body }
    }

    /// What was frozen; `None` if it is not what [`freeze`](Self::freeze) gave.
    pub fn thaw(frozen: Frozen) -> Option<Self> {
        let Frozen { about, body } = frozen;
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
            "media" => Self::Media {
                mime: owned("mime")?,
                bytes: Arc::from(body?),
                size: number("size")?,
            },
            "omitted" => Self::Omitted {
                why: WhyOmitted::named(string("why")?)?,
                size: number("size")?,
                mime: owned("mime")?,
            },
            "unavailable" => Self::Unavailable {
                why: WhyUnavailable::named(string("why")?)?,
                lines: number("lines"),
            },
            _ => return None,
        })
    }
}

impl WhyOmitted {
    fn named(name: &str) -> Option<Self> {
        [Self::TooLarge, Self::Binary]
            .into_iter()
            .find(|why| why.as_str() == name)
    }
}

impl WhyUnavailable {
    fn named(name: &str) -> Option<Self> {
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
    Some(Range {
        unit,
        start: value.get("start")?.as_u64()?,
        end: value.get("end")?.as_u64()?,
    })
}
