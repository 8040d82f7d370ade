//! A file appears whole under its name, or not at all.
//!
//! Promises: what was under the name is replaced in one step, by a file that is on the disk; if it is not what it was
//! expected to be, it is left there. A crash leaves at most a file of a strange name beside it. The mode is kept, the
//! owner where the system lets us; hard links come apart, and access lists and extended attributes are not carried
//! over.
//! Must not know: what was expected, and why.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use super::super::stop::Stop;
use super::beneath::{self, Links, Stat};

/// Why nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Something else is there by now.
    Changed,
    /// Nobody waits for it any more.
    Stopped,
    System(Errno),
}

impl From<Errno> for Failed {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// Writes a file where there is none, and makes the directories it needs. The path has no links: what has become one
/// since it was looked at is not followed.
pub(super) fn create(root: &OwnedFd, path: &Path, bytes: &[u8], stop: &Stop) -> Result<(), Failed> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let parent = make_directories(root, path.parent().unwrap_or(Path::new("")))?;
    let unnamed = Unnamed::write(&parent, bytes, None, stop)?;
    match rustix::fs::renameat_with(
        &parent,
        &unnamed.name,
        &parent,
        name,
        RenameFlags::NOREPLACE,
    ) {
        Ok(()) => unnamed.forget(),
        Err(Errno::EXIST) => return Err(Failed::Changed),
        // Some file systems cannot do that; all can refuse to link over something.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::linkat(&parent, &unnamed.name, &parent, name, AtFlags::empty()) {
                Ok(()) => drop(unnamed),
                Err(Errno::EXIST) => return Err(Failed::Changed),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(errno) => return Err(errno.into()),
    }
    Ok(rustix::fs::fsync(&parent)?)
}

/// Replaces a file that was `expected`.
pub(super) fn replace(
    parent: &OwnedFd,
    name: &OsStr,
    bytes: &[u8],
    expected: &Stat,
    stop: &Stop,
) -> Result<(), Failed> {
    let unnamed = Unnamed::write(parent, bytes, Some(expected), stop)?;
    if !is_as_expected(parent, name, expected)? {
        return Err(Failed::Changed);
    }
    swap_in(unnamed, name, expected)?;
    Ok(rustix::fs::fsync(parent)?)
}

/// Both files trade names: what was there can still be looked at, and put back if it is not what it should be.
fn swap_in(unnamed: Unnamed<'_>, name: &OsStr, expected: &Stat) -> Result<(), Failed> {
    let parent = unnamed.parent;
    match unnamed.swap(name) {
        Ok(()) => {}
        // Some file systems cannot do that; then it is replaced on the word of the look before.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::renameat(parent, &unnamed.name, parent, name)?;
            unnamed.forget();
            return Ok(());
        }
        Err(Errno::NOENT) => return Err(Failed::Changed),
        Err(errno) => return Err(errno.into()),
    }
    let failed = match is_as_expected(parent, &unnamed.name, expected) {
        Ok(true) => return Ok(()),
        Ok(false) => Failed::Changed,
        Err(errno) => errno.into(),
    };
    if let Err(errno) = unnamed.swap(name) {
        // What is not ours must not go, even under a strange name.
        unnamed.forget();
        return Err(errno.into());
    }
    Err(failed)
}

fn is_as_expected(parent: &OwnedFd, name: &OsStr, expected: &Stat) -> Result<bool, Errno> {
    match Stat::of_entry(parent, name) {
        Ok(there) => Ok(there.identity == expected.identity),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Makes the directories of a path beneath a root, one by one from the first that is missing.
fn make_directories(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut missing: Vec<&OsStr> = Vec::new();
    let mut there = path;
    let mut directory = loop {
        match beneath::open_directory(root, there, Links::Refused) {
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
            // Somebody was faster; what they made is looked at below like any other.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        rustix::fs::fsync(&directory)?;
        directory = beneath::open_directory(&directory, Path::new(name), Links::Refused)?;
    }
    Ok(directory)
}

/// A file under a name nobody looks for; gone when dropped.
struct Unnamed<'a> {
    parent: &'a OwnedFd,
    name: OsString,
}

impl<'a> Unnamed<'a> {
    /// Writes a file and makes it durable. It looks like another if it is to replace that one.
    fn write(
        parent: &'a OwnedFd,
        bytes: &[u8],
        like: Option<&Stat>,
        stop: &Stop,
    ) -> Result<Self, Failed> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| Errno::IO)?;
        let name = format!(".greenroom-{:016x}", u64::from_ne_bytes(random));
        let name = OsString::from(name);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let file = rustix::fs::openat(parent, &name, flags, Mode::from_raw_mode(mode))?;
        let unnamed = Self { parent, name };
        let mut file = File::from(file);
        file.write_all(bytes)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if let Some(like) = like {
            make_alike(&file, like)?;
        }
        rustix::fs::fsync(&file)?;
        if stop.is_set() {
            return Err(Failed::Stopped);
        }
        Ok(unnamed)
    }

    /// Trades names with another file.
    fn swap(&self, name: &OsStr) -> Result<(), Errno> {
        let flags = RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(self.parent, &self.name, self.parent, name, flags)
    }

    /// It has a name now, or is not ours to remove.
    fn forget(mut self) {
        self.name = OsString::new();
    }
}

impl Drop for Unnamed<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // If it cannot be removed, it stays: there is nobody to tell, and nothing depends on it.
            let _ = rustix::fs::unlinkat(self.parent, &self.name, AtFlags::empty());
        }
    }
}

fn make_alike(file: &impl AsFd, like: &Stat) -> Result<(), Errno> {
    let now = Stat::of(file)?;
    if (now.owner, now.group) != (like.owner, like.group) {
        let (owner, group) = (Uid::from_raw(like.owner), Gid::from_raw(like.group));
        // Only the superuser may give a file away; a group of one's own can be kept.
        if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
            let _ = rustix::fs::fchown(file, None, Some(group));
        }
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(like.mode & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn open(directory: &Path) -> OwnedFd {
        OwnedFd::from(File::open(directory).unwrap())
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn what_came_in_between_is_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let (parent, name) = (open(directory.path()), OsStr::new("a"));
        let path = directory.path().join("a");
        fs::write(&path, "expected").unwrap();
        let expected = Stat::of_entry(&parent, name).unwrap();
        let stop = Stop::default();
        let unnamed = Unnamed::write(&parent, b"new", Some(&expected), &stop).unwrap();

        fs::remove_file(&path).unwrap();
        fs::write(&path, "of someone else").unwrap();
        assert_eq!(swap_in(unnamed, name, &expected), Err(Failed::Changed));
        assert_eq!(fs::read(&path).unwrap(), b"of someone else");
        assert_eq!(names(directory.path()), ["a"]);

        let replaced = replace(&parent, name, b"new", &expected, &stop);
        assert_eq!(replaced, Err(Failed::Changed));
        let expected = Stat::of_entry(&parent, name).unwrap();
        assert_eq!(replace(&parent, name, b"new", &expected, &stop), Ok(()));
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn nothing_is_created_over_something_or_when_nobody_waits() {
        let directory = tempfile::tempdir().unwrap();
        let root = open(directory.path());
        fs::write(directory.path().join("a"), "there").unwrap();
        let stop = Stop::default();
        let created = create(&root, Path::new("a"), b"new", &stop);
        assert_eq!(created, Err(Failed::Changed));
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"there");

        stop.set();
        let created = create(&root, Path::new("b"), b"new", &stop);
        assert_eq!(created, Err(Failed::Stopped));
        assert_eq!(names(directory.path()), ["a"]);
    }
}
