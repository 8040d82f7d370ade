//! What all clients of one space heard, together: a seq means one thing, for everybody and for ever.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use client::Envelope;

/// What goes wrong at the moment, in a word.
#[derive(Clone, Default)]
pub(crate) struct CurrentFault(Arc<Mutex<&'static str>>);

impl CurrentFault {
    pub(crate) fn set(&self, kind: &'static str) {
        *lock(&self.0) = kind;
    }

    pub(crate) fn get(&self) -> &'static str {
        *lock(&self.0)
    }
}

/// How long clients were away, by what had gone wrong.
pub(crate) type Absences = BTreeMap<&'static str, Vec<Duration>>;

/// The envelopes of one chat by their seq, and how long clients were away.
#[derive(Default)]
pub(crate) struct SpaceHistory {
    heard: Mutex<BTreeMap<u64, Envelope>>,
    absences: Mutex<Absences>,
    fault: CurrentFault,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpaceHistory {
    pub(crate) fn new(fault: &CurrentFault) -> Self {
        Self {
            fault: fault.clone(),
            ..Self::default()
        }
    }

    /// A client heard this.
    pub(crate) fn note(&self, envelope: &Envelope) -> Result<()> {
        let mut heard = lock(&self.heard);
        let before = heard.entry(envelope.server_seq);
        let before = before.or_insert_with(|| envelope.clone());
        ensure!(
            before == envelope,
            "seq {} was used twice: {before:?} and {envelope:?}",
            envelope.server_seq
        );
        Ok(())
    }

    /// What has gone wrong when a client is cut off now.
    pub(crate) fn fault(&self) -> &'static str {
        self.fault.get()
    }

    /// A client was without a connection for so long, because of what had gone wrong when that began.
    pub(crate) fn note_absence(&self, fault: &'static str, time: Duration) {
        lock(&self.absences).entry(fault).or_default().push(time);
    }

    pub(crate) fn heard(&self) -> BTreeMap<u64, Envelope> {
        lock(&self.heard).clone()
    }

    /// How much was heard.
    pub(crate) fn count(&self) -> usize {
        lock(&self.heard).len()
    }

    pub(crate) fn absences(&self) -> Absences {
        lock(&self.absences).clone()
    }
}
