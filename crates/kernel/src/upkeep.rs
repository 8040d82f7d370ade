//! How far housekeeping has come: what was swept, which part of the blob store is collected next, how renders ended.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use wire::Timestamp;

/// Parts of the blob store that are looked through in one sweep: it is never done in one go.
const BUCKETS_STEP: u16 = 32;
/// The parts there are: one for each first byte of a digest.
const BUCKETS: u16 = 256;

/// The state of housekeeping.
pub(crate) struct Upkeep {
    /// Something was written since the last sweep.
    unswept: bool,
    next_bucket: u8,
    /// Parts to be looked through until all of them were since something was last written.
    buckets_left: u16,
    /// When connected clients were last recorded as seen.
    clients_seen: Timestamp,
    /// How renders ended, counted.
    renders: BTreeMap<&'static str, u64>,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self {
            unswept: true, // what the last process left is looked at once
            next_bucket: 0,
            buckets_left: 0,
            clients_seen: Timestamp(0),
            renders: BTreeMap::new(),
        }
    }
}

impl Upkeep {
    pub(crate) fn note_written(&mut self) {
        self.unswept = true;
    }

    /// Whether something was written since this was last asked.
    pub(crate) fn take_unswept(&mut self) -> bool {
        std::mem::replace(&mut self.unswept, false)
    }

    /// The part of the blob store to be collected next, if any is left.
    pub(crate) fn next_buckets(&mut self, written: bool) -> Option<RangeInclusive<u8>> {
        if written {
            self.buckets_left = BUCKETS;
        }
        let step = BUCKETS_STEP.min(self.buckets_left);
        let last = step.checked_sub(1)?;
        let first = self.next_bucket;
        // The steps divide the parts evenly, so that none of them goes over the end.
        let last = first.saturating_add(u8::try_from(last).unwrap_or(u8::MAX));
        self.next_bucket = last.wrapping_add(1);
        self.buckets_left -= step;
        Some(first..=last)
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
        assert_eq!(upkeep.next_buckets(false), None);
        let mut looked = 0;
        let mut written = true;
        while let Some(buckets) = upkeep.next_buckets(std::mem::take(&mut written)) {
            looked += buckets.count();
        }
        assert_eq!(looked, 256);
    }
}
