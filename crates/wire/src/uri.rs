//! Channel URIs, parsed once, when they are received.
//!
//! A client chooses session URIs freely (`ahp-session:/..`, `<provider>:/..`), so the scheme says nothing about what
//! kind of channel a URI names: the kernel's table does. Here a URI is only known to be well formed and bounded.

use std::fmt;
use std::sync::Arc;

/// Longest channel URI taken from outside, in bytes.
pub const URI_BYTES_MAX: usize = 2_048;

/// The address of a channel. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelUri(Arc<str>);

/// Why a string is not a channel URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    #[error("a channel URI must start with a scheme such as `ahp-session:`")]
    NoScheme,
    #[error("a channel URI holds a space or a control character")]
    Unprintable,
    #[error("a channel URI is longer than {URI_BYTES_MAX} bytes")]
    TooLong,
}

impl ChannelUri {
    /// The one channel that always exists (H-095).
    pub fn root() -> Self {
        Self(Arc::from(ahp_types::common::ROOT_RESOURCE_URI))
    }

    pub fn parse(text: &str) -> Result<Self, UriError> {
        if text.len() > URI_BYTES_MAX {
            return Err(UriError::TooLong);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(UriError::Unprintable);
        }
        let scheme = text
            .split_once(':')
            .map(|(scheme, _)| scheme)
            .ok_or(UriError::NoScheme)?;
        let mut letters = scheme.bytes();
        let starts_well = letters.next().is_some_and(|b| b.is_ascii_alphabetic());
        if !starts_well || !letters.all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return Err(UriError::NoScheme);
        }
        Ok(Self(Arc::from(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn scheme(&self) -> &str {
        self.0.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    pub fn is_root(&self) -> bool {
        &*self.0 == ahp_types::common::ROOT_RESOURCE_URI
    }
}

impl fmt::Display for ChannelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ChannelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_of_every_client_are_taken() {
        for good in [
            "ahp-root://",
            "ahp-session:/x",
            "scripted:/0190",
            "ahp-chat://default/YQ",
            "x+y.z-1:a",
        ] {
            assert_eq!(
                ChannelUri::parse(good).map(|u| u.to_string()),
                Ok(good.to_owned())
            );
        }
    }

    #[test]
    fn invalid_uris_are_refused() {
        assert_eq!(ChannelUri::parse(""), Err(UriError::NoScheme));
        assert_eq!(ChannelUri::parse("no-scheme"), Err(UriError::NoScheme));
        assert_eq!(ChannelUri::parse("1a:/x"), Err(UriError::NoScheme));
        assert_eq!(ChannelUri::parse("a:/b c"), Err(UriError::Unprintable));
        assert_eq!(ChannelUri::parse("a:/b\u{0}"), Err(UriError::Unprintable));
        assert_eq!(
            ChannelUri::parse(&format!("a:{}", "b".repeat(3_000))),
            Err(UriError::TooLong)
        );
    }
}
