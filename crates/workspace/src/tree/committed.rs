//! What differs from a commit: the last one, or where the branch that is checked out began.
//!
//! Promises: as a look, nothing is followed and nothing outside is read. The working tree is not walked: a look that was taken serves
//! all that is compared with it.
//! Must not know: what it is for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::compare::{Pairs, committed_sides, with_known_mode};
use super::entry::{EntryReader, FileTime};
use super::{
    RepositorySnapshot, StoreContent, TreeChanges, TreeSnapshot, TreeSource, by_path, submodule,
};
use crate::{Cancellation, GitEntry, GitError, Workspace};

impl Workspace {
    /// What differed, when a look was taken, from the last commit of the repositories that the working directories lie in, or from where
    /// the branch that was checked out left `base`. An error if git said nothing then.
    pub fn changed_since_commit(
        &self,
        look: &TreeSnapshot,
        base: Option<&str>,
        store: &mut StoreContent<'_>,
        cancellation: &Cancellation,
    ) -> Result<TreeChanges, String> {
        if let Some(failure) = look.failures().next() {
            return Err(failure.to_owned());
        }
        let say = |error: GitError| error.to_string();
        let mut changes = TreeChanges::default();
        let mut reader = EntryReader::new(store);
        for (index, seen) in &look.roots {
            let (TreeSource::Repository(known), Some(root)) =
                (&seen.source, self.shared.roots.get(*index))
            else {
                continue; // there is nothing to compare it with
            };
            let entries = changed_entries(known, base, cancellation).map_err(say)?;
            let repository = &known.repository;
            let before =
                committed_sides(repository, &entries, &mut reader, cancellation).map_err(say)?;
            let mut pairs = Pairs::new();
            for (path, entry) in entries {
                let after = if known.entries.contains_key(&path) {
                    seen.files.get(&path).copied()
                } else if entry.is_submodule() {
                    submodule(entry.mode)
                } else {
                    // As committed: it was not looked at.
                    reader.read(root, &path, None)
                };
                let before = before.get(&path).copied();
                let before = before.map(|before| with_known_mode(before, after));
                pairs.insert(path, (before, after));
            }
            self.add_changes(&mut changes, root, pairs, FileTime::MAX);
        }
        changes.problems.extend(reader.problem());
        Ok(changes)
    }
}

/// What differs from the last commit, or from where the branch left `base`: what its commits changed, and what is not committed.
fn changed_entries(
    look: &RepositorySnapshot,
    base: Option<&str>,
    cancellation: &Cancellation,
) -> Result<BTreeMap<PathBuf, GitEntry>, GitError> {
    let (Some(base), Some(head)) = (base, &look.head) else { return Ok(look.entries.clone()) };
    let repository = &look.repository;
    let commit = repository.merge_base(head, base, cancellation)?.ok_or_else(|| {
        GitError::Refused(format!("this branch has nothing in common with {base}"))
    })?;
    let committed = if commit == *head {
        Vec::new()
    } else {
        repository.changed_between(&commit, head, cancellation)?
    };
    let mut entries = by_path(repository, committed);
    for (path, entry) in &look.entries {
        match entries.get_mut(path) {
            // What it was when the branch began counts, and what it was when the look was taken.
            Some(known) => known.mode = entry.mode,
            None => {
                entries.insert(path.clone(), entry.clone());
            }
        }
    }
    Ok(entries)
}
