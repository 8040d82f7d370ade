//! How far housekeeping has come: what was swept, when there is something to sweep again, which part of the blob store is
//! collected next, how renders ended.
//!
//! Promises: what a write leaves behind is swept soon after it, and again when it has become old enough to go; in between, and
//! after the last of these, nothing is due.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use wire::Timestamp;

use crate::limits::Limits;
use crate::record::Seq;

/// Parts of the blob store that are looked through in one sweep while more is written: it is not done in one go then.
const BUCKETS_STEP: u16 = 32;
/// The parts there are: one for each first byte of a digest.
const BUCKETS: u16 = 256;

/// A long log is trimmed in steps that follow each other sooner than sweeps do.
const TRIM_PAUSE_MS: u64 = 1_000;

/// The state of housekeeping.
pub(crate) struct Upkeep {
    /// Something was written since the last sweep.
    unswept: bool,
    /// Something that kept a session alive went away since the last sweep, without a write.
    released: bool,
    last_written: Timestamp,
    last_swept: Timestamp,
    /// How many of the moments at which the last write is old enough for something have passed.
    aged: usize,
    /// When a session that never had a turn is to be looked at, as the journal said.
    empty_due: Option<Timestamp>,
    /// The moment that the host is to wake the kernel at; later ones are set when it has come.
    armed: Option<Timestamp>,
    /// A timer is set for what is in memory and not used.
    is_idle_armed: bool,
    /// This step sweeps: what it writes is no reason to sweep again.
    is_sweeping: bool,
    next_bucket: u8,
    /// Parts to be looked through until all of them were since something was last written.
    buckets_left: u16,
    /// What lies before this in the log is too old to be kept, as the journal said.
    log_from: Seq,
    /// When connected clients were last recorded as seen.
    clients_seen: Timestamp,
    /// How renders ended, counted.
    renders: BTreeMap<&'static str, u64>,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            unswept: true, // what the last process left is looked at once
            released: false,
            last_written: Timestamp(0),
            last_swept: Timestamp(0),
            aged: 0,
            empty_due: None,
            armed: None,
            is_idle_armed: false,
            is_sweeping: false,
            next_bucket: 0,
            buckets_left: 0,
            log_from: Seq(0),
            clients_seen: Timestamp(0),
            renders: BTreeMap::new(),
        }
    }
}

impl Upkeep {
    /// Housekeeping begins at boot: what is old by now was written before.
    pub(crate) fn beginning_at(now: Timestamp) -> Self {
        Self { last_written: now, last_swept: now, ..Self::default() }
    }

