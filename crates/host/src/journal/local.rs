//! A journal on this machine: written by one caller at a time, read by threads of its own.
//!
//! The kernel's thread writes in place: it has nothing else to do before its batch is on disk, and handing the batch to
//! another thread and waiting for it would wake two threads for every commit (ADR 0069). Tasks never wait for a disk: what they
//! write goes to a thread that may block.
//!
//! Promises: a batch is written whole and durably, or comes back; every append and read is answered, also when a thread is
//! gone; a panic is reported, and nothing is written after it; queues are bounded. Dropping it ends the readers,
//! [`SpaceJournal::close`] waits for them and for what was handed over.
//! Must not know: what a batch holds.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use async_trait::async_trait;
use kernel::{Answer, Batch, Boot, Query, Record};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot, watch};
use wire::Digest;

use super::handle::{Commit, CommitStats, RefusedBatch, RemoveContent, SpaceJournal};
use super::queue::{Closed, Queue};
use super::{Journal, JournalError, JournalReader};
use crate::supervisor::panic_message;

/// Writes of tasks that may wait for the journal, each on a thread; further ones wait without one.
const WRITES_MAX: usize = 16;
/// Reads waiting for a reader: loads of channels and pages, each from a peer that waits for it.
const READS_QUEUED_MAX: usize = 256;
/// One long read must not hold up the short ones.
const READERS: usize = 2;
/// Notes waiting for a batch to travel with; the oldest goes when there are more.
const NOTES_MAX: usize = 64;

type PendingRecords = Mutex<VecDeque<Record>>;

type ReplySender<T> = oneshot::Sender<Result<T, JournalError>>;

struct QueuedRead(Query, ReplySender<Answer>);

/// A journal that blocks, and the threads around it.
pub struct LocalJournal {
    shared: Arc<LocalShared>,
}

struct LocalShared {
    /// For one writer at a time. None once it is closed, or after a panic.
    journal: Mutex<Option<Box<dyn Journal>>>,
    /// Apart from the journal: a task that hands a write over must not wait for another.
    handed_over: Mutex<BackgroundWrites>,
    /// Signalled when a write that was handed over is done.
    written: Condvar,
    writes: Arc<Semaphore>,
    /// Records that nobody waits for; the next batch takes them along.
    notes: PendingRecords,
    reads: Arc<Queue<QueuedRead>>,
    commits: AtomicU64,
    commit_us: AtomicU64,
    /// Why it ended although nobody asked it to.
    failure: Arc<watch::Sender<Option<String>>>,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

/// The writes of tasks that are not done yet.
#[derive(Default)]
struct BackgroundWrites {
    count: usize,
    /// No more are taken.
    is_closing: bool,
}

/// One of them: not counted any more when it is done, or dropped before it began.
struct CountedWrite(Arc<LocalShared>);

impl Drop for CountedWrite {
    fn drop(&mut self) {
        self.0.handed_over.lock().count -= 1;
        self.0.written.notify_all();
    }
}

impl LocalJournal {
    /// Boots the journal, on the caller's thread, and starts its readers.
    pub fn start(mut journal: Box<dyn Journal>) -> Result<(Self, Boot), JournalError> {
        let boot = journal.boot()?;
        let readers: Result<Vec<_>, _> = (0..READERS).map(|_| journal.reader()).collect();
        let shared = LocalShared {
            journal: Mutex::new(Some(journal)),
            handed_over: Mutex::default(),
            written: Condvar::new(),
            writes: Arc::new(Semaphore::new(WRITES_MAX)),
            notes: Mutex::default(),
            reads: Arc::new(Queue::new(READS_QUEUED_MAX)),
            commits: AtomicU64::default(),
            commit_us: AtomicU64::default(),
            failure: Arc::new(watch::Sender::new(None)),
            readers: Mutex::default(),
        };
        for (index, reader) in readers?.into_iter().enumerate() {
            shared.start_reader(format!("journal-read-{index}"), reader)?;
        }
        let shared = Arc::new(shared);
        Ok((Self { shared }, boot))
    }

