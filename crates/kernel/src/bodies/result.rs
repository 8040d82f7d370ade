//! Results of tools: over a bound in all, what they say becomes content to be read, with a preview before it.
//!
//! While a tool runs its output is replaced whole again and again: then it is only clipped, so that what is kept does
//! not grow with the number of updates. The whole is kept when it is complete.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::{Object, rpc};

use super::{BodyData, UnstoredBody, decoded_len, take_text};

/// Text before the reference to what it is the beginning of.
const PREVIEW_BYTES: usize = 4_096;
/// What a block takes in state at least, and a reference.
const BLOCK_BYTES: usize = 32;
const REFERENCE_BYTES: usize = 192;
/// Beside its body a block says little; one that says more is kept as it is.
const BESIDE_BYTES: usize = 256;

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// Lifts what is too large out of a `ToolCallResult` of more than `bytes_max` in all. Places begin at the result.
pub(crate) fn detach_result(result: &mut Object, bytes_max: usize) -> Vec<UnstoredBody> {
    let content = match result.get_mut("content") {
        Some(Value::Array(content)) => Some(std::mem::take(content)),
        _ => None,
    };
    let (had_content, content) = (content.is_some(), content.unwrap_or_default());
    let beside = result.iter().map(|(field, value)| match field.as_str() {
        "content" | "success" => 0,
        // What the result is called counts only where it is more than that.
        "pastTenseMessage" => json_len(value).saturating_sub(PREVIEW_BYTES),
        _ => json_len(value),
    });
    let total: usize = content.iter().map(weight).chain(beside).sum();
    let mut detached = DetachedResult::default();
    if total <= bytes_max {
        detached.content = content;
    } else {
        detached.take_content(content, bytes_max);
        detached.take_fields(result);
    }
    if had_content || !detached.content.is_empty() {
        result.insert("content".to_owned(), Value::Array(detached.content));
    }
    detached.bodies
}

/// Clips the output of a tool that runs to what is worth showing: how it began, and where it is.
pub(crate) fn clip_content(content: &mut Vec<Value>, bytes_max: usize) {
    if content.iter().map(weight).sum::<usize>() <= bytes_max {
        return; // it is shown whole
    }
    let text = joined_texts(content);
    let mut clipped = Vec::new();
    if text.len() <= 2 * PREVIEW_BYTES {
        clipped.extend((!text.is_empty()).then(|| text_block(&text)));
    } else {
        let begin = beginning(&text);
        let mut end = text.len() - PREVIEW_BYTES;
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let left_out = end - begin.len();
        clipped.push(text_block(begin));
        clipped.push(text_block(&format!(
            "[... {left_out} bytes, kept when the tool is done ...]\n{}",
            &text[end..]
        )));
    }
    // References stay; what is embedded is shown when the tool is done.
    let mut room = bytes_max.saturating_sub(4 * PREVIEW_BYTES);
    for block in std::mem::take(content) {
        let bytes = weight(&block);
        if block["type"] != "text" && bytes <= room.min(PREVIEW_BYTES) {
            room -= bytes;
            clipped.push(block);
        }
    }
    *content = clipped;
}

#[derive(Default)]
struct DetachedResult {
    content: Vec<Value>,
    bodies: Vec<UnstoredBody>,
}

impl DetachedResult {
    fn take_content(&mut self, mut content: Vec<Value>, bytes_max: usize) {
        let texts: usize = content.iter().filter(|block| is_text(block)).map(weight).sum();
        let stays = |block: &Value| {
            let bytes = weight(block);
            if is_text(block) {
                if texts > PREVIEW_BYTES { 0 } else { bytes }
            } else if bytes <= PREVIEW_BYTES {
                bytes
            } else if has_preview(block) {
                PREVIEW_BYTES + REFERENCE_BYTES
            } else {
                REFERENCE_BYTES
            }
        };
        if content.iter().map(stays).sum::<usize>() > bytes_max {
            // So many pieces that even their references are too much: one piece.
            let preview = joined_texts(&content);
            if !preview.is_empty() {
                self.content.push(text_block(beginning(&preview)));
            }
            let whole = Value::Array(content);
            return self.refer(JSON, json_len(&whole), BodyData::text(text_of(&whole)));
        }
        let mut joined = match texts {
            0..=PREVIEW_BYTES => None,
            _ => Some(take_texts(&mut content)),
        };
        for block in content {
            match joined.take_if(|_| is_text(&block)) {
                Some(text) => {
                    self.content.push(text_block(beginning(&text)));
                    self.refer(TEXT, text.len(), BodyData::text(text));
                }
                None if texts > PREVIEW_BYTES && is_text(&block) => {} // joined with the first
                None => self.take_block(block),
            }
        }
    }

