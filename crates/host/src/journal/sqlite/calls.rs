//! What models were asked, call by call, for the operator's eyes alone (G-37).
//!
//! Promises: a piece of a request is stored once for each chat, however many calls repeat it; calls are numbered from 1 in
//! their chat, and none gets the number of another that can still be seen; what is too old or too much goes with the call
//! that comes.
//! Must not know: what is in a request.

use bytes::Bytes;
use kernel::{DocumentPiece, ModelCallEndRecord, ModelCallRecord};
use rusqlite::{Connection, OptionalExtension, Result, params};
use serde_json::{Value, json};
use wire::Digest;

use super::write::run;
use super::{int, unread};
use crate::journal::JournalError;

/// What goes with each call: pieces that no later one repeats, and the layouts of its documents, which hold texts as well.
const SIZES: &str = "SELECT call, sum(size) FROM (
         SELECT last_call AS call, size FROM sent_piece WHERE chat = ?1 AND content_type IS NULL
         UNION ALL
         SELECT n, octet_length(body_layout) + octet_length(details_layout) FROM model_call WHERE chat = ?1)
     GROUP BY call ORDER BY call DESC";

/// A call as it was stored, without what was sent in it: see [`super::Archive::read_request`].
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedCall {
    pub number: u64,
    pub turn_id: String,
    /// Milliseconds since 1970.
    pub at: i64,
    /// None while it runs, and of a call whose host did not live to see its end.
    pub ended_at: Option<i64>,
    pub purpose: String,
    pub round: u64,
    pub api: String,
    pub model: String,
    pub body_bytes: u64,
    pub body_digest: Digest,
    /// How it ended: `outcome`, `reason`, tokens, `cost`.
    pub end: Option<Value>,
    body_layout: String,
    details_layout: String,
}

/// What was sent in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedRequest {
    pub body: Vec<ArchivedPiece>,
    /// JSON: where it went, sections of the prompt, what became of the parts of messages.
    pub details: Vec<ArchivedPiece>,
}

/// A piece of a stored document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchivedPiece {
    Text(Vec<u8>),
    /// Base64 of a body in the blob store.
    Body {
        digest: Digest,
        bytes: u64,
        content_type: String,
    },
}

/// Key of a call in the table.
#[derive(Clone, Copy)]
struct CallRow {
    chat: i64,
    number: i64,
}

pub(super) fn put(conn: &Connection, call: &ModelCallRecord) -> Result<()> {
    let chat = int(call.chat.0);
    let number: i64 = conn
        .prepare_cached("SELECT coalesce(max(n), 0) + 1 FROM model_call WHERE chat = ?1")?
        .query_row([chat], |row| row.get(0))?;
    let row = CallRow { chat, number };
    let body = put_document(conn, row, &call.body)?;
    let details = put_document(conn, row, &call.details)?;
    conn.prepare_cached(
        "INSERT INTO model_call (chat, n, key, turn_id, at, purpose, round, api, model, body_bytes, body_digest,
             body_layout, details_layout)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        chat,
        number,
        int(call.key),
        call.turn_id,
        call.at.0,
        call.purpose,
        int(call.round),
        call.api,
        call.model,
        int(call.body_bytes),
        &call.body_digest.as_bytes()[..],
        body,
        details,
    ])?;
    let oldest = number.saturating_sub(int(call.calls_max));
    let floor = oldest.max(find_floor(conn, chat, call.bytes_max)?);
    forget_through(conn, chat, floor.min(number - 1))
}

/// Stores the pieces of a document that are new; what it is made of, as JSON: texts, and numbers of pieces.
fn put_document(conn: &Connection, call: CallRow, pieces: &[DocumentPiece]) -> Result<String> {
    let mut layout = Vec::with_capacity(pieces.len());
    for piece in pieces {
        layout.push(match piece {
            DocumentPiece::Short(text) => match std::str::from_utf8(text) {
                Ok(text) => json!(text),
                Err(_) => {
                    let digest = crate::blobs::digest_of(text);
                    json!(put_text(conn, call, &digest, text)?)
                }
            },
            DocumentPiece::Shared { digest, bytes } => {
                json!(put_text(conn, call, digest, bytes)?)
            }
            DocumentPiece::Body { digest, bytes, content_type } => {
                json!(put_piece(conn, call, digest, *bytes, Some(content_type))?.0)
            }
        });
    }
    Ok(Value::Array(layout).to_string())
}

fn put_text(conn: &Connection, call: CallRow, digest: &Digest, bytes: &Bytes) -> Result<i64> {
    let (id, is_new) = put_piece(conn, call, digest, bytes.len() as u64, None)?;
    if is_new {
        run(conn, "INSERT INTO sent_piece_body (id, bytes) VALUES (?1, ?2)", &[&id, &&bytes[..]])?;
    }
    Ok(id)
}

/// The row of a piece, and whether it is new.
fn put_piece(
    conn: &Connection,
    call: CallRow,
    digest: &Digest,
    size: u64,
    content_type: Option<&str>,
) -> Result<(i64, bool)> {
    let found: Option<i64> = conn
        .prepare_cached(
            "SELECT id FROM sent_piece WHERE chat = ?1 AND digest = ?2 AND content_type IS ?3",
        )?
        .query_row(params![call.chat, &digest.as_bytes()[..], content_type], |row| row.get(0))
        .optional()?;
    if let Some(id) = found {
        run(conn, "UPDATE sent_piece SET last_call = ?2 WHERE id = ?1", &[&id, &call.number])?;
        return Ok((id, false));
    }
    conn.prepare_cached(
        "INSERT INTO sent_piece (chat, digest, content_type, size, last_call) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        call.chat,
        &digest.as_bytes()[..],
        content_type,
        int(size),
        call.number
    ])?;
    Ok((conn.last_insert_rowid(), true))
}

