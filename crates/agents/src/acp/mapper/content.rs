//! Blocks of content in the protocol's shapes.
//!
//! Promises: what cannot be shown is described; nothing is fetched.

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::acp::label::label;

/// A body that is shown by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct MappedMedia {
    pub(in super::super) content_type: String,
    pub(in super::super) body: Vec<u8>,
}

pub(super) enum MappedBlock {
    Text(String),
    Media(MappedMedia),
}

/// A block of a message.
pub(super) fn read_block(block: acp::ContentBlock) -> MappedBlock {
    match block {
        acp::ContentBlock::Text(text) => MappedBlock::Text(text.text),
        acp::ContentBlock::Image(image) => read_media(&image.data, &image.mime_type),
        acp::ContentBlock::Audio(audio) => read_media(&audio.data, &audio.mime_type),
        acp::ContentBlock::ResourceLink(link) => MappedBlock::Text(to_markdown_link(&link)),
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => {
                MappedBlock::Text(text.text)
            }
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => {
                let content_type = blob.mime_type.as_deref();
                read_media(&blob.blob, content_type.unwrap_or("application/octet-stream"))
            }
            _ => MappedBlock::Text("[content of a kind that greenroom does not know]".to_owned()),
        },
        _ => MappedBlock::Text("[content of a kind that greenroom does not know]".to_owned()),
    }
}

fn read_media(data: &str, content_type: &str) -> MappedBlock {
    let content_type = label(content_type, 100);
    match STANDARD.decode(data) {
        Ok(body) => MappedBlock::Media(MappedMedia { content_type, body }),
        Err(_) => MappedBlock::Text(format!("[{content_type} that cannot be read]")),
    }
}

fn to_markdown_link(link: &acp::ResourceLink) -> String {
    let name = label(link.title.as_ref().unwrap_or(&link.name), 200)
        .replace('\\', "\\\\")
        .replace('[', "\\[")
        .replace(']', "\\]");
    let uri: String = link.uri.chars().filter(|c| !c.is_control()).collect();
    let uri = uri.replace('<', "%3C").replace('>', "%3E").replace(' ', "%20");
    format!("[{name}](<{uri}>)")
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A block of a call's content, as `ToolResultContent`.
pub(super) fn to_tool_block(block: &acp::ContentBlock) -> Value {
    let embedded = |data: &str, content_type: &str| json!({"type": "embeddedResource", "data": data, "contentType": label(content_type, 100)});
    match block {
        acp::ContentBlock::Text(text) => text_block(&text.text),
        acp::ContentBlock::Image(image) => embedded(&image.data, &image.mime_type),
        acp::ContentBlock::Audio(audio) => embedded(&audio.data, &audio.mime_type),
        acp::ContentBlock::ResourceLink(link) => text_block(&to_markdown_link(link)),
        acp::ContentBlock::Resource(resource) => match &resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => text_block(&text.text),
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => {
                let content_type = blob.mime_type.as_deref();
                embedded(&blob.blob, content_type.unwrap_or("application/octet-stream"))
            }
            _ => text_block("[content of a kind that greenroom does not know]"),
        },
        _ => text_block("[content of a kind that greenroom does not know]"),
    }
}
