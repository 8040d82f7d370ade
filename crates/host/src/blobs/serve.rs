//! Content on its way to a client: which encoding, and the JSON of it, made where it was read.
//!
//! Promises: bytes that are no text are never sent as text (H-252).
//! Must not know: who asked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kernel::{EncodedContent, FetchTask, FetchedContent};
use wire::published::commands::ContentEncoding;

use super::{BlobError, Blobs, Found};

/// Reads and encodes content. It takes at least as much space encoded, so larger ones are not even read.
pub fn fetch(
    blobs: &dyn Blobs,
    fetch: &FetchTask,
    content_type: Option<String>,
) -> Result<FetchedContent, BlobError> {
    Ok(match blobs.read(&fetch.digest, fetch.bytes_max as u64)? {
        Found::Missing => FetchedContent::Missing,
        Found::TooLarge { .. } => FetchedContent::TooLarge,
        Found::Body(body) => {
            let content = encode_body(&body, fetch.encoding, content_type);
            if content.data.len() > fetch.bytes_max {
                FetchedContent::TooLarge
            } else {
                FetchedContent::Content(content)
            }
        }
    })
}

/// Content as `resourceRead` answers it: in the encoding that was asked for if that is possible, otherwise as text if
/// it is text and no content type contradicts.
pub fn encode_body(
    body: &[u8],
    encoding: Option<ContentEncoding>,
    content_type: Option<String>,
) -> EncodedContent {
    let text = match encoding {
        Some(ContentEncoding::Base64) => None,
        Some(ContentEncoding::Utf8) => std::str::from_utf8(body).ok(),
        None if is_text(content_type.as_deref(), body) => std::str::from_utf8(body).ok(),
        None => None,
    };
    let (data, encoding) = match text {
        Some(text) => (wire::rpc::to_json(text), ContentEncoding::Utf8),
        None => (base64_json(body), ContentEncoding::Base64),
    };
    EncodedContent { data: Bytes::from(data), encoding, content_type }
}

fn base64_json(body: &[u8]) -> Vec<u8> {
    let mut json = String::with_capacity(body.len().div_ceil(3) * 4 + 2);
    json.push('"');
    STANDARD.encode_string(body, &mut json);
    json.push('"');
    json.into_bytes()
}

/// By the content type; without one, what holds no NUL may be text.
fn is_text(content_type: Option<&str>, body: &[u8]) -> bool {
    let Some(content_type) = content_type else { return !body.contains(&0) };
    let essence = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence.as_str(),
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
                | "application/x-sh"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &[u8], encoding: Option<ContentEncoding>, content_type: Option<&str>) -> String {
        let content = encode_body(body, encoding, content_type.map(str::to_owned));
        let data: String = serde_json::from_slice(&content.data).unwrap();
        match content.encoding {
            ContentEncoding::Utf8 => format!("text {data}"),
            ContentEncoding::Base64 => format!("base64 {data}"),
        }
    }

    #[test]
    fn text_goes_as_text_and_bytes_as_base64() {
        let (utf8, base64) = (Some(ContentEncoding::Utf8), Some(ContentEncoding::Base64));
        for (body, encoding, content_type, expected) in [
            (&b"a \"b\"\n"[..], None, None, "text a \"b\"\n"),
            (b"hi", None, Some("text/plain; charset=utf-8"), "text hi"),
            (b"{}", None, Some("Application/JSON"), "text {}"),
            (b"hi", None, Some("image/png"), "base64 aGk="),
            (b"hi", utf8, Some("image/png"), "text hi"),
            (b"hi", base64, Some("text/plain"), "base64 aGk="),
            (b"\0", None, None, "base64 AA=="),
            (b"\0", utf8, None, "text \0"),
            (b"\xff", None, None, "base64 /w=="),
            (b"\xff", utf8, Some("text/plain"), "base64 /w=="),
            (b"\xff", None, Some("text/plain"), "base64 /w=="),
            (b"", None, None, "text "),
        ] {
            assert_eq!(check(body, encoding, content_type), expected);
        }
    }
}
