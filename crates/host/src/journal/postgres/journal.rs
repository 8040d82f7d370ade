//! The journal of one space in PostgreSQL: its lease, its batches in their order, its reads.
//!
//! Promises: one batch is under way at a time, with a number of its own, so that none is written twice; an outcome that nobody
//! knows is resolved by taking the own lease anew, which also keeps a batch that is still on its way from being written.
//! Must not know: how a batch becomes statements.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use kernel::{Answer, Batch, Boot, Query, Record};
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use wire::Digest;

use super::awaited_outcome::AwaitedOutcome;
use super::batch_size::{recorded_bytes, sent_bytes};
use super::connection::StatementError;
use super::leases::{end_blocker, is_lock_timeout};
use super::log_days::LastDayRow;
use super::retry_limit::RetryLimit;
use super::space_loads::{SpaceCounters, add_time};
use super::writer::{QueuedWrite, WriteOutcome};
use super::{PgBlobs, PostgresNode};
use crate::cluster::{LeaseStep, RenewedLease, SpaceLease, TakenLease};
use crate::journal::{
    Commit, CommitStats, JournalError, RefusedBatch, RemoveContent, SpaceJournal,
};

/// Notes waiting for a batch to travel with; the oldest goes when there are more.
const NOTES_MAX: usize = 64;

/// The journal of one space. Clones are the same one.
#[derive(Clone)]
pub struct PostgresJournal {
    shared: Arc<SharedJournal>,
}

pub(super) struct SharedJournal {
    pub(super) node: Arc<PostgresNode>,
    pub(super) space: i64,
    /// Who holds the lease, as its row names it: a node, or this very value.
    pub(super) holder: i64,
    pub(super) lease: Mutex<SpaceLease>,
    notes: parking_lot::Mutex<VecDeque<Record>>,
    pub(super) counters: Arc<SpaceCounters>,
    failure: watch::Sender<Option<String>>,
    noted_day: LastDayRow,
}

impl PostgresJournal {
    pub(super) async fn open(
        node: Arc<PostgresNode>,
        name: &str,
    ) -> Result<(Self, Boot), JournalError> {
        let unwritten = |error: StatementError| JournalError::Unwritable(error.words());
        node.make_space(name).await?;
        let found = node.find_space(name).await?;
        let missing = || JournalError::Unreadable(format!("there is no space `{name}`"));
        let space = found.ok_or_else(missing)?.id;
        let holder = make_holder()?;
        let take = "UPDATE greenroom.lease SET node = $2, epoch = epoch + 1 WHERE space = $1 AND NOT EXISTS
                 (SELECT 1 FROM greenroom.node o WHERE o.id = lease.node AND o.expires > clock_timestamp())
             RETURNING epoch, batch";
        let mut connection = node.lease_connection().await?;
        let rows = connection.query(take, &[&space, &holder]).await.map_err(unwritten)?;
        let damaged = |error: tokio_postgres::Error| JournalError::Unreadable(error.to_string());
        let Some(row) = rows.first() else {
            return Err(JournalError::Locked(format!(
                "a node serves the space `{name}` at the moment"
            )));
        };
        let lease = TakenLease {
            epoch: row.try_get(0).map_err(damaged)?,
            batch: row.try_get(1).map_err(damaged)?,
        };
        drop(connection);
        let journal = node.journal_of(space, holder, lease);
        let boot = journal.boot().await?;
        Ok((journal, boot))
    }

