//! What differs from a commit: the last one, or where the branch that is checked out began.
//!
//! Promises: as a look, nothing is followed and nothing outside is read.
//! Must not know: what it is for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::compare::{Pairs, committed_sides, with_known_mode};
use super::entry::EntryReader;
use super::{KeepContent, TreeChanges, by_path, submodule};
use crate::roots::RootUse;
use crate::{Cancellation, Confinement, GitEntry, GitError, Repository, Workspace};

impl Workspace {
    /// What differs from the last commit of the repositories that the working directories lie in, or from where the branch that is
    /// checked out left `base`.
    pub fn changed_since_commit(
        &self,
        confinement: &Confinement,
        base: Option<&str>,
        keep: &mut KeepContent<'_>,
        cancellation: &Cancellation,
    ) -> Result<TreeChanges, String> {
        let mut changes = TreeChanges::default();
        let mut reader = EntryReader::new(keep);
        for (index, root) in self.shared.roots.iter().enumerate() {
            if root.role != RootUse::Working || self.is_inside_another(index) {
                continue; // nothing of it is changed, or it is looked at already
            }
            let say = |error: GitError| error.to_string();
            let found = Repository::find(&root.real_path, confinement, cancellation);
            let Some(repository) = found.map_err(say)? else {
                continue; // another directory of the session may be in one
            };
            let entries = changed_entries(&repository, base, cancellation).map_err(say)?;
            let before =
                committed_sides(&repository, &entries, &mut reader, cancellation).map_err(say)?;
            let mut pairs = Pairs::new();
            for (path, entry) in entries {
                let after = match entry.is_submodule() {
                    true => submodule(entry.mode),
                    false => reader.read(root, &path),
                };
                let before = before.get(&path).copied();
                let before = before.map(|before| with_known_mode(before, after));
                pairs.insert(path, (before, after));
            }
            self.add_changes(&mut changes, root, pairs, (i64::MAX, 0));
        }
        changes.problems.extend(reader.problem());
        Ok(changes)
    }
}

fn changed_entries(
    repository: &Repository,
    base: Option<&str>,
    cancellation: &Cancellation,
) -> Result<BTreeMap<PathBuf, GitEntry>, GitError> {
    let status = repository.status(cancellation)?.entries;
    let entries = match base {
        None => status,
        Some(base) => {
            let commit = repository.merge_base(base, cancellation)?;
            let commit = commit.ok_or_else(|| {
                GitError::Refused(format!("this branch has nothing in common with {base}"))
            })?;
            let tracked = repository.changed_since(&commit, cancellation)?;
            let new = status.into_iter().filter(|entry| entry.committed.is_none());
            // What the index has is compared by both.
            new.chain(tracked).collect()
        }
    };
    Ok(by_path(repository, entries))
}
