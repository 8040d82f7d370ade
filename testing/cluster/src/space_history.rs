//! What all clients of one space heard, together: a seq means one thing, for everybody and for ever.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use client::Envelope;

/// No takeover takes so long: it is told apart, with the moment, so that the logs of the nodes explain it.
pub(crate) const ABSENCE_LONG: Duration = Duration::from_secs(15);

/// The time of day in UTC, as in the logs of nodes.
fn now_as_text() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.unwrap_or_default().as_secs() % 86_400;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

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

/// Every client of a space hears an action once; when all have, it was compared and is not kept.
const CLIENTS: usize = 2;

/// An action that somebody heard.
struct HeardAction {
    /// Until everybody has heard it.
    envelope: Option<Envelope>,
    times: usize,
}

/// The actions of one chat by their seq, and how long clients were away.
#[derive(Default)]
pub(crate) struct SpaceHistory {
    heard: Mutex<BTreeMap<u64, HeardAction>>,
    absences: Mutex<Absences>,
    /// How often a client was told to begin anew.
    beginners: AtomicUsize,
    fault: CurrentFault,
    name: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpaceHistory {
    pub(crate) fn new(fault: &CurrentFault, name: &str) -> Self {
        Self { fault: fault.clone(), name: name.to_owned(), ..Self::default() }
    }

    /// A client heard this.
    pub(crate) fn note(&self, envelope: &Envelope) -> Result<()> {
        let mut heard = lock(&self.heard);
        let seq = envelope.server_seq;
        let action = heard
            .entry(seq)
            .or_insert_with(|| HeardAction { envelope: Some(envelope.clone()), times: 0 });
        let before = action.envelope.as_ref();
        ensure!(before == Some(envelope), "seq {seq} was used twice: {before:?} and {envelope:?}");
        action.times += 1;
        if action.times == CLIENTS {
            action.envelope = None;
        }
        Ok(())
    }

    /// What has gone wrong when a client is cut off now.
    pub(crate) fn fault(&self) -> &'static str {
        self.fault.get()
    }

    /// A client was without a connection for so long, because of what had gone wrong when that began.
    pub(crate) fn note_absence(&self, fault: &'static str, time: Duration) {
        if time > ABSENCE_LONG {
            let (name, until) = (&self.name, now_as_text());
            println!("{name}: a client was away for {time:?}, until {until} UTC, after: {fault}");
        }
        lock(&self.absences).entry(fault).or_default().push(time);
    }

    /// A client was told that the host does not know it.
    pub(crate) fn note_beginner(&self) {
        self.beginners.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn beginners(&self) -> usize {
        self.beginners.load(Ordering::Relaxed)
    }

    /// The seqs that somebody heard, in order.
    pub(crate) fn seqs(&self) -> Vec<u64> {
        lock(&self.heard).keys().copied().collect()
    }

    /// How much was heard.
    pub(crate) fn count(&self) -> usize {
        lock(&self.heard).len()
    }

    pub(crate) fn absences(&self) -> Absences {
        lock(&self.absences).clone()
    }
}