    /// The journal of a space under a lease that was taken.
    pub(super) fn over(
        node: Arc<PostgresNode>,
        space: i64,
        holder: i64,
        lease: TakenLease,
    ) -> Self {
        let shared = SharedJournal {
            counters: node.counters.loads.add(space),
            node,
            space,
            holder,
            lease: Mutex::new(SpaceLease::from_row(lease.epoch, lease.batch)),
            notes: parking_lot::Mutex::default(),
            failure: watch::Sender::new(None),
            noted_day: LastDayRow::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Where the bodies of the space lie.
    pub fn blobs(&self) -> PgBlobs {
        PgBlobs { node: Arc::clone(&self.shared.node), space: self.shared.space }
    }

    /// What is counted of the space, and how fast it may write.
    pub(crate) fn counters(&self) -> Arc<SpaceCounters> {
        Arc::clone(&self.shared.counters)
    }

    /// What a kernel needs to begin.
    pub async fn boot(&self) -> Result<Boot, JournalError> {
        self.shared.boot().await
    }

    /// Runs work on the node's runtime, where its sockets are, to its end, whether anybody waits or not.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JournalError> {
        let done = self.shared.node.runtime.spawn(work).await;
        done.map_err(|died| JournalError::Unwritable(format!("the journal's task died: {died}")))
    }

    /// Which of some content nothing refers to.
    pub async fn find_unreferenced(
        &self,
        digests: Vec<Digest>,
    ) -> Result<Vec<Digest>, JournalError> {
        let (found, unreferenced) = oneshot::channel();
        let remove = move |digests: &[Digest]| {
            let _nobody_waits = found.send(digests.to_vec());
        };
        self.collect(digests, Box::new(remove)).await?;
        Ok(unreferenced.await.unwrap_or_default())
    }
}

fn make_holder() -> Result<i64, JournalError> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        JournalError::Unwritable(format!("the system gives no random bytes: {error}"))
    })?;
    // Below zero: no node has such a number.
    Ok(i64::from_be_bytes(bytes) | i64::MIN)
}

#[async_trait]
impl SpaceJournal for PostgresJournal {
    fn commit(&self, batch: Batch) -> Commit<'_> {
        // In the task of whoever commits: a task for each batch would be woken once more for each.
        Commit::Waiting(Box::pin(self.shared.append_with_notes(batch)))
    }

    async fn append(&self, batch: Batch) -> Result<(), JournalError> {
        let shared = Arc::clone(&self.shared);
        let written = self.run(async move { shared.append_with_notes(batch).await });
        written.await?.map_err(|refused| refused.error)
    }

    async fn read(&self, query: Query) -> Result<Answer, JournalError> {
        let shared = Arc::clone(&self.shared);
        self.run(async move { shared.read(&query).await }).await?
    }

    async fn probe(&self) -> Result<(), JournalError> {
        // An empty batch is a write like any other, and resolves what was left open.
        self.append(Batch::default()).await
    }

    async fn collect(
        &self,
        digests: Vec<Digest>,
        remove: RemoveContent,
    ) -> Result<(), JournalError> {
        let shared = Arc::clone(&self.shared);
        self.run(async move { shared.collect(digests, remove).await }).await?
    }

    /// The database does that by itself.
    async fn release_space(&self) -> Result<(), JournalError> {
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
            commits: self.shared.counters.batches.load(Ordering::Relaxed),
            commit_us: self.shared.counters.append_us.load(Ordering::Relaxed),
        }
    }

    fn prepare_to_close(&self) {
        self.shared.counters.rate.lift();
    }

    async fn close(&self) {
        self.prepare_to_close();
        let shared = Arc::clone(&self.shared);
        let closed = self.run(async move { shared.close().await }).await;
        if let Err(error) = closed {
            tracing::debug!(%error, "the lease of a space was not given back");
        }
    }

    fn failures(&self) -> watch::Receiver<Option<String>> {
        self.shared.failure.subscribe()
    }
}

