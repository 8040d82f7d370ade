//! From a data directory into a space.
//!
//! The space is closed while it is filled, and opened last: first all rows in one transaction, then the mark in the directory, then
//! the space. Interrupted before the mark, the directory is what it was; after it, the next run only opens the space.

use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use tokio::sync::mpsc;
use tokio_postgres::Client;
use wire::{Digest, Timestamp};

use super::moved::MarkKind;
use super::postgres_side::{self as postgres, TableWriter};
use super::row::{CarriedRow, TableSum, size_of};
use super::sqlite_side as sqlite;
use super::tables::TABLES;
use super::{
    ARRIVING, JOURNAL_FILE, MigrateError, MigrateRequest, MigrateStep, Migrated, MovedDirectory,
    ReportStep, TRIP_BYTES, TRIPS_MAX, absolute,
};
use crate::accounts::{AccountAdmin, AccountError};
use crate::blobs::{Blobs, FileBlobs, Found};
use crate::journal::postgres::BURY_SPACE;
use crate::journal::{PostgresNode, Sqlite};
use crate::space_entry::is_space_name;
use crate::task;

/// Carries the sessions of a directory into a space; nothing may serve either.
pub async fn to_postgres(
    request: &MigrateRequest,
    tell: ReportStep<'_>,
) -> Result<Migrated, MigrateError> {
    let dir = absolute(&request.directory)?;
    if !is_space_name(&request.space) {
        return Err(AccountError::BadSpaceName(request.space.clone()).into());
    }
    if !dir.join(JOURNAL_FILE).is_file() {
        return Err(MigrateError::NoJournal(dir));
    }
    // Its lock keeps hosts out, and its format is the newest.
    let journal = Sqlite::open(&dir)?;
    let in_dir = |error: std::io::Error| MigrateError::Directory(dir.clone(), error);
    if let Some(arriving) = MovedDirectory::read_mark(&dir, MarkKind::Arriving).map_err(in_dir)? {
        let words = arriving.describe_arriving(&dir);
        return Err(MigrateError::Unfinished(dir, words));
    }
    let moved = MovedDirectory::read_mark(&dir, MarkKind::Moved).map_err(in_dir)?;
    // Makes the tables if there are none.
    let node = PostgresNode::connect(&request.database).await.map_err(AccountError::from)?;
    AccountAdmin::over(Arc::clone(&node)).await?;
    let client = postgres::connect(&request.database.url).await?;
    if let Some(moved) = moved {
        return finish_earlier(&client, &dir, &moved, request).await;
    }
    let mark = begin(&dir, request).map_err(in_dir)?;
    let arrived = MovedDirectory::read_mark(&dir, MarkKind::Arrived).map_err(in_dir)?;
    client.batch_execute("BEGIN").await?;
    let space = claim_space(&client, &mark, arrived.as_ref()).await?;
    let carried = carry(&client, &dir, space, tell).await?;
    client.batch_execute("COMMIT").await?;
    mark.mark(&dir, MarkKind::Moved).map_err(in_dir)?;
    open_space(&client, &mark).await?;
    forget_marks(&dir).map_err(in_dir)?;
    drop(journal);
    Ok(carried)
}

/// The mark of the migration that an earlier run began, or of a new one. It is on the disk before the database has its number.
fn begin(dir: &Path, request: &MigrateRequest) -> std::io::Result<MovedDirectory> {
    let mark = MovedDirectory::begin(&request.space, &request.database.url)?;
    let earlier = MovedDirectory::read_mark(dir, MarkKind::Leaving)?;
    let is_same = |it: &MovedDirectory| it.space == mark.space && it.database == mark.database;
    if let Some(earlier) = earlier.filter(is_same) {
        return Ok(earlier);
    }
    mark.mark(dir, MarkKind::Leaving)?;
    Ok(mark)
}

/// Those that say nothing any more once the directory is marked as moved.
fn forget_marks(dir: &Path) -> std::io::Result<()> {
    MovedDirectory::unmark(dir, MarkKind::Leaving)?;
    MovedDirectory::unmark(dir, MarkKind::Arrived)
}

