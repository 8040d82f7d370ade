//! Files that a user's message names, opened for reading, and why one is not.
//!
//! Promises: as for everything here, every open is confined by the kernel at the moment of the open (C-019); nothing
//! waits for a pipe; only regular files are read.
//! Must not know: what is done with the bytes.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::Workspace;
use super::beneath::{self, Links};

/// Why a path does not lead to a file that may be read. No more is told of what lies outside than that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unopened {
    Outside,
    Missing,
    /// It is no path, or what lies there is no regular file.
    Invalid,
}

impl Workspace {
    /// A regular file under a path as a user's message has it: relative to the first directory, or absolute inside any
    /// of them. Where `..` and links lead is judged by the kernel. With its size at the time.
    pub(crate) fn open_given(&self, path: &str) -> Result<(File, u64), Unopened> {
        if path.is_empty() || path.contains('\0') {
            return Err(Unopened::Invalid);
        }
        let path = Path::new(path);
        let (root, inside) = if path.is_absolute() {
            self.inside(path).ok_or(Unopened::Outside)?
        } else {
            (0, path)
        };
        let root = self.shared.roots.get(root).ok_or(Unopened::Outside)?;
        let opened = beneath::open_any(&root.directory, inside, Links::Followed);
        let (file, stat) = opened.map_err(Unopened::of)?;
        match stat.kind {
            FileType::RegularFile => Ok((file, stat.identity.bytes)),
            _ => Err(Unopened::Invalid),
        }
    }

    /// The absolute path that such a path means.
    pub(crate) fn absolute_given(&self, path: &str) -> PathBuf {
        match self.shared.roots.first() {
            // An absolute path replaces what it is joined to.
            Some(root) => root.path.join(path),
            None => PathBuf::from(path),
        }
    }
}

impl Unopened {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::XDEV | Errno::LOOP => Self::Outside,
            Errno::ISDIR | Errno::NXIO | Errno::NAMETOOLONG | Errno::INVAL => Self::Invalid,
            // What may not be read is as good as not there.
            _ => Self::Missing,
        }
    }
}
