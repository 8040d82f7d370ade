//! What a session has seen of its files, and what it was about to do to them when somebody was asked.
//!
//! Promises: bounded; what is forgotten must be read again before it is overwritten, never the other way round.
//! Must not know: how files are opened.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use wire::Digest;

use super::Place;

/// Files remembered.
const FILES_MAX: usize = 4_096;

/// Proposals remembered that are not run yet.
const PROPOSALS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Memory {
    files: Bounded<(usize, std::path::PathBuf), Seen>,
    proposals: Bounded<Digest, Proposal>,
    lineages: u64,
}

/// What is known of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    digest: Digest,
    /// Stays the same while only this session changes the file.
    lineage: u64,
    /// Whether the model was shown it; otherwise it was only looked at for a proposal.
    read: bool,
}

/// What a file was when somebody was asked about a change to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proposal {
    before: Option<Digest>,
    lineage: Option<u64>,
}

/// How much of a file a change is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Extent {
    Whole,
    Parts,
}

/// How a file now stands to what was read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recall {
    Unread,
    AsRead,
    Changed,
}

impl Memory {
    /// The model is shown a file.
    pub(super) fn read(&mut self, place: &Place, digest: Digest) {
        let lineage = self.lineage(place, digest);
        self.see(place, digest, lineage, true);
    }

    /// This session has changed a file; the model knows all of it if it wrote all of it.
    pub(super) fn wrote(&mut self, place: &Place, digest: Digest, extent: Extent) {
        let known = self.files.get(&place.key()).copied();
        let lineage = known.map_or_else(|| self.new_lineage(), |seen| seen.lineage);
        let read = extent == Extent::Whole || known.is_some_and(|seen| seen.read);
        self.see(place, digest, lineage, read);
    }

    pub(super) fn recall(&self, place: &Place, digest: Digest) -> Recall {
        match self.files.get(&place.key()) {
            Some(seen) if seen.read && seen.digest == digest => Recall::AsRead,
            Some(seen) if seen.read => Recall::Changed,
            Some(_) | None => Recall::Unread,
        }
    }

    /// Somebody is asked about a change, named by its input.
    pub(super) fn propose(&mut self, change: Digest, place: &Place, before: Option<Digest>) {
        let lineage = before.map(|digest| {
            let lineage = self.lineage(place, digest);
            let read = self.recall(place, digest) == Recall::AsRead;
            self.see(place, digest, lineage, read);
            lineage
        });
        let proposal = Proposal { before, lineage };
        self.proposals.insert(change, proposal, PROPOSALS_MAX);
    }

    /// The change is about to be made: what was it proposed for?
    pub(super) fn take_proposal(&mut self, change: Digest) -> Option<Proposal> {
        self.proposals.remove(&change)
    }

    /// Whether a file is what it was, or what this session has made of it since.
    pub(super) fn descends(&self, place: &Place, now: Option<Digest>, proposal: &Proposal) -> bool {
        let seen = self.files.get(&place.key());
        now == proposal.before
            || seen.is_some_and(|seen| {
                Some(seen.digest) == now && Some(seen.lineage) == proposal.lineage
            })
    }

    /// The lineage of a file as it is now: a new one if somebody else changed it.
    fn lineage(&mut self, place: &Place, digest: Digest) -> u64 {
        match self.files.get(&place.key()) {
            Some(seen) if seen.digest == digest => seen.lineage,
            Some(_) | None => self.new_lineage(),
        }
    }

    fn new_lineage(&mut self) -> u64 {
        self.lineages += 1;
        self.lineages
    }

    fn see(&mut self, place: &Place, digest: Digest, lineage: u64, read: bool) {
        let seen = Seen {
            digest,
            lineage,
            read,
        };
        self.files.insert(place.key(), seen, FILES_MAX);
    }
}

impl Proposal {
    /// Whether a file is exactly what it was when somebody was asked.
    pub(super) fn is_for(&self, now: Option<Digest>) -> bool {
        self.before == now
    }
}

impl Place {
    fn key(&self) -> (usize, std::path::PathBuf) {
        (self.root, self.path.clone())
    }
}

/// A map that forgets what was put first.
#[derive(Debug)]
struct Bounded<K, V> {
    values: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Eq + Hash + Clone, V> Bounded<K, V> {
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
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.values.remove(key)?;
        self.order.retain(|other| other != key);
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            root: 0,
            path: "a".into(),
        }
    }

    fn digest(byte: u8) -> Digest {
        Digest::new([byte; 32])
    }

    const CHANGE: Digest = Digest::new([9; 32]);

    #[test]
    fn a_change_by_somebody_else_is_noticed_and_one_of_our_own_is_not() {
        let mut memory = Memory::default();
        assert_eq!(memory.recall(&place(), digest(1)), Recall::Unread);
        memory.read(&place(), digest(1));
        assert_eq!(memory.recall(&place(), digest(1)), Recall::AsRead);
        assert_eq!(memory.recall(&place(), digest(2)), Recall::Changed);
        memory.wrote(&place(), digest(2), Extent::Parts);
        assert_eq!(memory.recall(&place(), digest(2)), Recall::AsRead);
    }

    #[test]
    fn a_proposal_holds_over_our_own_changes_only() {
        let mut memory = Memory::default();
        memory.propose(CHANGE, &place(), Some(digest(1)));
        assert_eq!(memory.recall(&place(), digest(1)), Recall::Unread);
        memory.wrote(&place(), digest(2), Extent::Parts);
        let proposal = memory.take_proposal(CHANGE).unwrap();
        assert!(memory.take_proposal(CHANGE).is_none());
        assert!(memory.descends(&place(), Some(digest(1)), &proposal));
        assert!(memory.descends(&place(), Some(digest(2)), &proposal));
        assert!(!memory.descends(&place(), Some(digest(3)), &proposal));
        memory.read(&place(), digest(3));
        assert!(!memory.descends(&place(), Some(digest(3)), &proposal));
        assert!(!memory.descends(&place(), None, &proposal));
    }

    #[test]
    fn what_appears_after_a_proposal_is_not_what_was_proposed_for() {
        let mut memory = Memory::default();
        memory.propose(CHANGE, &place(), None);
        memory.read(&place(), digest(1));
        let proposal = memory.take_proposal(CHANGE).unwrap();
        assert!(memory.descends(&place(), None, &proposal));
        assert!(!memory.descends(&place(), Some(digest(1)), &proposal));
    }

    #[test]
    fn looking_at_a_file_for_a_proposal_is_not_reading_it() {
        let mut memory = Memory::default();
        memory.read(&place(), digest(1));
        memory.propose(CHANGE, &place(), Some(digest(1)));
        assert_eq!(memory.recall(&place(), digest(1)), Recall::AsRead);
        let other = Place {
            root: 1,
            path: "a".into(),
        };
        memory.propose(CHANGE, &other, Some(digest(1)));
        assert_eq!(memory.recall(&other, digest(1)), Recall::Unread);
    }

    #[test]
    fn it_forgets_the_oldest_first() {
        let mut bounded = Bounded::default();
        for number in 0..4 {
            bounded.insert(number, number, 3);
        }
        assert_eq!(bounded.get(&0), None);
        assert_eq!(bounded.remove(&1), Some(1));
        bounded.insert(4, 4, 3);
        assert_eq!(bounded.get(&2), Some(&2));
    }
}
