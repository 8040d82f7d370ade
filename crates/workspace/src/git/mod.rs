//! Git: where a repository stands, read from its files, and everything else by git itself as a child process.
//!
//! Promises: nothing that a repository configures is run, unless the user asked for what does (a commit runs its hooks, and says
//! so). Every call has a deadline and a bound on its output. Only the part of a repository that a session works in is looked at.
//! Must not know: sessions, turns, the protocol.

mod child;
mod config;
mod error;
mod index;
mod objects;
mod operation;
mod repository;
mod state;
mod status;
mod worktree;

pub use error::GitError;
pub use index::IndexEntries;
pub use operation::{CommitReport, MergeReport};
pub use repository::{Repository, RepositorySummary};
pub use state::{GitHead, GitState};
pub use status::{GitEntry, TreeStatus};
pub use worktree::{NewWorktree, WorktreeEnd, worktree_name};
