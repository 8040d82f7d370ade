//! Writing a file so that it appears whole under its name, or not at all.
//!
//! Promises: what was under the name is replaced in one step, by a file that is on the disk; if it is not what it was
//! expected to be, it is left there. A crash leaves at most a temporary file (`.greenroom-*`) beside it. The mode is preserved, the
//! owner where the system lets us; hard links are broken, and access lists and extended attributes are not carried
//! over.
//! Must not know: what was expected, and why.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::Cancellation;
use crate::confined::{self, Links, Stat};
use crate::roots::Root;

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// Something else is there by now.
    Changed,
    Cancelled,
    System(Errno),
}

impl From<Errno> for WriteError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Writes a file where there is none, and creates the directories it needs. The path has no links: what has become one
/// since it was checked is not followed. Without a mode it has that of all new files.
pub(crate) fn create(
    root: &Root,
    path: &Path,
    bytes: &[u8],
    mode: Option<u32>,
    cancellation: &Cancellation,
) -> Result<(), WriteError> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let parent = create_directories(root, path.parent().unwrap_or(Path::new("")))?;
    let permissions = mode.map_or(Permissions::OfNewFiles, Permissions::Mode);
    let temp = TempFile::write(&parent, bytes, permissions, cancellation)?;
    match rustix::fs::renameat_with(&parent, &temp.name, &parent, name, RenameFlags::NOREPLACE) {
        Ok(()) => temp.persist(),
        Err(Errno::EXIST) => return Err(WriteError::Changed),
        // Some file systems cannot do that; all can refuse to link over something.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::linkat(&parent, &temp.name, &parent, name, AtFlags::empty()) {
                Ok(()) => drop(temp),
                Err(Errno::EXIST) => return Err(WriteError::Changed),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(errno) => return Err(errno.into()),
    }
    Ok(rustix::fs::fsync(&parent)?)
}

/// Makes a symbolic link where there is nothing, and creates the directories it needs.
pub(super) fn create_link(root: &Root, path: &Path, target: &[u8]) -> Result<(), WriteError> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let parent = create_directories(root, path.parent().unwrap_or(Path::new("")))?;
    match rustix::fs::symlinkat(target, &parent, name) {
        Ok(()) => Ok(rustix::fs::fsync(&parent)?),
        Err(Errno::EXIST) => Err(WriteError::Changed),
        Err(errno) => Err(errno.into()),
    }
}

/// Replaces what was `expected`, a file or a link, by a symbolic link.
pub(super) fn replace_by_link(
    parent: &OwnedFd,
    name: &OsStr,
    target: &[u8],
    expected: &Stat,
) -> Result<(), WriteError> {
    let temp = TempFile { parent, name: temp_name()? };
    rustix::fs::symlinkat(target, parent, &temp.name)?;
    if !is_unchanged(parent, name, expected)? {
        return Err(WriteError::Changed);
    }
    exchange(temp, name, expected)?;
    Ok(rustix::fs::fsync(parent)?)
}

/// Replaces a file that was `expected`; with its permissions, unless others are given.
pub(super) fn replace(
    parent: &OwnedFd,
    name: &OsStr,
    bytes: &[u8],
    mode: Option<u32>,
    expected: &Stat,
    cancellation: &Cancellation,
) -> Result<(), WriteError> {
    let fill = |file: &mut File| file.write_all(bytes);
    let permissions = mode.map_or(Permissions::Of(expected), Permissions::Mode);
    let temp = TempFile::fill(parent, fill, permissions, cancellation)?;
    put_in_place(temp, name, expected)
}

/// Replaces a file that was `expected` by what `fill` writes.
pub(crate) fn replace_with(
    parent: &OwnedFd,
    name: &OsStr,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    expected: &Stat,
    cancellation: &Cancellation,
) -> Result<(), WriteError> {
    let permissions = Permissions::Of(expected);
    put_in_place(TempFile::fill(parent, fill, permissions, cancellation)?, name, expected)
}

fn put_in_place(temp: TempFile<'_>, name: &OsStr, expected: &Stat) -> Result<(), WriteError> {
    let parent = temp.parent;
    if !is_unchanged(parent, name, expected)? {
        return Err(WriteError::Changed);
    }
    exchange(temp, name, expected)?;
    Ok(rustix::fs::fsync(parent)?)
}

