//! Working directories: `file:` URIs that must lie inside the roots. By name only: every open checks again.

/// The absolute path a `file:` URI names, without `.` and `..`; `None` if it is no local file URI.
pub fn path_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let bytes = percent_decode(path)?;
    let path = String::from_utf8(bytes).ok()?;
    if path.contains('\0') {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    Some(format!("/{}", names.join("/")))
}

/// The `file:` URI of an absolute path.
pub fn uri_of(path: &str) -> String {
    let mut uri = String::from("file://");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

/// Whether `path` is one of `roots` or below one.
pub fn is_inside(path: &str, roots: &[String]) -> bool {
    roots.iter().any(|root| {
        let root = root.trim_end_matches('/');
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
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
    fn names_are_cleaned_before_they_are_compared() {
        let roots = ["/home/ann/code".to_owned(), "/srv/".to_owned()];
        let inside = |uri: &str| path_of(uri).is_some_and(|path| is_inside(&path, &roots));
        assert!(inside("file:///home/ann/code"));
        assert!(inside("file:///home/ann/code/a%20b"));
        assert!(inside("file:///srv/x"));
        assert!(!inside("file:///home/ann/codes"));
        assert!(!inside("file:///home/ann/code/../secret"));
        assert!(!inside("file:///home/ann/code/%2e%2e/secret"));
        assert!(!inside("https://example.org/home/ann/code"));
        assert!(!inside("file://elsewhere/home/ann/code"));
        assert!(!inside("file:///home/ann/code%00"));
        assert_eq!(path_of(&uri_of("/a b/ü")).as_deref(), Some("/a b/ü"));
    }
}
