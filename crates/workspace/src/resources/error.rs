//! Why a client cannot do what it wants with a file.
//!
//! Promises: every error reads as a plain sentence; paths in it are as the client named them.
//! Must not know: error codes.

use rustix::io::Errno;

use super::ResourceAccess;
use super::tree::{TREE_BYTES_MAX, TREE_DEPTH_MAX, TREE_ENTRIES_MAX};
use super::watched_directories::WATCHED_MAX;

const TREE_GIB_MAX: u64 = TREE_BYTES_MAX / 1_024 / 1_024 / 1_024;

/// Why nothing was done, or, where an error says so, not all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    #[error("`{uri}` is not a `file:` URI of this machine")]
    NotLocal { uri: String },
    #[error("there is no {path}")]
    NotFound { path: String },
    #[error("{path} is a symbolic link that leads nowhere, or in circles")]
    BrokenLink { path: String },
    #[error(
        "{path} lies outside the directories that clients may use; ask for it by `resourceRequest`"
    )]
    Outside { path: String, needs: ResourceAccess },
    #[error("{path} is the host's own, or holds what is the host's own; clients cannot use it")]
    HostOwned { path: String },
    #[error(
        "{path} is a directory that the host works in; it cannot be moved, replaced or removed"
    )]
    IsRoot { path: String },
    #[error("{path} cannot be used: permission denied")]
    PermissionDenied { path: String },
    #[error("{path} exists already")]
    AlreadyExists { path: String },
    #[error("{path} is not what it was when its `etag` was asked for; read it again")]
    EtagMismatch { path: String },
    #[error("{path} was changed by something else meanwhile; nothing was done, try again")]
    Changed { path: String },
    #[error(
        "{path} was changed while it was moved, and another one of its name was made; the changed one is beside it as {aside}"
    )]
    LeftAside { path: String, aside: String },
    #[error(
        "something else wrote to {path} while it was moved there: that is left as it is, and what was to be moved stays where it was"
    )]
    DestinationChanged { path: String },
    #[error(
        "something else wrote to {path} while it was moved there: that is left as it is, what was to be moved stays where it was, and what was to be replaced is beside it as {aside}"
    )]
    ReplacedAside { path: String, aside: String },
    #[error(
        "{path} was moved, all of it; some of the old one could not be removed and is beside it as {aside}: {why}"
    )]
    NotRemoved { path: String, aside: String, why: String },
    #[error("{path} is a directory")]
    IsDirectory { path: String },
    #[error("{path} is not a directory")]
    NotADirectory { path: String },
    #[error(
        "{path} is a pipe, a device or a socket; only files, directories and links can be used"
    )]
    NotRegular { path: String },
    #[error("{path} is not empty; set `recursive` to remove it with all that is in it")]
    NotEmpty { path: String },
    #[error("`position` {position} is beyond the end of {path}, which has {bytes} bytes")]
    BeyondEnd { path: String, position: u64, bytes: u64 },
    #[error("{path} and {other} are one and the same, or one lies in the other")]
    Nested { path: String, other: String },
    #[error("{path} has more than {most} entries; that is more than one answer holds")]
    TooManyEntries { path: String, most: usize },
    #[error(
        "{path} is too large for one request: at most {TREE_ENTRIES_MAX} files and directories, {TREE_DEPTH_MAX} deep, \
         and {TREE_GIB_MAX} GiB"
    )]
    TreeTooLarge { path: String },
    #[error("{path} has {bytes} bytes; at most {most} can be read at once")]
    TooLarge { path: String, bytes: u64, most: u64 },
    #[error(
        "{path} has more than {WATCHED_MAX} directories, more than one watch looks at; exclude some, or watch a part of it"
    )]
    TooManyDirectories { path: String },
    #[error("this machine watches no more directories; its administrator can raise `{setting}`")]
    NoMoreWatches { setting: &'static str },
    #[error("the glob `{glob}` cannot be used: {reason}")]
    InvalidGlob { glob: String, reason: String },
    #[error("{path} cannot be written: the disk is full; nothing was changed")]
    DiskFull { path: String },
    #[error(
        "{bytes} bytes were appended to {path} and are not taken back, but {why}; look at it before you write them again"
    )]
    Appended { path: String, bytes: usize, why: String },
    #[error("{path} is being moved; try again")]
    Moving { path: String },
    #[error("files can only be confined with openat2: Linux 5.6 or later")]
    Unconfined,
    #[error("{path} cannot be used: {}", std::io::Error::from(*errno))]
    System { path: String, errno: Errno },
}

impl ResourceError {
    /// The error that a number of the system stands for. `path` is as the client named it.
    pub(super) fn of(errno: Errno, path: &str) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::NOENT => Self::NotFound { path },
            Errno::NOTDIR => Self::NotADirectory { path },
            Errno::ISDIR => Self::IsDirectory { path },
            Errno::EXIST => Self::AlreadyExists { path },
            Errno::NOTEMPTY => Self::NotEmpty { path },
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::PermissionDenied { path },
            Errno::NXIO => Self::NotRegular { path },
            Errno::NOSPC | Errno::DQUOT => Self::DiskFull { path },
            // It became a link since it was resolved, or something on the way to it is renamed.
            Errno::LOOP | Errno::XDEV | Errno::AGAIN => Self::Moving { path },
            Errno::NOSYS => Self::Unconfined,
            errno => Self::System { path, errno },
        }
    }

    pub(super) fn of_io(error: &std::io::Error, path: &str) -> Self {
        Self::of(Errno::from_io_error(error).unwrap_or(Errno::IO), path)
    }
}
