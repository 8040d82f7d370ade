//! The queue in front of the kernel's task: new connections, and inputs, in the order they happened.
//!
//! Promises: it is bounded; whoever finds it full waits.
//! Must not know: who sends.

use std::sync::Arc;

use agent_api::AgentEvent;
use kernel::{Input, PeerId, Role, RunId};
use tokio::sync::mpsc;

use crate::net::Link;

/// One item for the kernel's task.
pub enum QueuedInput {
    /// A connection begins; `link` leads back to it. The kernel's task makes an `Input::Connected` of it.
    Connected {
        peer: PeerId,
        role: Role,
        link: Arc<Link>,
    },
    Input(Input),
    /// What an agent says. With `may_join` texts that go together may become one.
    Agent {
        run: RunId,
        event: AgentEvent,
        may_join: bool,
    },
}

/// The sending side.
pub type KernelQueue = mpsc::Sender<QueuedInput>;
