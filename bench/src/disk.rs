//! What it costs at least to read a journal's rows and hand them over: plain SQLite on the same file, one statement,
//! bytes copied once into one message. The floor under a cold opening and under a replay after a restart.

use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use rusqlite::{Connection, OpenFlags};

fn open(data: &Path) -> Result<Connection> {
    // Not read-only: a reader of a WAL file has to be able to write the shared index beside it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(data.join("journal.sqlite"), flags).context("no journal there")
}

/// The visible turns of a chat, oldest first.
pub(crate) struct Rows {
    conn: Connection,
    chat: i64,
}

impl Rows {
    pub(crate) fn open(data: &Path, chat: i64) -> Result<Self> {
        Ok(Self { conn: open(data)?, chat })
    }

    pub(crate) fn read(&mut self) -> Result<Bytes> {
        let head = br#"{"jsonrpc":"2.0","id":2,"result":{"snapshot":{"state":"#;
        let mut text = head.to_vec();
        let mut statement = self.conn.prepare_cached("SELECT head FROM channel WHERE id = ?1")?;
        statement.query_row([self.chat], |row| {
            text.extend_from_slice(row.get_ref(0)?.as_blob()?);
            Ok(())
        })?;
        text.extend_from_slice(br#","turns":["#);
        let sql = "SELECT body.bytes FROM turn JOIN turn_body AS body ON body.id = turn.body
             WHERE turn.channel = ?1 AND turn.hidden_at IS NULL ORDER BY turn.n";
        append(&mut self.conn.prepare_cached(sql)?.query([self.chat])?, &mut text)?;
        text.extend_from_slice(b"]}}}");
        Ok(Bytes::from(text))
    }
}

/// The actions of a channel above a seq.
pub(crate) struct Scan {
    conn: Connection,
    channel: i64,
}

impl Scan {
    pub(crate) fn open(data: &Path, channel: i64) -> Result<Self> {
        Ok(Self { conn: open(data)?, channel })
    }

    pub(crate) fn read(&mut self, above: i64) -> Result<Bytes> {
        let head = br#"{"jsonrpc":"2.0","id":2,"result":{"type":"replay","actions":["#;
        let mut text = head.to_vec();
        let sql = "SELECT bytes FROM action WHERE channel = ?1 AND seq > ?2 ORDER BY seq";
        append(&mut self.conn.prepare_cached(sql)?.query([self.channel, above])?, &mut text)?;
        text.extend_from_slice(b"]}}");
        Ok(Bytes::from(text))
    }
}

fn append(rows: &mut rusqlite::Rows<'_>, text: &mut Vec<u8>) -> Result<()> {
    let mut first = true;
    while let Some(row) = rows.next()? {
        if !std::mem::take(&mut first) {
            text.push(b',');
        }
        text.extend_from_slice(row.get_ref(0)?.as_blob()?);
    }
    Ok(())
}
