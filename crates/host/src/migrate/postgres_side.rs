//! Rows out of the tables of a space, and into them, in one transaction of one connection.
//!
//! Promises: reading sees one state; nothing that is written counts before the transaction is committed.
//! Must not know: where rows come from or go to.

use std::pin::pin;

use futures_util::TryStreamExt;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};
use wire::{Digest, Timestamp};

use super::MigrateError;
use super::row::{CarriedRow, ColumnKind, RowValue, TableDigest, TableSum};
use super::tables::CarriedTable;
use crate::blobs::ObjectBodies;
use crate::task;

/// As large as those that hosts write.
const CHUNK_BYTES: usize = 256 * 1_024;

/// A connection without the time limits of hosts: a large table takes its time.
pub(super) async fn connect(url: &str) -> Result<Client, MigrateError> {
    let mut config: Config = url.parse()?;
    config.application_name("greenroom migrate");
    let (client, connection) = config.connect(NoTls).await?;
    // It ends with its client, or when the server goes: the client's calls fail then.
    task::spawn(async move { drop(connection.await) });
    Ok(client)
}

fn select(table: &CarriedTable) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|(name, kind)| match kind {
            ColumnKind::Small => format!("{name}::bigint"),
            ColumnKind::Flag => format!("{name}::int::bigint"),
            ColumnKind::Big | ColumnKind::Text | ColumnKind::Bytes => (*name).to_owned(),
        })
        .collect();
    format!(
        "SELECT {} FROM greenroom.{} WHERE space = $1 ORDER BY {}",
        columns.join(", "),
        table.name,
        table.order
    )
}

/// Hands over the rows of a table in order.
pub(super) async fn read_rows(
    client: &Client,
    table: &CarriedTable,
    space: i64,
    mut take: impl AsyncFnMut(CarriedRow) -> Result<(), MigrateError>,
) -> Result<TableSum, MigrateError> {
    let mut digest = TableDigest::default();
    let rows = client.query_raw(&select(table), [space]).await?;
    let mut rows = pin!(rows);
    while let Some(row) = rows.try_next().await? {
        let row = read_row(table, &row)?;
        digest.add(&row);
        take(row).await?;
    }
    Ok(digest.finish())
}

fn read_row(table: &CarriedTable, row: &Row) -> Result<CarriedRow, MigrateError> {
    let cells = table.columns.iter().enumerate().map(|(index, (_, kind))| {
        Ok(match kind {
            ColumnKind::Small | ColumnKind::Big | ColumnKind::Flag => {
                row.try_get::<_, Option<i64>>(index)?.map(RowValue::Int)
            }
            ColumnKind::Text => row.try_get::<_, Option<String>>(index)?.map(RowValue::Text),
            ColumnKind::Bytes => row.try_get::<_, Option<Vec<u8>>>(index)?.map(RowValue::Bytes),
        }
        .unwrap_or(RowValue::Null))
    });
    cells.collect()
}

/// Rows that are being written into one table.
pub(super) struct TableWriter {
    table: &'static CarriedTable,
    space: i64,
    copy: std::pin::Pin<Box<BinaryCopyInWriter>>,
}

impl TableWriter {
    pub(super) async fn begin(
        client: &Client,
        table: &'static CarriedTable,
        space: i64,
    ) -> Result<Self, MigrateError> {
        let columns = table.columns.iter().map(|(name, _)| *name);
        let columns: Vec<&str> = std::iter::once("space").chain(columns).collect();
        let sql =
            format!("COPY greenroom.{} ({}) FROM STDIN BINARY", table.name, columns.join(", "));
        let types = table.columns.iter().map(|(_, kind)| match kind {
            ColumnKind::Small => Type::INT2,
            ColumnKind::Big => Type::INT8,
            ColumnKind::Flag => Type::BOOL,
            ColumnKind::Text => Type::TEXT,
            ColumnKind::Bytes => Type::BYTEA,
        });
        let types: Vec<Type> = std::iter::once(Type::INT8).chain(types).collect();
        let sink = client.copy_in(&sql).await?;
        let copy = Box::pin(BinaryCopyInWriter::new(sink, &types));
        Ok(Self { table, space, copy })
    }

    pub(super) async fn write(&mut self, row: CarriedRow) -> Result<(), MigrateError> {
        let mut values: Vec<Box<dyn ToSql + Sync + Send>> = vec![Box::new(self.space)];
        for ((name, kind), cell) in self.table.columns.iter().zip(row) {
            let wrong = || MigrateError::Damaged(format!("{}.{name}", self.table.name));
            values.push(to_value(*kind, cell).ok_or_else(wrong)?);
        }
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        Ok(self.copy.as_mut().write(&values).await?)
    }

    pub(super) async fn finish(mut self) -> Result<(), MigrateError> {
        self.copy.as_mut().finish().await?;
        Ok(())
    }
}

