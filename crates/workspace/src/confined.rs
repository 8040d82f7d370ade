//! The only way to open a file: beneath a directory that is already open, resolved by the operating system (`openat2`).
//!
//! Promises: nothing outside the directory is ever opened, whatever is renamed or linked meanwhile: the system checks
//! every step of the path while it resolves it. A symbolic link is followed as long as it stays beneath; an absolute
//! one, one that leads out, and the magic links of `/proc` are not.
//! Must not know: what the file is opened for.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

/// Attempts at resolving a path while renames elsewhere make the system give up.
const ATTEMPTS_MAX: usize = 128;

/// What happens to symbolic links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// Followed as long as they stay beneath.
    Followed,
    /// An error, wherever they lead.
    Refused,
}

/// Opens a path beneath a directory.
pub(crate) fn open(
    root: &impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let flags = flags | OFlags::CLOEXEC;
    for _ in 1..ATTEMPTS_MAX {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            // A rename somewhere on the system made a `..` on the way ambiguous.
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
}

/// Opens a directory beneath another.
pub(crate) fn open_directory(
    root: &impl AsFd,
    path: &Path,
    links: Links,
) -> Result<OwnedFd, Errno> {
    open(root, path, OFlags::RDONLY | OFlags::DIRECTORY, links)
}

/// Opens anything for reading, with its metadata at that moment. Does not wait for pipes, devices and the like.
pub(crate) fn open_any(root: &impl AsFd, path: &Path, links: Links) -> Result<(File, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(root, path, flags, links)?;
    let stat = Stat::of(&file)?;
    Ok((File::from(file), stat))
}

/// The path of an open file without links: a name to recognise it by and to open it by again, never proof of where it is.
pub(crate) fn real_path(file: &impl AsFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

/// The metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) identity: Identity,
    pub(crate) kind: FileType,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    /// When the file was last changed in any way, by the clock of the system: seconds and nanoseconds. Nobody can set it.
    pub(crate) changed: (i64, u32),
}

/// Differs between two files, and between two contents of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: (u32, u32),
    inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, u32),
}

impl Identity {
    /// When the content was last changed: seconds and nanoseconds.
    pub(crate) fn modified(&self) -> (i64, u32) {
        self.modified
    }

    /// Whether this is the same file, whatever it holds.
    pub(crate) fn is_of_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Stat {
    pub(crate) fn of(file: &impl AsFd) -> Result<Self, Errno> {
        let flags = AtFlags::EMPTY_PATH;
        rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS).map(Self::from)
    }

    /// Whether two open files are one and the same.
    pub(crate) fn is_same_file(one: &impl AsFd, other: &impl AsFd) -> bool {
        match (Self::of(one), Self::of(other)) {
            (Ok(one), Ok(other)) => one.identity.is_of_same_file(&other.identity),
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// Of an entry of a directory; of a link itself, not of its target.
    pub(crate) fn of_entry(directory: &impl AsFd, name: &std::ffi::OsStr) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS).map(Self::from)
    }
}

impl From<Statx> for Stat {
    fn from(stat: Statx) -> Self {
        let mode = u32::from(stat.stx_mode);
        Self {
            identity: Identity {
                device: (stat.stx_dev_major, stat.stx_dev_minor),
                inode: stat.stx_ino,
                bytes: stat.stx_size,
                modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            },
            kind: FileType::from_raw_mode(mode),
            mode,
            owner: stat.stx_uid,
            group: stat.stx_gid,
            changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        }
    }
}
