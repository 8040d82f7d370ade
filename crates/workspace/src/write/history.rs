//! What a session knows of its files, and what each file was when a change to it was proposed.
//!
//! Promises: bounded; what is forgotten must be read again before it is overwritten, never the other way round.
//! Must not know: how files are opened.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use wire::{Digest, NamedBody};

use crate::WorkspacePath;

/// Files remembered.
const FILES_MAX: usize = 4_096;

/// Proposals remembered that are not applied yet.
const PROPOSALS_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct FileHistory {
    files: BoundedMap<WorkspacePath, KnownFile>,
    proposals: BoundedMap<Digest, Proposal>,
    /// What the newest change holds that was pinned, by its name: it is made next. Of another one only the digests are known.
    pinned: Option<(Digest, PinnedContents)>,
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

/// What a file was when a change to it was proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proposal {
    /// Which file: the name that the change gives may lead to another by now.
    path: WorkspacePath,
    before: Option<Digest>,
    lineage: Option<u64>,
    /// Set once it was said what exactly is written.
    pin: Option<PinnedChange>,
}

/// Both sides of a change that is about to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PinnedChange {
    /// Absent for a new file.
    pub before: Option<Digest>,
    pub after: Digest,
}

/// What both sides of a change hold that is about to be made.
#[derive(Debug, Clone)]
pub(super) struct PinnedContents {
    /// Without links.
    pub path: WorkspacePath,
    /// Absent for a new file.
    pub before: Option<NamedBody>,
    pub after: NamedBody,
}

impl PinnedContents {
    pub(super) fn digests(&self) -> PinnedChange {
        PinnedChange {
            before: self.before.as_ref().map(NamedBody::digest),
            after: self.after.digest(),
        }
    }
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
        known
            .filter(|(_, known)| known.was_read)
            .map(|(path, _)| path)
    }

    pub(super) fn freshness(&self, path: &WorkspacePath, digest: Digest) -> Freshness {
        match self.files.get(path) {
            Some(known) if known.was_read && known.digest == digest => Freshness::Unchanged,
            Some(known) if known.was_read => Freshness::Changed,
            Some(_) | None => Freshness::Unread,
        }
    }

    /// A change, named by `id`, is proposed for what the file is now.
    pub(super) fn record_proposal(
        &mut self,
        id: Digest,
        path: &WorkspacePath,
        before: Option<Digest>,
    ) {
        let lineage = before.map(|digest| {
            let lineage = self.lineage(path, digest);
            let was_read = self.freshness(path, digest) == Freshness::Unchanged;
            self.insert(path, digest, lineage, was_read);
            lineage
        });
        let pin = None;
        let proposal = Proposal {
            path: path.clone(),
            before,
            lineage,
            pin,
        };
        self.proposals.insert(id, proposal, PROPOSALS_MAX);
    }

    /// The proposal of a change, if there was one.
    pub(super) fn proposal(&self, id: Digest) -> Option<&Proposal> {
        self.proposals.get(&id)
    }

    /// A change is about to be made, and is to be exactly this.
    pub(super) fn record_pin(&mut self, id: Digest, contents: PinnedContents) {
        let (path, pin) = (contents.path.clone(), contents.digests());
        self.pinned = Some((id, contents));
        // Removed, so that it is among the newest again: it is made next.
        let (before, lineage) = match self.proposals.remove(&id) {
            Some(proposal) => (proposal.before, proposal.lineage),
            None => (pin.before, None),
        };
        let proposal = Proposal {
            path,
            before,
            lineage,
            pin: Some(pin),
        };
        self.proposals.insert(id, proposal, PROPOSALS_MAX);
    }

    /// What a change holds that was pinned, if it is the newest: with it the files need not be hashed once more.
    pub(super) fn take_pinned_contents(&mut self, id: Digest) -> Option<PinnedContents> {
        let (_, contents) = self.pinned.take_if(|(pinned, _)| *pinned == id)?;
        Some(contents)
    }

    /// A change is applied, or never will be: what was proposed is forgotten. What it is to be, if that was said.
    pub(super) fn take_proposal(&mut self, id: Digest) -> Option<PinnedChange> {
        self.proposals.remove(&id)?.pin
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
        let known = KnownFile {
            digest,
            lineage,
            was_read,
        };
        self.files.insert(path.clone(), known, FILES_MAX);
    }
}

