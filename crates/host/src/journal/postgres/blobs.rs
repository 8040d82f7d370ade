//! Bodies of a space in PostgreSQL, in pieces.
//!
//! Promises: those of [`Blobs`]; nothing of one space is seen or shared in another; a body that the journal refers to is not
//! removed, whoever asks.
//! Must not know: what a reference means.

use std::ops::RangeInclusive;
use std::sync::Arc;

use wire::{Digest, Timestamp};

use super::PostgresNode;
use super::collect::nothing_refers_to;
use super::connection::{BoundStatement, PooledConnection, StatementError, int, values};
use super::retry_limit::RetryLimit;
use crate::blobs::{BlobError, Blobs, Found};

/// A body is stored in pieces of this size.
const CHUNK_BYTES: usize = 256 << 10;
/// Where a body lies: in `blob_chunk`.
pub(super) const IN_DATABASE: i16 = 0;
/// In an object store.
pub(super) const IN_OBJECTS: i16 = 1;

/// Asks for references itself: the transaction that keeps writers away meanwhile may have ended, and the space be another's.
const REMOVE: &str = concat!(
    "WITH gone AS (DELETE FROM greenroom.blob b WHERE b.space = $1 AND b.digest = ANY($2::bytea[]) AND b.put_at < $3 AND ",
    nothing_refers_to!("b.digest"),
    " RETURNING b.digest, b.place, b.object),
     buried AS (INSERT INTO greenroom.blob_grave (space, digest, object, at)
         SELECT $1, digest, object, clock_timestamp() FROM gone WHERE place = 1
         ON CONFLICT (space, digest, object) DO UPDATE SET at = excluded.at)
     DELETE FROM greenroom.blob_chunk USING gone WHERE space = $1 AND blob_chunk.digest = gone.digest"
);

/// The bodies of one space. Its calls wait for the network: never on a task's thread.
pub struct PgBlobs {
    pub(super) node: Arc<PostgresNode>,
    pub(super) space: i64,
}

impl PgBlobs {
    /// Does something that may be done twice, again if the connection is lost, for as long as the node has patience.
    pub(super) fn work<T>(
        &self,
        work: impl AsyncFn(&mut PooledConnection) -> Result<T, StatementError>,
    ) -> Result<T, String> {
        let mut patience = RetryLimit::begin(self.node.patience);
        self.node.runtime.block_on(async {
            loop {
                let mut connection = self.node.readers.get(patience.until()).await?;
                match work(&mut connection).await {
                    Err(StatementError::Lost(_)) if patience.allows_retry() => {}
                    done => return done.map_err(|error| error.words()),
                }
            }
        })
    }
}

impl Blobs for PgBlobs {
    fn put_named(&self, digest: &Digest, body: &[u8], now: Timestamp) -> Result<(), BlobError> {
        if self.put_object(digest, body, now)? {
            return Ok(());
        }
        let name = digest.as_bytes().to_vec();
        let mut statements = vec![
            // One of a node with other settings may have been in the store.
            BoundStatement::new(
                "WITH was AS (SELECT object FROM greenroom.blob WHERE space = $1 AND digest = $2 AND place = 1 FOR UPDATE)
                 INSERT INTO greenroom.blob_grave (space, digest, object, at)
                     SELECT $1::bigint, $2::bytea, object, clock_timestamp() FROM was
                 ON CONFLICT (space, digest, object) DO UPDATE SET at = excluded.at",
                values![self.space, name.clone()],
            ),
            BoundStatement::new(
                "INSERT INTO greenroom.blob (space, digest, size, put_at, place) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (space, digest) DO UPDATE SET put_at = greatest(blob.put_at, $4), place = $5, object = ''",
                values![self.space, name.clone(), int(body.len() as u64), now.0, IN_DATABASE],
            ),
        ];
        for (n, chunk) in (0_i32..).zip(body.chunks(CHUNK_BYTES)) {
            // One that is damaged is mended.
            statements.push(BoundStatement::new(
                "INSERT INTO greenroom.blob_chunk (space, digest, n, bytes) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (space, digest, n) DO UPDATE SET bytes = $4 WHERE blob_chunk.bytes <> $4",
                values![self.space, name.clone(), n, chunk.to_vec()],
            ));
        }
        let stored = self.work(async |connection| {
            connection.run_together(&statements).await.map_err(|(_, error)| error)
        });
        stored.map_err(BlobError::Unwritable)
    }

    fn read(&self, digest: &Digest, bytes_max: u64) -> Result<Found, BlobError> {
        let name = &digest.as_bytes()[..];
        let found = self.work(async |connection| {
            let size = "SELECT size, place FROM greenroom.blob WHERE space = $1 AND digest = $2";
            let rows = connection.query(size, &[&self.space, &name]).await?;
            let Some(row) = rows.first() else { return Ok(Found::Missing) };
            let size: i64 = row.try_get(0)?;
            let bytes = u64::try_from(size).unwrap_or(0);
            if bytes > bytes_max {
                return Ok(Found::TooLarge { bytes });
            }
            if row.try_get::<_, i16>(1)? == IN_OBJECTS {
                return Ok(Found::Missing); // looked for below, when this connection is free again
            }
            let chunks = "SELECT bytes FROM greenroom.blob_chunk WHERE space = $1 AND digest = $2 ORDER BY n";
            let mut body = Vec::new();
            for row in connection.query(chunks, &[&self.space, &name]).await? {
                body.extend_from_slice(row.try_get(0)?);
            }
            Ok(Found::Body(body))
        });
        let found = match found.map_err(BlobError::Unreadable)? {
            Found::Missing => self.read_object(digest)?,
            found => found,
        };
        match found {
            Found::Body(body) if !digest.is_of(&body) => Err(BlobError::Damaged(*digest)),
            found => Ok(found),
        }
    }

    fn list_older_than(
        &self,
        buckets: RangeInclusive<u8>,
        before: Timestamp,
    ) -> Result<Vec<Digest>, BlobError> {
        self.delete_buried();
        let first = vec![*buckets.start()];
        let mut last = vec![*buckets.end()];
        last.extend([0xff; 32]);
        let rows = self.work(async |connection| {
            let sql = "SELECT digest FROM greenroom.blob
                 WHERE space = $1 AND digest >= $2 AND digest <= $3 AND put_at < $4 ORDER BY digest";
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&self.space, &first, &last, &before.0];
            connection.query(sql, &values).await
        }).map_err(BlobError::Unreadable)?;
        let digests: Result<_, String> = rows
            .iter()
            .map(|row| {
                let name: Vec<u8> = row.try_get(0).map_err(|error| error.to_string())?;
                let name = name.try_into().map_err(|_| "a digest has 32 bytes".to_owned())?;
                Ok(Digest::new(name))
            })
            .collect();
        digests.map_err(BlobError::Unreadable)
    }

    fn remove(&self, digest: &Digest, before: Timestamp) -> Result<(), BlobError> {
        self.remove_all(&[*digest], before)
    }

    /// In one statement: whoever collects keeps the batches of the space waiting meanwhile.
    fn remove_all(&self, digests: &[Digest], before: Timestamp) -> Result<(), BlobError> {
        let names: Vec<&[u8]> = digests.iter().map(|digest| &digest.as_bytes()[..]).collect();
        let removed = self.work(async |connection| {
            connection.query(REMOVE, &[&self.space, &names, &before.0]).await
        });
        removed.map(drop).map_err(BlobError::Unwritable)
    }
}
