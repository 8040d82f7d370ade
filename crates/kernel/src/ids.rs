//! Numbers that name things: connections, runs, questions, seqs, channels.

/// A host-wide sequence number (H-061). Never used twice, not even over restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Seq(pub u64);

/// A channel's number: the seq that was used up to create it, so a URI that is used again is another channel.
/// The root channel is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ChannelId(pub u64);

impl ChannelId {
    pub const ROOT: Self = Self(0);
}

/// A connection. Never used twice in the life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u64);

/// A running turn's agent task. Never used twice in the life of a process: what a stopped run still says is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// A question that is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);
