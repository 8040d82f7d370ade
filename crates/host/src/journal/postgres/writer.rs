//! The writers of a node: they take batches of all spaces and put several into one statement when several wait.
//!
//! Promises: a batch is written whole, under its lease, or not at all; whoever handed one over is told which, or that nobody
//! knows; one that cannot be written takes no other along.
//! Must not know: what a record means, what becomes of an unknown outcome.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kernel::{Batch, Record};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::types::ToSql;

use super::append_pace::{AppendPace, PacedAppend};
use super::batch_size::is_housekeeping;
use super::connection::{BoundStatement, ConnectionPool, PooledConnection, int, values};
use super::log_days;
use super::records;
use super::space_loads::{JournalCounters, add_time};

/// A connection that took longer to get was not there.
const AWAY_MIN: Duration = Duration::from_millis(50);

/// Batches in one statement, their records, and their bytes.
const SPACES_MAX: usize = 64;
const RECORDS_MAX: usize = 4_096;
pub(super) const MERGED_BYTES_MAX: usize = 1 << 20;

const APPEND_ONE: &str = "WITH own AS (UPDATE greenroom.lease SET seq = greatest(seq, $4), batch = $3 + 1
         WHERE space = $1 AND epoch = $2 AND batch = $3 RETURNING space),
     added AS (INSERT INTO greenroom.action (space, channel, seq, bytes)
         SELECT own.space, r.c, r.q, r.x FROM own, unnest($5::bigint[], $6::bigint[], $7::bytea[]) AS r(c, q, x))
     SELECT space FROM own";

const APPEND_MERGED: &str = "WITH own AS (UPDATE greenroom.lease SET seq = greatest(seq, t.q), batch = t.b + 1
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS t(s, e, b, q)
         WHERE space = t.s AND epoch = t.e AND batch = t.b RETURNING space),
     added AS (INSERT INTO greenroom.action (space, channel, seq, bytes)
         SELECT r.s, r.c, r.q, r.x FROM own JOIN unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[])
             AS r(s, c, q, x) ON r.s = own.space)
     SELECT space FROM own";

/// Fails, and its transaction with it, if the lease is another's by now: nothing is divided by zero.
const FENCE: &str =
    "WITH own AS (UPDATE greenroom.lease SET seq = greatest(seq, $4), batch = $3 + 1
         WHERE space = $1 AND epoch = $2 AND batch = $3 RETURNING space)
     SELECT 1 / count(*) FROM own";

const ACTIONS: &str = "INSERT INTO greenroom.action (space, channel, seq, bytes)
     SELECT $1, r.c, r.q, r.x FROM unnest($2::bigint[], $3::bigint[], $4::bytea[]) AS r(c, q, x)";

/// A batch of a space, with the lease it is written under.
pub(super) struct QueuedWrite {
    pub space: i64,
    pub epoch: i64,
    /// The number of the batch: one is written once.
    pub number: i64,
    pub batch: Arc<Batch>,
    /// What it sends, about.
    pub bytes: usize,
    /// It may be the first of a day.
    pub begins_day: bool,
    pub queued_at: Instant,
    /// That of its space.
    pub pace: AppendPace,
    /// From the moment the server is asked.
    pub append: Option<PacedAppend>,
    pub done: oneshot::Sender<WriteOutcome>,
}

/// The outcome of a batch.
#[derive(Debug)]
pub(super) enum WriteOutcome {
    Written,
    /// The lease is another's; nothing was written.
    NotOwner,
    /// Nothing was written because of the record at this place.
    BadRecord {
        index: usize,
        reason: String,
    },
    /// Nothing was written.
    Failed(String),
    /// The connection was lost before the answer, or the server ended it as it took too long.
    Unknown(String),
}

