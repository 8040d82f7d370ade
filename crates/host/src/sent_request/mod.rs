//! Requests to models on their way into the journal and out of it: taken apart into pieces that later requests share, and put
//! together again byte for byte.
//!
//! Promises: what is put together has the digest of what was sent, or the reader gets an error.
//! Must not know: any wire format.

mod call_record;
mod join;
mod sent_call;
mod split;

pub(crate) use call_record::{CallIdentity, end_record, make_record};
pub use join::{JoinError, join, outline};
pub use sent_call::{SentCall, call_json, read_call, transform_json};
use split::{SplitPiece, split};

/// How much is kept for each chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallRetention {
    pub calls_max: u64,
    pub bytes_max: u64,
}

impl Default for CallRetention {
    fn default() -> Self {
        let limits = crate::ServerLimits::default();
        Self::from(&limits)
    }
}

impl From<&crate::ServerLimits> for CallRetention {
    fn from(limits: &crate::ServerLimits) -> Self {
        Self { calls_max: limits.inspect_calls_max, bytes_max: limits.inspect_bytes_max }
    }
}
