//! From a space into a data directory.
//!
//! The journal is made beside its place, in `incoming`; when it is whole the directory is marked; then the space is closed; then
//! the journal is put in its place. Interrupted before the space is closed, it is what it was; after it, the next run only puts the
//! journal in its place. Mark and space have the number of the migration, so what another one left behind is not taken for it.
//! No journal is written over: one whose sessions were moved into this space is set aside, any other is an error.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::TransactionBehavior;
use tokio::sync::mpsc;
use tokio_postgres::Client;

use super::moved::MarkKind;
use super::postgres_side as postgres;
use super::row::{CarriedRow, TableSum, size_of};
use super::sqlite_side as sqlite;
use super::tables::TABLES;
use super::{
    JOURNAL_FILE, MigrateError, MigrateRequest, MigrateStep, Migrated, MovedDirectory, ReportStep,
    TRIP_BYTES, TRIPS_MAX, absolute, open_objects,
};
use crate::accounts::{AccountAdmin, AccountError};
use crate::blobs::{Blobs, FileBlobs, ObjectBodies, digest_of};
use crate::journal::{DirectoryLock, PostgresNode, SpaceJournal, Sqlite};
use crate::task;

const INCOMING: &str = "incoming";
/// The files of a journal. Beside another one, SQLite would take the last three for its own.
pub(super) const JOURNAL_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Carries the sessions of a space into a directory; nothing may serve either.
pub async fn to_directory(
    request: &MigrateRequest,
    tell: ReportStep<'_>,
) -> Result<Migrated, MigrateError> {
    let dir = absolute(&request.directory)?;
    let in_dir = |error: io::Error| MigrateError::Directory(dir.clone(), error);
    make_private(&dir).map_err(in_dir)?;
    let _lock = DirectoryLock::take(&dir)?;
    let mark = MovedDirectory::begin(&request.space, &request.database.url).map_err(in_dir)?;
    check_directory(&dir, &mark)?;
    let objects = open_objects(request.blobs.as_ref())?;
    let node = PostgresNode::connect(&request.database).await.map_err(AccountError::from)?;
    AccountAdmin::over(Arc::clone(&node)).await?;
    let client = postgres::connect(&request.database.url).await?;
    if let Some((target, migration)) = find_moved(&client, &request.space).await? {
        let earlier = MovedDirectory::read_mark(&dir, MarkKind::Arriving).map_err(in_dir)?;
        return match earlier.filter(|earlier| earlier.migration == migration) {
            Some(earlier) => finish_earlier(&dir, &earlier),
            None => Err(MigrateError::SpaceMoved(request.space.clone(), target)),
        };
    }
    check_free(&dir, &mark)?;
    // Of a run that closed no space, or whose space was opened again.
    MovedDirectory::unmark(&dir, MarkKind::Arriving).map_err(in_dir)?;
    remove_all(&dir.join(INCOMING)).map_err(in_dir)?;
    // Taken, so that whoever served it writes nothing any more; a node that does is left alone, and this fails.
    let space = find_space(&client, &request.space).await?;
    let (journal, _) = node.open_space(&request.space).await?;
    let carried = carry(&client, &dir, &dir.join(INCOMING), space, objects.as_ref(), tell).await;
    journal.close().await;
    let (carried, batch) = carried?;
    mark.mark(&dir, MarkKind::Arriving).map_err(in_dir)?;
    close_space(&client, space, carried.seq, batch, &mark, &dir).await?;
    put_in_place(&dir, &mark)?;
    Ok(carried)
}

/// What is on its way into a directory from elsewhere is finished first, or given up by whoever knows that nobody needs it.
fn check_directory(dir: &Path, mark: &MovedDirectory) -> Result<(), MigrateError> {
    let arriving = MovedDirectory::read_mark(dir, MarkKind::Arriving)
        .map_err(|error| MigrateError::Directory(dir.to_owned(), error))?;
    match arriving {
        Some(other) if other.space != mark.space || other.database != mark.database => {
            let words = other.describe_arriving(dir);
            Err(MigrateError::Unfinished(dir.to_owned(), words))
        }
        Some(_) | None => Ok(()),
    }
}

/// There is no journal in the directory, or one whose sessions were moved into a space of this name: which database that was
/// cannot be told from two addresses of one, and the journal is only set aside.
fn check_free(dir: &Path, mark: &MovedDirectory) -> Result<(), MigrateError> {
    let moved = MovedDirectory::read_mark(dir, MarkKind::Moved)
        .map_err(|error| MigrateError::Directory(dir.to_owned(), error))?;
    let was_moved = moved.is_some_and(|moved| moved.space == mark.space);
    if was_moved || !dir.join(JOURNAL_FILE).exists() {
        Ok(())
    } else {
        Err(MigrateError::DirectoryTaken(dir.to_owned()))
    }
}

