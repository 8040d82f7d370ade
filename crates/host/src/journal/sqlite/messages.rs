//! Messages and their parts: rows beside the turns they belong to (C-080, C-081), and what was seen of them (C-021, G-37).
//!
//! Promises: a part's JSON is what it was given as, to the byte; rows stay as long as a turn of theirs does.
//! Must not know: what a part means.

use bytes::Bytes;
use kernel::{ChannelId, FrozenRecord, LoweredRecord, MessageRecord, PartRecord, StoredMessage};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use serde_json::Value;

use super::write::run;
use super::{int, references};
use crate::journal::JournalError;

/// A turn's messages as they were sent to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedLowering {
    pub turn_id: String,
    pub at: i64,
    pub target: String,
    pub model: String,
    pub blocks: Value,
    pub diagnostics: Value,
}

/// Lowered messages that are stored of a chat (G-37).
const LOWERED_MAX: i64 = 50;

pub(super) const OF_TURN: &str = "SELECT id, turn_id, metadata_json FROM chat_messages WHERE chat = ?1 AND turn_id = ?2 ORDER BY id";

pub(super) const BY_ID: &str = "SELECT id, turn_id, metadata_json FROM chat_messages WHERE id = ?1";

pub(super) const PARTS: &str = "SELECT chat_parts.id, type, data_json, frozen.json FROM chat_parts
     LEFT JOIN frozen ON frozen.part_id = chat_parts.id WHERE message_id = ?1 ORDER BY \"index\"";

const SOURCES: &str = "SELECT source FROM turn_range WHERE chat = ?1 ORDER BY pos DESC";

pub(super) fn put(conn: &Connection, message: &MessageRecord) -> Result<()> {
    conn.prepare_cached(
        "INSERT INTO chat_messages
             (id, session_id, chat, turn_id, role, metadata_json, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, 'user', ?5, ?6, ?6)",
    )?
    .execute(params![
        message.id,
        int(message.session.0),
        int(message.chat.0),
        message.turn_id,
        text(&message.metadata),
        message.at.0,
    ])?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO chat_parts
             (id, message_id, session_id, \"index\", type, data_json, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
    )?;
    for (index, part) in (0_i64..).zip(&message.parts) {
        insert.execute(params![
            part.id,
            message.id,
            int(message.session.0),
            index,
            part.kind,
            text(&part.json),
            message.at.0,
        ])?;
    }
    Ok(())
}

/// JSON is text: whoever looks into the file should be able to read it.
fn text(json: &[u8]) -> String {
    String::from_utf8_lossy(json).into_owned()
}

pub(super) fn started(conn: &Connection, id: &str, turn_id: &str) -> Result<()> {
    run(conn, "UPDATE chat_messages SET turn_id = ?2 WHERE id = ?1", &[&id, &turn_id])
}

pub(super) fn forget(conn: &Connection, id: &str) -> Result<()> {
    run(
        conn,
        "DELETE FROM part_reference WHERE part_id IN
             (SELECT id FROM chat_parts WHERE message_id = ?1)",
        &[&id],
    )?;
    run(
        conn,
        "DELETE FROM frozen WHERE part_id IN (SELECT id FROM chat_parts WHERE message_id = ?1)",
        &[&id],
    )?;
    run(conn, "DELETE FROM chat_parts WHERE message_id = ?1", &[&id])?;
    run(conn, "DELETE FROM chat_messages WHERE id = ?1", &[&id])
}

/// A row of a turn is gone: its messages go with the last one of its name.
pub(super) fn forget_turn(conn: &Connection, chat: i64, turn_id: &str) -> Result<()> {
    let gone: Vec<String> = conn
        .prepare_cached(
            "SELECT id FROM chat_messages WHERE chat = ?1 AND turn_id = ?2
                 AND NOT EXISTS (SELECT 1 FROM turn WHERE channel = ?1 AND id = ?2)",
        )?
        .query_map(params![chat, turn_id], |row| row.get(0))?
        .collect::<Result<_>>()?;
    gone.iter().try_for_each(|id| forget(conn, id))
}

/// A chat is gone: what no turn of it needs any more, and all that was only looked at.
pub(super) fn forget_chat(conn: &Connection, chat: i64) -> Result<()> {
    let gone: Vec<String> = conn
        .prepare_cached(
            "SELECT id FROM chat_messages WHERE chat = ?1 AND NOT EXISTS
                 (SELECT 1 FROM turn WHERE channel = ?1 AND turn.id = chat_messages.turn_id)",
        )?
        .query_map([chat], |row| row.get(0))?
        .collect::<Result<_>>()?;
    gone.iter().try_for_each(|id| forget(conn, id))?;
    run(conn, "DELETE FROM lowered WHERE chat = ?1", &[&chat])
}

