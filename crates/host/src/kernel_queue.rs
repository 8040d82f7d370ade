//! The queue in front of the kernel's task: new connections, and inputs, in the order they happened.
//!
//! Promises: it is bounded; a sender that finds it full waits.
//! Must not know: who sends.

use std::sync::Arc;

use agent_api::AgentEvent;
use kernel::{Input, PeerId, Role, RunId};
use tokio::sync::mpsc;

use crate::net::Link;

/// One item for the kernel's task. It is small: a queue has room for some as long as it exists, and there may be thousands of
/// queues.
pub enum QueuedInput {
    /// A connection begins; `link` leads back to it. The kernel's task makes an `Input::Connected` of it.
    Connected {
        peer: PeerId,
        role: Role,
        link: Arc<Link>,
    },
    Input(Box<Input>),
    /// What an agent says. With `may_join` texts that go together may become one.
    Agent {
        run: RunId,
        event: Box<AgentEvent>,
        may_join: bool,
    },
}

impl From<Input> for QueuedInput {
    fn from(input: Input) -> Self {
        Self::Input(Box::new(input))
    }
}

impl QueuedInput {
    /// The input, if it is one as it is.
    pub fn into_input(self) -> Option<Input> {
        match self {
            Self::Input(input) => Some(*input),
            Self::Connected { .. } | Self::Agent { .. } => None,
        }
    }
}

/// The sending side.
pub type KernelQueue = mpsc::Sender<QueuedInput>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_little_room() {
        // Channels have room for 32 of them from their beginning.
        assert!(size_of::<QueuedInput>() <= 40);
    }
}
