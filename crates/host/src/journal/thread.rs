//! The journal on threads of its own, so that no task ever waits in a disk's place.
//!
//! Promises: appends are written in the order they were handed over; every append and read is answered, also when its
//! thread is gone; queues are bounded. Dropping the last handle ends the threads, [`JournalThread::close`] waits for
//! them.
//! Must not know: what a batch holds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use kernel::{Answer, Batch, Boot, Query, Record};
use tokio::sync::{Semaphore, oneshot};
use wire::Digest;

use super::{Journal, JournalError, JournalReader};

/// Appends waiting for the writer. The kernel's loop hands over one batch at a time; a few callers may be ahead.
const APPENDS_QUEUED_MAX: usize = 16;
/// Reads waiting for a reader: loads of channels and pages, each from a peer that waits for it.
const READS_QUEUED_MAX: usize = 256;
/// One long read must not hold up the short ones.
const READERS: usize = 2;
/// Notes waiting for a batch to travel with; the oldest goes when there are more.
const NOTES_MAX: usize = 64;

type Notes = Arc<Mutex<VecDeque<Record>>>;

type Answered<T> = oneshot::Sender<Result<T, JournalError>>;

/// What becomes of content that nothing refers to.
type Remove = Box<dyn FnOnce(&[Digest]) + Send>;

enum Write {
    Append(Batch, Answered<()>),
    Probe(Answered<()>),
    Collect(Vec<Digest>, Remove, Answered<()>),
}

struct Read(Query, Answered<Answer>);

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
            threads: Mutex::default(),
        };
        for index in 0..READERS {
            let reader = journal.reader()?;
            let queue = Leaving(Arc::clone(&shared.reads));
            shared.spawn(&format!("journal-read-{index}"), move || {
                read_loop(reader, &queue.0)
            })?;
        }
        let queue = Leaving(Arc::clone(&shared.writes));
        let counters = Arc::clone(&shared.counters);
        let notes = Arc::clone(&shared.notes);
        shared.spawn("journal-write", move || {
            write_loop(journal, &queue.0, &notes, &counters)
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
        let (answer, answered) = oneshot::channel();
        let taken = self.shared.writes.put(Write::Append(batch, answer)).await;
        taken.map_err(|Closed| unwritable())?;
        answered.await.unwrap_or_else(|_| Err(unwritable()))
    }

    /// Has a record kept with the next batch, without waiting and without a promise: for what only an operator looks at.
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

    /// Has those of some content removed that nothing refers to, before anything else is written: no reference can
    /// come between the question and the removal. Everybody's batches wait meanwhile, so not for many at once.
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
            if thread.join().is_err() {
                tracing::error!("a thread of the journal ended in a panic");
            }
        }
    }
}