/// The directory is marked: if its space waits to be opened, that is all there is left to do.
async fn finish_earlier(
    client: &Client,
    dir: &Path,
    moved: &MovedDirectory,
    request: &MigrateRequest,
) -> Result<Migrated, MigrateError> {
    let already = || MigrateError::AlreadyMoved(dir.to_owned(), moved.words(dir));
    if moved.space != request.space || !open_space(client, moved).await? {
        return Err(already());
    }
    forget_marks(dir).map_err(|error| MigrateError::Directory(dir.to_owned(), error))?;
    let sql =
        "SELECT seq FROM greenroom.lease JOIN greenroom.space s ON s.id = space WHERE s.name = $1";
    Ok(Migrated {
        rows: 0,
        bodies: 0,
        seq: client.query_one(sql, &[&request.space]).await?.try_get(0)?,
        was_carried_before: true,
    })
}

/// Opens the space that this migration filled; whether there was one.
async fn open_space(client: &Client, mark: &MovedDirectory) -> Result<bool, MigrateError> {
    let sql = "WITH arrived AS (DELETE FROM greenroom.moved_space m USING greenroom.space s
             WHERE s.name = $1 AND m.space = s.id AND m.target = $2 AND m.migration = $3 RETURNING m.space)
         UPDATE greenroom.space SET removed_at = NULL FROM arrived WHERE id = arrived.space";
    let opened = client.execute(sql, &[&mark.space, &ARRIVING, &mark.migration]).await?;
    Ok(opened > 0)
}

/// The number of a space that may be filled, closed and without rows. People who were given tokens for it keep them.
/// Closed ones are filled only by the migration that began to, or by the directory that their own sessions came to.
async fn claim_space(
    client: &Client,
    mark: &MovedDirectory,
    arrived: Option<&MovedDirectory>,
) -> Result<i64, MigrateError> {
    let sql = "INSERT INTO greenroom.space (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = excluded.name
         RETURNING id, removed_at IS NULL";
    let row = client.query_one(sql, &[&mark.space]).await?;
    let (space, is_open): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
    let sql = "SELECT target, migration FROM greenroom.moved_space WHERE space = $1";
    let (target, migration): (Option<String>, Option<String>) =
        match client.query_opt(sql, &[&space]).await? {
            Some(row) => (row.try_get(0)?, row.try_get(1)?),
            None => (None, None),
        };
    let sql = "SELECT 1 FROM greenroom.lease WHERE space = $1 AND (seq > 0 OR node IS NOT NULL)";
    let is_used = client.query_opt(sql, &[&space]).await?.is_some();
    let mut ours = std::iter::once(mark).chain(arrived);
    let is_ours = migration.is_some_and(|number| ours.any(|mark| mark.migration == number));
    let taken = match (is_open, is_ours, is_used) {
        (true, _, false) | (false, true, _) => None,
        (false, false, _) if target.as_deref() == Some(ARRIVING) => {
            Some(MigrateError::SpaceArriving(mark.space.clone()))
        }
        (true, _, true) | (false, false, _) => Some(MigrateError::SpaceTaken(mark.space.clone())),
    };
    if let Some(taken) = taken {
        return Err(taken);
    }
    let sql = "UPDATE greenroom.space SET removed_at = clock_timestamp() WHERE id = $1";
    client.execute(sql, &[&space]).await?;
    let sql = "INSERT INTO greenroom.moved_space (space, target, migration, at) VALUES ($1, $2, $3, clock_timestamp())
         ON CONFLICT (space) DO UPDATE SET target = excluded.target, migration = excluded.migration, at = excluded.at";
    client.execute(sql, &[&space, &ARRIVING, &mark.migration]).await?;
    // Rows of an earlier stay in this space may name objects.
    client.execute(BURY_SPACE, &[&space]).await?;
    let names = TABLES.iter().map(|table| table.name);
    for table in names.chain(["blob", "blob_chunk"]) {
        let sql = format!("DELETE FROM greenroom.{table} WHERE space = $1");
        client.execute(&sql, &[&space]).await?;
    }
    Ok(space)
}

