//! Blocks of OpenAI's Responses (4.2).

use serde_json::{Value, json};

use super::MediaBody;
use crate::media_type::Class;

pub(super) fn text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

pub(super) fn media(media: &MediaBody<'_>) -> Option<Value> {
    let url = || format!("data:{};base64,{}", media.mime, media.base64);
    match media.class {
        Class::Image => Some(json!({"type": "input_image", "image_url": url(), "detail": "auto"})),
        // Documents of other kinds go this way where the map says that they are taken.
        Class::Pdf | Class::Unknown => {
            Some(json!({"type": "input_file", "filename": media.name, "file_data": url()}))
        }
        Class::Audio => super::openai_chat::audio(media),
        Class::Text | Class::Video => None,
    }
}
