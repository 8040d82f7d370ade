//! Channel URIs, parsed once, when they are received.
//!
//! A client chooses session URIs freely (`ahp-session:/..`, `<provider>:/..`), so the scheme says nothing about what
//! kind of channel a URI names: the kernel's table does. Here a URI is only known to be well formed and bounded.
//!
//! Promises: the changeset of a turn has one name, whichever of the spellings of the turn's id was received.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::percent;

/// Longest channel URI taken from outside, in bytes.
pub const URI_BYTES_MAX: usize = 2_048;

/// What stands between a session and the name of its changeset.
const CHANGESET: &str = "/changeset/";

/// What the name of a turn's changeset begins with; the turn's id follows.
const TURN: &str = "turn/";

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
        let scheme = text.split_once(':').map(|(scheme, _)| scheme).ok_or(UriError::NoScheme)?;
        let mut letters = scheme.bytes();
        let starts_well = letters.next().is_some_and(|b| b.is_ascii_alphabetic());
        if !starts_well || !letters.all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) {
            return Err(UriError::NoScheme);
        }
        let text = spell_turn(text);
        if text.len() > URI_BYTES_MAX {
            Err(UriError::TooLong)
        } else {
            Ok(Self(Arc::from(&*text)))
        }
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
        if let Some((session, name)) = self.0.split_once(CHANGESET) {
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
        Self::parse(&format!("{session}{CHANGESET}{name}"))
    }

    /// The changeset of a turn, whatever its id holds.
    pub fn turn_changeset_of(session: &Self, turn_id: &str) -> Result<Self, UriError> {
        let id = percent::encode_word(turn_id);
        Self::changeset_of(session, &format!("{TURN}{id}"))
    }

    pub fn is_root(&self) -> bool {
        &*self.0 == ahp_types::common::ROOT_RESOURCE_URI
    }
}

impl SessionPart<'_> {
    /// The id of the turn whose changes these are.
    pub fn turn_id(&self) -> Option<String> {
        match self {
            Self::Changeset(name) => Some(decode_turn(name.strip_prefix(TURN)?).into_owned()),
            Self::Annotations => None,
        }
    }
}

/// The id of a turn stands in the name of its changeset as its template expands (RFC 6570): every other spelling is made that one. An id
/// that holds what reads as an escape has to be escaped by whoever sends it.
fn spell_turn(uri: &str) -> Cow<'_, str> {
    let Some((session, name)) = uri.split_once(CHANGESET) else { return Cow::Borrowed(uri) };
    let Some(id) = name.strip_prefix(TURN) else { return Cow::Borrowed(uri) };
    let id = percent::encode_word(&decode_turn(id));
    Cow::Owned(format!("{session}{CHANGESET}{TURN}{id}"))
}

/// What is no escaped text is meant as it is.
fn decode_turn(id: &str) -> Cow<'_, str> {
    let decoded = percent::decode(id).and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map_or(Cow::Borrowed(id), Cow::Owned)
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
            assert_eq!(ChannelUri::parse(good).map(|u| u.to_string()), Ok(good.to_owned()));
        }
    }

    #[test]
    fn what_belongs_to_a_session_names_it() {
        let uri = |text: &str| ChannelUri::parse(text).unwrap();
        let session = uri("ahp-session:/1");
        let annotations = ChannelUri::annotations_of(&session).unwrap();
        assert_eq!(annotations.session_part(), Some((session.clone(), SessionPart::Annotations)));
        let changeset = ChannelUri::changeset_of(&session, "t/annotations").unwrap();
        assert_eq!(
            changeset.session_part(),
            Some((session.clone(), SessionPart::Changeset("t/annotations")))
        );
        assert_eq!(session.session_part(), None);
    }

    #[test]
    fn a_turn_s_changeset_has_one_name() {
        let uri = |text: &str| ChannelUri::parse(text).unwrap();
        let session = uri("ahp-session:/1");
        let name_of = |id: &str| ChannelUri::turn_changeset_of(&session, id).unwrap();
        for (id, name, spellings) in [
            ("t-1", "t-1", &["t-1", "%74-1"][..]),
            ("a b", "a%20b", &["a%20b"][..]),
            ("a:b/ü", "a%3Ab%2F%C3%BC", &["a:b/ü", "a%3ab/%c3%bc", "a:b%2Fü"][..]),
            ("(it's!)", "%28it%27s%21%29", &["(it's!)", "%28it's!%29"][..]),
            ("100%", "100%25", &["100%", "100%25"][..]),
            ("a%20b", "a%2520b", &["a%2520b"][..]),
            ("a?b#c", "a%3Fb%23c", &["a?b#c", "a%3Fb#c"][..]),
        ] {
            let changeset = name_of(id);
            let expected = format!("ahp-session:/1/changeset/turn/{name}");
            assert_eq!(changeset.as_str(), expected);
            let (owner, part) = changeset.session_part().unwrap();
            assert_eq!((owner, part.turn_id().as_deref()), (session.clone(), Some(id)));
            for spelling in spellings {
                let text = format!("ahp-session:/1/changeset/turn/{spelling}");
                assert_eq!(uri(&text), changeset, "{spelling}");
            }
        }
        // Escapes that are no text mean themselves, and nothing else of a URI is spelt anew.
        let odd = uri("ahp-session:/1/changeset/turn/%ff");
        assert_eq!(odd.session_part().unwrap().1.turn_id().as_deref(), Some("%ff"));
        for as_it_is in ["x:/a%20b/changeset/session", "x:/a:b/annotations", "x:/turn/a:b"] {
            assert_eq!(uri(as_it_is).as_str(), as_it_is);
        }
        let long = ChannelUri::turn_changeset_of(&session, &"ü".repeat(500));
        assert_eq!(long, Err(UriError::TooLong));
    }

    #[test]
    fn invalid_uris_are_refused() {
        assert_eq!(ChannelUri::parse(""), Err(UriError::NoScheme));
        assert_eq!(ChannelUri::parse("no-scheme"), Err(UriError::NoScheme));
        assert_eq!(ChannelUri::parse("1a:/x"), Err(UriError::NoScheme));
        assert_eq!(ChannelUri::parse("a:/b c"), Err(UriError::Unprintable));
        assert_eq!(ChannelUri::parse("a:/b\u{0}"), Err(UriError::Unprintable));
        assert_eq!(ChannelUri::parse(&format!("a:{}", "b".repeat(3_000))), Err(UriError::TooLong));
    }
}
