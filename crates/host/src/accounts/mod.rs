//! Accounts of a cluster: principals, the spaces they are members of with a role, and the tokens they show (ADR 0093).
//!
//! Promises: a secret is in no table and no log; what takes a right away counts on every node within seconds and closes the
//! connections that stand on it; a role is never more than both the token and the membership say.
//! Must not know: HTTP, what a role allows.

mod admin;
mod check;
mod remove;
mod space_bounds;
mod space_limits;
mod tables;
#[cfg(test)]
mod tests;
mod token;

pub use kernel::Role;

pub use admin::{AccountAdmin, IssuedToken, ListedSpace, ListedToken, NewToken, SpaceLoad};
pub(crate) use check::{Accounts, GrantedToken, TokenRefusal};
pub use remove::RemovedSpace;
pub(crate) use space_bounds::{BoundedSlot, SpaceBounds};
pub use space_limits::{SpaceLimitKey, SpaceLimits};
pub(crate) use tables::make_account_tables;
pub use token::AccountToken;

use crate::journal::JournalError;
use crate::journal::postgres::connection::StatementError;

/// Why something about accounts could not be done; for the operator.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("there is no space `{0}`; `greenroom space list` shows those there are")]
    UnknownSpace(String),
    #[error("there is a space `{0}` already; choose another name")]
    NameTaken(String),
    #[error(
        "`{0}` is not a name for a space: it takes small letters, digits and `-`, at most 64 of them"
    )]
    BadSpaceName(String),
    #[error("`{0}` is not a valid name: use 1 to 128 visible characters")]
    BadPrincipal(String),
    #[error("there is no token `{0}`; `greenroom space list NAME` shows those of a space")]
    UnknownToken(String),
    #[error("the database refuses this or is away: {0}")]
    Database(String),
    #[error("the system gives no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

impl From<StatementError> for AccountError {
    fn from(error: StatementError) -> Self {
        Self::Database(error.words())
    }
}

impl From<tokio_postgres::Error> for AccountError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.to_string())
    }
}

impl From<JournalError> for AccountError {
    fn from(error: JournalError) -> Self {
        Self::Database(match error {
            // Its own words are about a journal, which an operator did not ask for.
            JournalError::Unwritable(why) | JournalError::Unreadable(why) => why,
            other @ (JournalError::BadRecord { .. }
            | JournalError::Locked(_)
            | JournalError::Lost(_)
            | JournalError::Format(_)) => other.to_string(),
        })
    }
}

/// A role as it is stored: a larger number may do more.
fn stored_role(role: Role) -> i16 {
    match role {
        Role::Viewer => 0,
        Role::Member => 1,
        Role::Owner => 2,
    }
}

/// A number of a later version means no more than what is known here: reading.
fn role_of_stored(number: i16) -> Role {
    let mut roles = Role::ALL.into_iter();
    roles.find(|role| stored_role(*role) == number).unwrap_or(Role::Viewer)
}
