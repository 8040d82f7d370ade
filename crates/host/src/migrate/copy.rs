//! A second space with the same sessions: of a space, of a directory, or in a directory. The source is left as it is.
//!
//! Promises: what is copied is one moment of the source, also while that is served; a copy is there whole or not at all, and both
//! are compared before it is. Nothing that exists is written over. Members and tokens belong to a space and are not copied.
//! Must not know: what rows mean.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_postgres::Client;

use super::moved::MarkKind;
use super::postgres_side as postgres;
use super::tables::{CarriedTable, TABLES};
use super::to_directory::{
    JOURNAL_SUFFIXES, carry as carry_out, find_space, make_private, remove_all,
};
use super::to_postgres::carry as carry_in;
use super::{
    JOURNAL_FILE, MigrateError, MigrateRequest, MigrateStep, Migrated, MovedDirectory, ReportStep,
    absolute, open_objects,
};
use crate::accounts::{AccountAdmin, AccountError};
use crate::blobs::{BlobSettings, ObjectBodies, digest_of};
use crate::journal::{DirectoryLock, PostgresNode, PostgresSettings, Sqlite};
use crate::space_entry::is_space_name;

/// Where the journal of a copy is made, beside its place.
const COPYING: &str = "copying";

async fn connect(database: &PostgresSettings) -> Result<Client, MigrateError> {
    let node = PostgresNode::connect(database).await.map_err(AccountError::from)?;
    AccountAdmin::over(Arc::clone(&node)).await?;
    postgres::connect(&database.url).await
}

/// Copies a space of a database to another one, which must not be there yet.
pub async fn copy_space(
    database: &PostgresSettings,
    blobs: Option<&BlobSettings>,
    from: &str,
    to: &str,
    tell: ReportStep<'_>,
) -> Result<Migrated, MigrateError> {
    check_name(to)?;
    let objects = open_objects(blobs)?;
    let client = connect(database).await?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ").await?;
    let source = find_space(&client, from).await?;
    let copy = make_space(&client, to).await?;
    let mut rows = 0;
    for table in &TABLES {
        let copied = copy_rows(&client, table, source, copy).await?;
        rows += copied;
        tell(MigrateStep::Rows { table: table.name, rows: copied });
    }
    let bodies = copy_bodies(&client, source, copy, objects.as_ref()).await?;
    let sql = "INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor, format)
         SELECT $2::bigint, 1, 0, seq, log_floor, format FROM greenroom.lease WHERE space = $1 RETURNING seq";
    let lease = client.query_opt(sql, &[&source, &copy]).await?;
    let seq = match lease {
        Some(row) => row.try_get(0)?,
        None => return Err(MigrateError::Damaged("lease".to_owned())),
    };
    tell(MigrateStep::Comparing);
    compare(&client, source, copy, objects.as_ref()).await?;
    client.batch_execute("COMMIT").await?;
    Ok(Migrated { rows, bodies, seq, was_carried_before: false })
}

fn check_name(name: &str) -> Result<(), MigrateError> {
    if is_space_name(name) {
        Ok(())
    } else {
        Err(AccountError::BadSpaceName(name.to_owned()).into())
    }
}

/// The number of a new space; nobody sees it before the transaction is committed.
async fn make_space(client: &Client, name: &str) -> Result<i64, MigrateError> {
    let sql =
        "INSERT INTO greenroom.space (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id";
    match client.query_opt(sql, &[&name]).await? {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(AccountError::NameTaken(name.to_owned()).into()),
    }
}

/// In the order of the source, so that what the database numbers for itself has the same order.
async fn copy_rows(
    client: &Client,
    table: &CarriedTable,
    source: i64,
    copy: i64,
) -> Result<u64, MigrateError> {
    let columns = table.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "INSERT INTO greenroom.{name} (space, {columns}) SELECT $2::bigint, {columns} FROM greenroom.{name}
             WHERE space = $1 ORDER BY {order}",
        name = table.name,
        order = table.order
    );
    Ok(client.execute(&sql, &[&source, &copy]).await?)
}

/// Objects first: one that no row names is no harm.
async fn copy_bodies(
    client: &Client,
    source: i64,
    copy: i64,
    objects: Option<&ObjectBodies>,
) -> Result<usize, MigrateError> {
    let listed = postgres::list_bodies(client, source).await?;
    for body in &listed {
        let Some(object) = &body.object else {
            continue; // its pieces are rows
        };
        let objects = objects.ok_or(MigrateError::NoObjects)?;
        objects.copy(source, copy, &body.digest, object).await.map_err(MigrateError::Object)?;
    }
    let sql = "INSERT INTO greenroom.blob (space, digest, size, put_at, place, object)
         SELECT $2::bigint, digest, size, put_at, place, object FROM greenroom.blob WHERE space = $1";
    let bodies = client.execute(sql, &[&source, &copy]).await?;
    let sql = "INSERT INTO greenroom.blob_chunk (space, digest, n, bytes)
         SELECT $2::bigint, digest, n, bytes FROM greenroom.blob_chunk WHERE space = $1";
    client.execute(sql, &[&source, &copy]).await?;
    Ok(usize::try_from(bodies).unwrap_or(usize::MAX))
}