pub(super) fn freeze(conn: &Connection, frozen: &FrozenRecord) -> Result<()> {
    // The first time counts, and only for a part that is still there.
    let frozen_now = conn
        .prepare_cached(
            "INSERT OR IGNORE INTO frozen (part_id, json)
             SELECT id, ?2 FROM chat_parts WHERE id = ?1",
        )?
        .execute(params![frozen.part_id, &frozen.json[..]])?;
    match &frozen.digest {
        Some(digest) if frozen_now > 0 => references::put_of_part(conn, &frozen.part_id, digest),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn lowered(conn: &Connection, lowered: &LoweredRecord) -> Result<()> {
    let chat = int(lowered.chat.0);
    conn.prepare_cached(
        "INSERT INTO lowered (chat, turn_id, at, provider, model, blocks_json, diagnostics_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        chat,
        lowered.turn_id,
        lowered.at.0,
        lowered.target,
        lowered.model,
        text(&lowered.blocks),
        text(&lowered.diagnostics),
    ])?;
    run(
        conn,
        "DELETE FROM lowered WHERE chat = ?1 AND id <= (SELECT id FROM lowered
             WHERE chat = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        &[&chat, &LOWERED_MAX],
    )
}

/// A chat and those it was forked from, the nearest first.
pub(super) fn with_sources(conn: &Connection, chat: ChannelId) -> Result<Vec<i64>> {
    let mut chats = vec![int(chat.0)];
    let mut statement = conn.prepare_cached(SOURCES)?;
    for source in statement.query_map([int(chat.0)], |row| row.get(0))? {
        chats.push(source?);
    }
    Ok(chats)
}

/// The messages of turns, each from the nearest chat that has it: a fork's own, then those it came from.
pub(super) fn of_turns(
    conn: &Connection,
    chat: ChannelId,
    turn_ids: &[String],
) -> Result<Vec<StoredMessage>> {
    let chats = with_sources(conn, chat)?;
    let mut statement = conn.prepare_cached(OF_TURN)?;
    let mut found = Vec::new();
    for turn_id in turn_ids {
        for chat in &chats {
            let rows = statement
                .query_map(params![chat, turn_id], head_at)?
                .collect::<Result<Vec<_>>>()?;
            if !rows.is_empty() {
                for message in rows {
                    found.push(with_parts(conn, message)?);
                }
                break;
            }
        }
    }
    Ok(found)
}

pub(super) fn by_id(conn: &Connection, id: &str) -> Result<Option<StoredMessage>> {
    let found = conn.prepare_cached(BY_ID)?.query_row([id], head_at).optional()?;
    found.map(|message| with_parts(conn, message)).transpose()
}

fn head_at(row: &Row<'_>) -> Result<StoredMessage> {
    Ok(StoredMessage {
        id: row.get(0)?,
        turn_id: row.get(1)?,
        metadata: Bytes::from(row.get::<_, String>(2)?),
        parts: Vec::new(),
    })
}

fn with_parts(conn: &Connection, mut message: StoredMessage) -> Result<StoredMessage> {
    let mut statement = conn.prepare_cached(PARTS)?;
    let parts = statement.query_map([&message.id], |row| {
        let part = PartRecord {
            id: row.get(0)?,
            kind: row.get(1)?,
            json: Bytes::from(row.get::<_, String>(2)?),
        };
        let frozen: Option<Vec<u8>> = row.get(3)?;
        Ok((part, frozen.map(Bytes::from)))
    })?;
    message.parts = parts.collect::<Result<_>>()?;
    Ok(message)
}

/// What was sent to models in a chat, the oldest first.
pub(super) fn lowered_of(
    conn: &Connection,
    chat: u64,
) -> std::result::Result<Vec<ArchivedLowering>, JournalError> {
    let unread = |error: rusqlite::Error| JournalError::Unreadable(error.to_string());
    let mut statement = conn
        .prepare_cached(
            "SELECT turn_id, at, provider, model, blocks_json, diagnostics_json FROM lowered
             WHERE chat = ?1 ORDER BY id",
        )
        .map_err(unread)?;
    let rows = statement
        .query_map([int(chat)], |row| {
            let json = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
            Ok(ArchivedLowering {
                turn_id: row.get(0)?,
                at: row.get(1)?,
                target: row.get(2)?,
                model: row.get(3)?,
                blocks: json(row.get(4)?),
                diagnostics: json(row.get(5)?),
            })
        })
        .map_err(unread)?;
    rows.collect::<Result<_>>().map_err(unread)
}
