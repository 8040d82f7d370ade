//! Makes files what the last commit has of them, and removes new ones: all of them or none.
//!
//! Promises: what is discarded is kept first. If something fails in the middle, files and index are brought back to what they were;
//! which could not be is said by name. A file that somebody changed meanwhile is left alone.
//! Must not know: who asked.

use std::ffi::OsStr;
use std::path::PathBuf;

use wire::{Digest, ForceOffer, RpcError};
use workspace::{
    Cancellation, GitEntry, GitError, IndexEntries, Repository, WantedFile, Workspace,
    WorkspacePath,
};

use super::operate::{conflict, internal, of_git};
use super::store;
use super::take_back::NAMED_MAX;
use crate::effects::Bodies;
use crate::sorted_map::SortedMap;

/// What is about to be discarded.
pub(super) struct DiscardPlan<'a> {
    workspace: &'a Workspace,
    repository: &'a Repository,
    bodies: &'a Bodies,
    files: Vec<DiscardedFile>,
    index: IndexEntries,
}

struct DiscardedFile {
    /// From the beginning of the working tree.
    name: PathBuf,
    path: WorkspacePath,
    /// What it holds, by its name in the store, and its mode; absent if it is not there.
    was: Option<(Digest, u32)>,
    /// The last commit has it.
    is_tracked: bool,
    is_staged: bool,
}

impl<'a> DiscardPlan<'a> {
    /// Looks at what would be discarded and keeps it; nothing else is changed. All that differs if no path is named.
    pub(super) fn make(
        workspace: &'a Workspace,
        repository: &'a Repository,
        bodies: &'a Bodies,
        paths: Option<&[PathBuf]>,
        is_forced: bool,
    ) -> Result<Self, RpcError> {
        let never = Cancellation::default();
        if let Some(operation) = repository.unfinished() {
            // Said before anything else: `_meta.force` would not help.
            return Err(of_git(GitError::Unfinished { operation }));
        }
        let status = repository.status(&never).map_err(of_git)?;
        let is_wanted = |path: &PathBuf| paths.is_none_or(|paths| paths.contains(path));
        // A file that is not in the index any more but still there is listed twice, as removed and as new: it is made what the commit has.
        let mut entries: SortedMap<&OsStr, &GitEntry> = SortedMap::default();
        for entry in status.entries.iter().filter(|entry| is_wanted(&entry.path)) {
            let known = entries.get_or_insert_with(entry.path.as_os_str(), || entry);
            if entry.committed.is_some() {
                *known = entry;
            }
        }
        check(repository, &entries, is_forced)?;
        let mut files = Vec::new();
        for entry in entries.values() {
            files.push(keep(workspace, repository, bodies, entry)?);
        }
        let names: Vec<PathBuf> = files.iter().map(|file| file.name.clone()).collect();
        let index = repository.index_entries(&names, &never).map_err(of_git)?;
        Ok(Self { workspace, repository, bodies, files, index })
    }

    pub(super) fn carry_out(&self) -> Result<String, RpcError> {
        self.check_unchanged()?;
        match self.discard() {
            Ok(()) => Ok(format!("Discarded the changes of {} files.", self.files.len())),
            Err(error) => Err(self.bring_back(&error)),
        }
    }

    /// git writes over what it finds: a file that was changed since it was kept is not to be lost. Before anything is done, so that
    /// nothing is brought back over it either.
    fn check_unchanged(&self) -> Result<(), RpcError> {
        for file in &self.files {
            let now = self
                .workspace
                .look_at_any(&file.path)
                .map_err(|error| conflict(format!("nothing was done: {error}")))?;
            if now.map(|now| (now.digest, now.mode)) != file.was {
                let name = file.name.display();
                let message = format!("nothing was done: {name} was changed meanwhile");
                return Err(conflict(message));
            }
        }
        Ok(())
    }

    fn discard(&self) -> Result<(), RpcError> {
        let never = Cancellation::default();
        let tracked = self.names(|file| file.is_tracked);
        if !tracked.is_empty() {
            self.repository.take_back(&tracked, &never).map_err(of_git)?;
        }
        let staged = self.names(|file| !file.is_tracked && file.is_staged);
        if !staged.is_empty() {
            self.repository.unstage(&staged, &never).map_err(of_git)?;
        }
        for file in self.files.iter().filter(|file| !file.is_tracked) {
            let wanted = WantedFile::Absent { directories: 0 };
            let seen = file.was.map(|(digest, _)| digest);
            // Only what was kept is removed.
            let removed = self.workspace.restore_file(&file.path, seen, wanted, &never);
            removed.map_err(|error| conflict(error.to_string()))?;
        }
        Ok(())
    }

    fn names(&self, is_wanted: impl Fn(&DiscardedFile) -> bool) -> Vec<PathBuf> {
        let files = self.files.iter().filter(|file| is_wanted(file));
        files.map(|file| file.name.clone()).collect()
    }

