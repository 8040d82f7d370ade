//! The sources that an answer names, as links.
//!
//! Promises: each is named once; their number and the length of their addresses are bounded, whatever a server sends.
//! Must not know: any wire format.

use std::collections::BTreeSet;

use super::items::link;

/// More sources than this are named by no text that people read.
const SOURCES_MAX: usize = 256;

/// A longer address is not one that people could open.
const URL_BYTES_MAX: usize = 2_048;

/// The sources that were named so far.
#[derive(Debug, Default)]
pub(super) struct CitedSources(BTreeSet<String>);

impl CitedSources {
    /// A link to a source that was not named before. None to one that was, to what cannot be opened, and to more than enough.
    pub(super) fn cite(&mut self, title: Option<&str>, url: &str) -> Option<String> {
        if url.len() > URL_BYTES_MAX || self.0.len() >= SOURCES_MAX || self.0.contains(url) {
            return None;
        }
        let link = link(title, url)?;
        self.0.insert(url.to_owned());
        Some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_once_and_there_is_an_end_to_them() {
        let mut sources = CitedSources::default();
        assert!(sources.cite(Some("a"), "https://a.example").is_some());
        assert_eq!(sources.cite(Some("b"), "https://a.example"), None);
        assert_eq!(sources.cite(None, "javascript:alert(1)"), None);
        let long = format!("https://a.example/{}", "x".repeat(URL_BYTES_MAX));
        assert_eq!(sources.cite(None, &long), None);
        let urls = (0..10 * SOURCES_MAX).map(|number| format!("https://a.example/{number}"));
        let named = urls.filter(|url| sources.cite(None, url).is_some()).count();
        assert_eq!((named, sources.0.len()), (SOURCES_MAX - 1, SOURCES_MAX));
    }
}