/// Writes everything and compares it.
pub(super) async fn carry(
    client: &Client,
    dir: &Path,
    space: i64,
    tell: ReportStep<'_>,
) -> Result<Migrated, MigrateError> {
    let (sender, mut trips) = mpsc::channel(TRIPS_MAX);
    let source = dir.to_owned();
    let reading = task::spawn_blocking(move || read_all(&source, &sender));
    let mut written = 0;
    for table in &TABLES {
        let mut writer = TableWriter::begin(client, table, space).await?;
        let mut rows = 0;
        while let Some(Some(trip)) = trips.recv().await {
            let trip: Vec<CarriedRow> = trip;
            for row in trip {
                writer.write(row).await?;
                rows += 1;
            }
            tell(MigrateStep::Rows { table: table.name, rows });
        }
        writer.finish().await?;
        written += rows;
    }
    let ended = |error: tokio::task::JoinError| MigrateError::Ended(error.to_string());
    let (sums, (seq, log_floor)) = reading.await.map_err(ended)??;
    let bodies = carry_bodies(client, dir, space, tell).await?;
    let sql = "INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor) VALUES ($1, 1, 0, $2, $3)
         ON CONFLICT (space) DO UPDATE SET node = NULL, epoch = lease.epoch + 1, seq = $2, log_floor = $3";
    client.execute(sql, &[&space, &seq, &log_floor]).await?;
    tell(MigrateStep::Comparing);
    for (table, sum) in TABLES.iter().zip(sums) {
        let there = postgres::read_rows(client, table, space, async |_| Ok(())).await?;
        if there != sum {
            return Err(MigrateError::Differs(table.name.to_owned()));
        }
    }
    if postgres::count_damaged_bodies(client, space).await? > 0 {
        return Err(MigrateError::Differs("blob".to_owned()));
    }
    Ok(Migrated { rows: written, bodies, seq, was_carried_before: false })
}

type ReadTables = (Vec<TableSum>, (i64, i64));

/// Sends the rows of all tables; `None` is the end of each.
fn read_all(
    dir: &Path,
    trips: &mpsc::Sender<Option<Vec<CarriedRow>>>,
) -> Result<ReadTables, MigrateError> {
    let conn = sqlite::connect(dir)?;
    let mut sums = Vec::new();
    for table in &TABLES {
        let (mut trip, mut bytes) = (Vec::new(), 0);
        let sum = sqlite::read_rows(&conn, table, |row| {
            bytes += size_of(&row);
            trip.push(row);
            if bytes < TRIP_BYTES {
                return true;
            }
            bytes = 0;
            trips.blocking_send(Some(std::mem::take(&mut trip))).is_ok()
        })?;
        sums.push(sum);
        let last = trips.blocking_send(Some(trip));
        if last.and_then(|()| trips.blocking_send(None)).is_err() {
            return Err(MigrateError::Ended("nobody takes the rows".to_owned()));
        }
    }
    Ok((sums, sqlite::read_counters(&conn)?))
}

async fn carry_bodies(
    client: &Client,
    dir: &Path,
    space: i64,
    tell: ReportStep<'_>,
) -> Result<usize, MigrateError> {
    let store = FileBlobs::open_to_read(dir);
    let digests = store.list_older_than(0..=255, Timestamp(i64::MAX / 1_000_000))?;
    for (done, digest) in digests.iter().enumerate() {
        tell(MigrateStep::Bodies { done, of: digests.len() });
        let Found::Body(body) = store.read(digest, u64::MAX)? else {
            return Err(MigrateError::Damaged(digest.to_hex()));
        };
        let put_at = put_at(dir, digest)?;
        postgres::write_body(client, space, digest, &body, put_at).await?;
    }
    Ok(digests.len())
}

/// When a body was put: the time of its file.
pub(super) fn put_at(dir: &Path, digest: &Digest) -> Result<Timestamp, MigrateError> {
    let name = digest.to_hex();
    let bucket = name.get(..2).unwrap_or_default();
    let path = dir.join("blobs").join("sha256").join(bucket).join(&name);
    let modified = std::fs::metadata(&path)
        .and_then(|metadata| metadata.modified())
        .map_err(|error| MigrateError::Directory(path, error))?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}
