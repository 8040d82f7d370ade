//! The tables of the journal, their format version, and the way from every older format to this one (ADR 0003).
//!
//! Promises: a journal of a newer format, or a file that is no journal, is refused untouched; a migration happens
//! whole or not at all.
//! Must not know: what the columns are used for.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::migrations;
use crate::journal::JournalError;

/// One step of the chain: from the format before it to its own.
pub(super) type Migration = fn(&Transaction<'_>) -> rusqlite::Result<()>;

/// Step `i` leads from format `i` to format `i + 1`; format 0 is an empty file. Steps are only ever added: a journal
/// written by any release walks the same way.
pub(super) const MIGRATIONS: &[Migration] = &[
    format_1,
    format_2,
    format_3,
    format_4,
    migrations::refer_by_part,
    migrations::part_large_rows,
    migrations::store_outputs,
    migrations::store_calls,
    migrations::store_file_changes,
];

/// "GRjl": distinguishes a journal from any other SQLite file.
const APPLICATION_ID: i32 = 0x4752_6a6c;

/// Brings the file to the last format of `chain`.
pub(super) fn migrate(conn: &mut Connection, chain: &[Migration]) -> Result<(), JournalError> {
    let found = check(conn, chain.len())?;
    for (index, step) in chain.iter().enumerate().skip(found) {
        advance(conn, index + 1, *step).map_err(|error| {
            JournalError::Unwritable(format!("the journal could not be migrated to format {}: {error}; it is unchanged. Free some space and start again", index + 1))
        })?;
    }
    Ok(())
}

/// The format of the file, if this program can read it.
pub(super) fn check(conn: &Connection, newest: usize) -> Result<usize, JournalError> {
    let unreadable = |error: rusqlite::Error| JournalError::Unreadable(error.to_string());
    let number = |pragma| conn.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let format = number("user_version").map_err(unreadable)?;
    let owner = number("application_id").map_err(unreadable)?;
    let tables: i64 = conn
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(unreadable)?;
    if owner != APPLICATION_ID && (tables > 0 || format != 0) {
        return Err(JournalError::Format(
            "`journal.sqlite` in the data directory was not written by greenroom; \
             choose another data directory or move that file away"
                .to_owned(),
        ));
    }
    match usize::try_from(format) {
        Ok(format) if format <= newest => Ok(format),
        _ => Err(JournalError::Format(format!(
            "the journal has format {format}, this greenroom knows formats up to {newest}: it was written by a \
             newer greenroom; run that version or a later one, or choose another data directory"
        ))),
    }
}

fn advance(conn: &mut Connection, format: usize, step: Migration) -> rusqlite::Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    step(&tx)?;
    let format = i32::try_from(format).unwrap_or(i32::MAX);
    tx.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('format', ?1)", [format])?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", format)?;
    tx.commit()
}

fn format_1(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(FORMAT_1)
}

fn format_2(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(FORMAT_2)
}

fn format_3(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(FORMAT_3)
}

fn format_4(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.execute_batch(FORMAT_4)
}

/// Columns that are scanned stand before those that are only fetched: SQLite reads a row from its front.
const FORMAT_1: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta (key, value) VALUES ('seq', 0), ('log_floor', 0);

CREATE TABLE channel (
    id INTEGER PRIMARY KEY,
    uri TEXT NOT NULL,
    kind INTEGER NOT NULL,
    parent INTEGER,
    head_seq INTEGER NOT NULL,
    duty INTEGER NOT NULL,
    disposed_at INTEGER,
    private BLOB NOT NULL,
    head BLOB NOT NULL
);
CREATE UNIQUE INDEX channel_uri ON channel (uri) WHERE disposed_at IS NULL;
CREATE INDEX channel_duty ON channel (id) WHERE duty != 0 AND disposed_at IS NULL;
CREATE INDEX channel_parent ON channel (parent) WHERE parent IS NOT NULL;
CREATE INDEX channel_disposed ON channel (disposed_at) WHERE disposed_at IS NOT NULL;

CREATE TABLE action (
    channel INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (channel, seq)
) WITHOUT ROWID;

-- A turn's row is small and is changed when it is hidden; its body is large and is written once.
CREATE TABLE turn (
    channel INTEGER NOT NULL,
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    outcome INTEGER NOT NULL,
    hidden_at INTEGER,
    size INTEGER NOT NULL,
    body INTEGER NOT NULL,
    PRIMARY KEY (channel, n)
) WITHOUT ROWID;
CREATE INDEX turn_id ON turn (channel, id);
CREATE INDEX turn_visible ON turn (channel, n) WHERE hidden_at IS NULL;
CREATE TABLE turn_body (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);

-- What a fork sees of other chats: rows of `source` from first_n to visible_n that were visible as of `as_of`.
-- A truncate of the fork lowers visible_n; last_n stays, so that no number is used twice.
CREATE TABLE turn_range (
    chat INTEGER NOT NULL,
    pos INTEGER NOT NULL,
    source INTEGER NOT NULL,
    first_n INTEGER NOT NULL,
    last_n INTEGER NOT NULL,
    visible_n INTEGER NOT NULL,
    as_of INTEGER NOT NULL,
    PRIMARY KEY (chat, pos)
) WITHOUT ROWID;
CREATE INDEX turn_range_source ON turn_range (source);

