//! What the encoders of all wire formats have in common.
//!
//! Promises: an input of the history is always a JSON object, for servers refuse a conversation in which one is not.
//! Must not know: any wire format.

use serde_json::{Map, Value, json};

use super::{ModelMessage, ModelRequest, ToolUse};

/// The input of a call as an object. What a model wrote that is none goes as a text in one.
pub(super) fn input_object(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(input) => Value::Object(input),
        Err(_) => json!({"not_json": text}),
    }
}

/// The call that a result belongs to.
pub(super) fn call_of<'a>(request: &'a ModelRequest, id: &str) -> Option<&'a ToolUse> {
    let calls = request.messages.iter().rev().filter_map(|message| match message {
        ModelMessage::Assistant { calls, .. } => Some(calls),
        ModelMessage::User(_) | ModelMessage::ToolResult { .. } => None,
    });
    calls.flatten().find(|call| call.id == id)
}

/// Lays the user's settings over a body: `null` takes a field away; `reserved` ones belong to the request itself.
pub(super) fn apply_settings(
    body: &mut Map<String, Value>,
    settings: &wire::Object,
    reserved: &[&str],
) {
    for (name, value) in settings {
        if reserved.contains(&name.as_str()) {
            continue;
        }
        match value {
            Value::Null => body.shift_remove(name),
            value => body.insert(name.clone(), value.clone()),
        };
    }
}

/// The blocks of a content: a text is one of them. Empty texts say nothing, and servers refuse them.
pub(super) fn blocks_of(content: &Value, text_block: impl Fn(&str) -> Value) -> Vec<Value> {
    match content {
        Value::String(text) if text.trim().is_empty() => Vec::new(),
        Value::String(text) => vec![text_block(text)],
        Value::Array(blocks) => {
            let says_something = |block: &&Value| {
                let text = block["text"].as_str();
                text.is_none_or(|text| !text.trim().is_empty())
            };
            blocks.iter().filter(says_something).cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a block is a text that says nothing. Models write such a one before a call, and their own servers refuse it later.
pub(super) fn is_blank_text(block: &Value) -> bool {
    let text = block["text"].as_str();
    block["type"] == "text" && text.is_some_and(|text| text.trim().is_empty())
}

/// Adds blocks to a list of messages in which roles take turns: what one role says in a row is one message.
pub(super) fn push_blocks(
    messages: &mut Vec<Value>,
    role: &str,
    field: &str,
    blocks: impl IntoIterator<Item = Value>,
) {
    let mut blocks: Vec<Value> = blocks.into_iter().collect();
    if blocks.is_empty() {
        return; // servers refuse a message without content
    }
    if let Some(last) = messages.last_mut()
        && last["role"] == role
        && let Some(there) = last[field].as_array_mut()
    {
        there.append(&mut blocks);
        return;
    }
    messages.push(json!({"role": role, field: blocks}));
}

/// A link to a source, as Markdown. Neither text can end it early.
pub(super) fn link(title: Option<&str>, url: &str) -> Option<String> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if !is_web || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return None; // nothing that people could open
    }
    let url = url.replace('(', "%28").replace(')', "%29").replace('<', "%3C").replace('>', "%3E");
    let title: String = title
        .map(str::trim)
        .filter(|title| !title.is_empty())
        .unwrap_or(&url)
        .chars()
        .take(TITLE_CHARS_MAX)
        .collect();
    let title = title.replace(['[', ']', '\\', '`', '<', '>'], " ");
    let title = super::error_body::one_line(&title);
    Some(format!(" ([{title}]({url}))"))
}

/// The longest title of a source.
const TITLE_CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_the_history_are_always_objects() {
        for (written, sent) in [
            ("{\"a\": 1}", json!({"a": 1})),
            ("", json!({})),
            (" \n", json!({})),
            ("{\"a\":", json!({"not_json": "{\"a\":"})),
            ("[1]", json!({"not_json": "[1]"})),
        ] {
            assert_eq!(input_object(written), sent);
        }
    }

    #[test]
    fn links_are_what_they_seem() {
        let made = link(Some("A [page]"), "https://a.example/x_(y)");
        assert_eq!(made.unwrap(), " ([A page](https://a.example/x_%28y%29))");
        assert_eq!(link(None, "javascript:alert(1)"), None);
        assert_eq!(link(None, "https://a.example/\nb"), None);
        let bare = link(Some(" "), "https://a.example");
        assert_eq!(bare.unwrap(), " ([https://a.example](https://a.example))");
    }

    #[test]
    fn roles_take_turns() {
        let mut messages = Vec::new();
        push_blocks(&mut messages, "user", "content", [json!(1)]);
        push_blocks(&mut messages, "user", "content", [json!(2)]);
        push_blocks(&mut messages, "assistant", "content", []);
        push_blocks(&mut messages, "assistant", "content", [json!(3)]);
        assert_eq!(
            Value::Array(messages),
            json!([{"role": "user", "content": [1, 2]}, {"role": "assistant", "content": [3]}])
        );
    }
}
