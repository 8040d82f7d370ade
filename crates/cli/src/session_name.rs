//! Names of sessions as people type them: a URI, the beginning or end of its id, or a title.
//!
//! Promises: a name means one session or none; one that could mean several is refused with what it could mean.
//! Must not know: where the list of sessions comes from.

use std::convert::Infallible;
use std::str::FromStr;

use client::{Live, SessionSummary};
use wire::ChannelUri;

use crate::terminal::escape_line;

/// A part of an id shorter than this is too likely to fit something else.
const ID_PART_CHARS_MIN: usize = 4;
/// Sessions that are listed when a name fits several.
const CANDIDATES_MAX: usize = 10;

/// What was typed to name a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionName(String);

/// Why a name means no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error("no session is called `{0}`; `greenroom sessions` lists them")]
    Unknown(String),
    #[error("`{name}` may be any of these; type more of it, or the whole URI:\n{}", candidates.join("\n"))]
    Ambiguous { name: String, candidates: Vec<String> },
    #[error("`{name}` is not a channel URI: {why}")]
    BadUri { name: String, why: String },
}

impl FromStr for SessionName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.trim().to_owned()))
    }
}

impl SessionName {
    /// The name that a channel has anyway.
    pub(crate) fn of(channel: &ChannelUri) -> Self {
        Self(channel.as_str().to_owned())
    }

    /// The channel, if a whole URI was typed: that needs no list, and may name a chat.
    pub(crate) fn as_uri(&self) -> Option<Result<ChannelUri, NameError>> {
        let is_uri = self.0.contains(":/") && !self.0.contains(char::is_whitespace);
        is_uri.then(|| {
            ChannelUri::parse(&self.0).map_err(|error| NameError::BadUri {
                name: escape_line(&self.0),
                why: error.to_string(),
            })
        })
    }

    /// The session of a host that is meant.
    pub(crate) async fn find(&self, live: &Live) -> anyhow::Result<ChannelUri> {
        match self.as_uri() {
            Some(uri) => Ok(uri?),
            None => Ok(self.choose(&live.list_all_sessions().await?)?),
        }
    }

    /// The session of a list that is meant: the most exact way of naming it counts.
    pub(crate) fn choose(&self, sessions: &[SessionSummary]) -> Result<ChannelUri, NameError> {
        let name = self.0.to_lowercase();
        let is_id_part = name.chars().count() >= ID_PART_CHARS_MIN;
        let ways: [&dyn Fn(&SessionSummary) -> bool; 4] = [
            &|session| session.resource() == self.0 || id_of(session) == name,
            &|session| session.title().trim().to_lowercase() == name,
            &|session| {
                let id = id_of(session);
                is_id_part
                    && (id.starts_with(&name)
                        || id.ends_with(&name)
                        || session.resource().starts_with(&self.0))
            },
            &|session| session.title().to_lowercase().starts_with(&name),
        ];
        if !name.is_empty() {
            for way in ways {
                let found: Vec<&SessionSummary> =
                    sessions.iter().filter(|session| way(session)).collect();
                match found[..] {
                    [] => {}
                    [only] => return self.uri_of(only),
                    _ => return Err(self.ambiguous(&found)),
                }
            }
        }
        Err(NameError::Unknown(escape_line(&self.0)))
    }

    fn uri_of(&self, session: &SessionSummary) -> Result<ChannelUri, NameError> {
        session.uri().map_err(|error| NameError::BadUri {
            name: escape_line(session.resource()),
            why: error.to_string(),
        })
    }

    fn ambiguous(&self, found: &[&SessionSummary]) -> NameError {
        let line = |session: &&SessionSummary| {
            let title = escape_line(session.title());
            format!("  {}  {title}", escape_line(session.resource()))
        };
        let mut candidates: Vec<String> = found.iter().take(CANDIDATES_MAX).map(line).collect();
        if found.len() > CANDIDATES_MAX {
            candidates.push(format!("  … and {} more", found.len() - CANDIDATES_MAX));
        }
        NameError::Ambiguous { name: escape_line(&self.0), candidates }
    }
}

/// What stands behind the provider in a session's URI.
fn id_of(session: &SessionSummary) -> String {
    let uri = session.resource();
    uri.rsplit('/').next().unwrap_or(uri).to_lowercase()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sessions() -> Vec<SessionSummary> {
        [
            ("native:/0190aaaa-1111", "Fix the parser"),
            ("native:/0190aaaa-2222", "Fix the build"),
            ("scripted:/0190bbbb-3333", "Umlaute prüfen"),
            ("scripted:/0190cccc-4444", "Fix"),
        ]
        .map(|(uri, title)| SessionSummary::new(json!({"resource": uri, "title": title})))
        .to_vec()
    }

    fn choose(name: &str) -> Result<String, NameError> {
        let name: SessionName = name.parse().unwrap();
        name.choose(&sessions()).map(|uri| uri.as_str().to_owned())
    }

    #[test]
    fn a_session_is_named_by_parts_of_its_id_or_its_title() {
        for (name, uri) in [
            ("native:/0190aaaa-1111", "native:/0190aaaa-1111"),
            ("2222", "native:/0190aaaa-2222"),
            ("0190BBBB", "scripted:/0190bbbb-3333"),
            ("scripted:/0190c", "scripted:/0190cccc-4444"),
            ("fix", "scripted:/0190cccc-4444"),
            ("fix the p", "native:/0190aaaa-1111"),
            ("UMLAUTE PRÜ", "scripted:/0190bbbb-3333"),
        ] {
            assert_eq!(choose(name).as_deref(), Ok(uri), "{name}");
        }
    }

    #[test]
    fn a_name_that_fits_several_or_none_is_refused_with_what_it_could_be() {
        let Err(NameError::Ambiguous { candidates, .. }) = choose("0190aaaa") else {
            panic!("two begin so")
        };
        assert_eq!(
            candidates,
            ["  native:/0190aaaa-1111  Fix the parser", "  native:/0190aaaa-2222  Fix the build"]
        );
        for name in ["", "nothing", "019", "\u{1b}[2J"] {
            let Err(NameError::Unknown(shown)) = choose(name) else {
                panic!("{name:?} is no name")
            };
            assert!(!shown.contains('\u{1b}'));
        }
    }
}