    /// The step that ends now wrote something.
    pub(crate) fn note_written(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.is_sweeping) {
            return; // what a sweep removed leaves nothing behind that the sweep itself does not look at
        }
        self.unswept = true;
        self.last_written = now;
        self.aged = 0;
    }

    /// A subscription or a connection ended: what it kept may be swept now.
    pub(crate) fn note_released(&mut self) {
        self.released = true;
    }

    /// A sweep begins. Returns whether everything is to be looked at, or only what was left over.
    pub(crate) fn begin_sweep(&mut self, now: Timestamp, limits: &Limits) -> bool {
        self.is_sweeping = true;
        self.last_swept = now;
        self.released = false;
        self.empty_due = None;
        let mut whole = std::mem::take(&mut self.unswept);
        while let Some(at) = self.aged_due(limits)
            && at <= now
        {
            self.aged += 1;
            whole = true;
        }
        whole
    }

    /// A step that was to sweep did not write, or could not.
    pub(crate) fn end_step(&mut self) {
        self.is_sweeping = false;
    }

    /// Nothing can be swept now.
    pub(crate) fn put_off_sweep(&mut self, now: Timestamp) {
        self.last_swept = now;
    }

    pub(crate) fn set_empty_due(&mut self, at: Timestamp) {
        self.empty_due = Some(at);
    }

    /// Actions before this one may go.
    pub(crate) fn set_log_from(&mut self, from: Seq) {
        self.log_from = self.log_from.max(from);
    }

    pub(crate) fn log_from(&self) -> Seq {
        self.log_from
    }

    /// Whether a timer must be set for what is in memory: not if there is one.
    pub(crate) fn arm_idle(&mut self, holds_something: bool) -> bool {
        let must = holds_something && !self.is_idle_armed;
        self.is_idle_armed |= must;
        must
    }

    pub(crate) fn disarm_idle(&mut self) {
        self.is_idle_armed = false;
    }

    /// The next moment at which something of the last write is old enough to go.
    fn aged_due(&self, limits: &Limits) -> Option<Timestamp> {
        let mut ages = [limits.blob_grace_s, limits.retention_disposed_s, limits.client_ttl_s];
        ages.sort_unstable();
        let seconds = ages.get(self.aged)?;
        Some(self.last_written.plus_ms(seconds.saturating_mul(1_000)))
    }

    /// When there is something to sweep.
    fn due(&self, limits: &Limits, is_log_long: bool) -> Option<Timestamp> {
        let pause_ms =
            if is_log_long { limits.sweep_ms.min(TRIM_PAUSE_MS) } else { limits.sweep_ms };
        let next = self.last_swept.plus_ms(pause_ms);
        let soon = self.unswept || self.released || self.buckets_left > 0 || is_log_long;
        let soon = soon.then_some(next);
        let later = [self.aged_due(limits), self.empty_due].into_iter().flatten();
        later.chain(soon).min().map(|at| at.max(next))
    }

    /// The timer that was set has come, or an earlier one: whether there is something to sweep.
    pub(crate) fn is_due(&mut self, now: Timestamp, limits: &Limits, is_log_long: bool) -> bool {
        if self.armed.is_some_and(|at| at <= now) {
            self.armed = None;
        }
        self.due(limits, is_log_long).is_some_and(|at| at <= now)
    }

    /// The moment for which a timer must be set, if none is set for it or an earlier one.
    pub(crate) fn arm(&mut self, limits: &Limits, is_log_long: bool) -> Option<Timestamp> {
        let at = self.due(limits, is_log_long)?;
        if self.armed.is_some_and(|armed| armed <= at) {
            return None; // when that comes, this is set
        }
        self.armed = Some(at);
        Some(at)
    }

    /// The parts of the blob store to be collected next, if any are left. Nothing was written since the last sweep: all that are left,
    /// so that whoever does nothing is left alone soon.
    pub(crate) fn next_buckets(&mut self, written: bool) -> Vec<RangeInclusive<u8>> {
        let step = if written {
            self.buckets_left = BUCKETS;
            BUCKETS_STEP
        } else {
            self.buckets_left
        };
        debug_assert!(step <= self.buckets_left, "no more parts are taken than are left");
        self.buckets_left -= step;
        let first = u16::from(self.next_bucket);
        let end = first + step;
        self.next_bucket = u8::try_from(end % BUCKETS).unwrap_or(0);
        // Those over the end go on at the beginning.
        let ranges = [(first, end.min(BUCKETS)), (0, end.saturating_sub(BUCKETS))]
            .into_iter()
            .filter_map(|(first, end)| {
                let last = end.checked_sub(1).filter(|last| *last >= first)?;
                Some(u8::try_from(first).ok()?..=u8::try_from(last).ok()?)
            });
        ranges.collect()
    }

    pub(crate) fn clients_seen(&self) -> Timestamp {
        self.clients_seen
    }

    pub(crate) fn set_clients_seen(&mut self, now: Timestamp) {
        self.clients_seen = now;
    }

    pub(crate) fn count_render(&mut self, outcome: &'static str) {
        *self.renders.entry(outcome).or_default() += 1;
    }

    pub(crate) fn renders(&self) -> &BTreeMap<&'static str, u64> {
        &self.renders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_store_is_looked_through_once_after_a_write() {
        let mut upkeep = Upkeep::default();
        assert_eq!(upkeep.next_buckets(false), []);
        // An eighth while more is written, then the rest, wherever the last one ended.
        for first in [0, 32] {
            assert_eq!(upkeep.next_buckets(true), [first..=first + 31]);
        }
        assert_eq!(upkeep.next_buckets(false), [64..=255, 0..=31]);
        assert_eq!(upkeep.next_buckets(false), []);
        assert_eq!(upkeep.next_buckets(true), [32..=63]);
    }
}
