//! `file:` URIs of this machine and the paths they name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The absolute path a `file:` URI names, cleaned by name of `.` and `..` as whoever allowed it read it; `None` if it
/// names nothing on this machine.
pub(super) fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let bytes = percent_decode(path)?;
    if bytes.first() != Some(&b'/') || bytes.contains(&0) {
        return None;
    }
    let mut clean = PathBuf::from("/");
    for part in Path::new(OsStr::from_bytes(&bytes)).components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(clean)
}

/// The `file:` URI of an absolute path.
pub(super) fn uri_of(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_into_a_uri_and_back() {
        for path in ["/", "/home/ann/code", "/a b/ü%/#?", "/a:b/@"] {
            let path = PathBuf::from(path);
            assert_eq!(path_of(&uri_of(&path)), Some(path));
        }
        let odd = PathBuf::from(OsStr::from_bytes(b"/\xff"));
        assert_eq!(uri_of(&odd), "file:///%FF");
        assert_eq!(path_of("file:///%ff"), Some(odd));
        let roundabout = path_of("file://localhost/a/./x/%2e%2e//b/");
        assert_eq!(roundabout, Some(PathBuf::from("/a/b")));
    }

    #[test]
    fn what_names_nothing_here_is_no_path() {
        for uri in [
            "/a",
            "file:a",
            "file://elsewhere/a",
            "https://example.org/a",
            "file:///a%00b",
            "file:///a%2",
            "file:///a%zz",
        ] {
            assert_eq!(path_of(uri), None, "{uri}");
        }
    }
}
