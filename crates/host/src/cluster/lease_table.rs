//! What a node asks of the tables `node` and `lease`, and what it is answered: the words that its state machine, the database
//! and the simulation share.
//!
//! Must not know: SQL, when anything is asked.

/// A moment of `CLOCK_BOOTTIME` on this machine, in milliseconds: it goes on while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BootInstant(pub u64);

impl BootInstant {
    pub(crate) fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

/// The number of one start of one process.
pub(crate) type NodeId = i64;
/// The number of a space in the database.
pub(crate) type SpaceId = i64;

/// A statement about nodes or leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseAsk {
    /// This node is alive.
    Heartbeat,
    /// Who holds a space?
    Find { space: SpaceId },
    /// Takes a space from the holder that was seen.
    Take { space: SpaceId, seen: Option<NodeId> },
    /// What does this node hold?
    ListOwned,
    /// Which spaces of nodes that are gone, or of nobody, have work that waits for nobody?
    ListWork { limit: u32 },
}

/// Its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseAnswer {
    /// `None`: there is no such node any more.
    Heartbeat(Option<HeartbeatRow>),
    /// `None`: there is no such space.
    Found(Option<FoundLease>),
    /// `None`: the holder is another by now, or alive, or this node may not judge yet.
    Taken(Option<TakenLease>),
    Owned(Vec<SpaceId>),
    /// With the holder that is gone, if there is one.
    Work(Vec<(SpaceId, Option<NodeId>)>),
    /// Nobody knows: the connection was lost, or it took too long.
    Unknown,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeartbeatRow {
    /// How often a space was taken from this node.
    pub taken: i64,
    /// Nodes whose time is over and which still hold spaces.
    pub expired: Vec<NodeId>,
    /// Nodes whose time is not over, whatever they hold.
    pub living: Vec<NodeId>,
}

/// Who holds a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundLease {
    pub holder: Option<NodeId>,
    /// Where the holder is, if it is alive.
    pub alive: Option<PeerNode>,
    /// Where no holder lives: the node that is to serve it because it offers the mount that the space names, and whoever asks does not.
    pub offering: Option<PeerNode>,
}

/// A node as others reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerNode {
    pub id: i64,
    pub name: String,
    /// Where it takes connections of other nodes; empty: nowhere.
    pub address: String,
    /// The SHA-256 of the certificate it shows there.
    pub fingerprint: Vec<u8>,
}

/// A lease that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakenLease {
    pub epoch: i64,
    pub batch: i64,
}