fn finish_earlier(dir: &Path, mark: &MovedDirectory) -> Result<Migrated, MigrateError> {
    put_in_place(dir, mark)?;
    let seq = sqlite::read_counters(&sqlite::connect(dir)?)?.0;
    Ok(Migrated { rows: 0, bodies: 0, seq, was_carried_before: true })
}

pub(super) fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Can be repeated from any point of it; the mark that lets it be repeated goes last.
fn put_in_place(dir: &Path, mark: &MovedDirectory) -> Result<(), MigrateError> {
    let in_dir = |error: io::Error| MigrateError::Directory(dir.to_owned(), error);
    let incoming = dir.join(INCOMING).join(JOURNAL_FILE);
    if incoming.exists() {
        check_free(dir, mark)?;
        set_aside(dir, mark).map_err(in_dir)?;
        fs::rename(&incoming, dir.join(JOURNAL_FILE)).map_err(in_dir)?;
    }
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced
        .and_then(|()| mark.mark(dir, MarkKind::Arrived))
        .and_then(|()| MovedDirectory::unmark(dir, MarkKind::Moved))
        .and_then(|()| remove_all(&dir.join(INCOMING)))
        .and_then(|()| MovedDirectory::unmark(dir, MarkKind::Arriving))
        .map_err(in_dir)
}

/// The journal that was moved away is kept for its owner to delete.
fn set_aside(dir: &Path, mark: &MovedDirectory) -> io::Result<()> {
    let aside = dir.join(format!("replaced-{}", mark.migration));
    for suffix in JOURNAL_SUFFIXES {
        let name = format!("{JOURNAL_FILE}{suffix}");
        if !dir.join(&name).exists() {
            continue; // there is none, or it was set aside before an interruption
        }
        make_private(&aside)?;
        if aside.join(&name).exists() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{}: it would be written over", aside.join(&name).display()),
            ));
        }
        fs::rename(dir.join(&name), aside.join(&name))?;
    }
    Ok(())
}

/// Where a space was moved to, if it was, and by which migration.
async fn find_moved(client: &Client, name: &str) -> Result<Option<(String, String)>, MigrateError> {
    let sql = "SELECT m.target, m.migration FROM greenroom.moved_space m
         JOIN greenroom.space s ON s.id = m.space WHERE s.name = $1";
    match client.query_opt(sql, &[&name]).await? {
        Some(row) => Ok(Some((row.try_get(0)?, row.try_get(1)?))),
        None => Ok(None),
    }
}

pub(super) async fn find_space(client: &Client, name: &str) -> Result<i64, MigrateError> {
    let sql = "SELECT id FROM greenroom.space WHERE name = $1 AND removed_at IS NULL";
    match client.query_opt(sql, &[&name]).await? {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(AccountError::UnknownSpace(name.to_owned()).into()),
    }
}

/// Marks the space as moved, if nothing was written in it since it was read. Its rows stay until it is removed.
async fn close_space(
    client: &Client,
    space: i64,
    seq: i64,
    batch: i64,
    mark: &MovedDirectory,
    dir: &Path,
) -> Result<(), MigrateError> {
    let sql = "WITH held AS (UPDATE greenroom.lease SET node = NULL, epoch = epoch + 1
             WHERE space = $1 AND seq = $2 AND batch = $3 RETURNING space),
         closed AS (UPDATE greenroom.space SET removed_at = clock_timestamp() FROM held WHERE id = held.space),
         counted AS (UPDATE greenroom.account_change SET counter = counter + 1 WHERE EXISTS (SELECT 1 FROM held))
         INSERT INTO greenroom.moved_space (space, target, migration, at)
             SELECT space, $4, $5, clock_timestamp() FROM held";
    let target = dir.display().to_string();
    match client.execute(sql, &[&space, &seq, &batch, &target, &mark.migration]).await? {
        0 => Err(MigrateError::SpaceUsed(mark.space.clone())),
        _ => Ok(()),
    }
}

