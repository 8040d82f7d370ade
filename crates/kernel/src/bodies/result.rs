//! Results of tools: over a bound in all, what they say becomes content to be read, with a preview before it.
//!
//! While a tool runs its output is replaced whole again and again: then it is only clipped, so that what is kept does
//! not grow with the number of updates. The whole is kept when it is complete.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::{Object, rpc};

use super::{Body, Data, decoded_len, take_text};

/// Text before the reference to what it is the beginning of.
const PREVIEW_BYTES: usize = 4_096;
/// What a block takes in state at least, and a reference.
const BLOCK_BYTES: usize = 32;
const REFERENCE_BYTES: usize = 192;

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// Lifts what is too large out of a `ToolCallResult` of more than `bytes_max` in all. Places begin at the result.
pub(crate) fn lift_result(result: &mut Object, bytes_max: usize) -> Vec<Body> {
    let content = match result.get_mut("content") {
        Some(Value::Array(content)) => Some(std::mem::take(content)),
        _ => None,
    };
    let (had_content, content) = (content.is_some(), content.unwrap_or_default());
    let beside = ["structuredContent", "error"];
    let beside = beside.map(|field| result.get(field).map_or(0, json_len));
    // What the result is called counts only where it is more than that.
    let title = result.get("pastTenseMessage").map_or(0, json_len);
    let title = title.saturating_sub(PREVIEW_BYTES);
    let total = content.iter().map(weight).chain(beside).sum::<usize>() + title;
    let mut lifted = Lifted::default();
    if total <= bytes_max {
        lifted.content = content;
    } else {
        lifted.take_content(content, bytes_max);
        lifted.take_fields(result);
    }
    if had_content || !lifted.content.is_empty() {
        result.insert("content".to_owned(), Value::Array(lifted.content));
    }
    lifted.bodies
}

