//! What turns changed in files, and what sessions did in all (G-53).
//!
//! Promises: rows stay as long as a turn of theirs does, in whichever chat it is shown; that of a session as long as the session.
//! Must not know: what is in them.

use bytes::Bytes;
use kernel::{ChannelId, FileChangesRecord};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::int;
use super::messages::with_sources;
use super::write::run;

pub(super) const OF_TURN: &str =
    "SELECT json FROM file_changes WHERE channel = ?1 AND turn_id = ?2";

pub(super) fn put(conn: &Connection, changes: &FileChangesRecord) -> Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO file_changes (channel, turn_id, json) VALUES (?1, ?2, ?3)",
    )?
    .execute(params![int(changes.channel.0), changes.turn_id, &changes.json[..],])?;
    Ok(())
}

/// The changes of turns, each from the nearest chat that has any: a fork's own, then those it came from.
pub(super) fn of_turns(
    conn: &Connection,
    channel: ChannelId,
    turn_ids: &[String],
) -> Result<Vec<FileChangesRecord>> {
    let chats = with_sources(conn, channel)?;
    let mut statement = conn.prepare_cached(OF_TURN)?;
    let mut found = Vec::new();
    for turn_id in turn_ids {
        for chat in &chats {
            let row = statement.query_row(params![chat, turn_id], |row| row.get(0));
            let json: Option<Vec<u8>> = row.optional()?;
            if let Some(json) = json {
                found.push(FileChangesRecord {
                    channel,
                    turn_id: turn_id.clone(),
                    json: Bytes::from(json),
                });
                break;
            }
        }
    }
    Ok(found)
}

/// A row of a turn is gone: its changes go with the last one of its name.
pub(super) fn forget_turn(conn: &Connection, chat: i64, turn_id: &str) -> Result<()> {
    run(
        conn,
        "DELETE FROM file_changes WHERE channel = ?1 AND turn_id = ?2
             AND NOT EXISTS (SELECT 1 FROM turn WHERE channel = ?1 AND id = ?2)",
        &[&chat, &turn_id],
    )
}

/// A channel is gone: what no turn of it needs any more.
pub(super) fn forget_channel(conn: &Connection, channel: i64) -> Result<()> {
    run(
        conn,
        "DELETE FROM file_changes WHERE channel = ?1 AND NOT EXISTS
             (SELECT 1 FROM turn WHERE channel = ?1 AND turn.id = file_changes.turn_id)",
        &[&channel],
    )
}