/// Takes batches until nobody can hand one over any more.
pub(super) async fn write_batches(
    pool: ConnectionPool,
    mut queue: mpsc::Receiver<QueuedWrite>,
    patience: Duration,
    counters: Arc<JournalCounters>,
) {
    let mut reached_at = Instant::now();
    while let Some(first) = queue.recv().await {
        let (mut records, mut bytes) = (first.batch.records.len(), first.bytes);
        let mut requests = vec![first];
        while requests.len() < SPACES_MAX && records < RECORDS_MAX && bytes < MERGED_BYTES_MAX {
            let Ok(next) = queue.try_recv() else {
                break; // no other waits
            };
            records += next.batch.records.len();
            bytes += next.bytes;
            requests.push(next);
        }
        // One whose connection is lost takes none along that was not sent yet: those go in another.
        while !requests.is_empty() {
            let asked_at = Instant::now();
            let mut connection = match pool.get(asked_at + patience).await {
                Ok(connection) => connection,
                Err(reason) => {
                    for request in std::mem::take(&mut requests) {
                        answer(request, WriteOutcome::Failed(reason.clone()));
                    }
                    continue; // with the next that wait
                }
            };
            if asked_at.elapsed() > AWAY_MIN {
                reached_at = Instant::now();
            }
            for request in &mut requests {
                add_time(&counters.queued_us, request.queued_at.elapsed());
                // Behind others, not for a server that was away, whoever of them met it.
                let since = request.queued_at.max(reached_at);
                let waited = if request.bytes > MERGED_BYTES_MAX {
                    // Behind others that take long, too: that says nothing about the server.
                    Duration::ZERO
                } else {
                    since.elapsed()
                };
                // Nor does housekeeping, which takes as long as there is something to remove.
                if !is_housekeeping(&request.batch) {
                    request.append = Some(request.pace.begin(waited));
                }
            }
            requests = write_all(&mut connection, requests, &counters).await;
            // The time that the connection before them gave no answer says nothing about the server, nor how long they waited for it:
            // that is counted already.
            for unsent in &mut requests {
                unsent.append = None;
                unsent.queued_at = Instant::now();
            }
        }
    }
}

/// Answers a batch that had a transaction of its own.
fn answer_alone(request: QueuedWrite, outcome: WriteOutcome, counters: &JournalCounters) {
    if matches!(outcome, WriteOutcome::Written) {
        counters.commits.fetch_add(1, Ordering::Relaxed);
    }
    answer(request, outcome);
}

fn answer(request: QueuedWrite, outcome: WriteOutcome) {
    // A connection that was lost says nothing about the next batch.
    if let Some(append) = request.append
        && !matches!(outcome, WriteOutcome::Unknown(_))
    {
        append.note_answer();
    }
    // Whoever asked may be gone; the outcome stays.
    let _nobody_waits = request.done.send(outcome);
}

fn is_plain(request: &QueuedWrite) -> bool {
    if request.begins_day {
        return false;
    }
    let mut records = request.batch.records.iter();
    records.all(|record| matches!(record, Record::Action { .. }))
}

/// Writes and answers them; returns those that were not sent because the connection was lost.
async fn write_all(
    connection: &mut PooledConnection,
    requests: Vec<QueuedWrite>,
    counters: &JournalCounters,
) -> Vec<QueuedWrite> {
    let (plain, others): (Vec<_>, Vec<_>) = requests.into_iter().partition(is_plain);
    let (mut alone, later) = one_of_each_space(plain);
    if alone.len() > 1 {
        alone = append_merged(connection, alone, counters).await;
    }
    let mut unsent = Vec::new();
    for request in alone.into_iter().chain(later).chain(others) {
        if connection.is_lost() {
            unsent.push(request);
            continue;
        }
        let outcome = if is_plain(&request) {
            append_one(connection, &request).await
        } else {
            append_in_flight(connection, &request, Grouping::Actions).await
        };
        answer_alone(request, outcome, counters);
    }
    unsent
}

/// The first of each space, in the order in which everybody locks rows, and those that came after it in its space: a statement
/// joins its rows by space alone, and would take those of a batch whose lease is lost for those of the one that holds it.
fn one_of_each_space(mut requests: Vec<QueuedWrite>) -> (Vec<QueuedWrite>, Vec<QueuedWrite>) {
    requests.sort_by_key(|request| request.space); // stable
    let mut before = None;
    let is_first = |request: &QueuedWrite| before.replace(request.space) != Some(request.space);
    requests.into_iter().partition(is_first)
}

/// Writes all of them in one statement and answers them; returns those that are to be tried alone.
async fn append_merged(
    connection: &mut PooledConnection,
    requests: Vec<QueuedWrite>,
    counters: &JournalCounters,
) -> Vec<QueuedWrite> {
    let of = |value: fn(&QueuedWrite) -> i64| requests.iter().map(value).collect::<Vec<i64>>();
    let (spaces, epochs) = (of(|it| it.space), of(|it| it.epoch));
    let (numbers, seqs) = (of(|it| it.number), of(|it| int(it.batch.seq.0)));
    let mut rows = ActionRows::default();
    for request in &requests {
        rows.add(request.space, &request.batch);
    }
    let values: [&(dyn ToSql + Sync); 8] =
        [&spaces, &epochs, &numbers, &seqs, &rows.spaces, &rows.channels, &rows.seqs, &rows.bytes];
    match connection.query(APPEND_MERGED, &values).await {
        Ok(rows) => {
            counters.commits.fetch_add(1, Ordering::Relaxed);
            let owned: Vec<i64> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
            for request in requests {
                let outcome = if owned.contains(&request.space) {
                    WriteOutcome::Written
                } else {
                    WriteOutcome::NotOwner
                };
                answer(request, outcome);
            }
            Vec::new()
        }
        Err(error) if error.is_to_be_looked_up() => {
            for request in requests {
                answer(request, WriteOutcome::Unknown(error.words()));
            }
            Vec::new()
        }
        // Nothing of it is written: each is tried alone, and only the one that is to blame fails.
        Err(_) => requests,
    }
}