/// Clips the output of a tool that runs to what is worth showing: how it began, and where it is.
pub(crate) fn clip_content(content: &mut Vec<Value>, bytes_max: usize) {
    if content.iter().map(weight).sum::<usize>() <= bytes_max {
        return;
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
struct Lifted {
    content: Vec<Value>,
    bodies: Vec<Body>,
}

impl Lifted {
    fn take_content(&mut self, mut content: Vec<Value>, bytes_max: usize) {
        let texts: usize = content
            .iter()
            .filter(|block| is_text(block))
            .map(weight)
            .sum();
        let stays = |block: &Value| {
            let bytes = weight(block);
            match is_text(block) {
                true if texts > PREVIEW_BYTES => 0,
                false if bytes > PREVIEW_BYTES => REFERENCE_BYTES,
                _ => bytes,
            }
        };
        if content.iter().map(stays).sum::<usize>() > bytes_max {
            // So many pieces that even their references are too much: one piece.
            let preview = joined_texts(&content);
            if !preview.is_empty() {
                self.content.push(text_block(beginning(&preview)));
            }
            let whole = Value::Array(content);
            return self.refer(JSON, json_len(&whole), Data::Text(text_of(&whole)));
        }
        let mut joined = match texts {
            0..=PREVIEW_BYTES => None,
            _ => Some(take_texts(&mut content)),
        };
        for block in content {
            match joined.take_if(|_| is_text(&block)) {
                Some(text) => {
                    self.content.push(text_block(beginning(&text)));
                    self.refer(TEXT, text.len(), Data::Text(text));
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
        let data = block.as_object_mut().and_then(|fields| {
            let embedded = fields
                .get("type")
                .is_some_and(|kind| kind == "embeddedResource");
            embedded.then(|| take_text(fields, "data"))?
        });
        let Some(data) = data else {
            return self.refer(JSON, bytes, Data::Text(text_of(&block)));
        };
        let content_type = block["contentType"].as_str().unwrap_or("").to_owned();
        if content_type.starts_with("text/")
            && let Some(preview) = preview_of(&data)
        {
            self.content.push(text_block(&preview));
        }
        self.refer(&content_type, bytes, Data::Base64(Arc::new(data)));
    }

    /// What stands beside the content and may be as large as that.
    fn take_fields(&mut self, result: &mut Object) {
        for field in ["structuredContent", "error"] {
            let Some(value) = result
                .get(field)
                .filter(|value| json_len(value) > PREVIEW_BYTES)
            else {
                continue;
            };
            let (bytes, text) = (json_len(value), text_of(value));
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
            self.refer(JSON, bytes, Data::Text(text));
        }
        if let Some(message) = result.get_mut("pastTenseMessage") {
            let text = match message {
                Value::Object(fields) => fields.get_mut("markdown"),
                other => Some(other),
            };
            if let Some(Value::String(text)) = text
                && text.len() > PREVIEW_BYTES
            {
                text.truncate(beginning(text).len());
                text.push('…');
            }
        }
    }

    fn refer(&mut self, content_type: &str, bytes: usize, data: Data) {
        let place = format!("/content/{}", self.content.len());
        self.bodies.push(Body { place, data });
        self.content.push(json!({
            "type": "resource", "uri": "", "contentType": content_type, "sizeHint": bytes,
        }));
    }
}

fn is_text(block: &Value) -> bool {
    block["type"] == "text" && block["text"].is_string()
}

/// The bytes a block brings with it.
fn weight(block: &Value) -> usize {
    match (block["type"].as_str(), &block["text"], &block["data"]) {
        (Some("text"), Value::String(text), _) => text.len().max(BLOCK_BYTES),
        (Some("embeddedResource"), _, Value::String(data)) => decoded_len(data).max(BLOCK_BYTES),
        _ => json_len(block),
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
    let texts = content.iter().filter(|block| is_text(block));
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// All text in one: one block, the usual case, is not copied.
fn take_texts(content: &mut [Value]) -> String {
    let texts = content.iter_mut().filter(|block| is_text(block));
    let mut texts = texts.filter_map(|block| take_text(block.as_object_mut()?, "text"));
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
mod tests {
    use super::*;

    const MAX: usize = 65_536;

    fn text(length: usize) -> Value {
        text_block(&"x".repeat(length))
    }

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            other => panic!("{other}"),
        }
    }

    fn result_of(content: Value) -> Object {
        object(json!({"success": true, "pastTenseMessage": "Ran it", "content": content}))
    }

    /// What is in state afterwards, large texts told by their length.
    fn shape(content: &Value) -> Vec<String> {
        let blocks = content.as_array().unwrap().iter();
        let told = |block: &Value| match block["type"].as_str().unwrap() {
            "text" => format!("text {}", block["text"].as_str().unwrap().len()),
            "resource" => format!("{} {}", block["contentType"], block["sizeHint"]),
            other => other.to_owned(),
        };
        blocks.map(told).collect()
    }

    fn bytes_of(body: &Body) -> Vec<u8> {
        match &body.data {
            Data::Text(text) => text.clone().into_bytes(),
            Data::Base64(data) => STANDARD.decode(&**data).unwrap(),
        }
    }

    // G-32
    #[test]
    fn a_result_stays_up_to_the_bound_and_goes_above_it() {
        let mut result = result_of(json!([text(MAX)]));
        let before = result.clone();
        assert_eq!(lift_result(&mut result, MAX), []);
        assert_eq!(result, before);
        let mut result = result_of(json!([text(MAX + 1)]));
        let bodies = lift_result(&mut result, MAX);
        assert_eq!(
            shape(&result["content"]),
            ["text 4096", "\"text/plain\" 65537"]
        );
        assert_eq!(bodies[0].place, "/content/1");
        assert_eq!(bytes_of(&bodies[0]), vec![b'x'; MAX + 1]);
        assert_eq!(
            (&result["success"], &result["pastTenseMessage"]),
            (&json!(true), &json!("Ran it"))
        );
    }

    #[test]
    fn a_preview_ends_with_a_whole_character() {
        let mut result = result_of(json!([text_block(&format!("a{}", "é".repeat(MAX)))]));
        lift_result(&mut result, MAX);
        assert_eq!(shape(&result["content"])[0], "text 4095");
    }

    #[test]
    fn texts_go_together_and_embedded_ones_by_themselves() {
        let image = STANDARD.encode(vec![0; 50_000]);
        let page = STANDARD.encode("é".repeat(9_000));
        let mut result = result_of(json!([
            text(40_000),
            {"type": "embeddedResource", "data": image, "contentType": "image/png"},
            text(30_000),
            {"type": "embeddedResource", "data": page, "contentType": "text/html"},
            {"type": "embeddedResource", "data": "AAAA", "contentType": "image/gif"},
            {"type": "resource", "uri": "file:///x"},
        ]));
        let bodies = lift_result(&mut result, MAX);
        assert_eq!(
            shape(&result["content"]),
            [
                "text 4096",
                "\"text/plain\" 70001",
                "\"image/png\" 50000",
                "text 4096",
                "\"text/html\" 18000",
                "embeddedResource",
                "null null",
            ]
        );
        let places: Vec<&str> = bodies.iter().map(|body| body.place.as_str()).collect();
        assert_eq!(places, ["/content/1", "/content/2", "/content/4"]);
        let lengths: Vec<usize> = bodies.iter().map(|body| bytes_of(body).len()).collect();
        assert_eq!(lengths, [70_001, 50_000, 18_000]);
    }

    #[test]
    fn short_texts_stay_beside_what_goes() {
        let image = STANDARD.encode(vec![0; 100_000]);
        let image = json!({"type": "embeddedResource", "data": image, "contentType": "image/png"});
        let mut result = result_of(json!([text(100), image, text(200)]));
        lift_result(&mut result, MAX);
        let expected = ["text 100", "\"image/png\" 100000", "text 200"];
        assert_eq!(shape(&result["content"]), expected);
    }

    #[test]
    fn what_stands_beside_the_content_goes_too() {
        let mut result = object(json!({
            "success": false,
            "pastTenseMessage": {"markdown": "m".repeat(10_000)},
            "structuredContent": {"rows": "r".repeat(100_000)},
            "error": {"message": "e".repeat(10_000), "code": "x"},
        }));
        let bodies = lift_result(&mut result, MAX);
        assert_eq!(
            shape(&result["content"]),
            ["\"application/json\" 100011", "\"application/json\" 10025"]
        );
        assert!(!result.contains_key("structuredContent"));
        assert_eq!(
            result["error"],
            json!({"message": "e".repeat(4_096), "code": "x"})
        );
        assert_eq!(
            result["pastTenseMessage"]["markdown"]
                .as_str()
                .unwrap()
                .len(),
            4_099
        );
        let whole: Value = serde_json::from_slice(&bytes_of(&bodies[0])).unwrap();
        assert_eq!(whole["rows"].as_str().unwrap().len(), 100_000);
    }

    #[test]
    fn many_small_pieces_become_one() {
        let piece =
            json!({"type": "embeddedResource", "data": "A".repeat(400), "contentType": "x/y"});
        let mut pieces = vec![text(3_000), text(0)];
        pieces.extend(std::iter::repeat_n(piece, 1_000));
        let whole = Value::Array(pieces);
        let mut result = result_of(whole.clone());
        let bodies = lift_result(&mut result, MAX);
        assert_eq!(result["content"].as_array().unwrap().len(), 2);
        assert_eq!(shape(&result["content"])[0], "text 3001");
        let kept: Value = serde_json::from_slice(&bytes_of(&bodies[0])).unwrap();
        assert_eq!(kept, whole);
        // Even if they hold nothing at all.
        let mut result = result_of(Value::Array(vec![text(0); 10_000]));
        lift_result(&mut result, MAX);
        assert!(rpc::to_json(&Value::Object(result)).len() < MAX);
    }

    #[test]
    fn running_output_shows_how_it_began_and_where_it_is() {
        let mut content = vec![text(MAX)];
        let before = content.clone();
        clip_content(&mut content, MAX);
        assert_eq!(content, before);
        let long = format!("begin{}end", "é".repeat(MAX));
        let image =
            json!({"type": "embeddedResource", "data": "A".repeat(9_000), "contentType": "x/y"});
        let terminal = json!({"type": "terminal", "resource": "t:/1", "title": "t"});
        let mut content = vec![text_block(&long), image, terminal.clone()];
        clip_content(&mut content, MAX);
        assert_eq!(content.len(), 3);
        assert!(content[0]["text"].as_str().unwrap().starts_with("beginé"));
        let end = content[1]["text"].as_str().unwrap();
        assert!(
            end.starts_with("[... 122") && end.ends_with("éend"),
            "{}",
            &end[..60]
        );
        assert_eq!(content[2], terminal);
    }

    #[test]
    fn names_are_filled_in_where_bodies_were() {
        let mut result = result_of(json!([text(MAX + 1)]));
        let bodies = lift_result(&mut result, MAX);
        let digest = wire::Digest::new([1; 32]);
        let names = bodies.into_iter().map(|body| (body.place, digest));
        let mut result = Value::Object(result);
        super::super::fill(&mut result, names);
        assert_eq!(result["content"][1]["uri"], digest.uri());
    }
}
