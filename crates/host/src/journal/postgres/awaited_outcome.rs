//! A batch on its way: a caller that stops waiting for it must not forget that it may be written.
//!
//! Must not know: how anything is sent.

use crate::cluster::SpaceLease;

/// The outcome of a batch that is waited for. Whoever gives that up, as a kernel does that is ended, leaves one that nobody knows: it
/// is looked up before anything else is written, or the lease given back.
pub(super) struct AwaitedOutcome<'l> {
    lease: &'l mut SpaceLease,
    has_come: bool,
}

impl<'l> AwaitedOutcome<'l> {
    pub(super) fn of(lease: &'l mut SpaceLease) -> Self {
        Self { lease, has_come: false }
    }

    pub(super) fn has_come(mut self) {
        self.has_come = true;
    }
}

impl Drop for AwaitedOutcome<'_> {
    fn drop(&mut self) {
        if !self.has_come {
            self.lease.note_unknown();
        }
    }
}
