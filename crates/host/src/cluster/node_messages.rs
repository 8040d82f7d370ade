//! What happens to a node, what it is told to do about it, and the times that it goes by: the words between its state machine and
//! whoever runs that.
//!
//! Must not know: SQL, sockets, kernels, any clock.

use super::lease_table::{BootInstant, LeaseAnswer, LeaseAsk, PeerNode, SpaceId, TakenLease};

/// The times of leases, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseTimes {
    /// A node that was silent for so long is gone, for all others.
    pub ttl_ms: u64,
    /// For so long a node trusts a heartbeat itself: less, so that it falls silent before it is judged.
    pub trust_ms: u64,
    pub beat_ms: u64,
}

pub(crate) const LEASE_TIMES: LeaseTimes =
    LeaseTimes { ttl_ms: 6_000, trust_ms: 5_000, beat_ms: 2_000 };

/// Whether the node may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeStanding {
    Trusted,
    /// The last heartbeat is too old: nothing is said and nothing begun until there is a new one.
    Silent,
    /// Its row is gone: another process goes on in its place.
    Ended,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeInput {
    /// Time passed.
    Woke,
    /// An answer to what was asked at a moment.
    Answered { ask: LeaseAsk, sent: BootInstant, answer: LeaseAnswer },
    /// Somebody wants a space.
    Wanted(SpaceId),
    /// What runs the space is there.
    Loaded(SpaceId),
    /// It ended as it was to, or is another's; its lease is given back or lost.
    Ended(SpaceId),
    /// It could not be started, or its journal cannot go on: it is loaded anew, if it is still nobody else's.
    Failed(SpaceId),
    /// Nobody has used it for long, or an operator wants it elsewhere.
    Unwanted(SpaceId),
    /// No space is taken from now on.
    Drain,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeCommand {
    Ask(LeaseAsk),
    /// Start what runs a space that was taken.
    Load(SpaceId, TakenLease),
    /// End it in order, and give the lease back.
    Unload(SpaceId),
    /// End it at once: it is another's.
    Drop(SpaceId),
    /// Answers the questions where a space is.
    Tell(SpaceId, SpaceFinding),
    /// The node's standing, or until when it may speak, has changed.
    Stand,
}

/// Where a space is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpaceFinding {
    Here,
    At(PeerNode),
    /// There is none.
    Missing,
    /// Nobody serves it at the moment; it is worth another try.
    Unavailable,
}
