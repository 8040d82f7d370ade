//! Why something could not be done with a file or a directory.
//!
//! Promises: every error reads as a plain sentence; paths in it are as the caller named them, so nothing is disclosed
//! about what lies outside, not even whether it exists. An error holds a path of a user: it is for the session, not for
//! a log.
//! Must not know: what callers offer instead; they match on the variant and add their own advice.

use rustix::io::Errno;

use crate::read::FILE_BYTES_MAX;

const FILE_MIB_MAX: u64 = FILE_BYTES_MAX / 1_024 / 1_024;

/// Why a session's working directories cannot be used; the user reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("the working directory {0} is not a `file:` URI of this machine")]
    NotLocal(String),
    #[error("the working directory {path} cannot be opened: {reason}")]
    Unopenable { path: String, reason: String },
    #[error(
        "the working directory {path} does not lie in a directory this host may work in ({roots}), or is the host's own; \
         add it to `workspaces` in the host's configuration, or start the host with `--workspace`"
    )]
    NotAllowed { path: String, roots: String },
    #[error(
        "files can only be confined to the working directories with openat2: Linux 5.6 or later"
    )]
    Unconfined,
}

impl OpenError {
    pub(crate) fn unopenable(path: &std::path::Path, errno: Errno) -> Self {
        Self::Unopenable {
            path: path.display().to_string(),
            reason: std::io::Error::from(errno).to_string(),
        }
    }

    /// The reason alone, for logs: they must not hold a path of a user.
    pub fn reason(&self) -> &str {
        match self {
            Self::NotLocal(_) => "not a `file:` URI of this machine",
            Self::Unopenable { reason, .. } => reason,
            Self::NotAllowed { .. } => "outside the roots",
            Self::Unconfined => "openat2 is not available",
        }
    }
}

/// Why a file or a directory cannot be read, listed, searched or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("the path is empty or has a NUL character")]
    InvalidPath,
    #[error("{path} is outside the working directory: a path must not contain `..`")]
    ParentSegment { path: String },
    #[error("{path} is outside the working directories ({roots})")]
    OutsideRoots { path: String, roots: String },
    #[error("the session has no working directory; files and commands cannot be used")]
    NoWorkingDirectory,
    #[error(
        "{path} leads through a symbolic link out of the working directories, or in circles; it cannot be used"
    )]
    LinkOutside { path: String },
    #[error("{path} is a symbolic link that cannot be followed: {reason}")]
    BrokenLink { path: String, reason: Box<FileError> },
    #[error("{path} is a symbolic link by now; it is left alone")]
    IsLink { path: String },
    #[error("there is no {path}")]
    NotFound { path: String },
    #[error("a part of {path} is a file, not a directory")]
    NotADirectory { path: String },
    #[error("{path} is a directory")]
    IsDirectory { path: String },
    #[error("{path} is a pipe, a device or a socket; only regular files can be used")]
    NotRegular { path: String },
    #[error("{path} is a binary file, or text in UTF-16")]
    Binary { path: String },
    #[error("{path} cannot be used: permission denied")]
    PermissionDenied { path: String },
    #[error("{path} cannot be written: the disk is full")]
    DiskFull { path: String },
    #[error("the path is too long")]
    PathTooLong,
    #[error("{path} is being moved; try again")]
    Moving { path: String },
    #[error("{path} changes while it is read; try again when nothing writes to it")]
    Unstable { path: String },
    #[error("{path} can be read and not changed")]
    ReadOnlyRoot { path: String },
    #[error("{path} is read-only; nothing was written")]
    ReadOnlyFile { path: String },
    #[error("{path} is larger than {FILE_MIB_MAX} MiB; it cannot be changed")]
    TooLarge { path: String },
    #[error("{path} would be larger than {FILE_MIB_MAX} MiB; nothing was written")]
    TooMuchContent { path: String },
    #[error("{path} already has this content; nothing was written")]
    SameContent { path: String },
    #[error("{path} exists and was not read in this session; nothing was written")]
    NotRead { path: String },
    #[error(
        "{path} was changed since it was read, by a command or by someone else; nothing was written"
    )]
    ChangedSinceRead { path: String },
    #[error("{path} has changed since this change was proposed; nothing was written")]
    ChangedSinceProposal { path: String },
    #[error("the pattern is empty")]
    EmptyPattern,
    #[error("the pattern cannot be used: {reason}")]
    InvalidPattern { reason: String },
    #[error("the glob {glob} cannot be used: {reason}")]
    InvalidGlob { glob: String, reason: String },
    /// The caller is gone: this is not read.
    #[error("cancelled")]
    Cancelled,
    #[error("{path} cannot be used: {}", std::io::Error::from(*errno))]
    System { path: String, errno: Errno },
}

/// The error that a number of the system stands for. `path` is as the caller named it.
pub(crate) fn errno_to_file_error(errno: Errno, path: &str) -> FileError {
    let path = path.to_owned();
    match errno {
        Errno::XDEV | Errno::LOOP => FileError::LinkOutside { path },
        Errno::NOENT => FileError::NotFound { path },
        Errno::NOTDIR => FileError::NotADirectory { path },
        Errno::ISDIR => FileError::IsDirectory { path },
        Errno::ACCESS | Errno::PERM | Errno::ROFS => FileError::PermissionDenied { path },
        Errno::NXIO => FileError::NotRegular { path },
        Errno::NOSPC | Errno::DQUOT => FileError::DiskFull { path },
        Errno::NAMETOOLONG => FileError::PathTooLong,
        Errno::AGAIN => FileError::Moving { path },
        errno => FileError::System { path, errno },
    }
}

/// The same for an error of the standard library.
pub(crate) fn io_to_file_error(error: &std::io::Error, path: &str) -> FileError {
    errno_to_file_error(Errno::from_io_error(error).unwrap_or(Errno::IO), path)
}
