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
    copy("SELECT part_id, json FROM frozen", |frozen| {
        Digest::from_uri(frozen["body"].as_str()?)
    })?;
    copy(
        "SELECT id, CAST(data_json AS BLOB) FROM chat_parts WHERE instr(data_json, '\"content_id\"')",
        |part| {
            let own = part["content_id"].as_str();
            let id = own.or_else(|| part["ref"]["content_id"].as_str())?;
            Digest::from_hex(id.strip_prefix("sha256:")?)
        },
    )
}
