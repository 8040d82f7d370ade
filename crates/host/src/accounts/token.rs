//! A token of an account: `grt_<id>_<256 bits>`. The id names its row, the rest is the secret.
//!
//! Promises: the secret is never stored or shown by `Debug`; it is made from the system's random bytes alone and compared in
//! constant time.
//! Must not know: the database, who has it.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How every token of an account begins.
const PREFIX: &str = "grt_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// A token as it is shown once and sent by clients.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountToken {
    id: String,
    secret: String,
}

impl fmt::Debug for AccountToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}_..", self.id)
    }
}

impl AccountToken {
    pub(super) fn make() -> Result<Self, getrandom::Error> {
        Ok(Self { id: random_hex::<ID_BYTES>()?, secret: random_hex::<SECRET_BYTES>()? })
    }

    /// Whether a secret claims to be such a token, rightly or not.
    pub(crate) fn is_claimed(presented: &[u8]) -> bool {
        presented.starts_with(PREFIX.as_bytes())
    }

    /// `None` for what no token looks like.
    pub(crate) fn parse(presented: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(presented).ok()?;
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hex = |text: &str, bytes: usize| {
            text.len() == 2 * bytes && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        (is_hex(id, ID_BYTES) && is_hex(secret, SECRET_BYTES))
            .then(|| Self { id: id.to_owned(), secret: secret.to_owned() })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole of it: for the one it is made for, once.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    /// What is stored. The secret has 256 random bits, so one round is enough: a slow hash is for passwords.
    pub(super) fn digest(&self) -> Vec<u8> {
        Sha256::digest(self.secret.as_bytes()).to_vec()
    }

    pub(super) fn matches(&self, stored: &[u8]) -> bool {
        bool::from(self.digest().ct_eq(stored))
    }
}

fn random_hex<const N: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_keeps_its_secret() {
        let token = AccountToken::make().unwrap();
        let text = token.reveal();
        assert_eq!(AccountToken::parse(text.as_bytes()), Some(token.clone()));
        assert!(token.matches(&token.digest()));
        assert!(!format!("{token:?}").contains(&token.secret));
        assert_ne!(AccountToken::make().unwrap(), token);
    }

    #[test]
    fn what_looks_like_no_token_is_none() {
        let token = AccountToken::make().unwrap().reveal();
        for text in [
            "",
            "grt_",
            "grt__",
            &token[1..],
            &token[..token.len() - 1],
            &format!("{token}0"),
            &token.replacen("grt", "GRT", 1),
            &token.replacen('_', "__", 1),
        ] {
            assert_eq!(AccountToken::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(AccountToken::parse(b"grt_\xff"), None);
    }
}
