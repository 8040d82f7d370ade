//! A file that is to be written: what is there now, whether it may be replaced, and doing it.
//!
//! Must not know: what is written.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use wire::{Digest, NamedBody};

use super::atomic::{self, WriteError};
use super::history::{Extent, Freshness};
use super::proposal::Proposal;
use crate::confined::{Links, Stat};
use crate::error::errno_to_file_error;
use crate::read::{self, FILE_BYTES_MAX};
use crate::roots::RootUse;
use crate::{Cancellation, FileError, Workspace, WorkspacePath};

/// Where something is to be written.
#[derive(Debug)]
pub(super) struct WriteTarget {
    /// Without links.
    pub(super) path: WorkspacePath,
    /// Absent if nothing is there, and perhaps not even the directory.
    existing: Option<ExistingFile>,
    /// How many directories on the way to it are not there.
    pub(super) new_directories: usize,
}

#[derive(Debug)]
struct ExistingFile {
    parent: OwnedFd,
    name: OsString,
    stat: Stat,
    body: NamedBody,
}

impl WriteTarget {
    /// What the file holds now, if there is one.
    pub(super) fn before(&self) -> Option<&[u8]> {
        self.existing.as_ref().map(|existing| &existing.body[..])
    }

    pub(super) fn into_before(self) -> Option<NamedBody> {
        self.existing.map(|existing| existing.body)
    }

    /// The permissions of the file, if there is one.
    pub(super) fn mode(&self) -> Option<u32> {
        let existing = self.existing.as_ref();
        existing.map(|existing| existing.stat.mode & 0o777)
    }

    pub(super) fn digest(&self) -> Option<Digest> {
        let existing = self.existing.as_ref();
        existing.map(|existing| existing.body.digest())
    }
}

impl Workspace {
    /// Opens a path where something is to be written. `known` is what the file is expected to hold: then nothing has to be hashed.
    pub(super) fn open_target(
        &self,
        path: &WorkspacePath,
        known: Option<&NamedBody>,
    ) -> Result<WriteTarget, FileError> {
        let display_path = self.display_path(path);
        if path.relative.as_os_str().is_empty() {
            return Err(FileError::IsDirectory { path: display_path });
        }
        if self.root(path).role != RootUse::Working {
            return Err(FileError::ReadOnlyRoot { path: display_path });
        }
        match self.entry_type(path) {
            Err(Errno::NOENT) => self.open_new_target(path),
            Err(errno) => Err(errno_to_file_error(errno, &display_path)),
            Ok(FileType::Symlink) => self.open_existing_target(path, known).map_err(|error| {
                let (path, reason) = (display_path, Box::new(error));
                FileError::BrokenLink { path, reason }
            }),
            Ok(_) => self.open_existing_target(path, known),
        }
    }