/// The newest call that must go, so that the later ones take no more than this. Bodies lie elsewhere, and
/// mostly lie there anyway.
fn find_floor(conn: &Connection, chat: i64, bytes_max: u64) -> Result<i64> {
    let mut statement = conn.prepare_cached(SIZES)?;
    let mut rows = statement.query([chat])?;
    let mut bytes: i64 = 0;
    while let Some(row) = rows.next()? {
        let (last_call, size): (i64, i64) = (row.get(0)?, row.get(1)?);
        bytes = bytes.saturating_add(size);
        if bytes > int(bytes_max) {
            return Ok(last_call);
        }
    }
    Ok(0)
}

/// Calls up to this one go, and the pieces that no later one repeated.
fn forget_through(conn: &Connection, chat: i64, floor: i64) -> Result<()> {
    run(
        conn,
        "DELETE FROM sent_piece_body WHERE id IN (SELECT id FROM sent_piece WHERE chat = ?1 AND last_call <= ?2)",
        &[&chat, &floor],
    )?;
    run(conn, "DELETE FROM sent_piece WHERE chat = ?1 AND last_call <= ?2", &[&chat, &floor])?;
    run(conn, "DELETE FROM model_call WHERE chat = ?1 AND n <= ?2", &[&chat, &floor])
}

/// How a call ended. One that is gone has no end.
pub(super) fn put_end(conn: &Connection, end: &ModelCallEndRecord) -> Result<()> {
    let json = String::from_utf8_lossy(&end.json);
    run(
        conn,
        "UPDATE model_call SET ended_at = ?2, end_json = ?3 WHERE key = ?1",
        &[&int(end.key), &end.at.0, &json],
    )
}

pub(super) fn forget_chat(conn: &Connection, chat: i64) -> Result<()> {
    forget_through(conn, chat, i64::MAX)
}

/// The calls of a chat, the oldest first.
pub(super) fn of_chat(
    conn: &Connection,
    chat: u64,
) -> std::result::Result<Vec<ArchivedCall>, JournalError> {
    let mut statement = conn
        .prepare_cached(
            "SELECT n, turn_id, at, ended_at, purpose, round, api, model, body_bytes, body_digest, end_json,
                 body_layout, details_layout
             FROM model_call WHERE chat = ?1 ORDER BY n",
        )
        .map_err(unread)?;
    let rows = statement
        .query_map([int(chat)], |row| {
            let number = |at: usize| -> Result<u64> {
                Ok(u64::try_from(row.get::<_, i64>(at)?).unwrap_or(0))
            };
            let end: Option<String> = row.get(10)?;
            Ok(ArchivedCall {
                number: number(0)?,
                turn_id: row.get(1)?,
                at: row.get(2)?,
                ended_at: row.get(3)?,
                purpose: row.get(4)?,
                round: number(5)?,
                api: row.get(6)?,
                model: row.get(7)?,
                body_bytes: number(8)?,
                body_digest: Digest::new(row.get(9)?),
                end: end.and_then(|end| serde_json::from_str(&end).ok()),
                body_layout: row.get(11)?,
                details_layout: row.get(12)?,
            })
        })
        .map_err(unread)?;
    rows.collect::<Result<_>>().map_err(unread)
}

pub(super) fn request(
    conn: &Connection,
    call: &ArchivedCall,
) -> std::result::Result<ArchivedRequest, JournalError> {
    Ok(ArchivedRequest {
        body: read_document(conn, &call.body_layout)?,
        details: read_document(conn, &call.details_layout)?,
    })
}

fn read_document(
    conn: &Connection,
    layout: &str,
) -> std::result::Result<Vec<ArchivedPiece>, JournalError> {
    let damaged = |what: &str| JournalError::Unreadable(format!("a call is damaged: {what}"));
    let layout: Vec<Value> =
        serde_json::from_str(layout).map_err(|error| damaged(&error.to_string()))?;
    let mut statement = conn
        .prepare_cached(
            "SELECT digest, content_type, size, bytes FROM sent_piece LEFT JOIN sent_piece_body USING (id)
             WHERE sent_piece.id = ?1",
        )
        .map_err(unread)?;
    let mut read = |id: i64| {
        let piece = statement
            .query_row([id], |row| {
                let content_type: Option<String> = row.get(1)?;
                Ok(match content_type {
                    Some(content_type) => ArchivedPiece::Body {
                        digest: Digest::new(row.get(0)?),
                        bytes: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
                        content_type,
                    },
                    None => ArchivedPiece::Text(row.get(3)?),
                })
            })
            .optional()
            .map_err(unread)?;
        piece.ok_or_else(|| damaged("a piece of it is gone"))
    };
    let pieces = layout.into_iter().map(|piece| match piece {
        Value::String(text) => Ok(ArchivedPiece::Text(text.into_bytes())),
        piece => match piece.as_i64() {
            Some(id) => read(id),
            None => Err(damaged("it has pieces of an unknown kind")),
        },
    });
    pieces.collect()
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
