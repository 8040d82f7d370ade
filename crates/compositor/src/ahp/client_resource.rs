//! Resources that only the client which sends them can read: an editor's open file on another machine, an unsaved buffer.
//!
//! Must not know: how a client is asked.

use serde_json::Value;
use wire::Object;

use super::PART_KEY;
use super::attachment::text;
use crate::part::{Location, Part, View};

/// Schemes of what the host reads itself, and of what an agent fetches or reads itself (C-020, MC-13).
const OTHER_SCHEMES: [&str; 5] = ["file", "http", "https", "data", "mcp-resource"];

/// The longest URI that a client is asked for.
const URI_BYTES_MAX: usize = 4_096;

/// The URIs of attachments that must be read from the client that sent the message, each once, in their order.
pub fn client_resources(message: &Object) -> Vec<&str> {
    let attachments = message.get("attachments").and_then(Value::as_array);
    let mut uris: Vec<&str> = Vec::new();
    for uri in attachments.into_iter().flatten().filter_map(resource_uri) {
        if is_client_uri(uri) && !uris.contains(&uri) {
            uris.push(uri);
        }
    }
    uris
}

/// The URI of a reference that a client must be asked for.
pub fn client_resource(part: &Part) -> Option<&str> {
    match part.view() {
        View::FileRef(file) => match file.location {
            Location::Url(url) => is_client_uri(url).then_some(url),
            Location::Path(_) | Location::ContentId(_) => None,
        },
        _ => None,
    }
}

fn resource_uri(attachment: &Value) -> Option<&str> {
    let carried = attachment.get("_meta").and_then(|meta| meta.get(PART_KEY));
    if let Some(part) = carried {
        return part.get("ref")?.get("url")?.as_str();
    }
    let is_file = text(attachment, "type") == Some("resource")
        && text(attachment, "displayKind") != Some("directory");
    text(attachment, "uri").filter(|_| is_file)
}

/// Whether a URI has a scheme that neither the host nor an agent resolves.
fn is_client_uri(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else { return false };
    let belongs = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    // A single letter is a drive of another system.
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(belongs);
    let is_ours = scheme.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("ahp-"));
    let is_other = OTHER_SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it));
    is_scheme && !is_ours && !is_other && !rest.is_empty() && uri.len() <= URI_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_schemes_that_nobody_else_resolves_are_asked_for() {
        for (uri, expected) in [
            ("vscode-remote://localhost/ws/a.txt", true),
            ("untitled:Untitled-1", true),
            ("Git:/x", true),
            ("file:///ws/a.txt", false),
            ("FILE:///ws/a.txt", false),
            ("https://x.example/a", false),
            ("data:text/plain,x", false),
            ("ahp-content:/sha256/12", false),
            ("ahp-chat:/x", false),
            ("C:\\x", false),
            ("a b:c", false),
            ("untitled:", false),
            ("no scheme", false),
            ("", false),
        ] {
            assert_eq!(is_client_uri(uri), expected, "{uri}");
        }
        assert!(!is_client_uri(&format!("x-y:{}", "a".repeat(5_000))));
    }

    #[test]
    fn each_uri_is_listed_once_and_directories_are_not() {
        let message = json!({"text": "t", "attachments": [
            {"type": "resource", "uri": "vscode-remote://h/a", "label": "a"},
            {"type": "resource", "uri": "vscode-remote://h/b", "label": "b", "displayKind": "directory"},
            {"type": "simple", "uri": "vscode-remote://h/c", "label": "c"},
            {"type": "resource", "uri": "vscode-remote://h/a", "label": "again"},
            {"type": "simple", "label": "d", "_meta": {"compositor/part":
                {"type": "file-ref", "ref": {"kind": "url", "url": "vscode-remote://h/d"}}}},
            "strange",
        ]});
        assert_eq!(
            client_resources(message.as_object().unwrap()),
            ["vscode-remote://h/a", "vscode-remote://h/d"]
        );
    }
}
