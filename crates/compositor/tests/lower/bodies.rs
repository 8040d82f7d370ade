//! Attachments for tests, real enough to be sniffed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::lower::Target;
use serde_json::{Value, json};

use crate::lower_for;
use crate::vectors::Memory;

pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
pub const PDF: &[u8] = b"%PDF-1.7";
pub const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";
pub const MP4: &[u8] = b"\0\0\0\x18ftypisom";

pub fn attached(name: &str, mime: &str, body: &[u8]) -> Value {
    json!({"type": "file-attachment", "name": name, "mime": mime, "data": STANDARD.encode(body), "size": body.len()})
}

/// A PNG that says it is so large.
pub fn png(width: u32, height: u32) -> Vec<u8> {
    let mut png = PNG.to_vec();
    png.extend([0, 0, 0, 13]);
    png.extend(b"IHDR");
    png.extend(width.to_be_bytes());
    png.extend(height.to_be_bytes());
    png
}

pub fn described(name: &str, mime: &str, size: usize) -> String {
    format!("<file_attachment name=\"{name}\" mime=\"{mime}\" size=\"{size}\"/>")
}

/// The types of the blocks for a target, descriptors as they are.
pub fn by_type(target: Target, part: &Value) -> String {
    let block = lower_for(target, &json!([part]), &mut Memory::default()).blocks.remove(0);
    let text = block["text"].as_str().map(str::to_owned);
    let native = || match block["type"].as_str() {
        Some(kind) => kind.to_owned(),
        None => "inlineData".to_owned(),
    };
    text.unwrap_or_else(native)
}