    /// Makes everything again what it was; what is said of it.
    fn bring_back(&self, error: &RpcError) -> RpcError {
        let mut left = Vec::new();
        for file in &self.files {
            if let Err(why) = self.restore(file) {
                left.push(format!("{} ({why})", file.name.display()));
            }
        }
        if let Err(why) = self.restore_index() {
            left.push(format!("what was staged ({why})"));
        }
        let why = &error.message;
        let message = if left.is_empty() {
            format!("nothing was done: {why}")
        } else {
            format!("{why}; all is as it was before, but for: {}", left.join(", "))
        };
        RpcError::new(error.code, message)
    }

    fn restore(&self, file: &DiscardedFile) -> Result<(), String> {
        let never = Cancellation::default();
        let now = self.workspace.look_at_any(&file.path).map_err(|error| error.to_string())?;
        let is = now.as_ref().map(|now| (now.digest, now.mode));
        if is == file.was {
            return Ok(());
        }
        if let Some(now) = &now {
            if !file.is_tracked {
                return Ok(()); // somebody changed it since, and it was not removed for that
            }
            store::keep_in(self.bodies)(&now.digest, &now.bytes)?;
        }
        let seen = now.map(|now| now.digest);
        let content;
        let wanted = match file.was {
            Some((digest, mode)) => {
                let kept = store::read_content(&*self.bodies.store(), digest);
                content = kept.ok_or("what it held cannot be read")?;
                WantedFile::Content { bytes: &content, mode: Some(mode), sets_mode: true }
            }
            None => WantedFile::Absent { directories: 0 },
        };
        let restored = self.workspace.restore_file(&file.path, seen, wanted, &never);
        restored.map(drop).map_err(|error| error.to_string())
    }

    fn restore_index(&self) -> Result<(), String> {
        let never = Cancellation::default();
        let names = self.names(|_| true);
        let now = self.repository.index_entries(&names, &never);
        if now.is_ok_and(|now| now == self.index) {
            return Ok(());
        }
        self.repository.restore_index(&self.index, &never).map_err(|error| error.to_string())
    }
}

/// An error if something of it cannot be discarded, or not without being forced.
fn check(
    repository: &Repository,
    entries: &SortedMap<&OsStr, &GitEntry>,
    is_forced: bool,
) -> Result<(), RpcError> {
    if entries.is_empty() {
        return Err(conflict("there is nothing to discard"));
    }
    let conflicts = entries
        .values()
        .filter(|entry| entry.is_conflict)
        .map(|entry| repository.top().join(&entry.path));
    let resources: Vec<String> = conflicts
        .take(NAMED_MAX)
        .map(|path| wire::file_uri::uri_of(path.as_os_str().as_encoded_bytes()))
        .collect();
    if !is_forced && !resources.is_empty() {
        let reason = "there are conflicts".to_owned();
        return Err(ForceOffer { reason, resources }.to_error("discard them"));
    }
    if entries.values().any(|entry| entry.is_submodule()) {
        Err(conflict("a submodule is not discarded; do it in the submodule"))
    } else {
        Ok(())
    }
}

/// Keeps what is discarded for a while, in case it was a mistake. An error if it cannot be.
fn keep(
    workspace: &Workspace,
    repository: &Repository,
    bodies: &Bodies,
    entry: &GitEntry,
) -> Result<DiscardedFile, RpcError> {
    let name = entry.path.display();
    let refused = |why: &str| conflict(format!("nothing was done: {name}: {why}"));
    if entry.path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(refused("it is a repository of its own, or a directory"));
    }
    let absolute = repository.top().join(&entry.path);
    // git would remove what lies in the place of a directory, and nobody would have kept it.
    let mut above =
        absolute.ancestors().skip(1).take_while(|path| path.starts_with(repository.top()));
    if above.any(|path| path.symlink_metadata().is_ok_and(|found| !found.is_dir())) {
        return Err(refused("a file lies where its directory was; move it away first"));
    }
    let text = absolute.to_str().ok_or_else(|| refused("its path is not text"))?;
    let path = workspace.resolve(text).map_err(|error| refused(&error.to_string()))?;
    let now = workspace.look_at_any(&path).map_err(|error| refused(&error.to_string()))?;
    if let Some(now) = &now {
        let kept = store::keep_in(bodies)(&now.digest, &now.bytes);
        kept.map_err(|error| internal(format!("nothing was done: {error}")))?;
    }
    Ok(DiscardedFile {
        name: entry.path.clone(),
        path,
        was: now.map(|now| (now.digest, now.mode)),
        is_tracked: entry.committed.is_some(),
        is_staged: entry.is_staged,
    })
}

#[cfg(test)]
#[path = "discard_tests.rs"]
mod tests;
