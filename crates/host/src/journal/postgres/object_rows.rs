//! Bodies of a space that lie in an object store: the rows that say so, and objects that no row names any more.
//!
//! Promises: object first, then row, then the digest is told; an object is deleted only after its row was gone for as long as the
//! database can be restored to an earlier moment. No object is put under a name that was ever buried for longer than an hour, and
//! none is deleted that was buried for less than a day: so whoever was stopped while it deletes or puts harms nothing when it goes on.
//! Must not know: how objects are stored.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Row;
use wire::{Digest, Timestamp};

use super::blobs::{IN_DATABASE, IN_OBJECTS, PgBlobs};
use super::connection::{PooledConnection, StatementError, int};
use crate::blobs::{BlobError, Found, ObjectBodies};

/// Objects that are deleted in one go.
const DELETED_AT_ONCE: usize = 100;
/// A transaction may be idle for three seconds: what takes longer is tried again with the next.
const DELETE_WITHIN: Duration = Duration::from_secs(2);

/// As many as the database can count back; nobody keeps anything for longer.
const GRAVE_DAYS_MAX: u32 = 365_000;

const PLACE: &str = "SELECT place, object FROM greenroom.blob WHERE space = $1 AND digest = $2";
const RENEW: &str =
    "UPDATE greenroom.blob SET put_at = greatest(put_at, $3) WHERE space = $1 AND digest = $2
     RETURNING place, object";
/// Before the object is there: what is put and never named is deleted like any other.
const BURY_NEW: &str = "INSERT INTO greenroom.blob_grave (space, digest, object, at) VALUES ($1, $2, $3, clock_timestamp())
     ON CONFLICT (space, digest, object) DO NOTHING";
/// Only if nobody can be deleting it yet. If another was named meanwhile, that one counts, and this one stays buried.
const NAME: &str = "WITH young AS (SELECT object FROM greenroom.blob_grave WHERE space = $1 AND digest = $2 AND object = $3
         AND at > clock_timestamp() - interval '1 hour' FOR UPDATE),
     named AS (INSERT INTO greenroom.blob (space, digest, size, put_at, place, object)
         SELECT $1::bigint, $2::bytea, $4::bigint, $5::bigint, $6::smallint, object FROM young
         ON CONFLICT (space, digest) DO UPDATE SET put_at = greatest(blob.put_at, excluded.put_at) RETURNING object),
     dug AS (DELETE FROM greenroom.blob_grave g USING named
         WHERE g.space = $1 AND g.digest = $2 AND g.object = $3 AND named.object = $3)
     SELECT object FROM named";
/// All objects of a space whose rows are about to go.
pub(crate) const BURY_SPACE: &str = "INSERT INTO greenroom.blob_grave (space, digest, object, at)
         SELECT space, digest, object, clock_timestamp() FROM greenroom.blob WHERE space = $1 AND place = 1
     ON CONFLICT (space, digest, object) DO UPDATE SET at = excluded.at";
/// The oldest of any space: one that was removed has nobody else. Earlier versions could bury one that a row names.
const TAKE_GRAVE: &str = "DELETE FROM greenroom.blob_grave WHERE ctid = (SELECT g.ctid FROM greenroom.blob_grave g
         WHERE g.at < clock_timestamp() - make_interval(days => $1)
             AND NOT EXISTS (SELECT 1 FROM greenroom.blob b
                 WHERE b.space = g.space AND b.digest = g.digest AND b.object = g.object AND b.place = 1)
         ORDER BY g.at LIMIT 1 FOR UPDATE OF g SKIP LOCKED)
     RETURNING space, digest, object";

