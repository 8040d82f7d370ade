//! A point where an answer waits until the test lets it go on.

use tokio::sync::watch;

/// Clones are the same gate. Once open, it stays open.
#[derive(Debug, Clone, Default)]
pub struct Gate(watch::Sender<State>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    reached: bool,
    open: bool,
}

impl Gate {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        self.0.send_modify(|state| state.open = true);
    }

    /// Waits until an answer stands before the gate: all before it has been written.
    pub async fn reached(&self) {
        let mut state = self.0.subscribe();
        let reached = tokio::time::timeout(super::DEADLINE, state.wait_for(|state| state.reached));
        assert!(reached.await.is_ok_and(|state| state.is_ok()), "no answer comes to the gate");
    }

    pub(super) async fn pass(&self) {
        self.0.send_modify(|state| state.reached = true);
        let mut state = self.0.subscribe();
        // The sender is in self: it cannot be gone.
        let _ = state.wait_for(|state| state.open).await;
    }
}
