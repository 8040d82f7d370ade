//! The other side of the wire: connect to an agent host, talk to it, mirror its state.
//!
//! Promises: nothing the host says is lost in silence; a connection that cannot keep up ends with a clear error.
//! Must not know: kernel, agents, host, compositor.

pub mod connection;
pub mod endpoint;
pub mod envelope;
pub mod error;
pub mod live;
pub mod mirror;
mod pump;
pub mod replica;
pub mod transform;

pub use connection::{
    Connection, Events, Handler, HostRequest, Initialized, Notification, Reconnected, Target,
};
pub use endpoint::{Endpoint, EndpointError};
pub use envelope::{Envelope, Snapshot};
pub use error::ClientError;
pub use live::{Back, Link, Live, Options, Place, Update, Updates};
pub use mirror::{Applied, Mirror};
pub use replica::{GivenUp, Heard, Pending, Replica, Resumed, TooManyPending, WhyNot};
