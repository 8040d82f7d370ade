//! What a session knows of its files.
//!
//! Promises: bounded; what is forgotten must be read again before it is overwritten, never the other way round.
//! Must not know: how files are opened.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use wire::Digest;

use super::proposal::Proposal;
use crate::WorkspacePath;

/// Files remembered.
const FILES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct FileHistory {
    files: BoundedMap<WorkspacePath, KnownFile>,
    lineages: u64,
}

/// What is known of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KnownFile {
    digest: Digest,
    /// Stays the same while only this session changes the file.
    lineage: u64,
    /// Whether the session was shown it; otherwise it was only looked at for a proposal.
    was_read: bool,
}

/// How much of a file a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    Parts,
}

/// How a file compares to what was read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    Unread,
    Unchanged,
    Changed,
}

impl FileHistory {
    /// The session is shown a file.
    pub(crate) fn record_read(&mut self, path: &WorkspacePath, digest: Digest) {
        let lineage = self.lineage(path, digest);
        self.insert(path, digest, lineage, true);
    }

    /// This session has changed a file; it knows all of it if it wrote all of it.
    pub(super) fn record_write(&mut self, path: &WorkspacePath, digest: Digest, extent: Extent) {
        let known = self.files.get(path).copied();
        let lineage = known.map_or_else(|| self.new_lineage(), |known| known.lineage);
        let was_read = extent == Extent::Whole || known.is_some_and(|known| known.was_read);
        self.insert(path, digest, lineage, was_read);
    }

    /// The files that the session was shown or has written, as far as they are remembered.
    pub(crate) fn known(&self) -> impl Iterator<Item = &WorkspacePath> {
        let known = self.files.values.iter();
        known.filter(|(_, known)| known.was_read).map(|(path, _)| path)
    }

    pub(super) fn freshness(&self, path: &WorkspacePath, digest: Digest) -> Freshness {
        match self.files.get(path) {
            Some(known) if known.was_read && known.digest == digest => Freshness::Unchanged,
            Some(known) if known.was_read => Freshness::Changed,
            Some(_) | None => Freshness::Unread,
        }
    }

    /// A change is proposed for what a file is now, which the session may not have been shown. Its lineage from here on; none for
    /// a new file.
    pub(super) fn record_look(
        &mut self,
        path: &WorkspacePath,
        before: Option<Digest>,
    ) -> Option<u64> {
        let digest = before?;
        let lineage = self.lineage(path, digest);
        let was_read = self.freshness(path, digest) == Freshness::Unchanged;
        self.insert(path, digest, lineage, was_read);
        Some(lineage)
    }

    /// Whether a file is the one a change was proposed for, and what it was then or what this session has made of it since.
    pub(super) fn descends_from(
        &self,
        proposal: &Proposal,
        path: &WorkspacePath,
        now: Option<Digest>,
    ) -> bool {
        let known = self.files.get(path);
        proposal.is_for(path, now)
            || *path == proposal.path
                && known.is_some_and(|known| {
                    Some(known.digest) == now && Some(known.lineage) == proposal.lineage
                })
    }

    /// The lineage of a file as it is now: a new one if it was changed from outside.
    fn lineage(&mut self, path: &WorkspacePath, digest: Digest) -> u64 {
        match self.files.get(path) {
            Some(known) if known.digest == digest => known.lineage,
            Some(_) | None => self.new_lineage(),
        }
    }

    fn new_lineage(&mut self) -> u64 {
        self.lineages += 1;
        self.lineages
    }

    fn insert(&mut self, path: &WorkspacePath, digest: Digest, lineage: u64, was_read: bool) {
        let known = KnownFile { digest, lineage, was_read };
        self.files.insert(path.clone(), known, FILES_MAX);
    }
}

/// A map that forgets the oldest entries first.
#[derive(Debug)]
struct BoundedMap<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for BoundedMap<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Eq + Hash + Clone, V> BoundedMap<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key)
    }

    fn insert(&mut self, key: K, value: V, max: usize) {
        if self.values.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.values.len() > max
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
        debug_assert_eq!(self.values.len(), self.order.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> WorkspacePath {
        WorkspacePath { root: 0, relative: "a".into() }
    }

    fn digest(byte: u8) -> Digest {
        Digest::new([byte; 32])
    }

    fn propose(
        history: &mut FileHistory,
        path: &WorkspacePath,
        before: Option<Digest>,
    ) -> Proposal {
        let lineage = history.record_look(path, before);
        Proposal::new(path.clone(), before, lineage)
    }

    #[test]
    fn a_foreign_change_is_noticed_and_our_own_is_not() {
        let mut history = FileHistory::default();
        assert_eq!(history.freshness(&path(), digest(1)), Freshness::Unread);
        history.record_read(&path(), digest(1));
        assert_eq!(history.freshness(&path(), digest(1)), Freshness::Unchanged);
        assert_eq!(history.freshness(&path(), digest(2)), Freshness::Changed);
        history.record_write(&path(), digest(2), Extent::Parts);
        assert_eq!(history.freshness(&path(), digest(2)), Freshness::Unchanged);
    }

    #[test]
    fn a_proposal_stays_valid_over_our_own_changes_only() {
        let mut history = FileHistory::default();
        let proposal = propose(&mut history, &path(), Some(digest(1)));
        assert_eq!(history.freshness(&path(), digest(1)), Freshness::Unread);
        history.record_write(&path(), digest(2), Extent::Parts);
        assert!(history.descends_from(&proposal, &path(), Some(digest(1))));
        assert!(history.descends_from(&proposal, &path(), Some(digest(2))));
        assert!(!history.descends_from(&proposal, &path(), Some(digest(3))));
        history.record_read(&path(), digest(3));
        assert!(!history.descends_from(&proposal, &path(), Some(digest(3))));
        assert!(!history.descends_from(&proposal, &path(), None));
    }

    #[test]
    fn a_file_that_appears_after_a_proposal_invalidates_it() {
        let mut history = FileHistory::default();
        let proposal = propose(&mut history, &path(), None);
        history.record_read(&path(), digest(1));
        assert!(history.descends_from(&proposal, &path(), None));
        assert!(!history.descends_from(&proposal, &path(), Some(digest(1))));
    }

    #[test]
    fn looking_at_a_file_for_a_proposal_is_not_reading_it() {
        let mut history = FileHistory::default();
        history.record_read(&path(), digest(1));
        history.record_look(&path(), Some(digest(1)));
        assert_eq!(history.freshness(&path(), digest(1)), Freshness::Unchanged);
        let other = WorkspacePath { root: 1, relative: "a".into() };
        history.record_look(&other, Some(digest(1)));
        assert_eq!(history.freshness(&other, digest(1)), Freshness::Unread);
    }

    #[test]
    fn the_oldest_entry_is_forgotten_first() {
        let mut map = BoundedMap::default();
        for number in 0..4 {
            map.insert(number, number, 3);
        }
        assert_eq!([0, 1, 3].map(|key| map.get(&key).copied()), [None, Some(1), Some(3)]);
    }
}
