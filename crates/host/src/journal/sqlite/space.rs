//! Gives disk space back: pages that no row uses any more leave the file, a few at a time (ADR 0051).
//!
//! Promises: nobody waits for it longer than for a batch; a disk that is full or fails leaves the journal as it was. A file
//! without the map that this needs gets one when it is opened, if that is quick, and by [`compact`] otherwise.
//! Must not know: why pages became free.

use rusqlite::{Connection, Result};

/// Pages given back at a time: one mebibyte, about what a batch writes.
const STEP_PAGES: i64 = 256;
/// Free pages that stay: what is written next takes them.
const KEPT_PAGES: i64 = 256;
/// The same as a part of the file, so that a busy host does not give back what it needs again at once.
const KEPT_PART: i64 = 16;
/// What a file without a map may hold to get one at start: copying it takes about a second.
const CONVERTED_BYTES_MAX: i64 = 128 << 20;

const INCREMENTAL: i64 = 2;

/// Prepares a file that has no table yet; later this would need a copy of all of it.
pub(super) fn prepare_empty(conn: &Connection) -> Result<()> {
    conn.pragma_update(None, "auto_vacuum", INCREMENTAL)
}

/// Prepares a file of before if that is quick; says so otherwise. A disk without space for the copy is no reason not to start.
pub(super) fn prepare_existing(conn: &Connection) -> Result<()> {
    if pragma(conn, "auto_vacuum")? == INCREMENTAL {
        return Ok(());
    }
    let used = pragma(conn, "page_count")? - pragma(conn, "freelist_count")?;
    let bytes = used.saturating_mul(pragma(conn, "page_size")?);
    if bytes > CONVERTED_BYTES_MAX {
        tracing::info!(
            bytes,
            "the journal cannot give disk space back yet; stop the host and run `greenroom sessions compact` once"
        );
        return Ok(());
    }
    if let Err(error) = compact(conn) {
        tracing::warn!(%error, "the journal cannot give disk space back yet; it is tried again at the next start");
    }
    Ok(())
}

/// Copies the whole file, without what is free in it and with the map that giving back needs. Atomic, and as long as it takes.
pub(super) fn compact(conn: &Connection) -> Result<()> {
    prepare_empty(conn)?;
    // The copy is as large as the journal: not in memory. SQLite unlinks the file as soon as it has it.
    conn.pragma_update(None, "temp_store", "FILE")?;
    let copied = conn.execute_batch("VACUUM");
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    copied?;
    checkpoint(conn)
}

/// Gives some pages back. Returns whether there are more.
pub(super) fn release_step(conn: &Connection) -> Result<bool> {
    if free_to_give(conn)? <= 0 {
        return Ok(false);
    }
    let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    let is_more = free_to_give(conn)? > 0;
    if !is_more {
        // The file itself becomes shorter when the log beside it is copied into it.
        checkpoint(conn)?;
    }
    Ok(is_more)
}

/// How many free pages are more than what stays; none in a file that cannot give back.
fn free_to_give(conn: &Connection) -> Result<i64> {
    if pragma(conn, "auto_vacuum")? != INCREMENTAL {
        return Ok(0);
    }
    let kept = KEPT_PAGES.max(pragma(conn, "page_count")? / KEPT_PART);
    Ok(pragma(conn, "freelist_count")? - kept)
}

fn checkpoint(conn: &Connection) -> Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

