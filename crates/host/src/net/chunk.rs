//! Read buffers, lent for as long as what was read is being looked at.
//!
//! Promises: a connection that waits for bytes holds none; at most `CHUNKS_IDLE_MAX` lie unused.
//! Must not know: who borrows.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// What is read from a socket at a time.
pub(crate) const CHUNK_BYTES: usize = 16 * 1_024;
const CHUNKS_IDLE_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct Chunks {
    idle: Mutex<Vec<Box<[u8]>>>,
}

/// One buffer; goes back when dropped.
pub(crate) struct Chunk {
    home: Arc<Chunks>,
    bytes: Box<[u8]>,
}

impl Chunks {
    pub fn lend(self: &Arc<Self>) -> Chunk {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let bytes = idle.unwrap_or_else(|| vec![0; CHUNK_BYTES].into_boxed_slice());
        Chunk {
            home: self.clone(),
            bytes,
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut idle = self
            .home
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if idle.len() < CHUNKS_IDLE_MAX {
            idle.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