/// Removes a file that was `expected`: it is moved away first, so that what came in between can be put back.
pub(super) fn remove(parent: &OwnedFd, name: &OsStr, expected: &Stat) -> Result<(), WriteError> {
    if !is_unchanged(parent, name, expected)? {
        return Err(WriteError::Changed);
    }
    let temp = TempFile { parent, name: temp_name()? };
    if let Err(errno) = rustix::fs::renameat(parent, name, parent, &temp.name) {
        temp.persist(); // nothing has that name
        return Err(match errno {
            Errno::NOENT => WriteError::Changed,
            errno => errno.into(),
        });
    }
    let failed = match is_unchanged(parent, &temp.name, expected) {
        Ok(true) => {
            drop(temp);
            return Ok(rustix::fs::fsync(parent)?);
        }
        Ok(false) => WriteError::Changed,
        Err(errno) => errno.into(),
    };
    let flags = RenameFlags::NOREPLACE;
    let put_back = rustix::fs::renameat_with(parent, &temp.name, parent, name, flags);
    // What is not ours must not be removed, even under a temporary name.
    temp.persist();
    put_back?;
    Err(failed)
}

/// Removes directories that are empty: this one, then those around it, at most so many.
pub(super) fn remove_empty_directories(root: &Root, path: &Path, most: usize) {
    for directory in path.ancestors().take(most) {
        let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
            return; // the working directory itself stays
        };
        let Ok(parent) = root.open_directory(above, Links::Refused) else {
            return; // somebody moved it: it is not ours any more
        };
        // One that is not empty, or not there, stays as it is: so do those around it.
        if rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).is_err() {
            return;
        }
    }
}

/// Exchanges the names of both files: what was there can still be checked, and put back if it is not what was expected.
fn exchange(temp: TempFile<'_>, name: &OsStr, expected: &Stat) -> Result<(), WriteError> {
    let parent = temp.parent;
    match temp.exchange_with(name) {
        Ok(()) => {}
        // Some file systems cannot do that; then it is replaced because of the check before.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::renameat(parent, &temp.name, parent, name)?;
            temp.persist();
            return Ok(());
        }
        Err(Errno::NOENT) => return Err(WriteError::Changed),
        Err(errno) => return Err(errno.into()),
    }
    let failed = match is_unchanged(parent, &temp.name, expected) {
        Ok(true) => return Ok(()),
        Ok(false) => WriteError::Changed,
        Err(errno) => errno.into(),
    };
    if let Err(errno) = temp.exchange_with(name) {
        // What is not ours must not be removed, even under a temporary name.
        temp.persist();
        return Err(errno.into());
    }
    Err(failed)
}

fn is_unchanged(parent: &OwnedFd, name: &OsStr, expected: &Stat) -> Result<bool, Errno> {
    match Stat::of_entry(parent, name) {
        Ok(there) => Ok(there.identity == expected.identity),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Creates the directories of a path beneath a root, one by one from the first that is missing.
pub(crate) fn create_directories(root: &Root, path: &Path) -> Result<OwnedFd, Errno> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut there = path;
    let mut directory = loop {
        match root.open_directory(there, Links::Refused) {
            Ok(directory) => break directory,
            Err(Errno::NOENT) => match there.components().next_back() {
                Some(Component::Normal(name)) => missing.push(name),
                _ => return Err(Errno::NOENT),
            },
            Err(errno) => return Err(errno),
        }
        there = there.parent().unwrap_or(Path::new(""));
    };
    for name in missing.into_iter().rev() {
        match rustix::fs::mkdirat(&directory, name, Mode::from_raw_mode(0o777)) {
            // Another process was faster; what it made is checked below like any other.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        rustix::fs::fsync(&directory)?;
        directory = confined::open_directory(&directory, Path::new(name), Links::Refused)?;
    }
    Ok(directory)
}

/// What a new file's permissions are.
#[derive(Debug, Clone, Copy)]
enum Permissions<'a> {
    /// What the system gives new files.
    OfNewFiles,
    Mode(u32),
    /// Owner and mode of the file it is to replace.
    Of(&'a Stat),
}

/// How names of files begin that are being written; sixteen hexadecimal digits follow.
pub(crate) const TEMP_PREFIX: &str = ".greenroom-";

pub(crate) fn temp_name() -> Result<OsString, Errno> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
    let name = format!("{TEMP_PREFIX}{:016x}", u64::from_ne_bytes(random));
    Ok(OsString::from(name))
}

/// A file under a temporary name; removed when dropped.
struct TempFile<'a> {
    parent: &'a OwnedFd,
    name: OsString,
}

impl<'a> TempFile<'a> {
    /// Writes a file and syncs it.
    fn write(
        parent: &'a OwnedFd,
        bytes: &[u8],
        permissions: Permissions<'_>,
        cancellation: &Cancellation,
    ) -> Result<Self, WriteError> {
        let fill = |file: &mut File| file.write_all(bytes);
        Self::fill(parent, fill, permissions, cancellation)
    }