fn pragma(conn: &Connection, name: &str) -> Result<i64> {
    conn.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use kernel::{Batch, ChannelId, Record, Seq};
    use serde_json::json;
    use tempfile::tempdir;
    use wire::state::Turn;

    use super::super::{FILE, schema};
    use super::*;
    use crate::journal::contract::{chat, dispose, session, sweep};
    use crate::journal::{Journal, Sqlite};

    const MIB: u64 = 1 << 20;

    fn file_bytes(dir: &Path) -> u64 {
        std::fs::metadata(dir.join(FILE)).unwrap().len()
    }

    fn turn(chat: u64, n: u64) -> Record {
        let text = format!("{n} ").repeat(100_000);
        let part = json!({"kind": "markdown", "id": "p", "content": text});
        let turn = json!({"id": format!("t{n}"), "state": "complete", "responseParts": [part]});
        Record::Turn { chat: ChannelId(chat), n, turn: Arc::new(Turn::from_value(&turn).unwrap()) }
    }

    /// Two chats, the first with a hundred large turns, the second with one.
    fn fill(journal: &mut Sqlite) {
        let mut records =
            vec![session(1, "large"), chat(2, "large-chat"), chat(3, "small-chat"), turn(3, 0)];
        records.extend((0..100).map(|n| turn(2, n)));
        let seq = Seq(5);
        journal.append(&Batch { seq, records }).unwrap();
    }

    fn delete_large(journal: &mut Sqlite) {
        let records = vec![dispose(2, 1), sweep(2)];
        let seq = Seq(6);
        journal.append(&Batch { seq, records }).unwrap();
    }

    #[test]
    fn the_file_shrinks_step_by_step_after_a_session_is_gone() {
        let dir = tempdir().unwrap();
        let mut journal = Sqlite::open(dir.path()).unwrap();
        fill(&mut journal);
        checkpoint(&journal.conn).unwrap();
        let full = file_bytes(dir.path());
        assert!(full > 20 * MIB, "{full}");
        delete_large(&mut journal);
        checkpoint(&journal.conn).unwrap();
        assert_eq!(file_bytes(dir.path()), full, "deleting alone gives nothing back");
        let mut steps = 0;
        while journal.release_space().unwrap() {
            steps += 1;
            // Others write between the steps.
            let seq = Seq(7 + steps);
            journal.append(&Batch { seq, records: Vec::new() }).unwrap();
        }
        assert!(steps > 10, "{steps}: no step gives back much at once");
        let left = file_bytes(dir.path());
        assert!(left < 4 * MIB, "{left} of {full}");
        assert!(!journal.release_space().unwrap(), "the rest stays");
        let small: i64 =
            journal.conn.query_row("SELECT count(*) FROM turn", [], |row| row.get(0)).unwrap();
        assert_eq!(small, 1);
    }

    #[test]
    fn a_file_of_before_gets_its_map_at_start_and_keeps_what_it_holds() {
        let dir = tempdir().unwrap();
        {
            // As releases of before made it: no map.
            let mut conn = Connection::open(dir.path().join(FILE)).unwrap();
            schema::migrate(&mut conn, schema::MIGRATIONS).unwrap();
            assert_eq!(pragma(&conn, "auto_vacuum").unwrap(), 0);
        }
        let mut journal = Sqlite::open(dir.path()).unwrap();
        assert_eq!(pragma(&journal.conn, "auto_vacuum").unwrap(), INCREMENTAL);
        fill(&mut journal);
        drop(journal);
        let conn = Connection::open(dir.path().join(FILE)).unwrap();
        conn.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM;").unwrap();
        drop(conn);
        let mut journal = Sqlite::open(dir.path()).unwrap();
        assert_eq!(pragma(&journal.conn, "auto_vacuum").unwrap(), INCREMENTAL);
        assert_eq!(journal.boot().unwrap().seq, Seq(5));
        delete_large(&mut journal);
        while journal.release_space().unwrap() {}
        assert!(file_bytes(dir.path()) < 4 * MIB);
    }

    #[test]
    fn a_compacted_file_holds_nothing_that_is_free() {
        let dir = tempdir().unwrap();
        let mut journal = Sqlite::open(dir.path()).unwrap();
        fill(&mut journal);
        delete_large(&mut journal);
        journal.compact().unwrap();
        assert_eq!(pragma(&journal.conn, "freelist_count").unwrap(), 0);
        assert!(file_bytes(dir.path()) < 2 * MIB);
    }
}