    /// What is under a name; of a link itself.
    fn entry_type(&self, path: &WorkspacePath) -> Result<FileType, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let entry = self.root(path).open_path(&path.relative, flags, Links::Followed)?;
        Ok(Stat::of(&entry)?.kind)
    }

    /// Nothing is there: the nearest existing path above it must be a directory.
    fn open_new_target(&self, path: &WorkspacePath) -> Result<WriteTarget, FileError> {
        let root = self.root(path);
        let failed = |errno| errno_to_file_error(errno, &self.display_path(path));
        for (new_directories, above) in path.relative.ancestors().skip(1).enumerate() {
            match root.open_path(above, OFlags::PATH, Links::Followed) {
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(failed(errno)),
                Ok(found)
                    if Stat::of(&found).is_ok_and(|stat| stat.kind == FileType::Directory) =>
                {
                    // The same file must have the same path when it is opened again.
                    let rest = path.relative.strip_prefix(above).unwrap_or(Path::new(""));
                    let real = root.real_path_inside(&found);
                    let path =
                        real.map_or(path.clone(), |real| path.with_relative(real.join(rest)));
                    return Ok(WriteTarget { path, existing: None, new_directories });
                }
                Ok(_) => return Err(failed(Errno::NOTDIR)),
            }
        }
        Err(failed(Errno::NOENT))
    }

    fn open_existing_target(
        &self,
        path: &WorkspacePath,
        known: Option<&NamedBody>,
    ) -> Result<WriteTarget, FileError> {
        let display_path = self.display_path(path);
        let (file, stat) = self.open_file(path, Links::Followed)?;
        if stat.identity.bytes > FILE_BYTES_MAX {
            return Err(FileError::TooLarge { path: display_path });
        }
        let snapshot = read::take_snapshot(file, &display_path, known)?;
        let root = self.root(path);
        let moving = || FileError::Moving { path: display_path.clone() };
        let real = root.real_path_inside(&snapshot.file).ok_or_else(moving)?;
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(moving());
        };
        let parent = root.open_directory(above, Links::Refused).map_err(|_| moving())?;
        let stat = Stat::of_entry(&parent, name).map_err(|_| moving())?;
        if stat.identity != snapshot.stat.identity {
            return Err(FileError::ChangedSinceRead { path: display_path });
        }
        let name = name.to_owned();
        Ok(WriteTarget {
            path: path.with_relative(real),
            new_directories: 0,
            existing: Some(ExistingFile { parent, name, stat: snapshot.stat, body: snapshot.body }),
        })
    }

    /// Whether the session knows what it is about to replace.
    pub(super) fn check_overwrite(
        &self,
        target: &WriteTarget,
        extent: Extent,
    ) -> Result<(), FileError> {
        let Some(existing) = &target.existing else {
            // There is nothing to lose.
            return Ok(());
        };
        let path = self.display_path(&target.path);
        if existing.stat.mode & 0o222 == 0 {
            return Err(FileError::ReadOnlyFile { path });
        }
        let freshness = self.history().freshness(&target.path, existing.body.digest());
        match (freshness, extent) {
            // A change to parts names what it replaces.
            (Freshness::Unchanged, _) | (Freshness::Unread, Extent::Parts) => Ok(()),
            (Freshness::Changed, _) => Err(FileError::ChangedSinceRead { path }),
            (Freshness::Unread, Extent::Whole) => Err(FileError::NotRead { path }),
        }
    }

    /// Whether it is the file that the change was proposed for, and still what it was then.
    pub(super) fn check_proposal(
        &self,
        proposal: Option<&Proposal>,
        target: &WriteTarget,
        extent: Extent,
    ) -> Result<(), FileError> {
        let Some(proposal) = proposal else {
            // No proposal was shown that could be outdated.
            return Ok(());
        };
        let (path, now) = (&target.path, target.digest());
        let is_valid = match extent {
            Extent::Whole => proposal.is_for(path, now),
            Extent::Parts => self.history().descends_from(proposal, path, now),
        };
        if is_valid {
            Ok(())
        } else {
            Err(FileError::ChangedSinceProposal { path: self.display_path(path) })
        }
    }

    /// Writes it, all or nothing, and remembers it.
    pub(super) fn write_target(
        &self,
        target: &WriteTarget,
        body: &NamedBody,
        extent: Extent,
        cancellation: &Cancellation,
    ) -> Result<(), FileError> {
        let root = self.root(&target.path);
        let written = match &target.existing {
            None => atomic::create(root, &target.path.relative, body, None, cancellation),
            Some(ExistingFile { parent, name, stat, .. }) => {
                atomic::replace(parent, name, body, None, stat, cancellation)
            }
        };
        let path = self.display_path(&target.path);
        written.map_err(|error| match error {
            WriteError::Changed => FileError::ChangedSinceRead { path },
            WriteError::Cancelled => FileError::Cancelled,
            WriteError::System(errno) => errno_to_file_error(errno, &path),
        })?;
        let mut history = self.history();
        history.record_write(&target.path, body.digest(), extent);
        Ok(())
    }
}
