//! Spaces that failed on this node: when each is loaded anew. Others leave them to it, as their leases are still its own.
//!
//! Promises: after the first failure that is at once; after others the pauses double, up to a minute, and whoever wants such a space
//! meanwhile has it tried every few seconds.
//! Must not know: why a space failed, any clock.

use super::lease_table::{BootInstant, SpaceId};
use crate::sorted_map::SortedMap;

/// After the second failure; then doubled.
const PAUSE_MS: u64 = 2_000;
/// What a space lacks may be mended.
const PAUSE_MAX_MS: u64 = 60_000;
/// Whoever wants it may have mended it.
const WANTED_PAUSE_MAX_MS: u64 = 5_000;

#[derive(Debug, Clone, Copy)]
struct SpaceFailure {
    at: BootInstant,
    /// How often, since the space was here last.
    times: u32,
}

impl SpaceFailure {
    fn is_over(self, now: BootInstant, pause_max_ms: u64) -> bool {
        let doubled = self.times.checked_sub(2).map(|more| 1_u64 << more.min(16));
        let pause = PAUSE_MS * doubled.unwrap_or(0);
        now >= self.at.plus(pause.min(pause_max_ms))
    }
}

/// Those that are not here again yet.
#[derive(Debug, Default)]
pub(super) struct FailedSpaces(SortedMap<SpaceId, SpaceFailure>);

impl FailedSpaces {
    pub(super) fn note(&mut self, space: SpaceId, now: BootInstant) {
        let times = self.0.get(&space).map_or(0, |failure| failure.times).saturating_add(1);
        self.0.insert(space, SpaceFailure { at: now, times });
    }

    /// It is here, or another's, or nobody's.
    pub(super) fn forget(&mut self, space: SpaceId) {
        self.0.remove(&space);
    }

    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Those that are to be loaded anew though nobody wants them.
    pub(super) fn due(&self, now: BootInstant) -> Vec<SpaceId> {
        let due = self.0.iter().filter(|(_, failure)| failure.is_over(now, PAUSE_MAX_MS));
        due.map(|(space, _)| *space).collect()
    }

    /// Whether a space is loaded for whoever wants it.
    pub(super) fn may_be_tried(&self, space: SpaceId, now: BootInstant) -> bool {
        let failure = self.0.get(&space);
        failure.is_none_or(|failure| failure.is_over(now, WANTED_PAUSE_MAX_MS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute_and_are_shorter_for_whoever_waits() {
        let mut failed = FailedSpaces::default();
        let pauses = [0, 2, 4, 8, 16, 32, 60, 60].map(|seconds| seconds * 1_000);
        for (times, pause) in pauses.into_iter().enumerate() {
            let at = BootInstant(times as u64 * 1_000_000);
            failed.note(7, at);
            let wanted = pause.min(WANTED_PAUSE_MAX_MS);
            assert!(failed.may_be_tried(7, at.plus(wanted)));
            assert_eq!(failed.due(at.plus(pause)), [7]);
            if pause > 0 {
                assert!(!failed.may_be_tried(7, at.plus(wanted - 1)));
                assert!(failed.due(at.plus(pause - 1)).is_empty());
            }
        }
        failed.forget(7);
        failed.note(7, BootInstant(0));
        assert_eq!(failed.due(BootInstant(0)), [7], "it was here meanwhile");
    }
}
