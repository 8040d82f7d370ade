//! What models' servers want back of their answers, by turn (G-61).
//!
//! Promises: rows stay as long as a turn of theirs does, in whichever chat it is shown.
//! Must not know: what is in them.

use bytes::Bytes;
use kernel::{ChannelId, ModelOutputRecord};
use rusqlite::{Connection, Result, params};

use super::int;
use super::messages::with_sources;
use super::write::run;

pub(super) const OF_TURN: &str =
    "SELECT round, json FROM model_output WHERE chat = ?1 AND turn_id = ?2 ORDER BY round";

pub(super) fn put(conn: &Connection, output: &ModelOutputRecord) -> Result<()> {
    conn.prepare_cached(
        "INSERT OR REPLACE INTO model_output (chat, turn_id, round, json) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        int(output.chat.0),
        output.turn_id,
        int(output.round),
        &output.json[..],
    ])?;
    Ok(())
}

/// The outputs of turns, each from the nearest chat that has any: a fork's own, then those it came from.
pub(super) fn of_turns(
    conn: &Connection,
    chat: ChannelId,
    turn_ids: &[String],
) -> Result<Vec<ModelOutputRecord>> {
    let chats = with_sources(conn, chat)?;
    let mut statement = conn.prepare_cached(OF_TURN)?;
    let mut found = Vec::new();
    for turn_id in turn_ids {
        for of_chat in &chats {
            let rows = statement.query_map(params![of_chat, turn_id], |row| {
                let (round, json): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
                Ok(ModelOutputRecord {
                    chat,
                    turn_id: turn_id.clone(),
                    round: u64::try_from(round).unwrap_or(0),
                    json: Bytes::from(json),
                })
            })?;
            let rows = rows.collect::<Result<Vec<_>>>()?;
            if !rows.is_empty() {
                found.extend(rows);
                break;
            }
        }
    }
    Ok(found)
}

/// A row of a turn is gone: its outputs go with the last one of its name.
pub(super) fn forget_turn(conn: &Connection, chat: i64, turn_id: &str) -> Result<()> {
    run(
        conn,
        "DELETE FROM model_output WHERE chat = ?1 AND turn_id = ?2
             AND NOT EXISTS (SELECT 1 FROM turn WHERE channel = ?1 AND id = ?2)",
        &[&chat, &turn_id],
    )
}

/// A chat is gone: what no turn of it needs any more.
pub(super) fn forget_chat(conn: &Connection, chat: i64) -> Result<()> {
    run(
        conn,
        "DELETE FROM model_output WHERE chat = ?1 AND NOT EXISTS
             (SELECT 1 FROM turn WHERE channel = ?1 AND turn.id = model_output.turn_id)",
        &[&chat],
    )
}
