//! Several nodes on one database: who is alive, who serves which space and may speak for it, and how clients come to it.
//!
//! Promises: a space is served by one node at a time; a node whose heartbeats are not answered falls silent before another may
//! take its spaces; no statement is made for a space that nobody uses; a client may come to any node; what reaches a node from
//! another was sent by one that lives.
//! Must not know: what happens in a space.

mod admin;
mod drain;
mod failed_spaces;
mod forward;
mod forwarded_body;
mod frame_edges;
mod heartbeat;
mod held_spaces;
mod lease;
#[cfg(test)]
mod lease_simulation;
mod lease_table;
mod living_nodes;
mod load_report;
mod node;
mod node_driver;
mod node_home;
mod node_machine;
#[cfg(test)]
mod node_machine_tests;
mod node_messages;
mod node_metrics;
mod node_spaces;
mod peer_dial;
mod peer_identity;
mod peer_listener;
mod peer_trust;
mod relay;
mod relay_stream;
mod runtime_pulse;
mod space_directory;
mod space_telemetry;
mod successor;
#[cfg(test)]
mod takeover_tests;

pub use admin::{ClusterAdmin, ClusterAdminError, ListedNode};
pub(crate) use forwarded_body::ForwardedBody;
pub(crate) use heartbeat::{ServedSpace, Tenure};
pub(crate) use lease::{LeaseStep, RenewedLease, SpaceLease};
pub use lease_table::PeerNode;
pub(crate) use lease_table::{
    FoundLease, HeartbeatRow, LeaseAnswer, LeaseAsk, NodeId, SpaceId, TakenLease,
};
pub use load_report::SpaceRate;
pub(crate) use node::ClusterNode;
pub(crate) use node_machine::LEASE_TIMES;
pub(crate) use node_spaces::{HeldJournal, SpaceLocation, SpaceUnavailable};
pub(crate) use peer_dial::OwnerSocket;
pub use peer_identity::{NodeFingerprint, PeerIdentity, PeerIdentityError};
pub(crate) use peer_listener::PeerService;
pub(crate) use relay::{ClientRoute, RelayRefusal, Relays};
pub(crate) use relay_stream::{RelayCut, pass_on};
pub(crate) use space_directory::RelayedClient;

#[cfg(test)]
mod relay_tests;
