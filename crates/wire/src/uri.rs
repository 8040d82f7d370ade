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

/// What belongs to a session and is a channel of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionPart<'a> {
    Annotations,
    /// By the name after `/changeset/`.
    Changeset(&'a str),
}

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

    /// The session that a URI of annotations or of a changeset belongs to, and which of the two it is (G-53, G-72). No session is
    /// named like either.
    pub fn session_part(&self) -> Option<(Self, SessionPart<'_>)> {
        let of = |session: &str| Self(Arc::from(session));
        if let Some((session, name)) = self.0.split_once("/changeset/") {
            return Some((of(session), SessionPart::Changeset(name)));
        }
        let session = self.0.strip_suffix("/annotations")?;
        Some((of(session), SessionPart::Annotations))
    }

    /// The annotations of a session.
    pub fn annotations_of(session: &Self) -> Result<Self, UriError> {
        Self::parse(&format!("{session}/annotations"))
    }

    /// A changeset of a session: what its template expands to.
    pub fn changeset_of(session: &Self, name: &str) -> Result<Self, UriError> {
        Self::parse(&format!("{session}/changeset/{name}"))
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
    fn what_belongs_to_a_session_names_it() {
        let uri = |text: &str| ChannelUri::parse(text).unwrap();
        let session = uri("ahp-session:/1");
        let annotations = ChannelUri::annotations_of(&session).unwrap();
        assert_eq!(
            annotations.session_part(),
            Some((session.clone(), SessionPart::Annotations))
        );
        let changeset = ChannelUri::changeset_of(&session, "turn/t/annotations").unwrap();
        assert_eq!(
            changeset.session_part(),
            Some((
                session.clone(),
                SessionPart::Changeset("turn/t/annotations")
            ))
        );
        assert_eq!(session.session_part(), None);
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
