//! A flag that stops long work whose caller is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::FileError;

/// Whether work in progress should stop. A handle: clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// For the middle of long work.
    pub fn check(&self) -> Result<(), FileError> {
        if self.is_cancelled() { Err(FileError::Cancelled) } else { Ok(()) }
    }
}

/// Cancels when dropped.
#[derive(Debug)]
pub struct CancelOnDrop(pub Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
