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

/// The outputs of the last of some turns, as many as fit, each from the nearest chat that has any: a fork's own, then those it
/// came from.
pub(super) fn of_turns(
    conn: &Connection,
    chat: ChannelId,
    turn_ids: &[String],
    bytes_max: u64,
) -> Result<Vec<ModelOutputRecord>> {
    let chats = with_sources(conn, chat)?;
    let mut found = Vec::new();
    let mut left = bytes_max;
    for turn_id in turn_ids.iter().rev() {
        let Some(outputs) = of_turn(conn, &chats, chat, turn_id, &mut left)? else {
            break; // there is no room for it, nor for those before it
        };
        found.push(outputs);
    }
    found.reverse();
    Ok(found.into_iter().flatten().collect())
}

/// The outputs of one turn; `None` if they have more bytes than are left.
fn of_turn(
    conn: &Connection,
    chats: &[i64],
    chat: ChannelId,
    turn_id: &str,
    left: &mut u64,
) -> Result<Option<Vec<ModelOutputRecord>>> {
    let mut statement = conn.prepare_cached(OF_TURN)?;
    let mut outputs = Vec::new();
    for of_chat in chats {
        let mut rows = statement.query(params![of_chat, turn_id])?;
        while let Some(row) = rows.next()? {
            let (round, json): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let Some(rest) = left.checked_sub(json.len() as u64) else { return Ok(None) };
            *left = rest;
            outputs.push(ModelOutputRecord {
                chat,
                turn_id: turn_id.to_owned(),
                round: u64::try_from(round).unwrap_or(0),
                json: Bytes::from(json),
            });
        }
        if !outputs.is_empty() {
            break;
        }
    }
    Ok(Some(outputs))
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
