//! Steps of the chain of formats that move what is stored already (ADR 0003).
//!
//! Promises: everything that could be read before can be read after; memory does not grow with the journal.
//! Must not know: the tables of later formats.

use rusqlite::{Result, Transaction, params};
use serde_json::Value;
use wire::Digest;

/// Format 5: bodies that messages name, and those that their parts were frozen to, are kept as long as the part (G-52).
/// Until then they were kept as long as the chat that had them first, which may go before a fork of it does.
pub(super) fn refer_by_part(tx: &Transaction<'_>) -> Result<()> {
    tx.execute_batch(
        "CREATE TABLE part_reference (
             part_id TEXT NOT NULL,
             digest BLOB NOT NULL,
             PRIMARY KEY (part_id, digest)
         ) WITHOUT ROWID;
         CREATE INDEX part_reference_digest ON part_reference (digest);",
    )?;
    let mut insert =
        tx.prepare("INSERT OR IGNORE INTO part_reference (part_id, digest) VALUES (?1, ?2)")?;
    let mut copy = |sql: &str, digest_in: fn(&Value) -> Option<Digest>| {
        let mut statement = tx.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (part_id, json): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            // What cannot be read names nothing that could be shown.
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            if let Some(digest) = digest_in(&value) {
                insert.execute(params![part_id, &digest.as_bytes()[..]])?;
            }
        }
        Ok(())
    };
    copy("SELECT part_id, json FROM frozen", |frozen| Digest::from_uri(frozen["body"].as_str()?))?;
    copy(
        "SELECT id, CAST(data_json AS BLOB) FROM chat_parts WHERE instr(data_json, '\"content_id\"')",
        |part| {
            let own = part["content_id"].as_str();
            let id = own.or_else(|| part["ref"]["content_id"].as_str())?;
            Digest::from_hex(id.strip_prefix("sha256:")?)
        },
    )
}

/// Format 6: no large value lies in a table that is sorted by a key of its own (`WITHOUT ROWID`). SQLite compares whole rows
/// there: whoever comes near a large one in the order reads all of it, for as long as it is stored (ADR 0031).
pub(super) fn part_large_rows(tx: &Transaction<'_>) -> Result<()> {
    tx.execute_batch(
        "CREATE TABLE large_action (channel INTEGER NOT NULL, seq INTEGER NOT NULL, bytes BLOB NOT NULL);
         CREATE UNIQUE INDEX large_action_key ON large_action (channel, seq);
         INSERT INTO large_action (channel, seq, bytes)
             SELECT channel, seq, bytes FROM action WHERE length(bytes) > 16384;
         UPDATE action SET bytes = x'' WHERE length(bytes) > 16384;

         ALTER TABLE frozen RENAME TO frozen_before;
         CREATE TABLE frozen (part_id TEXT PRIMARY KEY NOT NULL, json BLOB NOT NULL);
         INSERT INTO frozen (part_id, json) SELECT part_id, json FROM frozen_before;
         DROP TABLE frozen_before;

         ALTER TABLE client RENAME TO client_before;
         DROP INDEX client_last_seen;
         CREATE TABLE client (
             client_id TEXT PRIMARY KEY NOT NULL,
             version TEXT NOT NULL,
             last_seen_ms INTEGER NOT NULL,
             locale TEXT,
             capabilities TEXT,
             transform TEXT
         );
         INSERT INTO client (client_id, version, last_seen_ms, locale, capabilities, transform)
             SELECT client_id, version, last_seen_ms, locale, capabilities, transform FROM client_before;
         DROP TABLE client_before;
         CREATE INDEX client_last_seen ON client (last_seen_ms, client_id);

         UPDATE reference SET content_type = NULL WHERE length(content_type) > 255;",
    )
}

/// Format 7: what models' servers want back of their answers (G-61).
pub(super) fn store_outputs(tx: &Transaction<'_>) -> Result<()> {
    tx.execute_batch(
        "CREATE TABLE model_output (
             chat INTEGER NOT NULL,
             turn_id TEXT NOT NULL,
             round INTEGER NOT NULL,
             json BLOB NOT NULL
         );
         CREATE UNIQUE INDEX model_output_key ON model_output (chat, turn_id, round);",
    )
}

/// Format 9: what turns and sessions changed in files (G-53).
pub(super) fn store_file_changes(tx: &Transaction<'_>) -> Result<()> {
    tx.execute_batch(
        "CREATE TABLE file_changes (
             channel INTEGER NOT NULL,
             turn_id TEXT NOT NULL,
             json BLOB NOT NULL
         );
         CREATE UNIQUE INDEX file_changes_key ON file_changes (channel, turn_id);",
    )
}

/// Format 8: what models were asked, in pieces that calls share (G-37).
pub(super) fn store_calls(tx: &Transaction<'_>) -> Result<()> {
    tx.execute_batch(
        "CREATE TABLE model_call (
             id INTEGER PRIMARY KEY,
             chat INTEGER NOT NULL,
             n INTEGER NOT NULL,
             key INTEGER NOT NULL,
             turn_id TEXT NOT NULL,
             at INTEGER NOT NULL,
             ended_at INTEGER,
             purpose TEXT NOT NULL,
             round INTEGER NOT NULL,
             api TEXT NOT NULL,
             model TEXT NOT NULL,
             body_bytes INTEGER NOT NULL,
             body_digest BLOB NOT NULL,
             end_json TEXT,
             body_layout TEXT NOT NULL,
             details_layout TEXT NOT NULL
         );
         CREATE UNIQUE INDEX model_call_number ON model_call (chat, n);
         CREATE UNIQUE INDEX model_call_key ON model_call (key);
         -- Small rows that are changed with every call that repeats the piece; its bytes are written once.
         CREATE TABLE sent_piece (
             id INTEGER PRIMARY KEY,
             chat INTEGER NOT NULL,
             digest BLOB NOT NULL,
             content_type TEXT,
             size INTEGER NOT NULL,
             last_call INTEGER NOT NULL
         );
         CREATE INDEX sent_piece_digest ON sent_piece (digest, chat);
         CREATE INDEX sent_piece_call ON sent_piece (chat, last_call);
         CREATE TABLE sent_piece_body (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);",
    )
}
