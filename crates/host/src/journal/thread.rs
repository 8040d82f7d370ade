//! The journal on threads of its own, so that no task ever waits for a disk.
//!
//! Promises: appends are written in the order they were handed over; every append and read is answered, also when its
//! thread is gone; a thread that panics is reported; queues are bounded. Dropping the last handle ends the threads,
//! [`JournalThread::close`] waits for them.
//! Must not know: what a batch holds.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use kernel::{Answer, Batch, Boot, Query, Record};
use tokio::sync::{oneshot, watch};
use wire::Digest;

use super::queue::{Closed, Queue, lock};
use super::{Journal, JournalError, JournalReader};
use crate::supervisor::panic_message;

/// Appends waiting for the writer. The kernel's loop hands over one batch at a time; a few callers may be ahead.
const APPENDS_QUEUED_MAX: usize = 16;
/// Reads waiting for a reader: loads of channels and pages, each from a peer that waits for it.
const READS_QUEUED_MAX: usize = 256;
/// One long read must not hold up the short ones.
const READERS: usize = 2;
/// Notes waiting for a batch to travel with; the oldest goes when there are more.
const NOTES_MAX: usize = 64;

type Notes = Arc<Mutex<VecDeque<Record>>>;

type ReplySender<T> = oneshot::Sender<Result<T, JournalError>>;

/// Removes content that nothing refers to.
type Remove = Box<dyn FnOnce(&[Digest]) + Send>;

enum Write {
    Append(Batch, oneshot::Sender<Result<(), RefusedBatch>>),
    Probe(ReplySender<()>),
    Collect(Vec<Digest>, Remove, ReplySender<()>),
    Release(ReplySender<bool>),
}

struct Read(Query, ReplySender<Answer>);

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

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    commit_us: AtomicU64,
}

/// A handle on the journal's threads.
#[derive(Clone)]
pub struct JournalThread {
    shared: Arc<Shared>,
}

