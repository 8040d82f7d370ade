//! A device that was paired: its name, its scopes, and what its token is stored as.
//!
//! Promises: a token is never stored, shown by `Debug` or made from anything but the system's random bytes; a name is short and
//! holds nothing that could mislead a reader.
//! Must not know: files, HTTP, connections.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wire::Timestamp;

/// Characters of a name.
const NAME_CHARS_MAX: usize = 64;
const TOKEN_BYTES: usize = 32;
const ID_BYTES: usize = 8;

/// What a device may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceScope {
    /// Sessions: AHP, markup, content.
    Use,
    /// What models were sent (G-37).
    Inspect,
}

impl DeviceScope {
    pub fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Inspect => "inspect",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        let mut all = [Self::Use, Self::Inspect].into_iter();
        all.find(|scope| scope.name() == name)
    }
}

/// Names a device for as long as it is paired; not a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceId(String);

impl DeviceId {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let bytes = random_bytes::<ID_BYTES>()?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for DeviceId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What a device shows with each request. It leaves the host once, when the device is paired.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceToken(String);

impl DeviceToken {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        Ok(Self(URL_SAFE_NO_PAD.encode(random_bytes::<TOKEN_BYTES>()?)))
    }

    /// For the answer to the device, and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DeviceToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceToken(hidden)")
    }
}

/// The SHA-256 of a token or a code, in hex. Both have so many random bits that no salt is needed, and that looking one up takes
/// a time that says nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct SecretDigest(String);

impl SecretDigest {
    pub(super) fn of(secret: &[u8]) -> Self {
        let digest = Sha256::digest(secret);
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A device as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredDevice {
    pub id: DeviceId,
    pub name: String,
    pub digest: SecretDigest,
    pub scopes: Vec<DeviceScope>,
    /// In milliseconds since 1970, as the two below.
    pub created_ms: i64,
    pub last_used_ms: i64,
    /// Where it was last used from.
    pub address: Option<String>,
}

/// A device as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub id: DeviceId,
    pub name: String,
    pub scopes: Vec<DeviceScope>,
    pub created: Timestamp,
    pub last_used: Timestamp,
    pub address: Option<String>,
    /// Connections of it that are open.
    pub connections: usize,
}

pub(super) fn random_bytes<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A name without the space around it, if it may be one.
pub fn check_name(name: &str) -> Result<String, DeviceNameError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(DeviceNameError::Empty);
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(DeviceNameError::TooLong);
    }
    match name.chars().find(|c| is_misleading(*c)) {
        Some(found) => Err(DeviceNameError::Character(found)),
        None => Ok(name.to_owned()),
    }
}

/// Why a name is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    #[error("the name of a device is empty; give it one, such as \"phone\"")]
    Empty,
    #[error(
        "the name of a device is longer than {NAME_CHARS_MAX} characters; give it a shorter one"
    )]
    TooLong,
    #[error("the name of a device holds the character U+{:04X}, which is not shown as it is; leave it out", u32::from(*.0))]
    Character(char),
}

/// Control characters, and those that hide themselves or turn the direction of what is around them.
fn is_misleading(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The name, or with a number behind it if another device has it: names are how people tell devices apart.
pub(super) fn make_unique<'a>(name: &str, taken: impl Iterator<Item = &'a str>) -> String {
    let taken: Vec<String> = taken.map(str::to_lowercase).collect();
    if !taken.contains(&name.to_lowercase()) {
        return name.to_owned();
    }
    let numbered = (2..=taken.len() + 2).map(|number| {
        let number = format!(" {number}");
        let kept = NAME_CHARS_MAX - number.len();
        let stem: String = name.chars().take(kept).collect();
        format!("{}{number}", stem.trim_end())
    });
    let mut free = numbered.filter(|name| !taken.contains(&name.to_lowercase()));
    // There is one more number than there are names.
    free.next().unwrap_or_else(|| name.to_owned())
}
