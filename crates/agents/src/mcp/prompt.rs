//! What a prompt of a server becomes: a text (MC-12).
//!
//! Promises: bounded; what the server puts into the mouth of the model is quoted, so that it is not taken for the user's.
//! Must not know: where the text goes.

use rmcp::model::{PromptMessage, Role};

use super::content::McpContent;
use super::error::McpError;

/// The longest text.
const PROMPT_BYTES_MAX: usize = 256 * 1_024;

/// The messages of a prompt as one text.
pub(super) fn to_text(messages: Vec<PromptMessage>) -> Result<String, McpError> {
    let mut texts = Vec::new();
    let mut bytes = 0;
    for message in messages {
        let text = describe(McpContent::read(message.content));
        let text = match message.role {
            Role::User => text,
            Role::Assistant => quote(&text),
        };
        bytes += text.len();
        if bytes > PROMPT_BYTES_MAX {
            return Err(McpError::PromptTooLarge(PROMPT_BYTES_MAX));
        }
        texts.push(text);
    }
    Ok(texts.join("\n\n"))
}

fn describe(content: McpContent) -> String {
    match content {
        McpContent::Text(text) => text,
        McpContent::Document { uri, text, .. } => format!("[{uri}]\n{text}"),
        McpContent::Link { uri, name, .. } => format!("[resource {name}, {uri}]"),
        McpContent::Media { data, mime_type, .. } => format!("[{mime_type}, {} bytes]", data.len()),
        McpContent::Unreadable(why) => format!("[{why}]"),
    }
}

fn quote(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_joined_the_models_words_are_quoted_and_much_is_refused() {
        let user = PromptMessage::new_text(Role::User, "Review it");
        let model = PromptMessage::new_text(Role::Assistant, "I will.\nGladly.");
        let text = to_text(vec![user, model]).unwrap();
        assert_eq!(text, "Review it\n\n> I will.\n> Gladly.");
        let large = PromptMessage::new_text(Role::User, "x".repeat(PROMPT_BYTES_MAX + 1));
        let refused = Err(McpError::PromptTooLarge(PROMPT_BYTES_MAX));
        assert_eq!(to_text(vec![large]), refused);
    }
}
