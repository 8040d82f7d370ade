//! What the journals of a node count: together, and for the few spaces that write most.
//!
//! Promises: counting is one addition to an atomic number; however many spaces there were, only those that are loaded are held.
//! Must not know: how it is shown.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::append_pace::AppendPace;
use super::byte_rate::ByteRate;

/// Busy is who wrote most since about a minute ago.
const LOOKED_BACK: Duration = Duration::from_secs(60);

/// What all journals of a node count together.
#[derive(Debug, Default)]
pub(super) struct JournalCounters {
    pub(super) batches: AtomicU64,
    pub(super) append_us: AtomicU64,
    pub(super) unknown: AtomicU64,
    /// Transactions that carried them.
    pub(super) commits: AtomicU64,
    /// How long batches waited for a writer.
    pub(super) queued_us: AtomicU64,
    pub(super) loads: SpaceLoads,
}

pub(super) fn add_time(counter: &AtomicU64, time: Duration) {
    let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    counter.fetch_add(us, Ordering::Relaxed);
}

/// The same at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalCounts {
    pub batches: u64,
    pub append_us: u64,
    /// Batches whose outcome had to be looked up.
    pub unknown: u64,
    pub commits: u64,
    pub queued_us: u64,
}

impl JournalCounters {
    pub(super) fn read(&self) -> JournalCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        JournalCounts {
            batches: read(&self.batches),
            append_us: read(&self.append_us),
            unknown: read(&self.unknown),
            commits: read(&self.commits),
            queued_us: read(&self.queued_us),
        }
    }
}

/// What is counted of one space that is loaded, and how fast it may write.
#[derive(Debug, Default)]
pub(crate) struct SpaceCounters {
    pub(super) space: i64,
    pub(super) batches: AtomicU64,
    pub(super) append_us: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// As they are now.
    pub(crate) connections: Arc<AtomicU64>,
    pub(crate) turns: Arc<AtomicU64>,
    pub(crate) rate: ByteRate,
    /// For how many days its actions are kept; zero: their number alone bounds them.
    pub(crate) log_days: AtomicU64,
    pub(super) pace: AppendPace,
}

/// What a space does, counted since it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SpaceActivity {
    pub space: i64,
    pub batches: u64,
    pub append_us: u64,
    pub records: u64,
    pub bytes: u64,
    /// As they are now.
    pub connections: u64,
    pub turns: u64,
}

impl SpaceCounters {
    /// How long the database takes for a batch of the space at the moment.
    pub(crate) fn append_time(&self) -> Duration {
        self.pace.current()
    }

    fn read(&self) -> SpaceActivity {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SpaceActivity {
            space: self.space,
            batches: read(&self.batches),
            append_us: read(&self.append_us),
            records: read(&self.records),
            bytes: read(&self.bytes),
            connections: read(&self.connections),
            turns: read(&self.turns),
        }
    }
}

/// The spaces that are loaded.
#[derive(Debug, Default)]
pub(super) struct SpaceLoads(Mutex<LoadedSpaces>);

#[derive(Debug, Default)]
struct LoadedSpaces {
    counters: Vec<Weak<SpaceCounters>>,
    /// What they had written at a moment.
    before: Option<(Instant, HashMap<i64, u64>)>,
}

impl SpaceLoads {
    /// Counters for a space that is loaded.
    pub(super) fn add(&self, space: i64) -> Arc<SpaceCounters> {
        let counters = Arc::new(SpaceCounters { space, ..SpaceCounters::default() });
        let mut loaded = self.0.lock();
        loaded.counters.retain(|it| it.strong_count() > 0);
        loaded.counters.push(Arc::downgrade(&counters));
        counters
    }

    /// What all of them do.
    pub(super) fn read(&self) -> Vec<SpaceActivity> {
        let loaded = self.0.lock();
        loaded.counters.iter().filter_map(Weak::upgrade).map(|it| it.read()).collect()
    }

    /// Those that wrote most lately, at most so many.
    pub(super) fn busiest(&self, count_max: usize) -> Vec<SpaceActivity> {
        let mut loaded = self.0.lock();
        let mut spaces: Vec<SpaceActivity> =
            loaded.counters.iter().filter_map(Weak::upgrade).map(|it| it.read()).collect();
        let recent = |busy: &SpaceActivity| {
            let before = loaded.before.as_ref();
            let before = before.and_then(|(_, before)| before.get(&busy.space).copied());
            // One that was loaded anew begins at zero.
            busy.batches.checked_sub(before.unwrap_or(0)).unwrap_or(busy.batches)
        };
        spaces.sort_by_key(|busy| (std::cmp::Reverse(recent(busy)), busy.space));
        let is_old = loaded.before.as_ref().is_none_or(|(at, _)| at.elapsed() >= LOOKED_BACK);
        if is_old {
            let now = spaces.iter().map(|busy| (busy.space, busy.batches));
            loaded.before = Some((Instant::now(), now.collect()));
        }
        spaces.retain(|busy| busy.batches > 0);
        spaces.truncate(count_max);
        spaces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_busiest_are_those_that_wrote_lately() {
        let loads = SpaceLoads::default();
        let (old, new, idle) = (loads.add(1), loads.add(2), loads.add(3));
        old.batches.fetch_add(100, Ordering::Relaxed);
        new.batches.fetch_add(5, Ordering::Relaxed);
        let numbers =
            |count| loads.busiest(count).into_iter().map(|busy| busy.space).collect::<Vec<_>>();
        assert_eq!(numbers(20), [1, 2], "one that wrote nothing is not told of");
        new.batches.fetch_add(5, Ordering::Relaxed);
        assert_eq!(numbers(20), [2, 1]);
        assert_eq!(numbers(1), [2]);
        drop((old, idle));
        assert_eq!(numbers(20), [2], "one that is not loaded is forgotten");
        let counters = JournalCounters::default();
        add_time(&counters.queued_us, Duration::from_millis(2));
        assert_eq!(counters.read().queued_us, 2_000);
    }
}
