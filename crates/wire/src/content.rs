//! Content that is stored outside of state and named by its digest: `ahp-content:/sha256/<hex>` (G-32), and for people also
//! `ahp-content:/sha256/<hex>/<file name>` (G-48).
//!
//! Promises: a digest has one spelling, and only the digest says what is read; nothing else is accepted as such a URI. Bodies are
//! named by [`Digest::of`] alone, and a [`NamedBody`] has the name of what it holds.
//! Must not know: where content is stored.

#[cfg(debug_assertions)]
mod hash_count;
mod named_body;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::percent;

#[cfg(debug_assertions)]
pub use hash_count::HashCount;
pub use named_body::NamedBody;

/// The scheme of content URIs.
pub const SCHEME: &str = "ahp-content";

/// What every content URI begins with.
const PREFIX: &str = "ahp-content:/sha256/";

/// How much of a file name goes into a URI, in bytes: as much as file systems take.
const NAME_BYTES_MAX: usize = 255;

/// The longest name in a URI that is read: each byte of it may be escaped.
const ESCAPED_NAME_BYTES_MAX: usize = 3 * NAME_BYTES_MAX;

/// The SHA-256 of some content: its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    pub const HEX_LEN: usize = 64;

    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The name of a body. Hashing is most of the work with a large one: it is done once, and the name passed on.
    pub fn of(body: &[u8]) -> Self {
        let digest = Self(Sha256::digest(body).into());
        #[cfg(debug_assertions)]
        hash_count::record(&digest);
        digest
    }

    /// Whether this is the name of a body: for whoever checks what was read.
    pub fn is_of(&self, body: &[u8]) -> bool {
        self.0 == *Sha256::digest(body)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Sixty-four lower-case digits, nothing else: a name must not have two spellings.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits: &[u8; Self::HEX_LEN] = hex.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }

    pub fn to_hex(&self) -> String {
        self.to_string()
    }

    pub fn uri(&self) -> String {
        format!("{PREFIX}{self}")
    }

    /// The URI with a file name for people, of which only the last segment counts.
    pub fn uri_with_name(&self, name: &str) -> String {
        let name = name.rsplit('/').next().unwrap_or(name);
        let end = name.floor_char_boundary(NAME_BYTES_MAX);
        match &name[..end] {
            // A reader of URIs would take these for steps in a path.
            "" | "." | ".." => self.uri(),
            name => format!("{PREFIX}{self}/{}", percent::encode_segment(name)),
        }
    }

    /// The content that a URI names; a file name in it is ignored.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let (hex, rest) = uri.strip_prefix(PREFIX)?.split_at_checked(Self::HEX_LEN)?;
        let is_name =
            |name: &str| !name.contains('/') && (1..=ESCAPED_NAME_BYTES_MAX).contains(&name.len());
        let fits = rest.is_empty() || rest.strip_prefix('/').is_some_and(is_name);
        Self::from_hex(hex).filter(|_| fits)
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Every record passes this, each delta of a turn too: made once, it costs next to nothing.
static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(PREFIX));

/// All content that some JSON names, wherever in it: in a field of its own or in the middle of a text.
pub fn digests_in(json: &[u8]) -> BTreeSet<Digest> {
    let after = |at: usize| {
        let hex = at + PREFIX.len();
        let hex = std::str::from_utf8(json.get(hex..hex + Digest::HEX_LEN)?).ok()?;
        Digest::from_hex(hex)
    };
    FINDER.find_iter(json).filter_map(after).collect()
}

/// How often a text names content, or seems to.
pub(crate) fn count_in(text: &str) -> usize {
    if text.len() < PREFIX.len() { 0 } else { FINDER.find_iter(text.as_bytes()).count() }
}

