//! Whole trees: measured before they are touched, copied and removed one directory at a time beneath directories that are
//! already open.
//!
//! Promises: no link is followed, so a walk cannot be led elsewhere by a swap; depth, number and size have bounds.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::confined::{self, Identity, Links, Stat};

pub(super) const TREE_ENTRIES_MAX: usize = 100_000;
pub(super) const TREE_DEPTH_MAX: usize = 128;
pub(super) const TREE_BYTES_MAX: u64 = 4 * 1_024 * 1_024 * 1_024;

/// What is read of a file at once to compare it.
const PIECE_BYTES: usize = 64 * 1_024;

/// An entry by its open directory and its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPlace<'a> {
    pub(super) parent: &'a OwnedFd,
    pub(super) name: &'a OsStr,
}

impl EntryPlace<'_> {
    fn stat(self) -> Result<Stat, Errno> {
        Stat::of_entry(self.parent, self.name)
    }

    /// Opens it for reading.
    fn open(self) -> Result<(File, Stat), Errno> {
        confined::open_any(self.parent, Path::new(self.name), Links::Refused)
    }
}

/// Why a tree is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeError {
    TooLarge,
    /// A pipe, a device or a socket is in it.
    NotRegular,
    System(Errno),
}

impl From<Errno> for TreeError {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// What may still be met.
#[derive(Debug, Clone, Copy)]
struct RemainingLimits {
    entries: usize,
    bytes: u64,
}

impl RemainingLimits {
    fn new() -> Self {
        Self { entries: TREE_ENTRIES_MAX, bytes: TREE_BYTES_MAX }
    }

    fn take(&mut self, stat: &Stat) -> Result<(), TreeError> {
        let bytes = match stat.kind {
            FileType::RegularFile => stat.identity.bytes,
            _ => 0,
        };
        self.entries = self.entries.checked_sub(1).ok_or(TreeError::TooLarge)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or(TreeError::TooLarge)?;
        Ok(())
    }
}

/// What a tree is measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreePurpose {
    Copying,
    /// How large files are does not matter, nor what they are.
    Removing,
}

/// Whether an entry, with all that is in it, is within the bounds.
pub(super) fn check(parent: &OwnedFd, name: &OsStr, purpose: TreePurpose) -> Result<(), TreeError> {
    let mut left = RemainingLimits::new();
    if purpose == TreePurpose::Removing {
        left.bytes = u64::MAX;
    }
    measure(parent, name, purpose, TREE_DEPTH_MAX, &mut left)
}

fn measure(
    parent: &OwnedFd,
    name: &OsStr,
    purpose: TreePurpose,
    depth: usize,
    left: &mut RemainingLimits,
) -> Result<(), TreeError> {
    let stat = Stat::of_entry(parent, name)?;
    left.take(&stat)?;
    match stat.kind {
        FileType::Directory => {
            let depth = depth.checked_sub(1).ok_or(TreeError::TooLarge)?;
            let (directory, names) = open_and_list(parent, name)?;
            for name in names {
                match measure(&directory, &name, purpose, depth, left) {
                    Err(TreeError::System(Errno::NOENT)) => {} // removed since
                    measured => measured?,
                }
            }
            Ok(())
        }
        FileType::RegularFile | FileType::Symlink => Ok(()),
        _ if purpose == TreePurpose::Removing => Ok(()),
        _ => Err(TreeError::NotRegular),
    }
}

/// What an entry and all that is in it were at a moment, in the order of their names. Two that are equal hold the same, but for a
/// file that was written twice within a tick of its clock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeDescription(Vec<(FileType, u32, Identity)>);

/// Describes an entry with all that is in it, if it is within the bounds of what is copied.
pub(super) fn describe(parent: &OwnedFd, name: &OsStr) -> Result<TreeDescription, TreeError> {
    let mut described = Vec::new();
    describe_to(parent, name, TREE_DEPTH_MAX, &mut RemainingLimits::new(), &mut described)?;
    Ok(TreeDescription(described))
}

fn describe_to(
    parent: &OwnedFd,
    name: &OsStr,
    depth: usize,
    left: &mut RemainingLimits,
    described: &mut Vec<(FileType, u32, Identity)>,
) -> Result<(), TreeError> {
    let stat = Stat::of_entry(parent, name)?;
    left.take(&stat)?;
    described.push((stat.kind, stat.mode, stat.identity));
    match stat.kind {
        FileType::Directory => {
            let depth = depth.checked_sub(1).ok_or(TreeError::TooLarge)?;
            let (directory, names) = open_and_list(parent, name)?;
            for name in names {
                describe_to(&directory, &name, depth, left, described)?;
            }
            Ok(())
        }
        FileType::RegularFile | FileType::Symlink => Ok(()),
        _ => Err(TreeError::NotRegular),
    }
}