impl SharedJournal {
    /// A note that can never be written is dropped: nobody waits for it.
    async fn append_with_notes(&self, mut batch: Batch) -> Result<(), RefusedBatch> {
        let own = batch.records.len();
        batch.records.extend(self.notes.lock().drain(..));
        if !batch.records.is_empty() {
            // Whoever writes too much waits here, and nobody else does.
            self.counters.rate.wait_for(recorded_bytes(&batch)).await;
        }
        loop {
            let shared = Arc::new(batch);
            let written = self.append(&shared).await;
            batch = Arc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone());
            match written {
                Ok(()) => return Ok(()),
                Err(JournalError::BadRecord { index, reason })
                    if (own..batch.records.len()).contains(&index) =>
                {
                    tracing::warn!(
                        space = self.space,
                        reason,
                        "a record for inspectors cannot be written and is lost"
                    );
                    batch.records.remove(index);
                }
                Err(error) => {
                    let mut notes = self.notes.lock();
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

    async fn append(&self, batch: &Arc<Batch>) -> Result<(), JournalError> {
        let began = Instant::now();
        let mut patience = RetryLimit::begin(self.node.patience);
        let bytes = sent_bytes(batch);
        let mut lease = self.lease.lock().await;
        self.check_usable(&mut lease).await?;
        while let LeaseStep::Write { epoch, number } = lease.next() {
            let (done, outcome) = oneshot::channel();
            let day = self.noted_day.due(batch);
            let request = QueuedWrite {
                space: self.space,
                epoch,
                number,
                batch: Arc::clone(batch),
                bytes,
                begins_day: day.is_some(),
                queued_at: Instant::now(),
                pace: self.counters.pace.clone(),
                append: None,
                done,
            };
            let awaited = AwaitedOutcome::of(&mut lease);
            let outcome = self.hand_over(request, outcome).await;
            awaited.has_come();
            match outcome {
                WriteOutcome::Written => {
                    lease.note_written();
                    self.noted_day.note(day);
                    self.note_commit(batch, began);
                    return Ok(());
                }
                WriteOutcome::NotOwner => return Err(self.lose(&mut lease)),
                WriteOutcome::BadRecord { index, reason } => {
                    return Err(JournalError::BadRecord { index, reason });
                }
                WriteOutcome::Failed(reason) => return Err(JournalError::Unwritable(reason)),
                WriteOutcome::Unknown(why) => {
                    let (node, space) = (self.holder, self.space);
                    tracing::info!(
                        node,
                        space,
                        epoch,
                        why,
                        "the outcome of a batch is not known and is looked up"
                    );
                    lease.note_unknown();
                    let unknown = &self.node.counters.unknown;
                    unknown.fetch_add(1, Ordering::Relaxed);
                    // Boxed: it is seldom, and takes more room than all the rest.
                    match Box::pin(self.renew(&mut lease)).await? {
                        RenewedLease::Written => {
                            self.note_commit(batch, began);
                            return Ok(());
                        }
                        RenewedLease::NotWritten if patience.allows_retry() => {} // sent again
                        RenewedLease::NotWritten => return Err(JournalError::Unwritable(why)),
                        RenewedLease::Lost => return Err(self.lose(&mut lease)),
                    }
                }
            }
        }
        Err(lost_error())
    }

    /// Has a batch written, and waits for what becomes of it.
    async fn hand_over(
        &self,
        request: QueuedWrite,
        outcome: oneshot::Receiver<WriteOutcome>,
    ) -> WriteOutcome {
        let writer = self.node.writer_of(self.space, &request.batch, request.bytes);
        let gone = || WriteOutcome::Failed("the node's writer is gone".to_owned());
        match writer.send(request).await {
            Ok(()) => outcome.await.unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        }
    }

    fn note_commit(&self, batch: &Batch, began: Instant) {
        let (took, all) = (began.elapsed(), &self.node.counters);
        let add = |counter: &AtomicU64, count: usize| {
            counter.fetch_add(count as u64, Ordering::Relaxed);
        };
        add(&self.counters.records, batch.records.len());
        add(&self.counters.bytes, recorded_bytes(batch));
        for batches in [&self.counters.batches, &all.batches] {
            batches.fetch_add(1, Ordering::Relaxed);
        }
        for time in [&self.counters.append_us, &all.append_us] {
            add_time(time, took);
        }
    }

    /// An error if nothing can be written any more. What was left open is resolved first: if a batch that was told to have
    /// failed is in the journal after all, the kernel is not what the journal says, and must begin anew.
    pub(super) async fn check_usable(&self, lease: &mut SpaceLease) -> Result<(), JournalError> {
        match lease.next() {
            LeaseStep::Write { .. } => Ok(()),
            LeaseStep::Lost => Err(lost_error()),
            LeaseStep::Closed => Err(closed()),
            LeaseStep::Renew(_) => match Box::pin(self.renew(lease)).await? {
                RenewedLease::NotWritten => Ok(()),
                RenewedLease::Written | RenewedLease::Lost => Err(self.lose(lease)),
            },
        }
    }

    /// Finds out whether the last batch was written, by taking the lease anew. An error: not yet, and whoever handed the batch
    /// over is told that it was not.
    async fn renew(&self, lease: &mut SpaceLease) -> Result<RenewedLease, JournalError> {
        let renewed = self.ask_to_renew(lease).await;
        if renewed.is_err() {
            lease.give_up();
        }
        Ok(lease.apply_renewal(renewed?))
    }

    /// With time of its own: that of the batch may have been spent on a connection that gave no answer. Spaces whose batches shared
    /// that connection ask one after the other; whoever comes late in that row makes one attempt.
    async fn ask_to_renew(
        &self,
        lease: &mut SpaceLease,
    ) -> Result<Option<(i64, i64)>, JournalError> {
        let take = "UPDATE greenroom.lease SET epoch = epoch + 1
             WHERE space = $1 AND node = $2 AND epoch BETWEEN $3 AND $4 RETURNING epoch, batch";
        let mut patience = RetryLimit::begin(self.node.patience);
        while let LeaseStep::Renew(epochs) = lease.next() {
            let mut connection =
                self.node.leases.get(patience.until()).await.map_err(JournalError::Unwritable)?;
            lease.begin_renewal();
            let renewed = connection
                .query(take, &[&self.space, &self.holder, &epochs.first, &epochs.last])
                .await;
            let rows = match renewed {
                Ok(rows) => rows,
                // The batch of before is still under way, in a connection that nobody hears any more.
                Err(error) if is_lock_timeout(&error) && patience.allows_retry() => {
                    let ended = end_blocker(&mut connection, self.space).await;
                    ended.map_err(|error| JournalError::Unwritable(error.words()))?;
                    continue;
                }
                Err(error) if error.is_to_be_looked_up() && patience.allows_retry() => continue,
                Err(error) => return Err(JournalError::Unwritable(error.words())),
            };
            let row = rows.first().map(|row| -> Result<_, tokio_postgres::Error> {
                Ok((row.try_get(0)?, row.try_get(1)?))
            });
            let damaged =
                |error: tokio_postgres::Error| JournalError::Unwritable(error.to_string());
            return row.transpose().map_err(damaged);
        }
        Err(lost_error())
    }

    /// The space is another's: final.
    pub(super) fn lose(&self, lease: &mut SpaceLease) -> JournalError {
        lease.lose();
        self.failure.send_replace(Some(lost_error().to_string()));
        lost_error()
    }

    /// Gives the lease back.
    async fn close(&self) {
        let mut lease = self.lease.lock().await;
        if let LeaseStep::Renew(_) = lease.next() {
            // Otherwise it is not known which epoch is to be given back.
            let renewed = self.renew(&mut lease).await;
            if let Err(error) = renewed {
                tracing::debug!(%error, "the outcome of the last batch is not known");
            }
        }
        let has_notes = !self.notes.lock().is_empty();
        if has_notes && matches!(lease.next(), LeaseStep::Write { .. }) {
            drop(lease);
            if let Err(refused) = self.append_with_notes(Batch::default()).await {
                let error = refused.error;
                tracing::debug!(%error, "the last inspection records could not be written and are lost");
            }
            lease = self.lease.lock().await;
        }
        let Some(epoch) = lease.close() else {
            return; // there is nothing to give back
        };
        let mut given = self.give_back(epoch).await;
        if given.as_ref().is_err_and(StatementError::is_to_be_looked_up) {
            // It may be given back already: nothing changes then.
            given = self.give_back(epoch).await;
        }
        if let Err(error) = given {
            tracing::debug!(error = %error.words(), "the lease of a space was not given back");
        }
    }

    /// However many others ask for something: a lease that stays where nobody serves the space keeps everybody from it.
    async fn give_back(&self, epoch: i64) -> Result<(), StatementError> {
        let back = "UPDATE greenroom.lease SET node = NULL
             WHERE space = $1 AND node = $2 AND epoch = $3";
        let (leases, patience) = (&self.node.leases, self.node.patience);
        let mut connection = leases.get_in_turn(patience).await.map_err(StatementError::Lost)?;
        let values: [&(dyn ToSql + Sync); 3] = [&self.space, &self.holder, &epoch];
        connection.query(back, &values).await.map(drop)
    }
}

pub(super) fn lost_error() -> JournalError {
    JournalError::Lost("another node serves this space now".to_owned())
}

fn closed() -> JournalError {
    JournalError::Unwritable("the journal is closed".to_owned())
}
