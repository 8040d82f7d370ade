//! What the clients of this version said and followed, in all runs of this process: what `coverage.rs` compares with what the version
//! has.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names only: of actions and of methods.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// Actions that the version's reducers applied, after which its state was what a newcomer is told.
    pub followed: BTreeSet<String>,
    /// Actions that the version's client dispatched, and that came back accepted.
    pub sent: BTreeSet<String>,
    /// Requests that were answered with what the version's types read, and notifications.
    pub asked: BTreeSet<String>,
    /// Requests of the host that the version's client answered.
    pub answered: BTreeSet<String>,
}

static LEDGER: Mutex<Ledger> = Mutex::new(Ledger {
    followed: BTreeSet::new(),
    sent: BTreeSet::new(),
    asked: BTreeSet::new(),
    answered: BTreeSet::new(),
});

pub fn open() -> MutexGuard<'static, Ledger> {
    // A run that failed says so itself.
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}
