//! `file:` URIs of this machine and the paths they name. By name only: opening one checks again.
//!
//! Promises: one way to read them, so that allowing a directory and opening it mean the same directory.

use crate::percent;

/// The absolute path a `file:` URI names, in bytes and without `.`, `..` and empty names; `None` if it names nothing on
/// this machine.
pub fn path_of(uri: &str) -> Option<Vec<u8>> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let path = percent::decode(path)?;
    if path.contains(&0) {
        return None;
    }
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    let mut clean = vec![b'/'];
    clean.extend(names.join(&b'/'));
    Some(clean)
}

/// The `file:` URI of an absolute path, which need not be text.
pub fn uri_of(path: impl AsRef<[u8]>) -> String {
    format!("file://{}", percent::encode_path(path.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_into_a_uri_and_back() {
        for path in ["/", "/home/ann/code", "/a b/ü%/#?", "/a:b/@"] {
            assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path.as_bytes()));
        }
        assert_eq!(uri_of(b"/\xff"), "file:///%FF");
        assert_eq!(path_of("file:///%ff").as_deref(), Some(&b"/\xff"[..]));
        let roundabout = path_of("file://localhost/a/./x/%2e%2e//b/");
        assert_eq!(roundabout.as_deref(), Some(&b"/a/b"[..]));
        assert_eq!(path_of("file:///../..").as_deref(), Some(&b"/"[..]));
    }

    #[test]
    fn uris_without_a_local_path_are_refused() {
        for uri in [
            "/a",
            "file:a",
            "file://elsewhere/a",
            "file://%2Fa",
            "https://example.org/a",
            "file:///a%00b",
            "file:///a%2",
            "file:///a%",
            "file:///a%zz",
            "file:///a%+f",
        ] {
            assert_eq!(path_of(uri), None, "{uri}");
        }
    }
}