impl Shared {
    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), JournalError> {
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|error| {
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
        // An answer nobody waits for any more is not an error: the batch is written all the same.
        let _unheard = match write {
            Write::Append(mut batch, answer) => {
                let began = Instant::now();
                batch.records.extend(lock(notes).drain(..));
                let written = journal.append(&batch);
                if written.is_ok() {
                    let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                    counters.commits.fetch_add(1, Ordering::Relaxed);
                    counters.commit_us.fetch_add(us, Ordering::Relaxed);
                }
                answer.send(written)
            }
            Write::Probe(answer) => answer.send(journal.probe()),
            Write::Collect(digests, remove, answer) => {
                let unreferred = journal.unreferred(&digests);
                answer.send(unreferred.map(|digests| remove(&digests)))
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
        tracing::debug!(%error, "the last notes are not kept");
    }
}

fn read_loop(mut reader: Box<dyn JournalReader>, queue: &Queue<Read>) {
    while let Some(Read(query, answer)) = queue.take() {
        if answer.is_closed() {
            continue;
        }
        // The asker may be gone by now; then nobody needs the answer.
        let _unheard = answer.send(reader.read(&query));
    }
}

/// A bounded queue between tasks that wait without a thread and threads that wait without a task.
struct Queue<T> {
    state: Mutex<QueueState<T>>,
    filled: Condvar,
    room: Semaphore,
}

struct QueueState<T> {
    items: VecDeque<T>,
    closed: bool,
}

struct Closed;

impl<T> Queue<T> {
    fn new(items_max: usize) -> Self {
        Self {
            state: Mutex::new(QueueState {
                items: VecDeque::new(),
                closed: false,
            }),
            filled: Condvar::new(),
            room: Semaphore::new(items_max),
        }
    }

    async fn put(&self, item: T) -> Result<(), Closed> {
        let room = self.room.acquire().await.map_err(|_| Closed)?;
        let mut state = lock(&self.state);
        if state.closed {
            return Err(Closed);
        }
        state.items.push_back(item);
        room.forget();
        self.filled.notify_one();
        Ok(())
    }

    /// The next item; `None` once the queue is closed and empty.
    fn take(&self) -> Option<T> {
        let waiting = |state: &mut QueueState<T>| state.items.is_empty() && !state.closed;
        let waited = self.filled.wait_while(lock(&self.state), waiting);
        let item = waited
            .unwrap_or_else(PoisonError::into_inner)
            .items
            .pop_front()?;
        self.room.add_permits(1);
        Some(item)
    }

    fn close(&self) {
        lock(&self.state).closed = true;
        self.room.close();
        self.filled.notify_all();
    }
}

/// A thread's end of its queue. However the thread ends, nobody is left waiting for it: what is still queued is
/// dropped, and a dropped question is answered with an error.
struct Leaving<T>(Arc<Queue<T>>);

impl<T> Drop for Leaving<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
            lock(&self.0.state).items.clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unwritable() -> JournalError {
    JournalError::Unwritable("the journal is closed".to_owned())
}

fn unreadable() -> JournalError {
    JournalError::Unreadable("the journal is closed".to_owned())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kernel::{ChannelId, Record, Seq};

    use super::*;
    use crate::journal::{Fault, Faulty, Memory};

    fn batch(seq: u64) -> Batch {
        let envelope = Bytes::from_static(b"{}");
        let action = Record::Action {
            seq: Seq(seq),
            channel: ChannelId::ROOT,
            envelope,
        };
        Batch {
            seq: Seq(seq),
            records: vec![action],
        }
    }

    fn all() -> Query {
        let floors = vec![(ChannelId::ROOT, Seq(0))];
        Query::Log {
            floors,
            through: Seq(u64::MAX),
            bytes_max: u64::MAX,
        }
    }

    async fn count(journal: &JournalThread) -> usize {
        match journal.read(all()).await.unwrap() {
            Answer::Log(slice) => slice.actions.len(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_was_appended_is_read_back() {
        let (journal, boot) = JournalThread::start(Box::new(Memory::new())).unwrap();
        assert_eq!(boot.seq, Seq(0));
        for seq in 1..=3 {
            journal.append(batch(seq)).await.unwrap();
            assert_eq!(count(&journal).await, seq as usize);
        }
        assert_eq!(journal.stats().commits, 3);
        assert_eq!(journal.probe().await, Ok(()));
    }

    #[tokio::test]
    async fn closing_writes_what_was_handed_over_and_refuses_the_rest() {
        let memory = Memory::new();
        let (faulty, faults) = Faulty::new(Box::new(memory.clone()));
        faults.then(Fault::Stall);
        let (journal, _) = JournalThread::start(Box::new(faulty)).unwrap();
        let other = journal.clone();
        let (first, second) = (journal.append(batch(1)), journal.append(batch(2)));
        let closing = async {
            faults.wait_until_stalled();
            faults.release();
            other.clone().close();
        };
        let (first, second, ()) = tokio::join!(biased; first, second, closing);
        assert_eq!((first, second), (Ok(()), Ok(())));
        assert!(other.append(batch(3)).await.is_err() && other.read(all()).await.is_err());
        assert_eq!(memory.clone().boot().unwrap().seq, Seq(2));
    }

    #[tokio::test]
    async fn a_refused_append_is_told_and_the_next_one_works() {
        let (faulty, faults) = Faulty::new(Box::new(Memory::new()));
        faults.then(Fault::Refuse);
        let (journal, _) = JournalThread::start(Box::new(faulty)).unwrap();
        assert!(journal.append(batch(1)).await.is_err());
        assert!(journal.append(batch(1)).await.is_ok());
        assert_eq!(journal.stats().commits, 1);
    }

    #[tokio::test]
    async fn reads_go_on_while_a_write_stalls() {
        let (faulty, faults) = Faulty::new(Box::new(Memory::new()));
        faults.then(Fault::Stall);
        let (journal, _) = JournalThread::start(Box::new(faulty)).unwrap();
        let reading = async {
            let seen = count(&journal).await;
            faults.release();
            seen
        };
        let (written, seen) = tokio::join!(biased; journal.append(batch(1)), reading);
        assert_eq!((written, seen), (Ok(()), 0));
    }

    #[tokio::test]
    async fn nothing_is_written_between_the_question_and_the_removal() {
        let (journal, _) = JournalThread::start(Box::new(Memory::new())).unwrap();
        let (kept, gone) = (Digest::new([1; 32]), Digest::new([2; 32]));
        let mut referring = batch(1);
        referring.records.push(Record::Reference {
            channel: ChannelId::ROOT,
            turn: None,
            digest: kept,
            content_type: None,
        });
        let (sender, removed) = std::sync::mpsc::channel();
        let collecting = journal.collect(vec![kept, gone], move |digests| {
            sender.send(digests.to_vec()).unwrap();
        });
        // Handed over first, written first: the removal sees the reference.
        let (written, collected) = tokio::join!(biased; journal.append(referring), collecting);
        assert_eq!((written, collected), (Ok(()), Ok(())));
        assert_eq!(removed.recv(), Ok(vec![gone]));
    }

    struct Panicking;

    impl Journal for Panicking {
        fn boot(&mut self) -> Result<Boot, JournalError> {
            Ok(Boot::default())
        }
        fn append(&mut self, _: &Batch) -> Result<(), JournalError> {
            panic!("scripted")
        }
        fn probe(&mut self) -> Result<(), JournalError> {
            Ok(())
        }
        fn unreferred(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
            Ok(digests.to_vec())
        }
        fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
            Memory::new().reader()
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_thread_that_is_gone() {
        let (journal, _) = JournalThread::start(Box::new(Panicking)).unwrap();
        let (first, second) = tokio::join!(journal.append(batch(1)), journal.append(batch(2)));
        assert!(first.is_err() && second.is_err());
        assert!(journal.append(batch(3)).await.is_err());
        journal.close();
    }
}
