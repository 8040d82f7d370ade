//! URIs of attachments, and what they refer to. By name only: every open checks again (C-019).

use serde_json::{Value, json};
use wire::file_uri::uri_of;
use wire::{Digest, percent};

/// The `ref` that a URI is, without its description.
pub(super) fn reference(uri: &str, roots: &[String]) -> Value {
    if let Some(path) = path_of(uri) {
        return json!({"kind": "path", "path": relative(&path, roots)});
    }
    match Digest::from_uri(uri) {
        Some(digest) => json!({"kind": "content-id", "content_id": format!("sha256:{digest}")}),
        None => json!({"kind": "url", "url": uri}),
    }
}

/// The URI of what a `ref` refers to, if it has one.
pub(super) fn of_reference(reference: &Value, roots: &[String]) -> Option<String> {
    let text = |key: &str| reference.get(key).and_then(Value::as_str);
    match text("kind")? {
        "path" => of_path(text("path")?, roots),
        "url" => text("url").map(str::to_owned),
        "content-id" => of_content(text("content_id")?),
        _ => None,
    }
}

/// The URI of content that is named `sha256:<hex>`.
pub(super) fn of_content(content_id: &str) -> Option<String> {
    let digest = Digest::from_hex(content_id.strip_prefix("sha256:")?)?;
    Some(digest.uri())
}

fn of_path(path: &str, roots: &[String]) -> Option<String> {
    let root = roots.first().map_or("", |root| root.trim_end_matches('/'));
    let path = match path {
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        "." => root.to_owned(),
        relative => format!("{root}/{relative}"),
    };
    (!path.is_empty()).then(|| uri_of(&path))
}

/// The absolute path that a `file:` URI of this machine names, as it says it: neither cleaned nor checked.
fn path_of(uri: &str) -> Option<String> {
    let rest = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://"));
    let rest = &uri[rest?.len()..];
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    String::from_utf8(percent::decode(path)?).ok()
}

/// A path inside of the first root is made relative to it. One with `..` is not judged by its beginning: where it leads is
/// checked when it is opened.
fn relative(path: &str, roots: &[String]) -> String {
    let goes_up = path.split('/').any(|name| name == "..");
    let root = roots.first().map(|root| root.trim_end_matches('/'));
    let inside = root.and_then(|root| path.strip_prefix(root));
    match inside {
        Some(rest) if !goes_up && (rest.is_empty() || rest.starts_with('/')) => {
            match rest.trim_matches('/') {
                "" => ".".to_owned(),
                rest => rest.to_owned(),
            }
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, expected: Value) {
        let roots = ["/ws/".to_owned(), "/other".to_owned()];
        assert_eq!(reference(uri, &roots), expected, "{uri}");
    }

    #[test]
    fn paths_inside_of_the_root_are_relative_and_others_absolute() {
        let path = |path: &str| json!({"kind": "path", "path": path});
        check("file:///ws/src/a%20b.ts", path("src/a b.ts"));
        check("FILE://localhost/ws/a", path("a"));
        check("file:///ws", path("."));
        check("file:///ws/dir/", path("dir"));
        check("file:///wsx/a", path("/wsx/a"));
        check("file:///other/a", path("/other/a"));
        check("file:///ws/../etc/passwd", path("/ws/../etc/passwd"));
        check("file:///ws/%2e%2e/etc/passwd", path("/ws/../etc/passwd"));
        check("file:///ws/a%00b", path("a\0b"));
    }

    #[test]
    fn everything_else_is_content_or_a_url() {
        let url = |url: &str| json!({"kind": "url", "url": url});
        for uri in [
            "https://x.example/a",
            "file://elsewhere/a",
            "file:///%ff",
            "file:///%zz",
            "file:///%+1",
            "file:/",
            "ahp-content:/sha256/12",
            "é",
            "",
        ] {
            check(uri, url(uri));
        }
        let hex = "0123456789abcdef".repeat(4);
        // A name is for people (G-48).
        for name in ["", "/main.rs", "/a%20b.png"] {
            check(
                &format!("ahp-content:/sha256/{hex}{name}"),
                json!({"kind": "content-id", "content_id": format!("sha256:{hex}")}),
            );
        }
    }

    #[test]
    fn a_reference_has_the_uri_it_came_from() {
        let roots = ["/ws".to_owned()];
        for uri in ["file:///ws/src/a%20b.ts", "file:///etc/x", "https://x.example/?q#f"] {
            let there = of_reference(&reference(uri, &roots), &roots);
            assert_eq!(there.as_deref(), Some(uri));
        }
        assert_eq!(of_content("sha256:12"), None);
        assert_eq!(of_content("md5:12"), None);
    }
}
