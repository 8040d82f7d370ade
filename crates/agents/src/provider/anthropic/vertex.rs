//! Anthropic's Messages as Google's Vertex serves them: the address names the model and the method, and the body has the version that is
//! a header elsewhere. What comes back is the same stream.

use serde_json::{Value, json};

use super::super::ModelRequest;
use super::encode;

/// What the path of an address ends in that serves Claude on Vertex:
/// `https://HOST/v1/projects/PROJECT/locations/PLACE/publishers/anthropic`.
const BASE_END: [&str; 2] = ["publishers", "anthropic"];

/// The version of the format that Vertex takes.
const VERSION: &str = "vertex-2023-10-16";

/// Whether an address with these segments is that of Claude on Vertex.
pub(in super::super) fn serves<'a>(segments: impl Iterator<Item = &'a str>) -> bool {
    let segments: Vec<&str> = segments.filter(|segment| !segment.is_empty()).collect();
    segments.ends_with(&BASE_END)
}

/// The last segment of the address of a question.
pub(in super::super) fn path(model: &str) -> String {
    format!("{model}:streamRawPredict")
}

pub(in super::super) fn encode_request(request: &ModelRequest) -> Vec<u8> {
    let mut body = encode::fields(request);
    body.insert("anthropic_version".to_owned(), json!(VERSION));
    // The address has it, and a body with a field that is not known is refused.
    body.shift_remove("model");
    Value::Object(body).to_string().into_bytes()
}
