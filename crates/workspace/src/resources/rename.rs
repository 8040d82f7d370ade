//! Copying, moving and removing resources, and making directories (H-255, H-257).
//!
//! Promises: what takes the place of something else does so in one step; a copy is made beside its destination first, so that
//! a full disk leaves what was there. What is too large is refused before anything is changed.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;

use super::move_copy::MovedCopy;
use super::resolved_resource::{LastName, ResolvedResource};
use super::tree::{self, EntryPlace, TreeError, TreePurpose};
use super::{ResourceAccess, ResourceError, ResourceFiles, ResourceGrant};
use crate::write::atomic;

/// Whether something may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    Replaced,
    AnError,
}

impl Existing {
    fn new(fail_if_exists: bool) -> Self {
        if fail_if_exists { Self::AnError } else { Self::Replaced }
    }
}

impl ResourceFiles {
    /// Copies a file, or a directory with all that is in it.
    pub fn copy(
        &self,
        source: &str,
        destination: &str,
        fail_if_exists: bool,
        grants: &[ResourceGrant],
    ) -> Result<(), ResourceError> {
        let _writing = self.writing.lock();
        let from = self.locate(source, LastName::Followed, ResourceAccess::Read, grants)?;
        let to = self.locate(destination, LastName::Followed, ResourceAccess::Write, grants)?;
        let (_, stat) = from.existing()?;
        if stat.kind == FileType::Symlink {
            return Err(from.failed(Errno::NOENT)); // it leads nowhere
        }
        let existing = Existing::new(fail_if_exists);
        check_destination(&to, existing)?;
        check_apart(&from, &to)?;
        self.check_no_hidden(&from)?;
        self.check_removable(&to)?;
        let (from_parent, from_name) = from.parent()?;
        let measured = tree::check(&from_parent, from_name, TreePurpose::Copying);
        measured.map_err(|error| failed(&from, error))?;
        put_copy(&from, &to, existing)
    }

    /// Moves a file, a link, or a directory with all that is in it.
    pub fn rename(
        &self,
        source: &str,
        destination: &str,
        fail_if_exists: bool,
        grants: &[ResourceGrant],
    ) -> Result<(), ResourceError> {
        let _writing = self.writing.lock();
        let from = self.locate(source, LastName::Itself, ResourceAccess::Write, grants)?;
        let to = self.locate(destination, LastName::Itself, ResourceAccess::Write, grants)?;
        let (_, stat) = from.existing()?;
        self.check_removable(&from)?;
        self.check_removable(&to)?;
        let existing = Existing::new(fail_if_exists);
        let replaced = check_destination(&to, existing)?;
        check_apart(&from, &to)?;
        let (from_parent, from_name) = from.parent()?;
        let (to_parent, to_name) = make_parent(&to)?;
        let is_plain = |kind| kind != FileType::Directory;
        let moved = match replaced {
            None => rename_to_free(&from_parent, from_name, &to_parent, to_name),
            Some(kind) if is_plain(kind) && is_plain(stat.kind) => {
                rustix::fs::renameat(&from_parent, from_name, &to_parent, to_name)
            }
            Some(_) => {
                let measured = tree::check(&to_parent, to_name, TreePurpose::Removing);
                measured.map_err(|error| failed(&to, error))?;
                let flags = RenameFlags::EXCHANGE;
                let (one, other) = (&from_parent, &to_parent);
                rustix::fs::renameat_with(one, from_name, other, to_name, flags).inspect(|()| {
                    // What was replaced has the old name now. If a part of it stays, that is what the client sees there.
                    let _ = tree::remove(&from_parent, from_name);
                })
            }
        };
        match moved {
            Ok(()) => {
                sync(&to_parent, &to)?;
                sync(&from_parent, &from)
            }
            // On another disk.
            Err(Errno::XDEV) => MovedCopy::put(&from, &to, existing)?.remove_source(),
            Err(errno) => Err(to.failed(errno)),
        }
    }

    /// Removes a file, a link, or a directory: one that is not empty only with `recursive`.
    pub fn remove(
        &self,
        uri: &str,
        recursive: bool,
        grants: &[ResourceGrant],
    ) -> Result<(), ResourceError> {
        let _writing = self.writing.lock();
        let resource = self.locate(uri, LastName::Itself, ResourceAccess::Write, grants)?;
        let (_, stat) = resource.existing()?;
        self.check_removable(&resource)?;
        let (parent, name) = resource.parent()?;
        let removed = match (stat.kind, recursive) {
            (FileType::Directory, true) => tree::check(&parent, name, TreePurpose::Removing)
                .and_then(|()| tree::remove(&parent, name)),
            (FileType::Directory, false) => {
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(TreeError::from)
            }
            _ => rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(TreeError::from),
        };
        removed.map_err(|error| failed(&resource, error))?;
        sync(&parent, &resource)
    }

    /// Makes a directory, and those it lies in.
    pub fn make_directory(&self, uri: &str, grants: &[ResourceGrant]) -> Result<(), ResourceError> {
        let exists = |path: &str| ResourceError::AlreadyExists { path: path.to_owned() };
        let located = self.locate(uri, LastName::Followed, ResourceAccess::Write, grants);
        let resource = located.map_err(|error| match error {
            // Something on the way to it is there, and is no directory.
            ResourceError::NotADirectory { path } => exists(&path),
            error => error,
        })?;
        if let Some(entry) = resource.entry()? {
            return match resource.stat(&entry)?.kind {
                FileType::Directory => Ok(()),
                _ => Err(exists(&resource.display)),
            };
        }
        match atomic::create_directories(&resource.root, &resource.relative) {
            Ok(_) => Ok(()),
            // A file took the name meanwhile.
            Err(Errno::NOTDIR) => Err(exists(&resource.display)),
            Err(errno) => Err(resource.failed(errno)),
        }
    }
}

