//! Recorded actions: small envelopes in one table in their order, large ones in another beside it (ADR 0031).
//!
//! Promises: an action is found by its channel and seq, whatever its size; a large one slows nobody down who does not read it.
//! Must not know: what an envelope says.

use bytes::Bytes;
use kernel::{ChannelId, Seq};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, params};

use super::int;

/// Larger envelopes have a row of their own elsewhere.
pub(crate) const SMALL_BYTES_MAX: usize = 16 * 1_024;

pub(super) const IN_ORDER: &str =
    "SELECT seq, bytes FROM action WHERE channel = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";

pub(super) const LARGE: &str = "SELECT bytes FROM large_action WHERE channel = ?1 AND seq = ?2";

pub(super) const NEXT_CHANNEL: &str = "SELECT min(channel) FROM action WHERE channel > ?1";

pub(super) const TRIM_CHANNEL: &str = "DELETE FROM action WHERE channel = ?1 AND seq <= min(?2,
     coalesce((SELECT head_seq FROM channel WHERE id = ?1 AND disposed_at IS NULL), ?2))";

pub(super) const TRIM_LARGE: &str = "DELETE FROM large_action WHERE channel = ?1 AND seq <= min(?2,
     coalesce((SELECT head_seq FROM channel WHERE id = ?1 AND disposed_at IS NULL), ?2))";

pub(super) const FORGET_LARGE: &str =
    "DELETE FROM large_action WHERE channel = ?1 AND seq <= (SELECT max(seq) FROM
         (SELECT seq FROM action WHERE channel = ?1 ORDER BY seq LIMIT ?2))";

const FORGET: &str = "DELETE FROM action WHERE channel = ?1 AND seq <= (SELECT max(seq) FROM
         (SELECT seq FROM action WHERE channel = ?1 ORDER BY seq LIMIT ?2))";

/// Writes the actions of a batch: almost every record of a busy host is one, so the statement is looked up once.
pub(super) struct ActionWriter<'c> {
    conn: &'c Connection,
    insert: CachedStatement<'c>,
}

impl<'c> ActionWriter<'c> {
    pub(super) fn new(conn: &'c Connection) -> Result<Self> {
        let insert = "INSERT INTO action (channel, seq, bytes) VALUES (?1, ?2, ?3)";
        let insert = conn.prepare_cached(insert)?;
        Ok(Self { conn, insert })
    }

    pub(super) fn put(&mut self, channel: ChannelId, seq: Seq, envelope: &[u8]) -> Result<()> {
        let (channel, seq) = (int(channel.0), int(seq.0));
        if envelope.len() <= SMALL_BYTES_MAX {
            self.insert.execute(params![channel, seq, envelope])?;
            return Ok(());
        }
        // Its place in the order is empty: no envelope is.
        self.insert.execute(params![channel, seq, &[0_u8; 0][..]])?;
        self.conn
            .prepare_cached("INSERT INTO large_action (channel, seq, bytes) VALUES (?1, ?2, ?3)")?
            .execute(params![channel, seq, envelope])?;
        Ok(())
    }
}

/// Hands over the actions of a channel above one seq and up to another, in order, until told to stop.
pub(super) fn read(
    conn: &Connection,
    channel: ChannelId,
    above: Seq,
    through: Seq,
    mut take: impl FnMut(i64, Bytes) -> bool,
) -> Result<()> {
    let mut in_order = conn.prepare_cached(IN_ORDER)?;
    let mut rows = in_order.query([int(channel.0), int(above.0), int(through.0)])?;
    while let Some(row) = rows.next()? {
        let (seq, mut envelope): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if envelope.is_empty() {
            let mut large = conn.prepare_cached(LARGE)?;
            let large = large.query_row([int(channel.0), seq], |row| row.get(0));
            envelope = large.optional()?.unwrap_or(envelope);
        }
        if !take(seq, Bytes::from(envelope)) {
            break;
        }
    }
    Ok(())
}

/// Walks from channel to channel by the index, so that what stays is never looked at. Actions that a live channel's
/// head does not hold yet stay: they are out of reach of a replay from now on, but loading the channel needs them.
pub(super) fn trim(conn: &Connection, through: Seq) -> Result<()> {
    let through = int(through.0);
    let mut next = conn.prepare_cached(NEXT_CHANNEL)?;
    let mut delete = conn.prepare_cached(TRIM_CHANNEL)?;
    let mut delete_large = conn.prepare_cached(TRIM_LARGE)?;
    let mut channel = -1_i64;
    while let Some(found) = next.query_row([channel], |row| row.get::<_, Option<i64>>(0))? {
        delete_large.execute([found, through])?;
        delete.execute([found, through])?;
        channel = found;
    }
    Ok(())
}

/// Deletes the oldest actions of a channel, at most so many. Returns how many there were.
pub(super) fn forget(conn: &Connection, channel: i64, rows_max: i64) -> Result<i64> {
    conn.prepare_cached(FORGET_LARGE)?.execute([channel, rows_max])?;
    let deleted = conn.prepare_cached(FORGET)?.execute([channel, rows_max])?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}