    /// The same with what `fill` writes.
    fn fill(
        parent: &'a OwnedFd,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
        permissions: Permissions<'_>,
        cancellation: &Cancellation,
    ) -> Result<Self, WriteError> {
        let name = temp_name()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = match permissions {
            Permissions::OfNewFiles => 0o666,
            Permissions::Mode(_) | Permissions::Of(_) => 0o600,
        };
        let file = rustix::fs::openat(parent, &name, flags, Mode::from_raw_mode(mode))?;
        let temp = Self { parent, name };
        let mut file = File::from(file);
        fill(&mut file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        match permissions {
            Permissions::OfNewFiles => {}
            Permissions::Mode(mode) => {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
            }
            Permissions::Of(stat) => copy_ownership_and_mode(&file, stat)?,
        }
        rustix::fs::fsync(&file)?;
        if cancellation.is_cancelled() {
            return Err(WriteError::Cancelled);
        }
        Ok(temp)
    }

    /// Exchanges names with another file.
    fn exchange_with(&self, name: &OsStr) -> Result<(), Errno> {
        let flags = RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(self.parent, &self.name, self.parent, name, flags)
    }

    /// It is not temporary any more, or not ours to remove.
    fn persist(mut self) {
        self.name = OsString::new();
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // If it cannot be removed, it stays: nothing depends on it, and a drop has no caller to tell.
            let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
        }
    }
}

fn copy_ownership_and_mode(file: &impl AsFd, from: &Stat) -> Result<(), Errno> {
    let now = Stat::of(file)?;
    if (now.owner, now.group) != (from.owner, from.group) {
        let (owner, group) = (Uid::from_raw(from.owner), Gid::from_raw(from.group));
        // Only the superuser may give a file away; a group of one's own can be preserved.
        if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
            let _ = rustix::fs::fchown(file, None, Some(group));
        }
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(from.mode & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confinement, Workspace};
    use std::fs;

    fn open(directory: &Path) -> OwnedFd {
        OwnedFd::from(File::open(directory).unwrap())
    }

    fn names(directory: &Path) -> Vec<OsString> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_that_came_in_between_is_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let (parent, name) = (open(directory.path()), OsStr::new("a"));
        let path = directory.path().join("a");
        fs::write(&path, "expected").unwrap();
        let expected = Stat::of_entry(&parent, name).unwrap();
        let cancellation = Cancellation::default();
        let temp =
            TempFile::write(&parent, b"new", Permissions::Of(&expected), &cancellation).unwrap();

        fs::remove_file(&path).unwrap();
        fs::write(&path, "of someone else").unwrap();
        assert_eq!(exchange(temp, name, &expected), Err(WriteError::Changed));
        assert_eq!(fs::read(&path).unwrap(), b"of someone else");
        assert_eq!(names(directory.path()), ["a"]);

        let replaced = replace(&parent, name, b"new", None, &expected, &cancellation);
        assert_eq!(replaced, Err(WriteError::Changed));
        let expected = Stat::of_entry(&parent, name).unwrap();
        assert_eq!(replace(&parent, name, b"new", None, &expected, &cancellation), Ok(()));
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_disk_that_fills_up_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let (parent, name) = (open(directory.path()), OsStr::new("a"));
        fs::write(directory.path().join("a"), "before").unwrap();
        let expected = Stat::of_entry(&parent, name).unwrap();
        let fill = |file: &mut File| {
            file.write_all(b"half of it")?;
            Err(io::Error::from(Errno::NOSPC))
        };
        let cancellation = Cancellation::default();
        let replaced = replace_with(&parent, name, fill, &expected, &cancellation);
        assert_eq!(replaced, Err(WriteError::System(Errno::NOSPC)));
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"before");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn nothing_is_created_over_a_file_or_after_a_cancellation() {
        let directory = tempfile::tempdir().unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        let root = workspace.root(&workspace.resolve(".").unwrap());
        fs::write(directory.path().join("a"), "there").unwrap();
        let cancellation = Cancellation::default();
        let created = create(root, Path::new("a"), b"new", None, &cancellation);
        assert_eq!(created, Err(WriteError::Changed));
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"there");

        cancellation.cancel();
        let created = create(root, Path::new("b"), b"new", None, &cancellation);
        assert_eq!(created, Err(WriteError::Cancelled));
        assert_eq!(names(directory.path()), ["a"]);
    }
}
