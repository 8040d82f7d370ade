//! What is asked of the host for changesets, and what it answers: computing one, and carrying out an operation on one.

use bytes::Bytes;
use serde_json::Value;
use wire::{ChannelUri, Object, RpcError};

use crate::ids::ChannelId;

/// Which changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesetKind {
    /// All that the session's turns changed.
    Session,
    /// What one turn changed; the chat it is in, where that is known.
    Turn { chat: Option<ChannelId>, turn_id: String },
    /// What differs from the last commit.
    Uncommitted,
    /// What differs from the branch that this one comes from.
    Branch,
}

/// Names a look at a working tree that the host took, or will take when it is first needed: what is computed with the same name is computed
/// from one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookId(pub u64);

/// A changeset, and where its files lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesetTarget {
    pub changeset: ChannelUri,
    pub kind: ChangesetKind,
    pub session: ChannelUri,
    pub session_id: ChannelId,
    pub working_directories: Vec<String>,
    /// The branch that `branch` is compared with.
    pub base: Option<String>,
    /// The look that it may be computed from; a new one is taken if absent.
    pub look: Option<LookId>,
}

/// An operation that a client invoked, checked against what the changeset offers (H-287).
#[derive(Debug, Clone, PartialEq)]
pub struct ChangesetOperation {
    pub place: ChangesetTarget,
    pub id: String,
    /// The file it is about; all of them if absent. `file:` URI or id of a file.
    pub resource: Option<String>,
    pub meta: Object,
}

/// A changeset as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedChangeset {
    /// `ChangesetFile`s without review.
    pub files: Vec<Value>,
    /// `ChangesetOperation`s.
    pub operations: Vec<Value>,
    /// Why nothing is known of files; for people.
    pub problem: Option<String>,
}

/// What a turn changed in files.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnChangesReport {
    pub session: ChannelUri,
    pub chat: ChannelId,
    /// The changeset of the turn.
    pub changeset: ChannelUri,
    pub computed: ComputedChangeset,
    /// `changes` of the session's summary from now on, if that is known.
    pub totals: Option<Value>,
    /// The look at the end of the turn: what is watched is computed from it.
    pub look: Option<LookId>,
}

/// What a turn changed in files, or a session in all, as it is kept (G-53). Replaces that of the same turn; what it refers to is recorded
/// with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChangesRecord {
    /// The chat, or the session.
    pub channel: ChannelId,
    /// Empty for the session.
    pub turn_id: String,
    /// Opaque.
    pub json: Bytes,
}

/// What an operation came to: what its client is answered.
pub type OperationOutcome = Result<Value, RpcError>;

/// What the host found out about changes of files.
#[derive(Debug, Clone)]
pub enum ChangesInput {
    /// A turn changed files.
    FilesChanged(Box<TurnChangesReport>),
    /// A turn is over that may have changed the repository, though no file is another: something was committed, for example.
    TreeLooked { session: ChannelUri, look: LookId },
    /// The answer to `Effect::ComputeChangeset`; an error is for people.
    Computed { changeset: ChannelUri, computed: Result<ComputedChangeset, String> },
    /// An operation on a changeset runs, is over, or failed.
    OperationStatus { changeset: ChannelUri, operation: String, running: Result<bool, String> },
    /// A session works in a worktree of its own from now on. Comes before the session is ready.
    WorktreeMade { session: ChannelUri, directory: String, replacement: String, facts: Value },
    /// How far the creation of a session is, for the client that asked for progress.
    CreationAt { session: ChannelUri, done: i64, total: i64, message: String },
    /// `changes` of a session's summary from now on.
    Counted { session: ChannelUri, totals: Value },
    /// What is known of the repository that a session works in, if it does in one.
    GitFound { session: ChannelUri, git: Option<Value> },
}
