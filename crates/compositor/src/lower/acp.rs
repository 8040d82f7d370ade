//! Content blocks of the Agent Client Protocol (4.5): the other side is an agent, which reads files itself.

use serde_json::{Value, json};

use super::MediaBody;
use crate::media_type::Class;

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn media(media: &MediaBody<'_>) -> Option<Value> {
    let (mime, data) = (media.mime, media.base64);
    Some(match media.class {
        Class::Image => json!({"type": "image", "mimeType": mime, "data": data}),
        Class::Audio => json!({"type": "audio", "mimeType": mime, "data": data}),
        Class::Pdf | Class::Video | Class::Unknown => {
            let resource = json!({"uri": (media.uri)(), "mimeType": mime, "blob": data});
            json!({"type": "resource", "resource": resource})
        }
        Class::Text => return None,
    })
}

/// A file of the workspace.
pub(super) fn link(uri: &str, name: &str, mime: &str, size: u64) -> Value {
    json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": mime, "size": size})
}

/// Some lines of a file.
pub(super) fn lines(uri: &str, mime: &str, text: &str) -> Value {
    let resource = json!({"uri": uri, "mimeType": mime, "text": text});
    json!({"type": "resource", "resource": resource})
}
