//! Rows out of a journal in SQLite, and into one.
//!
//! Promises: reading sees one state of the file; writing is one transaction. What SQLite numbers for itself is found by what it
//! stands for.
//! Must not know: where rows come from or go to.

use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, params};
use serde_json::{Value, json};
use wire::Digest;

use super::row::{CarriedRow, RowValue, TableDigest, TableSum};
use super::tables::{CarriedTable, LAYOUTS};
use crate::journal::sqlite::SMALL_BYTES_MAX;

impl ToSql for RowValue {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// JSON that SQLite holds as text, for people who look into the file.
struct AsText<'a>(&'a RowValue);

impl ToSql for AsText<'_> {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self.0 {
            RowValue::Bytes(bytes) => Ok(ToSqlOutput::Borrowed(ValueRef::Text(bytes))),
            other @ (RowValue::Null | RowValue::Int(_) | RowValue::Text(_)) => other.to_sql(),
        }
    }
}

/// A connection for this alone; whoever calls holds the lock of the directory.
pub(super) fn connect(dir: &Path) -> Result<Connection> {
    let conn = Connection::open(dir.join(super::JOURNAL_FILE))?;
    conn.execute_batch(
        "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA synchronous = FULL;",
    )?;
    Ok(conn)
}

/// The last seq, and that through which the log was trimmed.
pub(super) fn read_counters(conn: &Connection) -> Result<(i64, i64)> {
    let read = |key: &str| {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        conn.query_row(sql, [key], |row| row.get(0))
    };
    Ok((read("seq")?, read("log_floor")?))
}

pub(super) fn write_counters(conn: &Connection, seq: i64, log_floor: i64) -> Result<()> {
    for (key, value) in [("seq", seq), ("log_floor", log_floor)] {
        let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
        conn.execute(sql, params![key, value])?;
    }
    Ok(())
}

/// Hands over the rows of a table in order, until told to stop.
pub(super) fn read_rows(
    conn: &Connection,
    table: &CarriedTable,
    mut take: impl FnMut(CarriedRow) -> bool,
) -> Result<TableSum> {
    let mut digest = TableDigest::default();
    let mut statement = conn.prepare(table.sqlite)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let row = read_row(conn, table, row)?;
        digest.add(&row);
        if !take(row) {
            break; // nobody wants the rest
        }
    }
    Ok(digest.finish())
}

fn read_row(conn: &Connection, table: &CarriedTable, row: &Row<'_>) -> Result<CarriedRow> {
    let cells = (0..table.columns.len()).map(|column| {
        let cell = match row.get_ref(column)? {
            ValueRef::Null => RowValue::Null,
            ValueRef::Integer(number) => RowValue::Int(number),
            ValueRef::Text(text) => RowValue::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => RowValue::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => {
                return Err(rusqlite::Error::InvalidColumnType(
                    column,
                    table.name.to_owned(),
                    rusqlite::types::Type::Real,
                ));
            }
        };
        if table.name == "model_call" && LAYOUTS.contains(&column) {
            name_pieces(conn, cell)
        } else {
            Ok(cell)
        }
    });
    cells.collect()
}

/// Pieces by their digest and type instead of the number of their row.
fn name_pieces(conn: &Connection, layout: RowValue) -> Result<RowValue> {
    let sql = "SELECT digest, coalesce(content_type, '') FROM sent_piece WHERE id = ?1";
    let mut find = conn.prepare_cached(sql)?;
    change_layout(layout, |piece| {
        let Some(id) = piece.as_i64() else {
            return Ok(None); // a text, which stands for itself
        };
        let found = find.query_row([id], |row| {
            let digest = Digest::new(row.get(0)?);
            Ok(json!({"digest": digest.to_hex(), "type": row.get::<_, String>(1)?}))
        });
        found.optional()
    })
}

/// The way back.
fn number_pieces(conn: &Connection, chat: &RowValue, layout: RowValue) -> Result<RowValue> {
    let sql = "SELECT id FROM sent_piece WHERE chat = ?1 AND digest = ?2 AND content_type IS nullif(?3, '')";
    let mut find = conn.prepare_cached(sql)?;
    change_layout(layout, |piece| {
        let digest = piece["digest"].as_str().and_then(Digest::from_hex);
        let (Some(digest), Some(kind)) = (digest, piece["type"].as_str()) else {
            return Ok(None); // a text, or a piece that was gone before
        };
        let found = find.query_row(params![chat, &digest.as_bytes()[..], kind], |row| {
            Ok(json!(row.get::<_, i64>(0)?))
        });
        found.optional()
    })
}

/// A layout with some of its pieces changed. One that cannot be read is left as it is.
fn change_layout(
    layout: RowValue,
    mut change: impl FnMut(&Value) -> Result<Option<Value>>,
) -> Result<RowValue> {
    let RowValue::Bytes(bytes) = &layout else { return Ok(layout) };
    let Ok(mut pieces) = serde_json::from_slice::<Vec<Value>>(bytes) else { return Ok(layout) };
    for piece in &mut pieces {
        if let Some(changed) = change(piece)? {
            *piece = changed;
        }
    }
    Ok(RowValue::Bytes(Value::Array(pieces).to_string().into_bytes()))
}