/// What is at a destination, if that may be replaced.
fn check_destination(
    to: &ResolvedResource,
    existing: Existing,
) -> Result<Option<FileType>, ResourceError> {
    let Some(entry) = to.entry()? else { return Ok(None) };
    match existing {
        Existing::Replaced => Ok(Some(to.stat(&entry)?.kind)),
        Existing::AnError => Err(ResourceError::AlreadyExists { path: to.display.clone() }),
    }
}

/// Neither may lie in the other.
fn check_apart(from: &ResolvedResource, to: &ResolvedResource) -> Result<(), ResourceError> {
    let (source, destination) = (from.real_path(), to.real_path());
    if source.starts_with(&destination) || destination.starts_with(&source) {
        Err(ResourceError::Nested { path: from.display.clone(), other: to.display.clone() })
    } else {
        Ok(())
    }
}

/// The directory of a destination, made if it is not there.
pub(super) fn make_parent(to: &ResolvedResource) -> Result<(OwnedFd, &OsStr), ResourceError> {
    let above = to.relative.parent().unwrap_or(Path::new(""));
    let parent = atomic::create_directories(&to.root, above);
    Ok((parent.map_err(|errno| to.failed(errno))?, to.name()?))
}

/// Copies beside the destination, then gives the copy its name.
fn put_copy(
    from: &ResolvedResource,
    to: &ResolvedResource,
    existing: Existing,
) -> Result<(), ResourceError> {
    let (from_parent, from_name) = from.parent()?;
    let (parent, name) = make_parent(to)?;
    let copy = TempTree::copy_of(EntryPlace { parent: &from_parent, name: from_name }, parent, to)?;
    copy.give_name(name, to, existing)?;
    sync(&copy.parent, to)
}

/// What a copy's new name led to before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PutInPlace {
    OfNothing,
    /// What was there has the temporary name now.
    OfAnother,
}

/// Renames to a name that nothing has.
pub(super) fn rename_to_free(
    from: &OwnedFd,
    name: &OsStr,
    to: &OwnedFd,
    new_name: &OsStr,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // Some file systems cannot do that: then it is looked first.
        Err(Errno::INVAL | Errno::NOSYS) => match crate::confined::Stat::of_entry(to, new_name) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rustix::fs::renameat(from, name, to, new_name),
            Err(errno) => Err(errno),
        },
        renamed => renamed,
    }
}

pub(super) fn sync(directory: &OwnedFd, resource: &ResolvedResource) -> Result<(), ResourceError> {
    rustix::fs::fsync(directory).map_err(|errno| resource.failed(errno))
}

pub(super) fn failed(resource: &ResolvedResource, error: TreeError) -> ResourceError {
    let path = resource.display.clone();
    match error {
        TreeError::TooLarge => ResourceError::TreeTooLarge { path },
        TreeError::NotRegular => ResourceError::NotRegular { path },
        TreeError::System(errno) => resource.failed(errno),
    }
}

/// Something under a temporary name; removed when dropped.
pub(super) struct TempTree {
    pub(super) parent: OwnedFd,
    pub(super) name: OsString,
    /// It belongs to somebody, and stays.
    pub(super) is_kept: bool,
}

impl TempTree {
    /// A copy, beside its destination and on the disk.
    pub(super) fn copy_of(
        source: EntryPlace<'_>,
        parent: OwnedFd,
        to: &ResolvedResource,
    ) -> Result<Self, ResourceError> {
        let name = atomic::temp_name().map_err(|errno| to.failed(errno))?;
        let copy = Self { parent, name, is_kept: false };
        let copied = tree::copy(source, EntryPlace { parent: &copy.parent, name: &copy.name });
        copied.map_err(|error| failed(to, error))?;
        rustix::fs::syncfs(&copy.parent).map_err(|errno| to.failed(errno))?;
        Ok(copy)
    }

    /// Takes the name that it is for. What had it gets the temporary one, and goes with it.
    pub(super) fn give_name(
        &self,
        name: &OsStr,
        to: &ResolvedResource,
        existing: Existing,
    ) -> Result<PutInPlace, ResourceError> {
        let parent = &self.parent;
        match rename_to_free(parent, &self.name, parent, name) {
            Ok(()) => Ok(PutInPlace::OfNothing),
            Err(Errno::EXIST) if existing == Existing::Replaced => {
                let measured = tree::check(parent, name, TreePurpose::Removing);
                measured.map_err(|error| failed(to, error))?;
                let flags = RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(parent, &self.name, parent, name, flags)
                    .map_err(|errno| to.failed(errno))?;
                Ok(PutInPlace::OfAnother)
            }
            Err(errno) => Err(to.failed(errno)),
        }
    }
}

impl Drop for TempTree {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // What cannot be removed stays: nothing depends on it, and a drop has no caller to tell.
        let _ = tree::remove(&self.parent, &self.name);
    }
}