/// `None` if the value is of another kind than its column.
fn to_value(kind: ColumnKind, cell: RowValue) -> Option<Box<dyn ToSql + Sync + Send>> {
    Some(match (kind, cell) {
        (ColumnKind::Small, RowValue::Int(number)) => Box::new(i16::try_from(number).ok()?),
        (ColumnKind::Small, RowValue::Null) => Box::new(None::<i16>),
        (ColumnKind::Big, RowValue::Int(number)) => Box::new(number),
        (ColumnKind::Big, RowValue::Null) => Box::new(None::<i64>),
        (ColumnKind::Flag, RowValue::Int(number)) => Box::new(number != 0),
        (ColumnKind::Flag, RowValue::Null) => Box::new(None::<bool>),
        (ColumnKind::Text, RowValue::Text(text)) => Box::new(text),
        (ColumnKind::Text, RowValue::Null) => Box::new(None::<String>),
        (ColumnKind::Bytes, RowValue::Bytes(bytes)) => Box::new(bytes),
        (ColumnKind::Bytes, RowValue::Null) => Box::new(None::<Vec<u8>>),
        (
            ColumnKind::Small | ColumnKind::Big | ColumnKind::Flag,
            RowValue::Text(_) | RowValue::Bytes(_),
        )
        | (ColumnKind::Text, RowValue::Int(_) | RowValue::Bytes(_))
        | (ColumnKind::Bytes, RowValue::Int(_) | RowValue::Text(_)) => return None,
    })
}

/// A body with when it was put.
pub(super) async fn write_body(
    client: &Client,
    space: i64,
    digest: &Digest,
    body: &[u8],
    put_at: Timestamp,
) -> Result<(), MigrateError> {
    let (name, size) = (digest.as_bytes().to_vec(), i64::try_from(body.len()).unwrap_or(i64::MAX));
    let sql = "INSERT INTO greenroom.blob (space, digest, size, put_at, place) VALUES ($1, $2, $3, $4, 0)";
    client.execute(sql, &[&space, &name, &size, &put_at.0]).await?;
    let sql = "INSERT INTO greenroom.blob_chunk (space, digest, n, bytes) VALUES ($1, $2, $3, $4)";
    for (n, chunk) in (0_i32..).zip(body.chunks(CHUNK_BYTES)) {
        client.execute(sql, &[&space, &name, &n, &chunk]).await?;
    }
    Ok(())
}

/// One body of a space.
pub(super) struct ListedBody {
    pub(super) digest: Digest,
    pub(super) put_at: Timestamp,
    /// It lies in an object store, and this is what the name of the object has after the digest.
    pub(super) object: Option<String>,
}

/// All bodies of a space.
pub(super) async fn list_bodies(
    client: &Client,
    space: i64,
) -> Result<Vec<ListedBody>, MigrateError> {
    let sql = "SELECT digest, put_at, CASE WHEN place <> 0 THEN object END FROM greenroom.blob
         WHERE space = $1 ORDER BY digest";
    let rows = client.query(sql, &[&space]).await?;
    let bodies = rows.iter().map(|row| {
        let name: Vec<u8> = row.try_get(0)?;
        let name = name.try_into().map_err(|_| MigrateError::Damaged("blob.digest".to_owned()))?;
        Ok(ListedBody {
            digest: Digest::new(name),
            put_at: Timestamp(row.try_get(1)?),
            object: row.try_get(2)?,
        })
    });
    bodies.collect()
}

pub(super) async fn read_body(
    client: &Client,
    space: i64,
    body: &ListedBody,
    objects: Option<&ObjectBodies>,
) -> Result<Vec<u8>, MigrateError> {
    let digest = &body.digest;
    if let Some(object) = &body.object {
        let objects = objects.ok_or(MigrateError::NoObjects)?;
        let found = objects.get(space, digest, object).await.map_err(MigrateError::Object)?;
        return found.ok_or_else(|| MigrateError::Damaged(digest.to_hex()));
    }
    let sql = "SELECT bytes FROM greenroom.blob_chunk WHERE space = $1 AND digest = $2 ORDER BY n";
    let mut body = Vec::new();
    for row in client.query(sql, &[&space, &&digest.as_bytes()[..]]).await? {
        body.extend_from_slice(row.try_get(0)?);
    }
    Ok(body)
}

/// Bodies of a space in the database that are not what their names say.
pub(super) async fn count_damaged_bodies(client: &Client, space: i64) -> Result<i64, MigrateError> {
    let sql = "SELECT count(*) FROM greenroom.blob b WHERE space = $1 AND place = 0 AND digest IS DISTINCT FROM sha256(coalesce((
             SELECT string_agg(bytes, ''::bytea ORDER BY n) FROM greenroom.blob_chunk c
             WHERE c.space = b.space AND c.digest = b.digest), ''::bytea))";
    Ok(client.query_one(sql, &[&space]).await?.try_get(0)?)
}
