//! Removing a space: first nobody can write in it or reach it any more, then its rows go.
//!
//! Promises: interrupted anywhere, the space is there whole, or unreachable and named as such until the removal is repeated;
//! nothing of another space is touched.
//! Must not know: what rows mean.

use super::{AccountAdmin, AccountError};
use crate::journal::postgres::BURY_SPACE;
use crate::journal::postgres::connection::PooledConnection;

/// Every table with rows of a space, in the order in which they go. That of spaces itself comes after them, so that a removal
/// that was interrupted is found again.
pub(super) const TABLES: [&str; 29] = [
    "move_order",
    "action",
    "blob",
    "blob_chunk",
    "channel",
    "checkpoint",
    "client",
    "file_changes",
    "floor",
    "frozen",
    "head",
    "log_day",
    "lowered",
    "message",
    "model_call",
    "model_output",
    "moved_space",
    "part",
    "part_reference",
    "reference",
    "render",
    "sent_piece",
    "summary",
    "turn",
    "turn_range",
    "space_limit",
    "token",
    "member",
    "lease",
];

/// Rows that go with one statement: none may take as long as a statement may.
const ROWS_AT_ONCE: u64 = 10_000;

/// Takes the lease from whoever has it, so that no batch is written any more, and ends all tokens.
const CLOSE: &str = "WITH closed AS (
         UPDATE greenroom.space SET removed_at = coalesce(removed_at, clock_timestamp()) WHERE name = $1 RETURNING id),
     taken AS (UPDATE greenroom.lease SET node = NULL, epoch = epoch + 1 FROM closed WHERE space = closed.id),
     ended AS (UPDATE greenroom.token SET revoked_at = coalesce(revoked_at, clock_timestamp()) FROM closed
         WHERE space = closed.id),
     counted AS (UPDATE greenroom.account_change SET counter = counter + 1 WHERE EXISTS (SELECT 1 FROM closed))
     SELECT id FROM closed";

/// What went.
#[derive(Debug, PartialEq, Eq)]
pub struct RemovedSpace {
    pub rows: u64,
}

impl AccountAdmin {
    /// Removes a space with all it has; goes on with a removal that was interrupted.
    pub async fn remove_space(&self, name: &str) -> Result<RemovedSpace, AccountError> {
        let mut connection = self.connection().await?;
        let rows = connection.query(CLOSE, &[&name]).await?;
        let Some(row) = rows.first() else {
            return Err(AccountError::UnknownSpace(name.to_owned()));
        };
        let space: i64 = row.try_get(0)?;
        let mut removed = 0;
        // Objects are no rows: they are deleted later, by a node that reaches their store.
        connection.execute(BURY_SPACE, &[&space]).await?;
        for table in TABLES {
            removed += delete_rows(&mut connection, table, space).await?;
        }
        let sql = "DELETE FROM greenroom.space WHERE id = $1";
        connection.execute(sql, &[&space]).await?;
        Ok(RemovedSpace { rows: removed })
    }
}

async fn delete_rows(
    connection: &mut PooledConnection,
    table: &str,
    space: i64,
) -> Result<u64, AccountError> {
    let sql = format!(
        "DELETE FROM greenroom.{table} WHERE ctid = ANY(ARRAY(
             SELECT ctid FROM greenroom.{table} WHERE space = $1 LIMIT {ROWS_AT_ONCE}))"
    );
    let mut removed = 0;
    loop {
        match connection.execute(&sql, &[&space]).await? {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
}
