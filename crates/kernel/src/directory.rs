//! Working directories: `file:` URIs that must lie inside the roots. By name only: every open checks again.

use wire::file_uri;

/// The absolute path a `file:` URI names; `None` if it is no local file URI, or its path is no text.
pub(crate) fn path_of(uri: &str) -> Option<String> {
    String::from_utf8(file_uri::path_of(uri)?).ok()
}

/// Whether `path` is one of `roots` or below one.
pub(crate) fn is_inside(path: &str, roots: &[String]) -> bool {
    roots.iter().any(|root| {
        let root = root.trim_end_matches('/');
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
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
        assert!(!inside("file:///home/ann/code/%ff"));
    }
}
