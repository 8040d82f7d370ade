//! Everything that touches a user's files: reading, writing, listing and searching them, the facts of git and the
//! instructions that prompts need, and the commands, skills and paths that users can name.
//!
//! Promises:
//! - Nothing outside a session's working directories is opened, whatever a path says and whatever is renamed or linked
//!   meanwhile. Every open is resolved by the operating system beneath a directory that is already open (`openat2`),
//!   symbolic links included, at the moment of use; a path that was checked before is never trusted later.
//! - No working directory lies outside a [`Confinement`], whatever links lead to it; nothing in the directory that it hides
//!   is opened.
//! - A file is replaced whole or not at all, and never when its content is not what the session last read of it.
//! - Everything that a file, a directory tree or a caller can make large has a bound. Nothing waits for a pipe or a
//!   device.
//! - No program is run but git, which runs nothing of a repository unless the user asked for it ([`Repository`]).
//!
//! All functions block: they are for threads that may wait for a disk. Long ones take a [`Cancellation`].
//!
//! Must not know: models, agents and their tools, channels, peers. Of `wire` it uses digests, JSON objects and `file:`
//! URIs; of `compositor` the catalogue of commands and the trait that lowering reads files through.

mod cancellation;
pub mod completion;
mod confined;
mod confinement;
mod diff;
mod directory;
pub mod discovery;
mod error;
mod file_filter;
mod find;
mod git;
mod glob_bounds;
mod ignore_rules;
mod lines;
mod list;
mod location;
mod path;
pub mod picture;
mod project;
mod read;
mod replacement;
mod resources;
mod roots;
mod search;
mod sources;
mod tree;
mod write;

pub use cancellation::{CancelOnDrop, Cancellation};
pub use confinement::Confinement;
pub use diff::DiffStats;
pub use directory::IgnoreMode;
pub use error::{FileError, OpenError};
pub use find::{FindOptions, FoundFiles};
pub use git::{
    CommitReport, GitEntry, GitError, GitHead, GitState, IndexEntries, MergeReport, NewWorktree,
    Repository, RepositorySummary, TreeStatus, WorktreeEnd, worktree_name,
};
pub use lines::{LinesRead, TextLine};
pub use list::{Tree, TreeLimits};
pub use location::RealLocation;
pub use path::WorkspacePath;
pub use project::{INSTRUCTION_BYTES_MAX, InstructionFile, ProjectContext, ProjectReader};
pub use read::{FILE_BYTES_MAX, FileBytes, ReadReceipt, is_binary};
pub use replacement::{LineEndings, NearMiss, Replacement, ReplacementError};
pub use resources::{
    Placement, ResourceAccess, ResourceBytes, ResourceChange, ResourceChangeKind, ResourceEntry,
    ResourceError, ResourceFacts, ResourceFiles, ResourceGrant, ResourceKind, ResourceWatch,
    WatchRequest, WatchedBatch, WriteRequest,
};
pub use roots::{ClientPluginCopy, CommandDirectory, UserDirectories, Workspace};
pub use search::{SearchMatches, SearchOptions, SearchOutput, SearchPattern};
pub use sources::{ContentStore, EmptyStore, WorkspaceSources};
pub use tree::{
    FileSide, LINK, SUBMODULE, StoreContent, TreeChange, TreeChanges, TreeSnapshot, is_link,
};
pub use write::{ChangeRequest, Extent, FileChange, FileNow, WantedFile};