async fn compare(
    client: &Client,
    source: i64,
    copy: i64,
    objects: Option<&ObjectBodies>,
) -> Result<(), MigrateError> {
    for table in &TABLES {
        let of_source = postgres::read_rows(client, table, source, async |_| Ok(())).await?;
        let of_copy = postgres::read_rows(client, table, copy, async |_| Ok(())).await?;
        if of_source != of_copy {
            return Err(MigrateError::Differs(table.name.to_owned()));
        }
    }
    if postgres::count_damaged_bodies(client, copy).await? > 0 {
        return Err(MigrateError::Differs("blob".to_owned()));
    }
    for body in postgres::list_bodies(client, copy).await? {
        if body.object.is_none() {
            continue; // the database compared it
        }
        let there = postgres::read_body(client, copy, &body, objects).await?;
        if digest_of(&there) != body.digest {
            return Err(MigrateError::Damaged(body.digest.to_hex()));
        }
    }
    Ok(())
}

/// Copies a space into a directory that has no sessions.
pub async fn copy_to_directory(
    request: &MigrateRequest,
    tell: ReportStep<'_>,
) -> Result<Migrated, MigrateError> {
    let dir = absolute(&request.directory)?;
    let in_dir = |error: io::Error| MigrateError::Directory(dir.clone(), error);
    make_private(&dir).map_err(in_dir)?;
    let _lock = DirectoryLock::take(&dir)?;
    check_not_in_use(&dir)?;
    let objects = open_objects(request.blobs.as_ref())?;
    let client = connect(&request.database).await?;
    let space = find_space(&client, &request.space).await?;
    let made = dir.join(COPYING);
    remove_all(&made).map_err(in_dir)?;
    let (carried, _) = carry_out(&client, &dir, &made, space, objects.as_ref(), tell).await?;
    fs::rename(made.join(JOURNAL_FILE), dir.join(JOURNAL_FILE)).map_err(in_dir)?;
    let synced = File::open(&dir).and_then(|dir| dir.sync_all());
    synced.and_then(|()| remove_all(&made)).map_err(in_dir)?;
    Ok(carried)
}

/// No journal is in the directory, nor a file of one, which would be taken for a part of the copy; none was moved from it, and
/// none is on its way into it.
fn check_not_in_use(dir: &Path) -> Result<(), MigrateError> {
    let in_dir = |error: io::Error| MigrateError::Directory(dir.to_owned(), error);
    if let Some(why) = MovedDirectory::why_not_served(dir).map_err(in_dir)? {
        return Err(MigrateError::Unfinished(dir.to_owned(), why));
    }
    let mut files = JOURNAL_SUFFIXES.iter();
    if files.any(|suffix| fs::symlink_metadata(dir.join(format!("{JOURNAL_FILE}{suffix}"))).is_ok())
    {
        Err(MigrateError::DirectoryTaken(dir.to_owned()))
    } else {
        Ok(())
    }
}

/// Copies the sessions of a directory to a space that is not there yet; no host may serve the directory meanwhile.
pub async fn copy_from_directory(
    request: &MigrateRequest,
    tell: ReportStep<'_>,
) -> Result<Migrated, MigrateError> {
    let dir = absolute(&request.directory)?;
    check_name(&request.space)?;
    if !dir.join(JOURNAL_FILE).is_file() {
        return Err(MigrateError::NoJournal(dir));
    }
    let in_dir = |error: io::Error| MigrateError::Directory(dir.clone(), error);
    // Its lock keeps hosts out, and its format is the newest.
    let journal = Sqlite::open(&dir)?;
    if let Some(moved) = MovedDirectory::read_mark(&dir, MarkKind::Moved).map_err(in_dir)? {
        let words = moved.words(&dir);
        return Err(MigrateError::AlreadyMoved(dir, words));
    }
    let client = connect(&request.database).await?;
    client.batch_execute("BEGIN").await?;
    let space = make_space(&client, &request.space).await?;
    let carried = carry_in(&client, &dir, space, tell).await?;
    client.batch_execute("COMMIT").await?;
    drop(journal);
    Ok(carried)
}
