//! Parts of Google's Gemini (4.4).

use serde_json::{Value, json};

use super::MediaBody;
use crate::media_type::Class;

pub(super) fn text(text: &str) -> Value {
    json!({"text": text})
}

pub(super) fn media(media: &MediaBody<'_>) -> Option<Value> {
    match media.class {
        Class::Image | Class::Pdf | Class::Audio | Class::Video => {
            Some(json!({"inlineData": {"mimeType": media.mime, "data": media.base64}}))
        }
        Class::Text | Class::Unknown => None,
    }
}