    /// Writes a batch on this very thread, which waits for the disk. A batch that was not written comes back, so that it can
    /// be written in part.
    pub fn append_in_place(&self, batch: Batch) -> Result<(), RefusedBatch> {
        self.shared.append(batch)
    }

    /// Has a thread that may block write something.
    async fn hand_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LocalShared) -> T + Send + 'static,
    ) -> Result<T, JournalError> {
        let writes = Arc::clone(&self.shared.writes).acquire_owned();
        let permit = writes.await.map_err(|_| unwritable())?;
        {
            let mut handed_over = self.shared.handed_over.lock();
            if handed_over.is_closing {
                return Err(unwritable());
            }
            handed_over.count += 1;
        }
        let counted = CountedWrite(Arc::clone(&self.shared));
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&counted.0)
        });
        // It does not panic; a runtime that shuts down may cancel what had not begun.
        done.await.map_err(|_| unwritable())
    }
}

#[async_trait]
impl SpaceJournal for LocalJournal {
    fn is_local(&self) -> bool {
        true
    }

    fn commit(&self, batch: Batch) -> Commit<'_> {
        Commit::Done(self.append_in_place(batch))
    }

    async fn append(&self, batch: Batch) -> Result<(), JournalError> {
        let appended = self.hand_over(move |shared| shared.append(batch)).await?;
        appended.map_err(|refused| refused.error)
    }

    async fn read(&self, query: Query) -> Result<Answer, JournalError> {
        let (answer, answered) = oneshot::channel();
        self.shared.reads.put(QueuedRead(query, answer)).await.map_err(|Closed| unreadable())?;
        answered.await.unwrap_or_else(|_| Err(unreadable()))
    }

    async fn probe(&self) -> Result<(), JournalError> {
        self.hand_over(|shared| shared.write(|journal| journal.probe())?).await?
    }

    async fn collect(
        &self,
        digests: Vec<Digest>,
        remove: RemoveContent,
    ) -> Result<(), JournalError> {
        let work = move |journal: &mut dyn Journal| {
            let unreferenced = journal.find_unreferenced(&digests)?;
            remove(&unreferenced);
            Ok(())
        };
        self.hand_over(|shared| shared.write(work)?).await?
    }

    /// Step by step: batches are written between the steps.
    async fn release_space(&self) -> Result<(), JournalError> {
        let release = |shared: &LocalShared| shared.write(|journal| journal.release_space())?;
        while self.hand_over(release).await?? {}
        Ok(())
    }

    fn note(&self, record: Record) {
        let mut notes = self.shared.notes.lock();
        if notes.len() >= NOTES_MAX {
            notes.pop_front();
        }
        notes.push_back(record);
    }

    fn stats(&self) -> CommitStats {
        CommitStats {
            commits: self.shared.commits.load(Ordering::Relaxed),
            commit_us: self.shared.commit_us.load(Ordering::Relaxed),
        }
    }

    /// Blocks the caller's thread until what was handed over is written.
    async fn close(&self) {
        self.shared.close_writer();
        self.shared.reads.close();
        let readers = std::mem::take(&mut *self.shared.readers.lock());
        for reader in readers {
            // A panic was caught and reported: see `failures`.
            let _caught = reader.join();
        }
    }

    fn failures(&self) -> watch::Receiver<Option<String>> {
        self.shared.failure.subscribe()
    }
}

impl LocalShared {
    /// Works with the journal while nobody else writes; an error if it is closed, or if the work panics.
    fn write<T>(&self, work: impl FnOnce(&mut dyn Journal) -> T) -> Result<T, JournalError> {
        let mut writer = self.journal.lock();
        let journal = writer.as_mut().ok_or_else(unwritable)?;
        catch_unwind(AssertUnwindSafe(|| work(&mut **journal))).map_err(|panic| {
            // What it holds may be half changed: nothing is written any more.
            *writer = None;
            let reason = panic_message(&*panic);
            self.fail(format!("writing panicked: {reason}"));
            unwritable()
        })
    }

