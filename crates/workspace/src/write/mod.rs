//! Changing files: what is there now, whether it may be replaced, and replacing it.
//!
//! Promises: what is written is what was proposed, to the file it was proposed for, or nothing at all; what was pinned is
//! written byte for byte. A file that the session has not read, or that was changed since, is not overwritten; nor is one
//! that changed since the change was proposed. A symbolic link is not replaced: its target is, if that lies inside.
//! Must not know: how the new content comes about.

pub(crate) mod atomic;
mod history;
mod proposal;
mod restore;
mod target;

use wire::NamedBody;

pub use history::Extent;
pub(crate) use history::FileHistory;
pub(crate) use proposal::CallProposal;
use proposal::{PinnedContents, Proposal};
pub use restore::{FileNow, WantedFile};

use crate::read::FILE_BYTES_MAX;
use crate::{Cancellation, DiffStats, FileError, Workspace};
use target::WriteTarget;

/// A requested change to one file.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRequest<'a> {
    pub path: &'a str,
    pub extent: Extent,
}

/// A change to one file: proposed, or already made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// As models and people read it.
    pub display_path: String,
    pub uri: String,
    /// Absent for a new file.
    pub before: Option<NamedBody>,
    pub after: NamedBody,
    /// The permissions of the file before; absent for a new one.
    pub mode: Option<u32>,
    /// How many directories a new file needs that are not there.
    pub new_directories: usize,
}

impl FileChange {
    pub fn diff_stats(&self) -> DiffStats {
        DiffStats::between(self.before.as_deref(), &self.after)
    }
}

impl Workspace {
    /// Computes a change without making it, and remembers for this call ([`Workspace::for_call`]) what it was computed for. `edit`
    /// gets the content, if there is a file, and the path as people read it.
    pub fn propose_change<E: From<FileError>>(
        &self,
        request: &ChangeRequest<'_>,
        edit: impl FnOnce(Option<&[u8]>, &str) -> Result<Vec<u8>, E>,
    ) -> Result<FileChange, E> {
        // Otherwise what is remembered could be older than a change that is made meanwhile.
        let writing = self.lock_writes();
        let (target, after) = self.compute_change(request, edit)?;
        let (path, before) = (target.path.clone(), target.digest());
        let lineage = self.history().record_look(&path, before);
        drop(writing);
        self.proposal.set(Proposal::new(path, before, lineage));
        Ok(self.file_change(target, NamedBody::of(after)))
    }

    /// Computes a change that is about to be made, and pins it: it is made exactly so, or not at all. What it was proposed
    /// for must still be there.
    pub fn pin_change<E: From<FileError>>(
        &self,
        request: &ChangeRequest<'_>,
        edit: impl FnOnce(Option<&[u8]>, &str) -> Result<Vec<u8>, E>,
    ) -> Result<FileChange, E> {
        let (target, after) = self.compute_change(request, edit)?;
        self.check_proposal(self.proposal.get().as_ref(), &target, request.extent)?;
        let path = target.path.clone();
        let change = self.file_change(target, NamedBody::of(after));
        let contents = PinnedContents {
            path,
            before: change.before.clone(),
            after: change.after.clone(),
            new_directories: change.new_directories,
        };
        self.proposal.pin(contents);
        Ok(change)
    }

    fn compute_change<E: From<FileError>>(
        &self,
        request: &ChangeRequest<'_>,
        edit: impl FnOnce(Option<&[u8]>, &str) -> Result<Vec<u8>, E>,
    ) -> Result<(WriteTarget, Vec<u8>), E> {
        let target = self.open_target(&self.resolve(request.path)?, None)?;
        self.check_overwrite(&target, request.extent)?;
        let after = self.edited_content(&target, edit)?;
        Ok((target, after))
    }

    /// Makes a change. If it was proposed, the file must still be what it was proposed for: exactly, or for a change to
    /// parts also what this session has made of it meanwhile. If it was pinned, both sides must be what they were then.
    pub fn apply_change<E: From<FileError>>(
        &self,
        request: &ChangeRequest<'_>,
        cancellation: &Cancellation,
        edit: impl FnOnce(Option<&[u8]>, &str) -> Result<Vec<u8>, E>,
    ) -> Result<FileChange, E> {
        let _writing = self.lock_writes();
        // What was pinned stays in memory no longer, whatever comes of the change.
        let proposal = self.proposal.take();
        cancellation.check()?;
        let pin = proposal.as_ref().and_then(|proposal| proposal.pin.as_ref());
        // Compared byte by byte with what was pinned instead of hashed.
        let before = pin.and_then(|pin| pin.before.as_ref());
        let target = self.open_target(&self.resolve(request.path)?, before)?;
        self.check_proposal(proposal.as_ref(), &target, request.extent)?;
        self.check_overwrite(&target, request.extent)?;
        let after = self.edited_content(&target, edit)?;
        let after = NamedBody::like(after, pin.map(|pin| &pin.after));
        if pin.is_some_and(|pin| pin.differs_from(&target, &after)) {
            let path = self.display_path(&target.path);
            return Err(FileError::ChangedSinceProposal { path }.into());
        }
        self.write_target(&target, &after, request.extent, cancellation)?;
        Ok(self.file_change(target, after))
    }

    fn edited_content<E: From<FileError>>(
        &self,
        target: &WriteTarget,
        edit: impl FnOnce(Option<&[u8]>, &str) -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        let path = self.display_path(&target.path);
        let after = edit(target.before(), &path)?;
        if after.len() as u64 > FILE_BYTES_MAX {
            return Err(FileError::TooMuchContent { path }.into());
        }
        if target.before() == Some(&after) {
            return Err(FileError::SameContent { path }.into());
        }
        Ok(after)
    }

    fn file_change(&self, target: WriteTarget, after: NamedBody) -> FileChange {
        FileChange {
            display_path: self.display_path(&target.path),
            uri: self.uri(&target.path),
            mode: target.mode(),
            new_directories: target.new_directories,
            before: target.into_before(),
            after,
        }
    }
}