/// Writes one row.
pub(super) fn write_row(
    conn: &Connection,
    table: &CarriedTable,
    mut row: CarriedRow,
) -> Result<()> {
    if table.name == "model_call" {
        let chat = row.first().cloned().unwrap_or(RowValue::Null);
        for column in LAYOUTS {
            if let Some(layout) = row.get_mut(column) {
                let before = std::mem::replace(layout, RowValue::Null);
                *layout = number_pieces(conn, &chat, before)?;
            }
        }
    }
    for sql in statements(table, &row) {
        let mut statement = conn.prepare_cached(sql)?;
        for (index, cell) in row.iter().enumerate() {
            // A statement names by their numbers the values that it needs.
            if index < statement.parameter_count() {
                if is_text(table.name, index) {
                    statement.raw_bind_parameter(index + 1, AsText(cell))?
                } else {
                    statement.raw_bind_parameter(index + 1, cell)?
                }
            }
        }
        statement.raw_execute()?;
    }
    Ok(())
}

/// Columns of bytes that are text in SQLite.
fn is_text(table: &str, column: usize) -> bool {
    match table {
        "message" => column == 5,
        "part" => column == 4,
        "render" => matches!(column, 3 | 4 | 6),
        "lowered" => matches!(column, 5 | 6),
        "model_call" => matches!(column, 12..=14),
        _ => false,
    }
}

fn is_large(row: &[RowValue]) -> bool {
    matches!(row.get(2), Some(RowValue::Bytes(bytes)) if bytes.len() > SMALL_BYTES_MAX)
}

/// What puts a row where it belongs. Values are numbered as the columns are.
fn statements(table: &CarriedTable, row: &[RowValue]) -> &'static [&'static str] {
    match table.name {
        "channel" => &["INSERT INTO channel (id, uri, kind, parent, duty, disposed_at, head_seq, private, head)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, x'', x'')"],
        "head" => &["UPDATE channel SET head_seq = ?2, private = ?3, head = ?4 WHERE id = ?1"],
        "action" if is_large(row) => &[
            "INSERT INTO action (channel, seq, bytes) VALUES (?1, ?2, x'')",
            "INSERT INTO large_action (channel, seq, bytes) VALUES (?1, ?2, ?3)",
        ],
        "action" => &["INSERT INTO action (channel, seq, bytes) VALUES (?1, ?2, ?3)"],
        "turn" => &[
            "INSERT INTO turn_body (bytes) VALUES (?7)",
            "INSERT INTO turn (channel, n, id, outcome, hidden_at, size, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, last_insert_rowid())",
        ],
        "turn_range" => &["INSERT INTO turn_range (chat, pos, source, first_n, last_n, visible_n, as_of)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"],
        "summary" => &["INSERT INTO summary (session, uri, modified, created, empty, creator, json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"],
        "client" => &["INSERT INTO client (client_id, version, capabilities, locale, last_seen_ms, transform)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)"],
        "floor" => &["INSERT INTO floor (client_id, channel, floor, replaced, oldest_turn, view_turns, max_latency_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"],
        "checkpoint" => &["INSERT INTO checkpoint (chat, turn_id, data) VALUES (?1, ?2, ?3)"],
        "message" => &["INSERT INTO chat_messages (id, session_id, chat, turn_id, role, created_at, updated_at, metadata_json)
             VALUES (?1, ?2, ?3, ?4, 'user', ?5, ?5, ?6)"],
        "part" => &["INSERT INTO chat_parts (id, message_id, session_id, \"index\", type, created_at, updated_at, data_json)
             SELECT ?1, ?2, session_id, ?3, ?4, created_at, created_at, ?5 FROM chat_messages WHERE id = ?2"],
        "frozen" => &["INSERT INTO frozen (part_id, json) VALUES (?1, ?2)"],
        "part_reference" => &["INSERT INTO part_reference (part_id, digest) VALUES (?1, ?2)"],
        "model_output" => &["INSERT INTO model_output (chat, turn_id, round, json) VALUES (?1, ?2, ?3, ?4)"],
        "file_changes" => &["INSERT INTO file_changes (channel, turn_id, json) VALUES (?1, ?2, ?3)"],
        "reference" => &["INSERT INTO reference (channel, turn, digest, content_type) VALUES (?1, ?2, ?3, ?4)"],
        "render" => &["INSERT INTO render (chat, turn_id, at, before_json, after_json, outcome, asked_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"],
        "lowered" => &["INSERT INTO lowered (chat, turn_id, at, provider, model, blocks_json, diagnostics_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"],
        "sent_piece" if matches!(row.get(5), Some(RowValue::Bytes(_))) => &[
            "INSERT INTO sent_piece (chat, digest, content_type, size, last_call) VALUES (?1, ?2, nullif(?3, ''), ?4, ?5)",
            "INSERT INTO sent_piece_body (id, bytes) VALUES (last_insert_rowid(), ?6)",
        ],
        "sent_piece" => &[
            "INSERT INTO sent_piece (chat, digest, content_type, size, last_call) VALUES (?1, ?2, nullif(?3, ''), ?4, ?5)",
        ],
        "model_call" => &["INSERT INTO model_call (chat, n, key, turn_id, at, ended_at, purpose, round, api, model,
                 body_bytes, body_digest, body_layout, details_layout, end_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"],
        // Then its rows are missed when both sides are compared.
        _ => &[],
    }
}
