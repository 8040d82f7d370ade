//! Protocol versions: read strictly, negotiated once per connection, grouped into the generations this host can speak.

use std::fmt;
use std::str::FromStr;

use serde_json::json;

use crate::rpc::{RpcError, code};

/// The ranges a peer can ask for: what `data.supportedVersions` lists (H-022, H-023).
pub const SUPPORTED: &[&str] =
    &["^1.0.0", "^0.9.0", "^0.8.0", "^0.7.0", "^0.6.0", "^0.5.0", "^0.4.0"];

/// How much of a peer's own text an error repeats.
const QUOTED_CHARS_MAX: usize = 32;

/// Versions that mean the same frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Generation {
    V0_4,
    V0_5_0,
    V0_5_1,
    V0_5_2,
    V0_6,
    V0_7,
    V0_8,
    V0_9,
    V1_0,
}

impl Generation {
    /// All of them, oldest first.
    pub const ALL: [Self; 9] = [
        Self::V0_4,
        Self::V0_5_0,
        Self::V0_5_1,
        Self::V0_5_2,
        Self::V0_6,
        Self::V0_7,
        Self::V0_8,
        Self::V0_9,
        Self::V1_0,
    ];

    /// The oldest version of the generation: what its clients know at least.
    pub fn oldest_version(self) -> Version {
        match self {
            Self::V0_4 => Version::new(0, 4, 0),
            Self::V0_5_0 => Version::new(0, 5, 0),
            Self::V0_5_1 => Version::new(0, 5, 1),
            Self::V0_5_2 => Version::new(0, 5, 2),
            Self::V0_6 => Version::new(0, 6, 0),
            Self::V0_7 => Version::new(0, 7, 0),
            Self::V0_8 => Version::new(0, 8, 0),
            Self::V0_9 => Version::new(0, 9, 0),
            Self::V1_0 => Version::new(1, 0, 0),
        }
    }
}

/// One protocol version, `N.N.N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
}

/// A text that is not `N.N.N`: a leading zero, a suffix, too few or too many numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a protocol version is three numbers, such as 1.0.0")]
pub struct VersionError;

/// Why no version could be agreed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NegotiationError {
    /// One entry of the offer is not a version; the whole offer is refused (H-024).
    #[error("protocolVersions: {0:?} is not a version such as 1.0.0")]
    Malformed(String),
    /// Nothing that was offered is in a supported range; an empty offer too (H-023, G-21).
    #[error("none of the offered protocol versions is supported")]
    None,
}

impl Version {
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch }
    }

    /// The generation that serves this version, if any does.
    pub fn generation(self) -> Option<Generation> {
        match (self.major, self.minor, self.patch) {
            (1, _, _) => Some(Generation::V1_0),
            (0, 9, _) => Some(Generation::V0_9),
            (0, 8, _) => Some(Generation::V0_8),
            (0, 7, _) => Some(Generation::V0_7),
            (0, 6, _) => Some(Generation::V0_6),
            // The patches of 0.5 differ in what a page of turns is; those after 0.5.2 were never published.
            (0, 5, 0) => Some(Generation::V0_5_0),
            (0, 5, 1) => Some(Generation::V0_5_1),
            (0, 5, _) => Some(Generation::V0_5_2),
            (0, 4, _) => Some(Generation::V0_4),
            _ => None,
        }
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let mut numbers = text.split('.').map(number);
        let mut next = || numbers.next().flatten().ok_or(VersionError);
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        match numbers.next() {
            None => Ok(version),
            Some(_) => Err(VersionError),
        }
    }
}