async fn append_one(connection: &mut PooledConnection, request: &QueuedWrite) -> WriteOutcome {
    let mut rows = ActionRows::default();
    rows.add(request.space, &request.batch);
    let seq = int(request.batch.seq.0);
    let values: [&(dyn ToSql + Sync); 7] = [
        &request.space,
        &request.epoch,
        &request.number,
        &seq,
        &rows.channels,
        &rows.seqs,
        &rows.bytes,
    ];
    match connection.query(APPEND_ONE, &values).await {
        Ok(rows) if rows.is_empty() => WriteOutcome::NotOwner,
        Ok(_) => WriteOutcome::Written,
        Err(error) if error.is_to_be_looked_up() => WriteOutcome::Unknown(error.words()),
        // Record by record, to find the one that is to blame.
        Err(_) => append_in_flight(connection, request, Grouping::None).await,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouping {
    /// All actions of the batch in one statement.
    Actions,
    None,
}

/// Writes a batch in a transaction whose statements are all sent at once.
async fn append_in_flight(
    connection: &mut PooledConnection,
    request: &QueuedWrite,
    mut grouping: Grouping,
) -> WriteOutcome {
    let mut has_waited = false;
    loop {
        let (statements, places) = flight_of(request, grouping);
        let Err((index, error)) = connection.run_together(&statements).await else {
            return WriteOutcome::Written;
        };
        if error.is_to_be_looked_up() {
            return WriteOutcome::Unknown(error.words());
        }
        let code = error.code();
        // A deadlock, or a database that wants it tried again: once.
        if code.starts_with("40") && !has_waited {
            has_waited = true;
            continue;
        }
        let is_fence = index == 0;
        if is_fence && code == "22012" {
            return WriteOutcome::NotOwner;
        }
        // Data that does not fit, a rule that it breaks, a limit of the database.
        let is_its_own = ["22", "23", "54"].iter().any(|class| code.starts_with(class));
        if is_fence || !is_its_own {
            return WriteOutcome::Failed(error.words());
        }
        match places.get(index) {
            Some(Some(index)) => {
                return WriteOutcome::BadRecord { index: *index, reason: error.words() };
            }
            Some(None) if grouping == Grouping::Actions => grouping = Grouping::None,
            Some(None) | None => return WriteOutcome::Failed(error.words()),
        }
    }
}

/// The statements of a batch, and of which record each is; none of those of several.
fn flight_of(
    request: &QueuedWrite,
    grouping: Grouping,
) -> (Vec<BoundStatement>, Vec<Option<usize>>) {
    let QueuedWrite { space, epoch, number, batch, begins_day, .. } = request;
    let fence = values![*space, *epoch, *number, int(batch.seq.0)];
    let mut statements = vec![BoundStatement::new(FENCE, fence)];
    let mut places = vec![None];
    let mut rows = ActionRows::default();
    for (index, record) in batch.records.iter().enumerate() {
        if grouping == Grouping::Actions && rows.add_record(*space, record) {
            continue; // with the others
        }
        for statement in records::statements(*space, record) {
            statements.push(statement);
            places.push(Some(index));
        }
    }
    if !rows.seqs.is_empty() {
        // Before what may depend on them.
        let bytes: Vec<Vec<u8>> = rows.bytes.iter().map(|bytes| bytes.to_vec()).collect();
        let grouped = values![*space, rows.channels, rows.seqs, bytes];
        statements.insert(1, BoundStatement::new(ACTIONS, grouped));
        places.insert(1, None);
    }
    if *begins_day {
        let noted = log_days::statements(*space, batch);
        places.extend(noted.iter().map(|_| None));
        statements.extend(noted);
    }
    (statements, places)
}

/// Actions, column by column.
#[derive(Default)]
struct ActionRows<'b> {
    spaces: Vec<i64>,
    channels: Vec<i64>,
    seqs: Vec<i64>,
    bytes: Vec<&'b [u8]>,
}

impl<'b> ActionRows<'b> {
    fn add(&mut self, space: i64, batch: &'b Batch) {
        for record in &batch.records {
            self.add_record(space, record);
        }
    }

    /// Returns whether it is an action.
    fn add_record(&mut self, space: i64, record: &'b Record) -> bool {
        let Record::Action { seq, channel, envelope } = record else { return false };
        self.spaces.push(space);
        self.channels.push(int(channel.0));
        self.seqs.push(int(seq.0));
        self.bytes.push(envelope);
        true
    }
}
