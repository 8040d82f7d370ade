//! Files as they are read: one function opens them, and they are read whole, up to a limit, or as a stream.
//!
//! Promises: only regular files are read; nothing waits for a pipe; every read has a bound, however large the file is or
//! becomes.

use std::fs::File;
use std::io::{self, Read};

use bytes::Bytes;
use rustix::fs::FileType;
use wire::{Digest, NamedBody};

use crate::confined::{Links, Stat};
use crate::error::{errno_to_file_error, io_to_file_error};
use crate::{FileError, Workspace, WorkspacePath};

/// The largest file that is read whole, remembered and changed.
pub const FILE_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

/// Attempts at reading a file that changes meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// How much of a file is looked at to tell whether it is text.
const SNIFFED_BYTES: usize = 8 * 1_024;

/// What a file holds.
pub(crate) enum Contents {
    Whole(NamedBody, ReadReceipt),
    /// More than [`FILE_BYTES_MAX`].
    Stream(File),
}

/// Proof of what a file held when it was read: whoever shows it to a model hands it back to [`Workspace::mark_as_read`].
#[derive(Debug)]
pub struct ReadReceipt {
    path: WorkspacePath,
    digest: Digest,
}

/// The bytes of a file, whatever they are.
#[derive(Debug)]
pub struct FileBytes {
    /// All of them, or their beginning.
    pub bytes: Bytes,
    /// How many the file has.
    pub total: u64,
    /// Absent if this is only their beginning.
    pub receipt: Option<ReadReceipt>,
    /// The same bytes with their name, if they are all of them.
    pub body: Option<NamedBody>,
}

/// A file's content at one moment.
#[derive(Debug)]
pub(crate) struct FileSnapshot {
    pub(crate) file: File,
    pub(crate) stat: Stat,
    pub(crate) body: NamedBody,
}

/// The beginning of a file.
#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) bytes: Vec<u8>,
    /// The file is longer.
    pub(crate) is_cut: bool,
}

impl Workspace {
    /// Opens a regular file, with its metadata at that moment. Links are followed where the file was named explicitly, and not
    /// where a walk came across it.
    pub(crate) fn open_file(
        &self,
        path: &WorkspacePath,
        links: Links,
    ) -> Result<(File, Stat), FileError> {
        let opened = self.root(path).open_any(&path.relative, links);
        let (file, stat) =
            opened.map_err(|errno| errno_to_file_error(errno, &self.display_path(path)))?;
        match stat.kind {
            FileType::RegularFile => Ok((file, stat)),
            FileType::Directory => Err(FileError::IsDirectory { path: self.display_path(path) }),
            _ => Err(FileError::NotRegular { path: self.display_path(path) }),
        }
    }

    /// Reads a file whole, or opens it as a stream if it is large.
    pub(crate) fn read(&self, path: &WorkspacePath) -> Result<Contents, FileError> {
        let (file, stat) = self.open_file(path, Links::Followed)?;
        if stat.identity.bytes > FILE_BYTES_MAX {
            return Ok(Contents::Stream(file));
        }
        let snapshot = take_snapshot(file, &self.display_path(path), None)?;
        let receipt = self.receipt(path, &snapshot);
        Ok(Contents::Whole(snapshot.body, receipt))
    }

    /// The bytes of a file if it has at most so many, and at most [`FILE_BYTES_MAX`]; otherwise as many of its beginning.
    pub fn read_bytes(&self, path: &WorkspacePath, bytes_max: u64) -> Result<FileBytes, FileError> {
        let (file, stat) = self.open_file(path, Links::Followed)?;
        let bytes_max = bytes_max.min(FILE_BYTES_MAX);
        let total = stat.identity.bytes;
        if total <= bytes_max {
            let display_path = self.display_path(path);
            let snapshot = take_snapshot(file, &display_path, None)?;
            return Ok(FileBytes {
                receipt: Some(self.receipt(path, &snapshot)),
                bytes: snapshot.body.bytes().clone(),
                total: snapshot.body.len() as u64,
                body: Some(snapshot.body),
            });
        }
        let mut bytes = Vec::new();
        let read = file.take(bytes_max).read_to_end(&mut bytes);
        read.map_err(|error| io_to_file_error(&error, &self.display_path(path)))?;
        Ok(FileBytes { bytes: bytes.into(), total, receipt: None, body: None })
    }

    fn receipt(&self, path: &WorkspacePath, snapshot: &FileSnapshot) -> ReadReceipt {
        let real = self.root(path).real_path_inside(&snapshot.file);
        ReadReceipt {
            path: real.map_or_else(|| path.clone(), |real| path.with_relative(real)),
            digest: snapshot.body.digest(),
        }
    }

    /// Remembers that the session was shown a file: it may be replaced as long as it stays the same.
    pub fn mark_as_read(&self, receipt: &ReadReceipt) {
        self.history().record_read(&receipt.path, receipt.digest);
    }

    /// The beginning of a file; `None` if it is not there. Links to it are followed as far as they stay inside.
    pub(crate) fn read_prefix(
        &self,
        path: &WorkspacePath,
        bytes_max: usize,
    ) -> Result<Option<Prefix>, FileError> {
        let file = match self.open_file(path, Links::Followed) {
            Ok((file, _)) => file,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        self.read_opened(file, path, bytes_max).map(Some)
    }

    /// The beginning of a file that is open.
    pub(crate) fn read_opened(
        &self,
        file: File,
        path: &WorkspacePath,
        bytes_max: usize,
    ) -> Result<Prefix, FileError> {
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        let mut bytes = Vec::new();
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| io_to_file_error(&error, &self.display_path(path)))?;
        let is_cut = bytes.len() > bytes_max;
        bytes.truncate(bytes_max);
        Ok(Prefix { bytes, is_cut })
    }
}

/// Reads a file whole, as it was at one moment. `known` is what it is expected to hold: then nothing has to be hashed.
pub(crate) fn take_snapshot(
    mut file: File,
    display_path: &str,
    known: Option<&NamedBody>,
) -> Result<FileSnapshot, FileError> {
    let failed = |error: io::Error| io_to_file_error(&error, display_path);
    let unknown = |errno| errno_to_file_error(errno, display_path);
    for _ in 0..ATTEMPTS_MAX {
        let before = Stat::of(&file).map_err(unknown)?;
        let mut bytes = Vec::new();
        let mut bounded = (&mut file).take(FILE_BYTES_MAX + 1);
        bounded.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let path = display_path.to_owned();
            return Err(FileError::TooLarge { path });
        }
        let stat = Stat::of(&file).map_err(unknown)?;
        if stat == before {
            let body = NamedBody::like(bytes, known);
            return Ok(FileSnapshot { file, stat, body });
        }
        io::Seek::rewind(&mut file).map_err(failed)?;
    }
    let path = display_path.to_owned();
    Err(FileError::Unstable { path })
}

/// Whether content is not text, judged by its beginning.
pub fn is_binary(beginning: &[u8]) -> bool {
    let sniffed = &beginning[..beginning.len().min(SNIFFED_BYTES)];
    memchr::memchr(0, sniffed).is_some()
}
