//! Who is behind a request or a connection, and what that allows.
//!
//! Promises: tokens are compared in constant time.
//! Must not know: HTTP, where a token was found.

use subtle::ConstantTimeEq;

use super::admission::Admission;

/// Who it is.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// Whoever has the token of the data directory, or reaches a host that asks for none.
    Owner,
}

impl Access {
    /// The one that a token belongs to; `None` if it belongs to nobody.
    pub(super) fn of_token(admission: &Admission, presented: &[u8]) -> Option<Self> {
        let is_owner = match &admission.token {
            Some(token) => bool::from(presented.ct_eq(token.as_bytes())),
            None => true,
        };
        is_owner.then_some(Self::Owner)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Owner, Self::Owner) => true,
        }
    }
}