CREATE TABLE summary (
    session INTEGER PRIMARY KEY,
    uri TEXT NOT NULL,
    modified INTEGER NOT NULL,
    created INTEGER NOT NULL,
    empty INTEGER NOT NULL,
    creator TEXT,
    json BLOB NOT NULL
);
CREATE INDEX summary_modified ON summary (modified DESC, session DESC);
CREATE INDEX summary_empty ON summary (created, session) WHERE empty = 1;

CREATE TABLE client (
    client_id TEXT PRIMARY KEY,
    version TEXT NOT NULL,
    capabilities TEXT,
    locale TEXT,
    last_seen_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX client_last_seen ON client (last_seen_ms);

CREATE TABLE floor (
    client_id TEXT NOT NULL,
    channel TEXT NOT NULL,
    floor INTEGER NOT NULL,
    replaced INTEGER NOT NULL,
    oldest_turn TEXT,
    view_turns INTEGER,
    max_latency_ms INTEGER,
    PRIMARY KEY (client_id, channel)
) WITHOUT ROWID;

CREATE TABLE checkpoint (chat INTEGER PRIMARY KEY, turn_id TEXT NOT NULL, data BLOB NOT NULL);

-- The typed message and its parts (C-080, C-081); a message belongs to a turn by the turn's id.
CREATE TABLE chat_messages (
    id INTEGER PRIMARY KEY,
    chat INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    role TEXT NOT NULL,
    schema_version INTEGER NOT NULL,
    metadata_json TEXT NOT NULL
);
CREATE INDEX chat_messages_turn ON chat_messages (chat, turn_id);
CREATE TABLE chat_parts (
    message INTEGER NOT NULL,
    pos INTEGER NOT NULL,
    type TEXT NOT NULL,
    data_json TEXT NOT NULL,
    PRIMARY KEY (message, pos)
);

-- Bodies lie in files named by their content (C-034); the row says what they are and that they are used.
CREATE TABLE blobs (
    content_id TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    mime TEXT,
    created_at INTEGER NOT NULL,
    refcount INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX blobs_unused ON blobs (created_at) WHERE refcount = 0;

-- What the model was sent, for `inspect` only (G-37).
CREATE TABLE render (
    id INTEGER PRIMARY KEY,
    chat INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    before_json TEXT NOT NULL,
    after_json TEXT NOT NULL,
    outcome TEXT NOT NULL
);
CREATE INDEX render_chat ON render (chat, id);
CREATE TABLE lowered (
    id INTEGER PRIMARY KEY,
    chat INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    blocks_json TEXT NOT NULL,
    diagnostics_json TEXT NOT NULL
);
CREATE INDEX lowered_chat ON lowered (chat, id);
";

/// Who refers to content. `turn` is -1 for what is stored as long as its channel. The table of format 1 that counted
/// references was never written: a count does not show whose they are, and so not when they end.
const FORMAT_2: &str = "
DROP TABLE blobs;
CREATE TABLE reference (
    channel INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    digest BLOB NOT NULL,
    content_type TEXT,
    PRIMARY KEY (channel, turn, digest)
) WITHOUT ROWID;
CREATE INDEX reference_digest ON reference (digest);
";

/// What a client wants to rewrite by default (G-34), and who was asked to rewrite a render, for what and for how long.
const FORMAT_3: &str = "
ALTER TABLE client ADD COLUMN transform TEXT;
ALTER TABLE render ADD COLUMN asked_json TEXT;
";

/// Messages and parts with names and columns that other readers of such rows know; those of format 1 were never written.
/// A message that waits belongs to no turn yet. What a part was frozen to is no part of it.
const FORMAT_4: &str = "
DROP TABLE chat_parts;
DROP TABLE chat_messages;
CREATE TABLE chat_messages (
    id TEXT PRIMARY KEY,
    session_id INTEGER NOT NULL,
    chat INTEGER NOT NULL,
    turn_id TEXT,
    role TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    metadata_json TEXT NOT NULL
);
CREATE INDEX chat_messages_turn ON chat_messages (chat, turn_id, id);
CREATE INDEX chat_messages_session ON chat_messages (session_id);
CREATE TABLE chat_parts (
    id TEXT PRIMARY KEY,
    message_id TEXT NOT NULL,
    session_id INTEGER NOT NULL,
    \"index\" INTEGER NOT NULL,
    type TEXT NOT NULL,
    tool_call_id TEXT,
    tool_state TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    data_json TEXT NOT NULL
);
CREATE UNIQUE INDEX chat_parts_message ON chat_parts (message_id, \"index\");
CREATE INDEX chat_parts_session ON chat_parts (session_id);
CREATE TABLE frozen (part_id TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
";