struct Shared {
    writes: Arc<Queue<Write>>,
    /// Records that nobody waits for; the next batch takes them along.
    notes: Notes,
    reads: Arc<Queue<Read>>,
    counters: Arc<Counters>,
    /// Why a thread ended that should not have.
    failure: Arc<watch::Sender<Option<String>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl JournalThread {
    /// Boots the journal, on the caller's thread, and starts the journal's own.
    pub fn start(mut journal: Box<dyn Journal>) -> Result<(Self, Boot), JournalError> {
        let boot = journal.boot()?;
        let writes = Arc::new(Queue::new(APPENDS_QUEUED_MAX));
        let reads = Arc::new(Queue::new(READS_QUEUED_MAX));
        let counters = Arc::new(Counters::default());
        let shared = Shared {
            writes,
            notes: Arc::default(),
            reads,
            counters,
            failure: Arc::new(watch::Sender::new(None)),
            threads: Mutex::default(),
        };
        for index in 0..READERS {
            let reader = journal.reader()?;
            let name = format!("journal-read-{index}");
            shared.spawn(name, &shared.reads, move |queue| read_loop(reader, queue))?;
        }
        let counters = Arc::clone(&shared.counters);
        let notes = Arc::clone(&shared.notes);
        shared.spawn("journal-write".to_owned(), &shared.writes, move |queue| {
            write_loop(journal, queue, &notes, &counters);
        })?;
        Ok((
            Self {
                shared: Arc::new(shared),
            },
            boot,
        ))
    }

    /// Writes a batch whole and durably, or not at all. Once handed over it is written even if nobody waits any more.
    pub async fn append(&self, batch: Batch) -> Result<(), JournalError> {
        let appended = self.append_or_return(batch).await;
        appended.map_err(|refused| refused.error)
    }

    /// The same; a batch that was not written comes back, so that it can be written in part.
    pub async fn append_or_return(&self, batch: Batch) -> Result<(), RefusedBatch> {
        let lost = || RefusedBatch {
            error: unwritable(),
            batch: Batch::default(),
        };
        let (answer, answered) = oneshot::channel();
        let taken = self.shared.writes.put(Write::Append(batch, answer)).await;
        taken.map_err(|Closed| lost())?;
        answered.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Has a record written with the next batch, without waiting and without a promise: for what only an operator reads.
    pub fn note(&self, record: Record) {
        let mut notes = lock(&self.shared.notes);
        if notes.len() >= NOTES_MAX {
            notes.pop_front();
        }
        notes.push_back(record);
    }

    /// Whether the disk takes writes.
    pub async fn probe(&self) -> Result<(), JournalError> {
        let (answer, answered) = oneshot::channel();
        self.shared
            .writes
            .put(Write::Probe(answer))
            .await
            .map_err(|Closed| unwritable())?;
        answered.await.unwrap_or_else(|_| Err(unwritable()))
    }

    /// Removes those of some content that nothing refers to, before anything else is written: no reference can come
    /// between the check and the removal. All batches wait meanwhile, so pass few at a time.
    pub async fn collect(
        &self,
        digests: Vec<Digest>,
        remove: impl FnOnce(&[Digest]) + Send + 'static,
    ) -> Result<(), JournalError> {
        let (answer, answered) = oneshot::channel();
        let collect = Write::Collect(digests, Box::new(remove), answer);
        let taken = self.shared.writes.put(collect).await;
        taken.map_err(|Closed| unwritable())?;
        answered.await.unwrap_or_else(|_| Err(unwritable()))
    }

    /// Gives back disk space that nothing uses any more, step by step: batches are written between the steps.
    pub async fn release_space(&self) -> Result<(), JournalError> {
        loop {
            let (answer, answered) = oneshot::channel();
            let taken = self.shared.writes.put(Write::Release(answer)).await;
            taken.map_err(|Closed| unwritable())?;
            if !answered.await.unwrap_or_else(|_| Err(unwritable()))? {
                return Ok(());
            }
        }
    }

    /// Answers with at least everything that was committed when it was asked.
    pub async fn read(&self, query: Query) -> Result<Answer, JournalError> {
        let (answer, answered) = oneshot::channel();
        self.shared
            .reads
            .put(Read(query, answer))
            .await
            .map_err(|Closed| unreadable())?;
        answered.await.unwrap_or_else(|_| Err(unreadable()))
    }

    pub fn stats(&self) -> CommitStats {
        CommitStats {
            commits: self.shared.counters.commits.load(Ordering::Relaxed),
            commit_us: self.shared.counters.commit_us.load(Ordering::Relaxed),
        }
    }

    /// Takes nothing new, finishes what was handed over, closes the journal. Blocks; other handles get errors from
    /// now on.
    pub fn close(self) {
        self.shared.end();
        let threads = std::mem::take(&mut *lock(&self.shared.threads));
        for thread in threads {
            // A panic was caught and reported: see `wait_for_failure`.
            let _caught = thread.join();
        }
    }

    /// Why one of the threads ended unasked, if one did.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.borrow().clone()
    }

    /// Waits until one of the threads ends unasked, and says why.
    pub async fn wait_for_failure(&self) -> String {
        let mut failure = self.shared.failure.subscribe();
        loop {
            if let Some(reason) = failure.borrow_and_update().clone() {
                return reason;
            }
            let changed = failure.changed().await;
            debug_assert!(changed.is_ok(), "this handle holds the sender");
        }
    }
}

impl Shared {
    /// Runs `work` on a thread of its own. If it panics, nobody is left waiting: what is still queued is dropped, and a
    /// dropped question is answered with an error.
    fn spawn<T: Send + 'static>(
        &self,
        name: String,
        queue: &Arc<Queue<T>>,
        work: impl FnOnce(&Queue<T>) + Send + 'static,
    ) -> Result<(), JournalError> {
        let (queue, failure) = (Arc::clone(queue), Arc::clone(&self.failure));
        let builder = Builder::new().name(name.clone());
        let thread = builder.spawn(move || {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(&queue))) {
                let reason = panic_message(&*panic);
                failure.send_replace(Some(format!("the thread {name} panicked: {reason}")));
                queue.discard();
            }
        });
        let thread = thread.map_err(|error| {
            JournalError::Unwritable(format!("no thread for the journal: {error}"))
        })?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    fn end(&self) {
        self.writes.close();
        self.reads.close();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_loop(
    mut journal: Box<dyn Journal>,
    queue: &Queue<Write>,
    notes: &Notes,
    counters: &Counters,
) {
    while let Some(write) = queue.take() {
        // A reply that nobody waits for any more is not an error: the batch is written all the same.
        let _nobody_waits = match write {
            Write::Append(batch, answer) => {
                let began = Instant::now();
                let written = append_with_notes(&mut *journal, batch, notes);
                if written.is_ok() {
                    let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                    counters.commits.fetch_add(1, Ordering::Relaxed);
                    counters.commit_us.fetch_add(us, Ordering::Relaxed);
                }
                answer.send(written).is_err()
            }
            Write::Probe(answer) => answer.send(journal.probe()).is_err(),
            Write::Release(answer) => answer.send(journal.release_space()).is_err(),
            Write::Collect(digests, remove, answer) => {
                let unreferenced = journal.find_unreferenced(&digests);
                let removed = unreferenced.map(|digests| remove(&digests));
                answer.send(removed).is_err()
            }
        };
    }
    let records: Vec<Record> = lock(notes).drain(..).collect();
    let batch = Batch {
        records,
        ..Batch::default()
    };
    if !batch.records.is_empty()
        && let Err(error) = journal.append(&batch)
    {
        tracing::debug!(%error, "the last inspection records could not be written and are lost");
    }
}

/// Writes a batch and the notes that travel with it. A note that can never be written is dropped: nobody waits for it.
fn append_with_notes(
    journal: &mut dyn Journal,
    mut batch: Batch,
    notes: &Notes,
) -> Result<(), RefusedBatch> {
    let own = batch.records.len();
    batch.records.extend(lock(notes).drain(..));
    loop {
        match journal.append(&batch) {
            Ok(()) => return Ok(()),
            Err(JournalError::BadRecord { index, reason })
                if (own..batch.records.len()).contains(&index) =>
            {
                tracing::warn!(
                    reason,
                    "a record for inspectors cannot be written and is lost"
                );
                batch.records.remove(index);
            }
            Err(error) => {
                // They go with a later batch, as far as there is room.
                let mut notes = lock(notes);
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

fn read_loop(mut reader: Box<dyn JournalReader>, queue: &Queue<Read>) {
    while let Some(Read(query, answer)) = queue.take() {
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
#[path = "thread_tests.rs"]
mod tests;