    fn append(&self, batch: Batch) -> Result<(), RefusedBatch> {
        let began = Instant::now();
        let append = |journal: &mut dyn Journal| append_with_notes(journal, batch, &self.notes);
        let written = self.write(append).unwrap_or_else(|error| {
            let batch = Batch::default(); // it went down with the journal
            Err(RefusedBatch { error, batch })
        });
        if written.is_ok() {
            let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.commit_us.fetch_add(us, Ordering::Relaxed);
        }
        written
    }

    fn fail(&self, reason: String) {
        self.failure.send_replace(Some(reason));
    }

    /// Runs a reader on a thread of its own. If it panics, nobody is left waiting: what is still queued is dropped, and a
    /// dropped question is answered with an error.
    fn start_reader(
        &self,
        name: String,
        reader: Box<dyn JournalReader>,
    ) -> Result<(), JournalError> {
        let (queue, failure) = (Arc::clone(&self.reads), Arc::clone(&self.failure));
        let builder = Builder::new().name(name.clone());
        let thread = builder.spawn(move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| read_loop(reader, &queue))) {
                let reason = panic_message(&*panic);
                failure.send_replace(Some(format!("the thread {name} panicked: {reason}")));
                queue.discard();
            }
        });
        let thread = thread.map_err(|error| {
            JournalError::Unwritable(format!("no thread for the journal: {error}"))
        })?;
        self.readers.lock().push(thread);
        Ok(())
    }

    /// Lets what was handed over be written, and the notes; then nothing.
    fn close_writer(&self) {
        let mut handed_over = self.handed_over.lock();
        handed_over.is_closing = true;
        self.written.wait_while(&mut handed_over, |it| it.count > 0);
        drop(handed_over);
        let Some(mut journal) = self.journal.lock().take() else {
            return; // it was closed before, or failed
        };
        let records: Vec<Record> = self.notes.lock().drain(..).collect();
        let batch = Batch { records, ..Batch::default() };
        if !batch.records.is_empty()
            && let Err(error) = journal.append(&batch)
        {
            tracing::debug!(%error, "the last inspection records could not be written and are lost");
        }
    }
}

impl Drop for LocalShared {
    fn drop(&mut self) {
        self.close_writer();
        self.reads.close();
    }
}

/// Writes a batch and the notes that travel with it. A note that can never be written is dropped: nobody waits for it.
fn append_with_notes(
    journal: &mut dyn Journal,
    mut batch: Batch,
    notes: &PendingRecords,
) -> Result<(), RefusedBatch> {
    let own = batch.records.len();
    batch.records.extend(notes.lock().drain(..));
    loop {
        match journal.append(&batch) {
            Ok(()) => return Ok(()),
            Err(JournalError::BadRecord { index, reason })
                if (own..batch.records.len()).contains(&index) =>
            {
                tracing::warn!(reason, "a record for inspectors cannot be written and is lost");
                batch.records.remove(index);
            }
            Err(error) => {
                // They go with a later batch, as far as there is room.
                let mut notes = notes.lock();
                for note in batch.records.split_off(own).into_iter().rev() {
                    if notes.len() < NOTES_MAX {
                        notes.push_front(note);
                    }
                }
                return Err(RefusedBatch { error, batch });
            }
        }
    }
}

fn read_loop(mut reader: Box<dyn JournalReader>, queue: &Queue<QueuedRead>) {
    while let Some(QueuedRead(query, answer)) = queue.take() {
        if answer.is_closed() {
            continue; // nobody waits for it any more
        }
        // The asker may be gone by now; then nobody needs the answer.
        let _nobody_waits = answer.send(reader.read(&query));
    }
}

fn unwritable() -> JournalError {
    JournalError::Unwritable("the journal is closed".to_owned())
}

fn unreadable() -> JournalError {
    JournalError::Unreadable("the journal is closed".to_owned())
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
