//! The queue in front of the kernel's task: new connections, and inputs, in the order they happened.
//!
//! Promises: it is bounded; whoever finds it full waits.
//! Must not know: who sends.

use std::sync::Arc;

use kernel::{Input, PeerId};
use tokio::sync::mpsc;

use crate::net::Link;

/// One item for the kernel's task.
pub enum QueuedInput {
    /// A connection begins; `link` leads back to it. The kernel's task makes an `Input::Connected` of it.
    Connected {
        peer: PeerId,
        link: Arc<Link>,
    },
    Input(Input),
}

/// The sending side.
pub type KernelQueue = mpsc::Sender<QueuedInput>;