/// Writes everything, the journal into a directory of its own, and compares it; with the number of the batch that the space had come to.
pub(super) async fn carry(
    client: &Client,
    dir: &Path,
    incoming: &Path,
    space: i64,
    objects: Option<&ObjectBodies>,
    tell: ReportStep<'_>,
) -> Result<(Migrated, i64), MigrateError> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    let sql = "SELECT seq, log_floor, batch FROM greenroom.lease WHERE space = $1";
    let row = client.query_one(sql, &[&space]).await?;
    let (seq, log_floor, batch): (i64, i64, i64) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let incoming = incoming.to_owned();
    let (sender, trips) = mpsc::channel(TRIPS_MAX);
    let writing = task::spawn_blocking(move || write_all(&incoming, trips, seq, log_floor));
    let sent = send_all(client, space, sender, tell).await;
    let ended = |error: tokio::task::JoinError| MigrateError::Ended(error.to_string());
    let there = writing.await.map_err(ended)?;
    // Its own error says more than that nobody takes the rows.
    let there = there?;
    let sums = sent?;
    tell(MigrateStep::Comparing);
    for (table, (sum, there)) in TABLES.iter().zip(sums.iter().zip(there)) {
        if *sum != there {
            return Err(MigrateError::Differs(table.name.to_owned()));
        }
    }
    let bodies = carry_bodies(client, dir, space, objects, tell).await?;
    client.batch_execute("COMMIT").await?;
    let rows = sums.iter().map(|sum| sum.rows).sum();
    let carried = Migrated { rows, bodies, seq, was_carried_before: false };
    Ok((carried, batch))
}

/// Rows of one table.
type RowBatch = (usize, Vec<CarriedRow>);

async fn send_all(
    client: &Client,
    space: i64,
    trips: mpsc::Sender<RowBatch>,
    tell: ReportStep<'_>,
) -> Result<Vec<TableSum>, MigrateError> {
    let gone = || MigrateError::Ended("nobody takes the rows".to_owned());
    let mut sums = Vec::new();
    for (index, table) in TABLES.iter().enumerate() {
        let (mut trip, mut bytes, mut rows) = (Vec::new(), 0, 0);
        let sum = postgres::read_rows(client, table, space, async |row| {
            bytes += size_of(&row);
            rows += 1;
            trip.push(row);
            if bytes >= TRIP_BYTES {
                bytes = 0;
                tell(MigrateStep::Rows { table: table.name, rows });
                let full = std::mem::take(&mut trip);
                trips.send((index, full)).await.map_err(|_| gone())?;
            }
            Ok(())
        });
        sums.push(sum.await?);
        tell(MigrateStep::Rows { table: table.name, rows });
        trips.send((index, trip)).await.map_err(|_| gone())?;
    }
    Ok(sums)
}

/// Makes a journal in a directory of its own, and reads back what is in it.
fn write_all(
    dir: &Path,
    mut trips: mpsc::Receiver<RowBatch>,
    seq: i64,
    log_floor: i64,
) -> Result<Vec<TableSum>, MigrateError> {
    drop(Sqlite::open(dir)?); // makes the tables
    let mut conn = sqlite::connect(dir)?;
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    while let Some((index, trip)) = trips.blocking_recv() {
        if let Some(table) = TABLES.get(index) {
            for row in trip {
                sqlite::write_row(&tx, table, row)?;
            }
        }
    }
    sqlite::write_counters(&tx, seq, log_floor)?;
    tx.commit()?;
    let sums = TABLES
        .iter()
        .map(|table| sqlite::read_rows(&conn, table, |_| true))
        .collect::<Result<_, rusqlite::Error>>()?;
    // The file alone is put in its place: all of it must be in there.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(conn);
    let path = dir.join(JOURNAL_FILE);
    let synced = File::open(&path).and_then(|file| file.sync_all());
    synced.map_err(|error| MigrateError::Directory(path, error))?;
    Ok(sums)
}

async fn carry_bodies(
    client: &Client,
    dir: &Path,
    space: i64,
    objects: Option<&ObjectBodies>,
    tell: ReportStep<'_>,
) -> Result<usize, MigrateError> {
    let store = FileBlobs::open(dir)?;
    let bodies = postgres::list_bodies(client, space).await?;
    for (done, listed) in bodies.iter().enumerate() {
        tell(MigrateStep::Bodies { done, of: bodies.len() });
        let body = postgres::read_body(client, space, listed, objects).await?;
        if digest_of(&body) != listed.digest {
            return Err(MigrateError::Damaged(listed.digest.to_hex()));
        }
        store.put_named(&listed.digest, &body, listed.put_at)?;
    }
    Ok(bodies.len())
}
