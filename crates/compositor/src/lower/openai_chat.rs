//! Blocks of OpenAI's Chat Completions, and of the many that speak like it (4.3).

use serde_json::{Value, json};

use super::MediaBody;
use crate::media_type::Class;

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn media(media: &MediaBody<'_>) -> Option<Value> {
    let url = || format!("data:{};base64,{}", media.mime, media.base64);
    match media.class {
        Class::Image => Some(json!({"type": "image_url", "image_url": {"url": url()}})),
        Class::Pdf => {
            Some(json!({"type": "file", "file": {"filename": media.name, "file_data": url()}}))
        }
        Class::Audio => audio(media),
        Class::Text | Class::Video | Class::Unknown => None,
    }
}

/// There are names for two formats only.
pub(super) fn audio(media: &MediaBody<'_>) -> Option<Value> {
    let format = match media.mime {
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mp3" | "audio/mpeg" => "mp3",
        _ => return None,
    };
    Some(json!({"type": "input_audio", "input_audio": {"data": media.base64, "format": format}}))
}