/// Digits only, no leading zero: what is printed again is what was read.
fn number(text: &str) -> Option<u64> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if all_digits && !leading_zero { text.parse().ok() } else { None }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The highest offered version in a supported range, in whatever order the offer is (H-021).
pub fn negotiate(offered: &[String]) -> Result<(Version, Generation), NegotiationError> {
    let mut chosen = None;
    for text in offered {
        let version: Version = text.parse().map_err(|VersionError| {
            NegotiationError::Malformed(text.chars().take(QUOTED_CHARS_MAX).collect())
        })?;
        let candidate = version.generation().map(|generation| (version, generation));
        chosen = chosen.max(candidate);
    }
    chosen.ok_or(NegotiationError::None)
}

impl NegotiationError {
    /// The answer to `initialize`.
    pub fn to_rpc(&self) -> RpcError {
        match self {
            Self::Malformed(_) => RpcError::new(code::INVALID_PARAMS, self.to_string()),
            Self::None => RpcError::new(code::UNSUPPORTED_PROTOCOL_VERSION, self.to_string())
                .with_data(json!({ "supportedVersions": SUPPORTED })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_printed_as_it_was_read() {
        for good in ["0.9.0", "1.0.0", "1.3.12", "10.0.18446744073709551615"] {
            assert_eq!(good.parse::<Version>().map(|v| v.to_string()), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "01.0.0",
            "1.00.0",
            "1.0.0-rc",
            "1.0.0+b",
            "v1.0.0",
            "1..0",
            "1.0.+1",
            " 1.0.0",
            "1.0.0 ",
            "1.0.18446744073709551616",
            "١.0.0",
        ] {
            assert_eq!(bad.parse::<Version>(), Err(VersionError), "{bad:?}");
        }
    }

    #[test]
    fn the_highest_supported_offer_wins() {
        let agreed = |offer: &[&str]| {
            let offer: Vec<String> = offer.iter().map(|text| (*text).to_owned()).collect();
            negotiate(&offer).map(|(version, generation)| (version.to_string(), generation))
        };
        let v1 = |text: &str| Ok((text.to_owned(), Generation::V1_0));
        let v0_9 = |text: &str| Ok((text.to_owned(), Generation::V0_9));
        let malformed = |text: &str| Err(NegotiationError::Malformed(text.to_owned()));
        for (offer, expected) in [
            (&["1.0.0"][..], v1("1.0.0")),
            (&["1.3.0"], v1("1.3.0")),
            (&["0.9.0", "1.0.0", "0.9.4"], v1("1.0.0")),
            (&["1.0.0", "1.10.0", "1.9.0"], v1("1.10.0")),
            (&["0.9.0", "0.8.0", "0.5.1"], v0_9("0.9.0")),
            (&["0.9.7", "2.0.0"], v0_9("0.9.7")),
            (&["0.8.0"], Ok(("0.8.0".to_owned(), Generation::V0_8))),
            (&["0.5.0", "0.4.0"], Ok(("0.5.0".to_owned(), Generation::V0_5_0))),
            (&["0.5.1"], Ok(("0.5.1".to_owned(), Generation::V0_5_1))),
            (&["0.5.2", "0.5.1"], Ok(("0.5.2".to_owned(), Generation::V0_5_2))),
            (&["0.4.0", "0.3.0"], Ok(("0.4.0".to_owned(), Generation::V0_4))),
            (&["0.3.0"], Err(NegotiationError::None)),
            (&["0.10.0", "2.0.0"], Err(NegotiationError::None)),
            (&[], Err(NegotiationError::None)),
            (&["1.0.0", "latest"], malformed("latest")),
            (&["0.1", "1.0.0"], malformed("0.1")),
        ] {
            assert_eq!(agreed(offer), expected, "{offer:?}");
        }
    }

    #[test]
    fn a_refusal_lists_the_supported_versions() {
        let none = NegotiationError::None.to_rpc();
        assert_eq!(none.code, -32005);
        assert_eq!(none.data, Some(json!({"supportedVersions": SUPPORTED})));
        let malformed = negotiate(&["x".repeat(4_000)]).unwrap_err().to_rpc();
        assert_eq!(malformed.code, -32602);
        assert!(malformed.message.len() < 100);
    }
}
