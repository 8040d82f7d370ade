//! What turns change in files: found while a turn runs, kept in the journal when it ends, handed out as changesets (G-53).
//!
//! Promises: a turn that only our own tools worked in costs no look at the tree; any other at most one at each of its edges. What is
//! recorded is on the disk before anybody hears of it, and so is the content that it names.
//! Must not know: the protocol's channels; which client looks.

mod changeset;
mod compute;
mod discard;
mod file_changes;
mod operate;
mod recent_looks;
mod seen_calls;
mod shared_looks;
mod store;
mod take_back;
mod turn_changes;
mod worktree;

pub(crate) use changeset::operations_of_turn;
pub(crate) use compute::{Computing, tell_git};
pub(crate) use file_changes::{
    ChangedSide, ChangesTotal, DamagedChanges, FileChanges, RecordedChange,
};
pub(crate) use operate::{OperationServices, operate};
pub(crate) use shared_looks::SharedLooks;
pub(crate) use turn_changes::{ChangesGuard, TurnChanges};
pub(crate) use worktree::{
    WorktreeRequest, branches, make as make_worktree, remove as remove_worktree,
    why_kept as why_worktree_is_kept,
};