/// The types that some JSON gives to content it refers to, found in one walk.
pub fn types_in(json: &[u8]) -> BTreeMap<Digest, String> {
    fn collect(value: &Value, types: &mut BTreeMap<Digest, String>) {
        match value {
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name).and_then(Value::as_str);
                if let Some(digest) = text("uri").and_then(Digest::from_uri)
                    && let Some(content_type) = text("contentType")
                {
                    types.entry(digest).or_insert_with(|| content_type.to_owned());
                }
                fields.values().for_each(|value| collect(value, types));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, types)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut types = BTreeMap::new();
    if let Ok(value) = serde_json::from_slice(json) {
        collect(&value, &mut types);
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_digest_has_one_uri() {
        let digest = Digest::from_hex(HEX).unwrap();
        assert_eq!(digest.uri(), format!("ahp-content:/sha256/{HEX}"));
        assert_eq!(Digest::from_uri(&digest.uri()), Some(digest));
        assert_eq!(digest.as_bytes()[..3], [0x01, 0x23, 0x45]);
        for other in [
            HEX.to_owned(),
            format!("ahp-content:/sha256/{}", HEX.to_uppercase()),
            format!("ahp-content:/sha256/{HEX}0"),
            format!("ahp-content:/sha256/{}", &HEX[1..]),
            format!("ahp-content:/sha256/{}é", &HEX[2..]),
            format!("ahp-content:/sha1/{HEX}"),
            format!("ahp-content://sha256/{HEX}"),
        ] {
            assert_eq!(Digest::from_uri(&other), None, "{other}");
        }
    }

    // G-48
    #[test]
    fn a_file_name_is_for_people() {
        let digest = Digest::from_hex(HEX).unwrap();
        let named = |name: &str| {
            let uri = digest.uri_with_name(name);
            assert_eq!(Digest::from_uri(&uri), Some(digest), "{uri}");
            assert_eq!(
                digests_in(format!("{{\"uri\": \"{uri}\"}}").as_bytes()),
                BTreeSet::from([digest])
            );
            uri[digest.uri().len()..].to_owned()
        };
        assert_eq!(named("main.rs"), "/main.rs");
        assert_eq!(named("src/a b.rs"), "/a%20b.rs");
        assert_eq!(named("q\"#?%\\\n.ü"), "/q%22%23%3F%25%5C%0A.%C3%BC");
        for none in ["", ".", "..", "src/", "a/.."] {
            assert_eq!(named(none), "", "{none}");
        }
        assert_eq!(named(&"é".repeat(1_000)).len(), 1 + 6 * 127);
        let uri = digest.uri();
        for other in [
            format!("{uri}/"),
            format!("{uri}/a/b"),
            format!("{uri}a"),
            format!("{uri}?a"),
            format!("{uri}/{}", "a".repeat(766)),
            format!("ahp-content:/sha256/{}/a", &HEX[1..]),
        ] {
            assert_eq!(Digest::from_uri(&other), None, "{other}");
        }
    }

    #[test]
    fn every_mention_is_recognised_at_any_position() {
        let digest = Digest::from_hex(HEX).unwrap();
        let other = Digest::new([7; 32]);
        let json = serde_json::json!({
            "uri": digest.uri(),
            "text": format!("see ![x]({}) and {}", other.uri(), digest.uri()),
            "short": "ahp-content:/sha256/0123é",
            "end": "ahp-content:/sha256/",
            "split": format!("ahp-content:/sha256/{}é", &HEX[1..]),
        });
        let digests = digests_in(json.to_string().as_bytes());
        assert_eq!(digests, BTreeSet::from([digest, other]));
        assert!(digests_in(b"\xff").is_empty());
    }

    #[test]
    fn a_type_is_taken_from_beside_the_name() {
        let (digest, other) = (Digest::new([1; 32]), Digest::new([2; 32]));
        let json = serde_json::json!({"parts": [
            {"contentType": "text/html", "uri": other.uri()},
            {"text": digest.uri(), "contentType": "text/css"},
            {"deep": [{"uri": digest.uri_with_name("a.png"), "contentType": "image/png"}]},
        ]})
        .to_string();
        let types = types_in(json.as_bytes());
        let content_type = |digest| types.get(&digest).cloned();
        assert_eq!(content_type(digest).as_deref(), Some("image/png"));
        assert_eq!(content_type(other).as_deref(), Some("text/html"));
        assert_eq!(content_type(Digest::new([3; 32])), None);
        assert!(types_in(b"{").is_empty());
    }
}
