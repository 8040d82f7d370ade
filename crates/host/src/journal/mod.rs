//! The journal: every change is stored here before anybody sees it.
//!
//! Promises: a batch is written whole and durably or not at all; a question is answered with at least all that was
//! committed when it was asked. `contract` holds every backend to it.
//! Must not know: what an action means, who may do what, how anything is sent.

#[cfg(test)]
pub(crate) mod contract;
pub mod faulty;
pub mod handle;
mod local;
mod lock;
pub mod memory;
mod page;
pub mod postgres;
mod queue;
pub mod sqlite;

pub use faulty::{Fault, Faults, Faulty};
pub use handle::{Commit, CommitStats, JournalHandle, RefusedBatch, RemoveContent, SpaceJournal};
pub use local::LocalJournal;
pub use lock::DirectoryLock;
pub use memory::Memory;
pub use postgres::{
    DatabaseFacts, Failover, ListedNode, NodeRegistration, PgBlobs, PostgresJournal, PostgresNode,
    PostgresSettings, SessionSetting, TableFacts,
};
pub(crate) use postgres::{MoveOrder, NodeOrders, SpaceActivity, SpaceCounters, SpaceFacts};
pub(crate) use sqlite::make_private_file;
pub use sqlite::{
    Archive, ArchivedAsk, ArchivedCall, ArchivedChat, ArchivedLowering, ArchivedPiece,
    ArchivedRender, ArchivedRequest, ArchivedSession, SearchError, SearchHit, SearchIndex, Sqlite,
    SqliteReader, TextPiece,
};

use kernel::{Answer, Batch, Boot, Query};
use wire::Digest;

/// Why the journal failed; the operator reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Nothing of the batch was written: a full or failing disk (G-15).
    #[error("the journal cannot be written: {0}")]
    Unwritable(String),
    /// Nothing of the batch was written because of this one record of it, which can never be: it is too large, or breaks the
    /// journal's order. The disk is in order; without the record the rest can be written.
    #[error("a record cannot be written: {reason}")]
    BadRecord { index: usize, reason: String },
    #[error("the journal cannot be read: {0}")]
    Unreadable(String),
    /// Another process holds the data directory.
    #[error("{0}")]
    Locked(String),
    /// The space is served elsewhere by now: nothing was written, and this journal will never write again.
    #[error("{0}")]
    Lost(String),
    /// Written by a newer greenroom.
    #[error("{0}")]
    Format(String),
}

/// The writing side of a journal on this machine: one owner, one thread.
pub trait Journal: Send {
    /// What the kernel needs to begin.
    fn boot(&mut self) -> Result<Boot, JournalError>;
    /// Writes a batch whole, durably, or not at all.
    fn append(&mut self, batch: &Batch) -> Result<(), JournalError>;
    /// A small write and its removal, to see whether the disk takes writes again.
    fn probe(&mut self) -> Result<(), JournalError>;
    /// Those of some content that nothing refers to. True until the next append.
    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError>;
    /// Gives back some of the disk space that nothing uses any more, about as much work as a batch. Returns whether there is
    /// more.
    fn release_space(&mut self) -> Result<bool, JournalError>;
    /// A reading side of its own, for another thread.
    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError>;
}

/// A reading side. Shows everything committed before the question.
pub trait JournalReader: Send {
    fn read(&mut self, query: &Query) -> Result<Answer, JournalError>;
}
