//! A pool of read buffers, each taken for as long as what was read is being decoded.
//!
//! Promises: a connection that waits for bytes holds none; at most `IDLE_BUFFERS_MAX` lie unused.
//! Must not know: who reads.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

/// What is read from a socket at a time.
pub(crate) const READ_BUFFER_BYTES: usize = 16 * 1_024;
const IDLE_BUFFERS_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct ReadBufferPool {
    idle: Mutex<Vec<Box<[u8]>>>,
}

/// One buffer; goes back when dropped.
pub(crate) struct ReadBuffer {
    pool: Arc<ReadBufferPool>,
    bytes: Box<[u8]>,
}

impl ReadBufferPool {
    pub(crate) fn take(self: &Arc<Self>) -> ReadBuffer {
        let idle = self.idle.lock().pop();
        let bytes = idle.unwrap_or_else(|| vec![0; READ_BUFFER_BYTES].into_boxed_slice());
        ReadBuffer { pool: self.clone(), bytes }
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        let mut idle = self.pool.idle.lock();
        if idle.len() < IDLE_BUFFERS_MAX {
            idle.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for ReadBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