/// What nobody else ever made.
fn make_object_name() -> Result<String, BlobError> {
    let mut digits = [0_u8; 16];
    getrandom::fill(&mut digits).map_err(|error| {
        BlobError::Unwritable(format!("the system gives no random bytes: {error}"))
    })?;
    Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl PgBlobs {
    fn objects(&self) -> Option<&Arc<ObjectBodies>> {
        self.node.objects.get()
    }

    /// Stores a body in the store, if there is one and it belongs there; whether it did.
    pub(super) fn put_object(
        &self,
        digest: &Digest,
        body: &[u8],
        now: Timestamp,
    ) -> Result<bool, BlobError> {
        let Some(objects) = self.objects().filter(|objects| objects.takes(body.len())) else {
            return Ok(false);
        };
        match self.renew(digest, now)? {
            Some((IN_DATABASE, _)) => return Ok(false), // and it stays there
            Some((_, object)) => {
                // Once more under its name: one that is damaged is mended.
                self.upload(objects, digest, &object, body)?;
                if self.renew(digest, now)?.is_some() {
                    return Ok(true);
                }
                // Removed meanwhile: its object is buried, and that is not taken back.
            }
            None => {}
        }
        let object = self.reserve_object_name(digest)?;
        self.upload(objects, digest, &object, body)?;
        self.name_object(digest, &object, body.len(), now)?;
        Ok(true)
    }

    fn upload(
        &self,
        objects: &ObjectBodies,
        digest: &Digest,
        object: &str,
        body: &[u8],
    ) -> Result<(), BlobError> {
        let put = objects.put(self.space, digest, object, body);
        self.node.runtime.block_on(put).map_err(BlobError::Unwritable)
    }

    /// A body that is stored counts as put now; where it is.
    fn renew(&self, digest: &Digest, now: Timestamp) -> Result<Option<(i16, String)>, BlobError> {
        let name = &digest.as_bytes()[..];
        let renewed = self.work(async |connection| {
            let rows = connection.query(RENEW, &[&self.space, &name, &now.0]).await?;
            read_place(&rows)
        });
        renewed.map_err(BlobError::Unwritable)
    }

    /// The name of an object that is about to be put.
    pub(crate) fn reserve_object_name(&self, digest: &Digest) -> Result<String, BlobError> {
        let object = make_object_name()?;
        let name = &digest.as_bytes()[..];
        let buried = self.work(async |connection| {
            connection.query(BURY_NEW, &[&self.space, &name, &object]).await
        });
        buried.map_err(BlobError::Unwritable)?;
        Ok(object)
    }

    /// From now on the object is that of the body, unless another came first.
    pub(crate) fn name_object(
        &self,
        digest: &Digest,
        object: &str,
        bytes: usize,
        now: Timestamp,
    ) -> Result<(), BlobError> {
        let (name, size) = (&digest.as_bytes()[..], int(bytes as u64));
        let named = self.work(async |connection| {
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                [&self.space, &name, &object, &size, &now.0, &IN_OBJECTS];
            if !connection.query(NAME, &values).await?.is_empty() {
                return Ok(true);
            }
            // Also if it was named by a try whose answer was lost.
            let rows = connection.query(PLACE, &[&self.space, &name]).await?;
            Ok(read_place(&rows)?.is_some_and(|(_, named)| named == object))
        });
        if named.map_err(BlobError::Unwritable)? {
            Ok(())
        } else {
            let why = "it took so long to store it that it may be deleted already; put it again";
            Err(BlobError::Unwritable(why.to_owned()))
        }
    }

    /// The object of a body whose row says that it is one.
    pub(super) fn read_object(&self, digest: &Digest) -> Result<Found, BlobError> {
        let name = &digest.as_bytes()[..];
        let place = self.work(async |connection| {
            let rows = connection.query(PLACE, &[&self.space, &name]).await?;
            read_place(&rows)
        });
        let Some((IN_OBJECTS, object)) = place.map_err(BlobError::Unreadable)? else {
            return Ok(Found::Missing);
        };
        let Some(objects) = self.objects() else {
            let why = "it lies in an object store, and the settings name none ([blobs])";
            return Err(BlobError::Unreadable(why.to_owned()));
        };
        let read = objects.get(self.space, digest, &object);
        match self.node.runtime.block_on(read) {
            Ok(Some(body)) => Ok(Found::Body(body)),
            Ok(None) => Err(BlobError::Damaged(*digest)),
            Err(error) => Err(BlobError::Unreadable(error)),
        }
    }

    /// Deletes objects that were buried long enough ago. What cannot be deleted now is tried again with the next sweep.
    pub(super) fn delete_buried(&self) {
        let Some(objects) = self.objects() else { return };
        for _ in 0..DELETED_AT_ONCE {
            let deleted = self.work(async |connection| delete_one(connection, objects).await);
            match deleted {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "objects that nothing refers to are not deleted");
                    return;
                }
            }
        }
    }
}

/// Where a body is, and what the name of its object has after the digest.
fn read_place(rows: &[Row]) -> Result<Option<(i16, String)>, StatementError> {
    match rows.first() {
        Some(row) => Ok(Some((row.try_get(0)?, row.try_get(1)?))),
        None => Ok(None),
    }
}

/// The row is locked until the object is gone, so that no two nodes do the same.
async fn delete_one(
    connection: &mut PooledConnection,
    objects: &ObjectBodies,
) -> Result<bool, StatementError> {
    let days = objects.settings.grave_days.min(GRAVE_DAYS_MAX);
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    connection.begin();
    connection.run("BEGIN").await?;
    let rows = connection.query(TAKE_GRAVE, &[&days]).await?;
    let Some(row) = rows.first() else {
        connection.run("COMMIT").await?;
        connection.finish();
        return Ok(false);
    };
    let (space, name, object): (i64, Vec<u8>, String) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let deleted = match name.try_into() {
        Ok(name) => {
            let digest = Digest::new(name);
            let deleted = objects.delete(space, &digest, &object);
            timeout(DELETE_WITHIN, deleted).await
        }
        Err(_) => Ok(Ok(())), // no object has such a name
    };
    let is_deleted = match deleted {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "an object that nothing refers to is not deleted");
            false
        }
        Err(_) => false,
    };
    let end = if is_deleted { "COMMIT" } else { "ROLLBACK" };
    connection.run(end).await?;
    connection.finish();
    Ok(is_deleted)
}
