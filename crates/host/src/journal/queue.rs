//! The bounded queue in front of a thread of the journal.
//!
//! Promises: first in, first out; tasks wait for room without a thread, the thread waits for items without a task; a
//! closed queue still gives out what it holds.
//! Must not know: what the items are.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Semaphore;

/// A bounded queue between tasks that wait without a thread and threads that wait without a task.
pub(super) struct Queue<T> {
    state: Mutex<QueueState<T>>,
    filled: Condvar,
    room: Semaphore,
}

struct QueueState<T> {
    items: VecDeque<T>,
    closed: bool,
}

#[derive(Debug)]
pub(super) struct Closed;

impl<T> Queue<T> {
    pub(super) fn new(items_max: usize) -> Self {
        Self {
            state: Mutex::new(QueueState { items: VecDeque::new(), closed: false }),
            filled: Condvar::new(),
            room: Semaphore::new(items_max),
        }
    }

    pub(super) async fn put(&self, item: T) -> Result<(), Closed> {
        let room = self.room.acquire().await.map_err(|_| Closed)?;
        let mut state = self.state.lock();
        if state.closed {
            return Err(Closed);
        }
        state.items.push_back(item);
        room.forget();
        self.filled.notify_one();
        Ok(())
    }

    /// The next item; `None` once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<T> {
        let mut state = self.state.lock();
        self.filled.wait_while(&mut state, |state| state.items.is_empty() && !state.closed);
        let item = state.items.pop_front()?;
        self.room.add_permits(1);
        Some(item)
    }

    /// Takes nothing new; what is in it is still given out.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.room.close();
        self.filled.notify_all();
    }

    /// Closes it and drops what is in it: nobody is going to take it.
    pub(super) fn discard(&self) {
        self.close();
        self.state.lock().items.clear();
    }
}
