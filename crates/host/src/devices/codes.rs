//! One-time codes that pair a device, and how often one may be tried.
//!
//! Promises: a code works once and not after its time; at most `TRIES_MAX` are tried in `TRIES_WINDOW`, whoever tries; codes are
//! held as digests, in memory only, and never more than `CODES_MAX`.
//! Must not know: files, devices, HTTP.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::time::Instant;

use super::device::{DeviceScope, SecretDigest, random_bytes};

const CODE_BYTES: usize = 16;
/// Codes that wait to be used; the oldest goes when another is made.
const CODES_MAX: usize = 16;
const TRIES_MAX: usize = 10;
const TRIES_WINDOW: Duration = Duration::from_secs(60);

/// What a code is made for, which decides how long it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePurpose {
    /// The browser of this machine, which is opened at once.
    Open,
    /// Another device, whose owner has to take it up first.
    Pair,
}

impl CodePurpose {
    pub fn lifetime(self) -> Duration {
        match self {
            Self::Open => Duration::from_secs(60),
            Self::Pair => Duration::from_secs(5 * 60),
        }
    }
}

/// What the device that uses a code becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeGrant {
    /// The name that the operator gave it.
    pub name: Option<String>,
    pub scopes: Vec<DeviceScope>,
}

struct WaitingCode {
    digest: SecretDigest,
    expires: Instant,
    purpose: CodePurpose,
    grant: CodeGrant,
}

/// Why a code was not used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeRefusal {
    Wrong,
    /// It is for the user who asked for it, and waits for them.
    OtherUser,
}

#[derive(Default)]
pub(super) struct PairingCodes {
    waiting: VecDeque<WaitingCode>,
    tries: VecDeque<Instant>,
}

impl PairingCodes {
    /// Makes a code.
    pub(super) fn issue(
        &mut self,
        purpose: CodePurpose,
        grant: CodeGrant,
    ) -> Result<String, getrandom::Error> {
        let code = URL_SAFE_NO_PAD.encode(random_bytes::<CODE_BYTES>()?);
        let now = Instant::now();
        self.waiting.retain(|code| code.expires > now);
        while self.waiting.len() >= CODES_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(WaitingCode {
            digest: SecretDigest::of(code.as_bytes()),
            expires: now + purpose.lifetime(),
            purpose,
            grant,
        });
        Ok(code)
    }

    /// Counts a try. An error says after how long the next one is free.
    pub(super) fn count_try(&mut self) -> Result<(), Duration> {
        let now = Instant::now();
        while self.tries.front().is_some_and(|tried| now.duration_since(*tried) >= TRIES_WINDOW) {
            self.tries.pop_front();
        }
        if let Some(oldest) = self.tries.front()
            && self.tries.len() >= TRIES_MAX
        {
            return Err(TRIES_WINDOW.saturating_sub(now.duration_since(*oldest)));
        }
        self.tries.push_back(now);
        Ok(())
    }

    /// Whether a code would be taken; it waits on.
    pub(super) fn check(&mut self, code: &str, is_other_user: bool) -> Result<(), CodeRefusal> {
        self.position(code, is_other_user)?;
        Ok(())
    }

    /// Uses a code up.
    pub(super) fn take(
        &mut self,
        code: &str,
        is_other_user: bool,
    ) -> Result<CodeGrant, CodeRefusal> {
        let at = self.position(code, is_other_user)?;
        let code = self.waiting.remove(at).ok_or(CodeRefusal::Wrong)?;
        Ok(code.grant)
    }

    /// Where a code waits. One for the browser of this machine is of no use to another user of it, who can see the arguments that
    /// a browser was started with.
    fn position(&mut self, code: &str, is_other_user: bool) -> Result<usize, CodeRefusal> {
        let digest = SecretDigest::of(code.as_bytes());
        let now = Instant::now();
        self.waiting.retain(|code| code.expires > now);
        let at =
            self.waiting.iter().position(|code| code.digest == digest).ok_or(CodeRefusal::Wrong)?;
        let purpose = self.waiting.get(at).map(|code| code.purpose);
        if purpose == Some(CodePurpose::Open) && is_other_user {
            return Err(CodeRefusal::OtherUser);
        }
        Ok(at)
    }
}
