//! What a call returns, apart from the shapes of the library that reads it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpResult {
    pub content: Vec<McpContent>,
    pub structured: Option<Value>,
    pub is_error: bool,
}

/// A piece of it.
#[derive(Debug, Clone, PartialEq)]
pub enum McpContent {
    Text(String),
    /// An image, a sound, or an embedded file.
    Media {
        data: Vec<u8>,
        mime_type: String,
        uri: Option<String>,
    },
    /// An embedded text.
    Document {
        uri: String,
        mime_type: Option<String>,
        text: String,
    },
    /// Something that can be read from the server.
    Link {
        uri: String,
        name: String,
        description: Option<String>,
        mime_type: Option<String>,
    },
    /// Nothing that can be shown, and why.
    Unreadable(String),
}

impl McpResult {
    pub(super) fn read(result: CallToolResult) -> Self {
        Self {
            content: result.content.into_iter().map(McpContent::read).collect(),
            structured: result.structured_content,
            is_error: result.is_error == Some(true),
        }
    }
}

impl McpContent {
    pub(super) fn read(block: ContentBlock) -> Self {
        match block {
            ContentBlock::Text(text) => Self::Text(text.text),
            ContentBlock::Image(image) => decode(&image.data, image.mime_type, None),
            ContentBlock::Audio(audio) => decode(&audio.data, audio.mime_type, None),
            ContentBlock::ResourceLink(link) => Self::Link {
                uri: link.uri,
                name: link.title.unwrap_or(link.name),
                description: link.description,
                mime_type: link.mime_type,
            },
            ContentBlock::Resource(embedded) => Self::read_resource(embedded.resource),
            _ => Self::Unreadable("content of a kind that greenroom does not know".to_owned()),
        }
    }

    pub(super) fn read_resource(resource: ResourceContents) -> Self {
        match resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Self::Document { uri, mime_type, text }
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                decode(&blob, mime_type, Some(uri))
            }
            _ => Self::Unreadable("a resource of a kind that greenroom does not know".to_owned()),
        }
    }
}

fn decode(data: &str, mime_type: String, uri: Option<String>) -> McpContent {
    match BASE64_STANDARD.decode(data) {
        Ok(data) => McpContent::Media { data, mime_type, uri },
        Err(_) => McpContent::Unreadable(format!("{mime_type} that is not valid base64")),
    }
}
