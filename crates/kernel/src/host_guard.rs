//! What the host keeps for a message as long as anything of the message is in memory.
//!
//! Promises: it is let go when the last clone is dropped; nobody here looks at it.
//! Must not know: what it stands for.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A value of the host that lives as long as a message, such as a permit for its memory.
#[derive(Clone, Default)]
pub struct HostGuard(Option<Arc<dyn Any + Send + Sync>>);

impl HostGuard {
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Some(Arc::new(held)))
    }
}

impl fmt::Debug for HostGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Held" } else { "Free" })
    }
}
