//! What lies at a path: a file's content and permissions, or a link's target, within bounds.
//!
//! Promises: nothing is followed, nothing but regular files is opened. What is over the bounds is there without content. A file that an
//! earlier look read, and that was not touched since as far as its time of change tells, is not read again.
//! Must not know: what it is compared with.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, StatxFlags};
use wire::Digest;

use super::StoreContent;
use crate::FILE_BYTES_MAX;
use crate::confined::Links;
use crate::roots::Root;

/// The types of what is no regular file, as git writes them.
pub const LINK: u32 = 0o120000;
pub const SUBMODULE: u32 = 0o160000;

/// Content that one look keeps, in files and in bytes.
const FILES_MAX: usize = 5_000;
const BYTES_MAX: u64 = 128 * 1_024 * 1_024;

/// A file that was changed less than this before a look began may have been changed again since without another time of change: clocks of
/// file systems tick coarsely, and those on a network may be late.
const SETTLED_S: i64 = 2;

/// A moment by the clock that files are stamped with, since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct FileTime {
    pub seconds: i64,
    pub nanoseconds: u32,
}

impl FileTime {
    /// Later than any file can be.
    pub(crate) const MAX: Self = Self { seconds: i64::MAX, nanoseconds: 0 };
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSide {
    /// Permissions of a regular file, or what else it is ([`LINK`], [`SUBMODULE`]).
    pub mode: u32,
    pub bytes: u64,
    /// Absent if the content is too large to be kept, or cannot be had.
    pub digest: Option<Digest>,
    /// When it was last changed in any way, in seconds and nanoseconds.
    pub(crate) changed: (i64, u32),
    /// Which file it is: another one may have been moved to its path with the same time of change.
    pub(crate) inode: u64,
}

impl FileSide {
    /// Whether two sides are the same, as far as that can be told.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let has_same_content = match (self.digest, other.digest) {
            (Some(one), Some(other)) => one == other,
            // Not read: a file that was not touched since is what it was.
            (None, _) | (_, None) => self.bytes == other.bytes && self.changed == other.changed,
        };
        self.mode == other.mode && has_same_content
    }
}

/// What an earlier look found beneath a root; its contents are still kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarlierFiles<'a> {
    pub files: &'a BTreeMap<PathBuf, FileSide>,
    /// When that look began.
    pub begun: FileTime,
}

impl EarlierFiles<'_> {
    /// The content of a file that is as that look found it.
    fn find(&self, path: &Path, now: &FileSide) -> Option<(u64, Digest)> {
        let then = self.files.get(path)?;
        let has_settled = then.changed.0 + SETTLED_S < self.begun.seconds;
        let is_untouched =
            then.changed == now.changed && then.inode == now.inode && then.bytes == now.bytes;
        let is_known = has_settled && is_untouched && then.mode == now.mode;
        then.digest.filter(|_| is_known).map(|digest| (then.bytes, digest))
    }
}

/// Whether a mode is that of a link.
pub fn is_link(mode: u32) -> bool {
    mode & 0o170000 == LINK
}

/// Reads entries and has their content kept, until there is too much of it.
pub(super) struct EntryReader<'a, 'k> {
    store: &'a mut StoreContent<'k>,
    files: usize,
    bytes: u64,
    left_out: usize,
    failed: Option<String>,
}

impl<'a, 'k> EntryReader<'a, 'k> {
    pub(super) fn new(store: &'a mut StoreContent<'k>) -> Self {
        Self { store, files: 0, bytes: 0, left_out: 0, failed: None }
    }

    /// What is at a path beneath a root; `None` if there is no file and no link. What is as an earlier look found it is not read.
    pub(super) fn read(
        &mut self,
        root: &Root,
        path: &Path,
        earlier: Option<EarlierFiles<'_>>,
    ) -> Option<FileSide> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let parent = root.open_directory(parent, Links::Refused).ok()?;
        let name = path.file_name()?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statx(&parent, name, flags, StatxFlags::BASIC_STATS).ok()?;
        let mode = u32::from(stat.stx_mode);
        let mut side = FileSide {
            mode: mode & 0o777,
            bytes: stat.stx_size,
            digest: None,
            changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            inode: stat.stx_ino,
        };
        let kind = FileType::from_raw_mode(mode);
        if kind == FileType::Symlink {
            side.mode = LINK;
        }
        if let Some((bytes, digest)) = earlier.and_then(|earlier| earlier.find(path, &side)) {
            if !self.has_room_for(bytes) {
                self.left_out += 1;
                return Some(side);
            }
            self.count(bytes);
            side.digest = Some(digest);
            return Some(side);
        }
        let content = match kind {
            FileType::RegularFile => self.read_file(root, path, side.bytes),
            FileType::Symlink => read_link(&parent, name),
            _ => return None,
        };
        if let Some(content) = content {
            side.bytes = content.len() as u64;
            side.digest = self.keep_content(&content);
        }
        Some(side)
    }

    fn has_room_for(&self, bytes: u64) -> bool {
        self.files < FILES_MAX && self.bytes + bytes <= BYTES_MAX
    }

    fn count(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    /// Keeps a content; its name if it is kept.
    pub(super) fn keep_content(&mut self, content: &[u8]) -> Option<Digest> {
        let bytes = content.len() as u64;
        if !self.has_room_for(bytes) {
            self.left_out += 1;
            return None;
        }
        let digest = Digest::of(content);
        if let Err(problem) = (self.store)(&digest, content) {
            self.failed.get_or_insert(problem);
            return None;
        }
        self.count(bytes);
        Some(digest)
    }

    fn read_file(&mut self, root: &Root, path: &Path, bytes: u64) -> Option<Vec<u8>> {
        if bytes > FILE_BYTES_MAX {
            return None; // shown without content
        }
        if !self.has_room_for(bytes) {
            self.left_out += 1;
            return None;
        }
        let (file, stat) = root.open_any(path, Links::Refused).ok()?;
        if stat.kind != FileType::RegularFile {
            return None; // it was replaced meanwhile
        }
        let mut content = Vec::new();
        let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content);
        let fits = read.is_ok() && content.len() as u64 <= FILE_BYTES_MAX;
        fits.then_some(content)
    }

    /// What was left out, in words.
    pub(super) fn problem(&self) -> Option<String> {
        if let Some(failed) = &self.failed {
            return Some(format!("contents of files cannot be kept: {failed}"));
        }
        (self.left_out > 0).then(|| {
            let left_out = self.left_out;
            format!("{left_out} files are not kept, because there are too many: what commands do to them cannot be taken back")
        })
    }
}

/// The target of a link, as bytes.
fn read_link(parent: &impl AsFd, name: &std::ffi::OsStr) -> Option<Vec<u8>> {
    let target = rustix::fs::readlinkat(parent, name, Vec::new()).ok()?;
    Some(target.into_bytes())
}
