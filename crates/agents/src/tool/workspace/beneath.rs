//! The one way to a file: opened beneath a directory that is already open, by the kernel's own rules.
//!
//! Promises: nothing outside the directory is ever opened, whatever is renamed or linked meanwhile: the kernel checks
//! every step of the path while it walks it. A symbolic link is followed as long as it stays beneath; an absolute one,
//! one that climbs out, and the magic links of `/proc` are not.
//! Must not know: what the file is opened for.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags};
use rustix::io::Errno;

use super::super::ToolError;

/// How often a walk is tried again that the kernel gave up because of a rename beside it.
const TRIES_MAX: usize = 128;

/// What becomes of symbolic links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Followed as long as they stay beneath.
    Followed,
    /// Not even those.
    Refused,
}

/// Opens what lies under a path beneath a directory.
pub(super) fn open(
    root: &impl AsFd,
    path: &Path,
    flags: OFlags,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refused {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    let flags = flags | OFlags::CLOEXEC;
    for _ in 1..TRIES_MAX {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            // A rename somewhere on the system made `..` of a link uncertain.
            Err(Errno::AGAIN | Errno::INTR) => {}
            done => return done,
        }
    }
    rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
}

/// A directory beneath another.
pub(super) fn open_directory(
    root: &impl AsFd,
    path: &Path,
    links: Links,
) -> Result<OwnedFd, Errno> {
    open(root, path, OFlags::RDONLY | OFlags::DIRECTORY, links)
}

/// A file opened for reading, with what was true of it then. Pipes, devices and the like are not waited for.
pub(super) fn open_any(root: &impl AsFd, path: &Path, links: Links) -> Result<(File, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(root, path, flags, links)?;
    let stat = Stat::of(&file)?;
    Ok((File::from(file), stat))
}

/// Where an open file lies, without links: a name to remember it by and to look for it again, never to trust.
pub(super) fn real_path(file: &impl AsFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

/// What is known of a file without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) identity: Identity,
    pub(super) kind: FileType,
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
}

/// Tells a file from another and from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    pub(super) bytes: u64,
    modified: (i64, u32),
}

impl Stat {
    pub(super) fn of(file: &impl AsFd) -> Result<Self, Errno> {
        let flags = AtFlags::EMPTY_PATH;
        rustix::fs::statx(file, c"", flags, StatxFlags::BASIC_STATS).map(Self::from)
    }

    /// Of an entry of a directory; of a link itself, not of what it leads to.
    pub(super) fn of_entry(directory: &impl AsFd, name: &std::ffi::OsStr) -> Result<Self, Errno> {
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
        }
    }
}

/// An error of the system in words a model can act on. `path` is as the model named it: nothing is told of what lies
/// outside, not even whether it is there.
pub(super) fn told(errno: Errno, path: &str) -> ToolError {
    ToolError(match errno {
        Errno::XDEV | Errno::LOOP => format!(
            "{path} leads through a symbolic link out of the working directories, or in circles; it cannot be used"
        ),
        Errno::NOENT => format!("there is no {path}; `list` shows what is there"),
        Errno::NOTDIR => format!("a part of {path} is a file, not a directory"),
        Errno::ISDIR => format!("{path} is a directory"),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            format!("{path} may not be used: permission denied")
        }
        Errno::NXIO => not_regular(path).0,
        Errno::NOSPC | Errno::DQUOT => format!("{path} cannot be written: the disk is full"),
        Errno::NAMETOOLONG => "this path is too long".to_owned(),
        Errno::AGAIN => format!("{path} is being moved about; try again"),
        errno => format!("{path} cannot be used: {}", std::io::Error::from(errno)),
    })
}

pub(super) fn not_regular(path: &str) -> ToolError {
    ToolError(format!(
        "{path} is a pipe, a device or a socket; only regular files can be used"
    ))
}
