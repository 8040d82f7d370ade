//! The seam between a space and its journal: what the kernel's loop, effects and agents ask of it, wherever it is.
//!
//! A journal on this machine is written by the kernel's own thread in place; one on another machine is awaited in the same
//! place. [`Commit`] is both: what is done already costs neither an allocation nor a wake-up (ADR 0091).
//!
//! Promises: one value serves one space; a batch is written whole and durably, or comes back; every call is answered.
//! Must not know: what a batch holds, where it is written.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Answer, Batch, Boot, Query, Record};
use tokio::sync::watch;
use wire::Digest;

use super::{Journal, JournalError, LocalJournal};

/// A batch of which nothing was written, and why.
#[derive(Debug)]
pub struct RefusedBatch {
    pub error: JournalError,
    pub batch: Batch,
}

/// What commits cost so far, for benchmarks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitStats {
    pub commits: u64,
    pub commit_us: u64,
}

/// A commit that is done, or one that is to be awaited.
pub enum Commit<'a> {
    Done(Result<(), RefusedBatch>),
    Waiting(Pin<Box<dyn Future<Output = Result<(), RefusedBatch>> + Send + 'a>>),
}

/// Removes content that nothing refers to; may wait for a disk.
pub type RemoveContent = Box<dyn FnOnce(&[Digest]) + Send>;

/// The journal of one space.
#[async_trait]
pub trait SpaceJournal: Send + Sync {
    /// Whether it is on this machine, so that a commit waits for a disk in place.
    fn is_local(&self) -> bool {
        false
    }

    /// Writes a batch for the kernel, which does nothing else meanwhile: on its very thread, if the journal is on this
    /// machine. A batch that was not written comes back, so that it can be written in part.
    fn commit(&self, batch: Batch) -> Commit<'_>;

    /// Writes a batch without keeping a task's thread from its other tasks. Once handed over it is written even if nobody
    /// waits any more.
    async fn append(&self, batch: Batch) -> Result<(), JournalError>;

    /// Answers with at least everything that was committed when it was asked.
    async fn read(&self, query: Query) -> Result<Answer, JournalError>;

    /// Whether it takes writes.
    async fn probe(&self) -> Result<(), JournalError>;

    /// Removes those of some content that nothing refers to, while nothing is written: no reference can come between the
    /// check and the removal. All batches wait meanwhile, so pass few at a time.
    async fn collect(
        &self,
        digests: Vec<Digest>,
        remove: RemoveContent,
    ) -> Result<(), JournalError>;

    /// Gives back disk space that nothing uses any more, while others write.
    async fn release_space(&self) -> Result<(), JournalError>;

    /// Has a record written with the next batch, without waiting and without a promise: for what only an operator reads.
    fn note(&self, record: Record);

    fn stats(&self) -> CommitStats;

    /// It is closed soon: what is written from now on waits for nothing but the disk.
    fn prepare_to_close(&self) {}

    /// Takes nothing new, finishes what was handed over, closes the journal: errors from now on.
    async fn close(&self);

    /// Why it ended although nobody asked it to.
    fn failures(&self) -> watch::Receiver<Option<String>>;
}

/// A handle on the journal of a space. Clones are handles on the same one.
#[derive(Clone)]
pub struct JournalHandle {
    journal: Arc<dyn SpaceJournal>,
}

impl JournalHandle {
    /// Boots a journal on this machine, on the caller's thread.
    pub fn start(journal: Box<dyn Journal>) -> Result<(Self, Boot), JournalError> {
        let (local, boot) = LocalJournal::start(journal)?;
        Ok((Self::over(Arc::new(local)), boot))
    }

    /// A handle on any journal.
    pub fn over(journal: Arc<dyn SpaceJournal>) -> Self {
        Self { journal }
    }

    /// See [`SpaceJournal::is_local`].
    pub(crate) fn is_local(&self) -> bool {
        self.journal.is_local()
    }

    /// See [`SpaceJournal::commit`].
    pub async fn commit(&self, batch: Batch) -> Result<(), RefusedBatch> {
        match self.journal.commit(batch) {
            Commit::Done(written) => written,
            Commit::Waiting(commit) => commit.await,
        }
    }

    /// See [`SpaceJournal::append`].
    pub async fn append(&self, batch: Batch) -> Result<(), JournalError> {
        self.journal.append(batch).await
    }

    /// See [`SpaceJournal::read`].
    pub async fn read(&self, query: Query) -> Result<Answer, JournalError> {
        self.journal.read(query).await
    }

    /// See [`SpaceJournal::note`].
    pub fn note(&self, record: Record) {
        self.journal.note(record);
    }

    /// See [`SpaceJournal::probe`].
    pub async fn probe(&self) -> Result<(), JournalError> {
        self.journal.probe().await
    }

    /// See [`SpaceJournal::collect`].
    pub async fn collect(
        &self,
        digests: Vec<Digest>,
        remove: impl FnOnce(&[Digest]) + Send + 'static,
    ) -> Result<(), JournalError> {
        self.journal.collect(digests, Box::new(remove)).await
    }

    /// See [`SpaceJournal::release_space`].
    pub async fn release_space(&self) -> Result<(), JournalError> {
        self.journal.release_space().await
    }

    pub fn stats(&self) -> CommitStats {
        self.journal.stats()
    }

    /// See [`SpaceJournal::prepare_to_close`].
    pub(crate) fn prepare_to_close(&self) {
        self.journal.prepare_to_close();
    }

    /// See [`SpaceJournal::close`]. Other handles get errors from now on.
    pub async fn close(&self) {
        self.journal.close().await;
    }

    /// Why it ended unasked, if it did.
    pub fn failure(&self) -> Option<String> {
        self.journal.failures().borrow().clone()
    }

    /// Waits until it ends unasked, and says why.
    pub async fn wait_for_failure(&self) -> String {
        let mut failures = self.journal.failures();
        loop {
            if let Some(reason) = failures.borrow_and_update().clone() {
                return reason;
            }
            if failures.changed().await.is_err() {
                // It is gone, and can end no more.
                std::future::pending::<()>().await;
            }
        }
    }
}
