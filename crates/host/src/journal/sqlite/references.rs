//! Who refers to content: rows that are deleted with their channels, turns and parts of messages.
//!
//! Must not know: where content lies.

use kernel::ChannelId;
use rusqlite::{Connection, OptionalExtension, Result, params};
use wire::Digest;

use super::int;
use super::read::ReadResult;
use super::write::run;

/// Instead of a turn: stored as long as the channel.
const OF_THE_CHANNEL: i64 = -1;

pub(super) const REFERRED: &str =
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM reference WHERE digest = ?1)
     OR EXISTS (SELECT 1 FROM part_reference WHERE digest = ?1)
     OR EXISTS (SELECT 1 FROM sent_piece WHERE digest = ?1 AND content_type IS NOT NULL)";

pub(super) const CONTENT_TYPE: &str =
    "SELECT content_type FROM reference WHERE digest = ?1 AND content_type IS NOT NULL LIMIT 1";

pub(super) const FORGET_CHANNEL: &str =
    "DELETE FROM reference WHERE channel = ?1 AND turn = -1 AND digest <= (SELECT max(digest) FROM
         (SELECT digest FROM reference WHERE channel = ?1 AND turn = -1 ORDER BY digest LIMIT ?2))";

pub(super) fn put(
    conn: &Connection,
    channel: ChannelId,
    turn: Option<u64>,
    digest: &Digest,
    content_type: Option<&str>,
) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO reference (channel, turn, digest, content_type) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (channel, turn, digest) DO UPDATE SET content_type = ?4 WHERE ?4 IS NOT NULL",
    )?
    .execute(params![
        int(channel.0),
        turn.map_or(OF_THE_CHANNEL, int),
        &digest.as_bytes()[..],
        content_type,
    ])?;
    Ok(())
}

/// A part that is gone refers to nothing.
pub(super) fn put_of_part(conn: &Connection, part_id: &str, digest: &Digest) -> Result<()> {
    run(
        conn,
        "INSERT OR IGNORE INTO part_reference (part_id, digest)
         SELECT id, ?2 FROM chat_parts WHERE id = ?1",
        &[&part_id, &&digest.as_bytes()[..]],
    )
}

pub(super) fn forget_turn(conn: &Connection, channel: i64, n: i64) -> Result<()> {
    run(conn, "DELETE FROM reference WHERE channel = ?1 AND turn = ?2", &[&channel, &n])
}

/// Forgets what the channel itself refers to, its turns left out; at most so many.
pub(super) fn forget_channel(conn: &Connection, channel: i64, rows_max: i64) -> Result<i64> {
    let forgotten = conn.prepare_cached(FORGET_CHANNEL)?.execute([channel, rows_max])?;
    Ok(i64::try_from(forgotten).unwrap_or(i64::MAX))
}

pub(super) fn find_unreferenced(conn: &Connection, digests: &[Digest]) -> ReadResult<Vec<Digest>> {
    let mut referred = conn.prepare_cached(REFERRED)?;
    let mut unreferenced = Vec::new();
    for digest in digests {
        if !referred.exists([&digest.as_bytes()[..]])? {
            unreferenced.push(*digest);
        }
    }
    Ok(unreferenced)
}

pub(super) fn content_type(conn: &Connection, digest: &Digest) -> ReadResult<Option<String>> {
    let found = conn
        .prepare_cached(CONTENT_TYPE)?
        .query_row([&digest.as_bytes()[..]], |row| row.get(0))
        .optional()?;
    Ok(found)
}