/// Whether the files of two trees that have the same names hold the same. Only those that were written at `since` or later are read:
/// the clock of the others says it.
pub(super) fn has_same_content(
    one: EntryPlace<'_>,
    other: EntryPlace<'_>,
    since: i64,
) -> Result<bool, TreeError> {
    let stat = one.stat()?;
    match stat.kind {
        FileType::Directory => {
            let (one, names) = open_and_list(one.parent, one.name)?;
            let (other, other_names) = open_and_list(other.parent, other.name)?;
            if names != other_names {
                return Ok(false);
            }
            for name in names {
                let one = EntryPlace { parent: &one, name: &name };
                let other = EntryPlace { parent: &other, name: &name };
                if !has_same_content(one, other, since)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        FileType::RegularFile if stat.identity.modified().0 >= since => {
            let ((one, stat), (other, copied)) = (one.open()?, other.open()?);
            let is_same = stat.identity.bytes == copied.identity.bytes
                && holds_same(one, other, stat.identity.bytes)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            Ok(is_same)
        }
        FileType::RegularFile | FileType::Symlink => Ok(true),
        _ => Err(TreeError::NotRegular),
    }
}

/// Whether two files hold the same in their first bytes.
fn holds_same(one: File, other: File, bytes: u64) -> std::io::Result<bool> {
    let (mut one, mut other) = (one.take(bytes), other.take(bytes));
    let (mut some, mut same) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let read = one.read(&mut some)?;
        let (Some(some), Some(same)) = (some.get(..read), same.get_mut(..read)) else {
            return Err(std::io::Error::other("more was read than there was room for"));
        };
        match other.read_exact(same) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if some != same || read == 0 {
            return Ok(some == same);
        }
    }
}

/// Removes an entry with all that is in it. What came into it since it was measured is removed, too.
pub(super) fn remove(parent: &OwnedFd, name: &OsStr) -> Result<(), TreeError> {
    remove_to(parent, name, TREE_DEPTH_MAX)
}

fn remove_to(parent: &OwnedFd, name: &OsStr, depth: usize) -> Result<(), TreeError> {
    let stat = match Stat::of_entry(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        stat => stat?,
    };
    if stat.kind != FileType::Directory {
        return Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?);
    }
    let depth = depth.checked_sub(1).ok_or(TreeError::TooLarge)?;
    let (directory, names) = open_and_list(parent, name)?;
    for name in names {
        remove_to(&directory, &name, depth)?;
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Copies an entry with all that is in it to a name that is free. Links are copied as links.
pub(super) fn copy(from: EntryPlace<'_>, to: EntryPlace<'_>) -> Result<(), TreeError> {
    copy_to(from, to, TREE_DEPTH_MAX, &mut RemainingLimits::new())
}

fn copy_to(
    from: EntryPlace<'_>,
    to: EntryPlace<'_>,
    depth: usize,
    left: &mut RemainingLimits,
) -> Result<(), TreeError> {
    let stat = from.stat()?;
    left.take(&stat)?;
    match stat.kind {
        FileType::RegularFile => copy_file(from, to),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from.parent, from.name, Vec::new())?;
            Ok(rustix::fs::symlinkat(target, to.parent, to.name)?)
        }
        FileType::Directory => {
            let depth = depth.checked_sub(1).ok_or(TreeError::TooLarge)?;
            let (source, names) = open_and_list(from.parent, from.name)?;
            rustix::fs::mkdirat(to.parent, to.name, Mode::from_raw_mode(0o700))?;
            let copy = confined::open_directory(to.parent, Path::new(to.name), Links::Refused)?;
            for name in names {
                let from = EntryPlace { parent: &source, name: &name };
                copy_to(from, EntryPlace { parent: &copy, name: &name }, depth, left)?;
            }
            Ok(rustix::fs::fchmod(&copy, Mode::from_raw_mode(stat.mode & 0o777))?)
        }
        _ => Err(TreeError::NotRegular),
    }
}

fn copy_file(from: EntryPlace<'_>, to: EntryPlace<'_>) -> Result<(), TreeError> {
    let (file, stat) = from.open()?;
    if stat.kind != FileType::RegularFile {
        return Err(TreeError::NotRegular); // it was one a moment ago
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copy = rustix::fs::openat(to.parent, to.name, flags, Mode::from_raw_mode(0o600))?;
    let mut copy = File::from(copy);
    // As many bytes as were counted: a file that grows all the time has no end.
    let mut file = file.take(stat.identity.bytes);
    let copied = std::io::copy(&mut file, &mut copy);
    copied.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(rustix::fs::fchmod(&copy, Mode::from_raw_mode(stat.mode & 0o777))?)
}

/// A directory and the names in it, in order.
fn open_and_list(parent: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, Vec<OsString>), TreeError> {
    let directory = confined::open_directory(parent, Path::new(name), Links::Refused)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if names.len() == TREE_ENTRIES_MAX {
            return Err(TreeError::TooLarge);
        }
        names.push(OsString::from_vec(name.to_vec()));
    }
    names.sort();
    Ok((directory, names))
}
