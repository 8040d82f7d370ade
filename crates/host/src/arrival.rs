//! What reaches the kernel's task: connections that begin, and inputs.

use std::sync::Arc;

use kernel::{Input, PeerId};
use tokio::sync::mpsc;

use crate::net::Link;

/// One thing for the kernel's task, in the order it happened.
pub enum Arrival {
    /// A connection begins; `link` is the way back to it. Followed by `Input::Connected` from the kernel's task itself.
    Joined {
        peer: PeerId,
        link: Arc<Link>,
    },
    Input(Input),
}

/// Bounded: whoever fills it waits.
pub type Arrivals = mpsc::Sender<Arrival>;
