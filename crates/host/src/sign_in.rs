//! Signing in to MCP servers: for programs of this project that show somebody a page, and for the page that this host serves, which
//! cannot ask authorisation servers itself.
//!
//! Promises: an answer counts only for whoever began the sign-in; what waits is bounded in number and time, and forgotten with a
//! device that is signed out. Nothing is stored.
//! Must not know: HTTP, who gets the token.

use std::time::Duration;

use agents::mcp::{PendingSignIn, begin_sign_in_at};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

pub use agents::mcp::{
    OAuthClient, RedirectedAddresses, RenewalError, SignInError, SignInPage, SignInWanted,
    TokenGrant, TokenRenewal, begin_sign_in,
};

/// How long a person may take at a page.
const PAGE_MAX: Duration = Duration::from_mins(10);
/// Pages that one device may have open; the oldest makes room.
const PAGES_OF_ONE_MAX: usize = 4;
/// Pages that all devices may have open.
const PAGES_MAX: usize = 64;

/// Why the page is not signed in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageSignInError {
    #[error("too many sign-ins wait at once; try again in ten minutes")]
    TooMany,
    #[error("no sign-in of this device waits for this answer; begin again")]
    NotWaiting,
    #[error(transparent)]
    Failed(#[from] SignInError),
}

/// What somebody has to visit.
pub(crate) struct SignInAddress {
    pub(crate) url: String,
    /// Whose page it is, for people to check.
    pub(crate) host: String,
}

/// A token, and what it is for.
pub(crate) struct SignedIn {
    pub(crate) resource: String,
    pub(crate) grant: TokenGrant,
}

/// The sign-ins that were begun from pages.
#[derive(Default)]
pub(crate) struct PageSignIns(Mutex<Vec<WaitingSignIn>>);

struct WaitingSignIn {
    /// Who began it.
    holder: String,
    resource: String,
    since: Instant,
    pending: PendingSignIn,
}

impl PageSignIns {
    /// Begins a sign-in; the browser is sent to `back` after it.
    pub(crate) async fn begin(
        &self,
        holder: &str,
        wanted: &SignInWanted,
        back: &str,
    ) -> Result<SignInAddress, PageSignInError> {
        if self.lock().len() >= PAGES_MAX {
            return Err(PageSignInError::TooMany);
        }
        let pending = begin_sign_in_at(wanted, back).await?;
        let address = SignInAddress { url: pending.url.clone(), host: pending.host.clone() };
        let mut waiting = self.lock();
        let of_holder = |it: &WaitingSignIn| it.holder == holder;
        if waiting.iter().filter(|it| of_holder(it)).count() >= PAGES_OF_ONE_MAX
            && let Some(oldest) = waiting.iter().position(of_holder)
        {
            waiting.remove(oldest);
        }
        if waiting.len() >= PAGES_MAX {
            return Err(PageSignInError::TooMany);
        }
        waiting.push(WaitingSignIn {
            holder: holder.to_owned(),
            resource: wanted.resource.clone(),
            since: Instant::now(),
            pending,
        });
        Ok(address)
    }

    /// Gets the token for the address that a browser came back to.
    pub(crate) async fn finish(
        &self,
        holder: &str,
        address: &str,
    ) -> Result<SignedIn, PageSignInError> {
        let found = {
            let mut waiting = self.lock();
            let is_it =
                |it: &WaitingSignIn| it.holder == holder && it.pending.is_answered_by(address);
            let at = waiting.iter().position(is_it);
            at.map(|at| waiting.remove(at))
        };
        let WaitingSignIn { resource, pending, .. } = found.ok_or(PageSignInError::NotWaiting)?;
        let grant = pending.finish(address).await?;
        Ok(SignedIn { resource, grant })
    }

    /// A device was signed out.
    pub(crate) fn forget(&self, holder: &str) {
        self.lock().retain(|it| it.holder != holder);
    }

    /// What waits, without what waited too long.
    fn lock(&self) -> MutexGuard<'_, Vec<WaitingSignIn>> {
        // Every change here is one call on the list.
        let mut waiting = self.0.lock();
        waiting.retain(|it| it.since.elapsed() < PAGE_MAX);
        waiting
    }
}