    fn take_block(&mut self, mut block: Value) {
        let bytes = weight(&block);
        if is_text(&block) || bytes <= PREVIEW_BYTES {
            return self.content.push(block);
        }
        let has_preview = has_preview(&block);
        let data = if is_embedded(&block) {
            block.as_object_mut().and_then(|fields| take_text(fields, "data"))
        } else {
            None
        };
        let Some(data) = data else {
            return self.refer(JSON, bytes, BodyData::text(text_of(&block)));
        };
        if has_preview && let Some(preview) = preview_of(&data) {
            self.content.push(text_block(&preview));
        }
        let content_type = block["contentType"].as_str().unwrap_or("");
        self.refer(content_type, bytes, BodyData::Base64(Arc::new(data)));
    }

    /// What stands beside the content and may be as large as that.
    fn take_fields(&mut self, result: &mut Object) {
        let known = |field: &str| matches!(field, "content" | "success" | "pastTenseMessage");
        let large: Vec<String> = result
            .iter()
            .filter(|(field, value)| !known(field) && json_len(value) > PREVIEW_BYTES)
            .map(|(field, _)| field.clone())
            .collect();
        for field in &large {
            let Some(value) = result.get(field) else { continue };
            let text = text_of(value);
            let bytes = text.len();
            let message = value["message"].as_str().map(beginning).unwrap_or("");
            let code = value.get("code").filter(|code| json_len(code) <= 256);
            let instead = (field == "error").then(|| match code {
                Some(code) => json!({"message": message, "code": code}),
                None => json!({"message": message}),
            });
            match instead {
                Some(instead) => result.insert(field.to_owned(), instead),
                None => result.shift_remove(field),
            };
            self.refer(JSON, bytes, BodyData::text(text));
        }
        if let Some(message) = result.get_mut("pastTenseMessage") {
            let text = match message {
                Value::Object(fields) => fields.get_mut("markdown"),
                _ => Some(&mut *message),
            };
            if let Some(Value::String(text)) = text
                && text.len() > PREVIEW_BYTES
            {
                text.truncate(beginning(text).len());
                text.push('…');
            }
            if json_len(message) > 2 * PREVIEW_BYTES {
                *message = json!("");
            }
        }
    }

    fn refer(&mut self, content_type: &str, bytes: usize, data: BodyData) {
        let pointer = format!("/content/{}", self.content.len());
        self.bodies.push(UnstoredBody { pointer, data });
        self.content.push(json!({
            "type": "resource", "uri": "", "contentType": content_type, "sizeHint": bytes,
        }));
    }
}

fn is_text(block: &Value) -> bool {
    block["type"] == "text" && block["text"].is_string() && is_plain(block, "text")
}

fn is_embedded(block: &Value) -> bool {
    block["type"] == "embeddedResource" && block["data"].is_string() && is_plain(block, "data")
}

/// Whether everything but its body is small.
fn is_plain(block: &Value, body: &str) -> bool {
    let fields = block.as_object().into_iter().flatten();
    let beside = fields.filter(|(field, _)| *field != body);
    beside.map(|(_, value)| json_len(value)).sum::<usize>() <= BESIDE_BYTES
}

/// Whether what is embedded begins with something to read.
fn has_preview(block: &Value) -> bool {
    let content_type = block["contentType"].as_str();
    is_embedded(block) && content_type.is_some_and(|content_type| content_type.starts_with("text/"))
}

/// The bytes a block brings with it.
fn weight(block: &Value) -> usize {
    match (&block["text"], &block["data"]) {
        (Value::String(text), _) if is_text(block) => text.len().max(BLOCK_BYTES),
        (_, Value::String(data)) if is_embedded(block) => decoded_len(data).max(BLOCK_BYTES),
        _ => json_len(block).max(BLOCK_BYTES),
    }
}

fn json_len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => rpc::to_json(other).len(),
    }
}

fn text_of(value: &Value) -> String {
    value.to_string()
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The first bytes of a text, up to a whole character.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(PREVIEW_BYTES)]
}

fn joined_texts(content: &[Value]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter(|block| is_text(block))
        .filter_map(|block| block["text"].as_str())
        .collect();
    texts.join("\n")
}

/// All text in one: one block, the usual case, is not copied.
fn take_texts(content: &mut [Value]) -> String {
    let mut texts = content
        .iter_mut()
        .filter(|block| is_text(block))
        .filter_map(|block| take_text(block.as_object_mut()?, "text"));
    let mut joined = texts.next().unwrap_or_default();
    for text in texts {
        joined.push('\n');
        joined.push_str(&text);
    }
    joined
}

/// The beginning of embedded text.
fn preview_of(base64: &str) -> Option<String> {
    let enough = base64.get(..PREVIEW_BYTES.div_ceil(3) * 4)?;
    let mut bytes = STANDARD.decode(enough).ok()?;
    if let Err(error) = std::str::from_utf8(&bytes) {
        // Only the last character may be cut in two.
        error.error_len().is_none().then_some(())?;
        bytes.truncate(error.valid_up_to());
    }
    let text = String::from_utf8(bytes).ok()?;
    Some(beginning(&text).to_owned())
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
