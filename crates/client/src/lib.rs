//! The client's side of the protocol: connect to an agent host, mirror its state, work in its chats.
//!
//! Promises: nothing the host sends is lost in silence; a connection that cannot keep up ends with a clear error.
//! Must not know: kernel, agents, host, compositor, terminals.

pub mod agent_log;
pub mod chat;
pub mod connection;
pub mod content;
mod destination;
pub mod devices;
pub mod endpoint;
pub mod envelope;
pub mod error;
mod http_request;
pub mod live;
pub mod mirror;
mod models;
mod proof;
mod pump;
pub mod replica;
pub mod session_list;
pub mod sessions;
pub mod status;
pub mod terminals;
pub mod token;
pub mod transform;

pub use connection::{
    Connection, Events, Handler, HostRequest, Initialized, Notification, Reconnected,
};
pub use content::ReadContent;
pub use destination::{Destination, HostTarget};
pub use endpoint::{Endpoint, EndpointError};
pub use envelope::{Envelope, Snapshot};
pub use error::ClientError;
pub use live::{ConnectionEvent, HostLocator, Live, Options, Resync, Update, Updates};
pub use mirror::{ApplyOutcome, Mirror};
pub use replica::{
    DropReason, DroppedAction, EnvelopeEffect, PendingAction, ReconnectOutcome, Replica,
    TooManyPending,
};
pub use session_list::SessionIndex;
pub use sessions::{LatestSession, SessionSummary};
pub use status::{HostStatus, ask_status};