impl Proposal {
    /// Whether a file is the one that the change was proposed for, and exactly what it was then.
    pub(super) fn is_for(&self, path: &WorkspacePath, now: Option<Digest>) -> bool {
        self.path == *path && self.before == now
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
        Self {
            values: HashMap::new(),
            order: VecDeque::new(),
        }
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

    fn remove(&mut self, key: &K) -> Option<V> {
        let removed = self.values.remove(key)?;
        self.order.retain(|other| other != key);
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> WorkspacePath {
        WorkspacePath {
            root: 0,
            relative: "a".into(),
        }
    }

    fn digest(byte: u8) -> Digest {
        Digest::new([byte; 32])
    }

    const CHANGE: Digest = Digest::new([9; 32]);

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
        history.record_proposal(CHANGE, &path(), Some(digest(1)));
        assert_eq!(history.freshness(&path(), digest(1)), Freshness::Unread);
        history.record_write(&path(), digest(2), Extent::Parts);
        let proposal = history.proposal(CHANGE).unwrap().clone();
        assert!(history.descends_from(&proposal, &path(), Some(digest(1))));
        assert!(history.descends_from(&proposal, &path(), Some(digest(2))));
        assert!(!history.descends_from(&proposal, &path(), Some(digest(3))));
        history.record_read(&path(), digest(3));
        assert!(!history.descends_from(&proposal, &path(), Some(digest(3))));
        assert!(!history.descends_from(&proposal, &path(), None));
    }

    #[test]
    fn what_is_pinned_is_taken_once() {
        let mut history = FileHistory::default();
        let (before, after) = (NamedBody::of("one"), NamedBody::of("two"));
        history.record_proposal(CHANGE, &path(), Some(before.digest()));
        let contents = PinnedContents {
            path: path(),
            before: Some(before.clone()),
            after,
        };
        let pin = contents.digests();
        history.record_pin(CHANGE, contents);
        let proposal = history.proposal(CHANGE).unwrap();
        assert!(proposal.is_for(&path(), Some(before.digest())));
        assert!(history.take_pinned_contents(digest(1)).is_none());
        let contents = history.take_pinned_contents(CHANGE).unwrap();
        assert_eq!(contents.digests(), pin);
        assert!(history.take_pinned_contents(CHANGE).is_none());
        assert_eq!(history.take_proposal(CHANGE), Some(pin));
        assert_eq!(history.take_proposal(CHANGE), None);
    }

    #[test]
    fn a_file_that_appears_after_a_proposal_invalidates_it() {
        let mut history = FileHistory::default();
        history.record_proposal(CHANGE, &path(), None);
        history.record_read(&path(), digest(1));
        let proposal = history.proposal(CHANGE).unwrap().clone();
        assert!(history.descends_from(&proposal, &path(), None));
        assert!(!history.descends_from(&proposal, &path(), Some(digest(1))));
    }

    #[test]
    fn looking_at_a_file_for_a_proposal_is_not_reading_it() {
        let mut history = FileHistory::default();
        history.record_read(&path(), digest(1));
        history.record_proposal(CHANGE, &path(), Some(digest(1)));
        assert_eq!(history.freshness(&path(), digest(1)), Freshness::Unchanged);
        let other = WorkspacePath {
            root: 1,
            relative: "a".into(),
        };
        history.record_proposal(CHANGE, &other, Some(digest(1)));
        assert_eq!(history.freshness(&other, digest(1)), Freshness::Unread);
    }

    #[test]
    fn the_oldest_entry_is_forgotten_first() {
        let mut map = BoundedMap::default();
        for number in 0..4 {
            map.insert(number, number, 3);
        }
        assert_eq!(map.get(&0), None);
        assert_eq!(map.remove(&1), Some(1));
        map.insert(4, 4, 3);
        assert_eq!(map.get(&2), Some(&2));
    }
}
