//! Blocks of Anthropic's Messages (4.1).

use serde_json::{Value, json};

use super::MediaBody;
use crate::media_type::Class;

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn media(media: &MediaBody<'_>) -> Option<Value> {
    let source = json!({"type": "base64", "media_type": media.mime, "data": media.base64});
    match media.class {
        Class::Image => Some(json!({"type": "image", "source": source})),
        Class::Pdf => Some(json!({"type": "document", "source": source, "title": media.name})),
        Class::Text | Class::Audio | Class::Video | Class::Unknown => None,
    }
}
