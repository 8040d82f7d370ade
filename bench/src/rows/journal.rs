//! What the journal costs at 1,000 deltas a second to 100 watchers with a 5 ms window.
//!
//! CPU: the host with its journal on disk against the same host with its journal in memory.
//!
//! Throughput: how many deltas a second the host's journal (its handle, its tables) commits with FULL durability, one
//! batch after the other on one thread as the kernel's does, in batches as large as that host was seen to make; against
//! plain SQLite with FULL durability on one table of the same shape, the same rows, the same batches, in a plain loop.
//! Opening and closing are not timed. It is the journal alone: the
//! 1,000/s of the load are what the agent offers, not what the journal could take. `peak` shows
//! how much the whole host delivers.

use std::path::Path;

use anyhow::Result;
use bytes::Bytes;
use rusqlite::{Connection, TransactionBehavior, params};
use wire::{Action, ChannelUri, action};

use super::{median_of, values};
use crate::driver::{DELTA_BYTES, Load, LoadResult, Subject};
use crate::harness::{Harness, JournalKind};
use crate::host_api::journal::{Batch, ChannelId, LocalJournal, Record, Seq, Sqlite};
use crate::measure::{now_ns, spread};
use crate::protocol;
use crate::table::Figure;

const OFF: Subject = Subject::Host(JournalKind::Memory);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Journal,
    PlainSqlite,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let load = Load { every_ms: 1, window_ms: Some(5), seconds: harness.seconds(2.0) };
    let results =
        harness.shuffled(&[Subject::HOST, OFF], |harness, subject| load.run(harness, subject))?;
    let cost = |loaded: &LoadResult| loaded.us_per_frame;
    let batch = median_of(&results, Subject::HOST, |loaded| loaded.batch);
    let cpu = Figure::at_most(
        "journal on, 1,000/s, 5 ms window: CPU against journal off",
        "us",
        median_of(&results, Subject::HOST, cost),
        median_of(&results, OFF, cost),
        1.3,
    )
    .note(format!(
        "kernel's thread {:.0} % of the host's CPU; {batch:.1} deltas a commit; delivered {:.0}/s",
        median_of(&results, Subject::HOST, |loaded| loaded.kernel_share),
        median_of(&results, Subject::HOST, |loaded| loaded.rate),
    ))
    .note(format!(
        "rounds: on {}, off {}",
        spread(&values(&results, Subject::HOST, cost)),
        spread(&values(&results, OFF, cost)),
    ));
    Ok(vec![cpu, throughput(harness, batch)?])
}

fn throughput(harness: &mut Harness, batch: f64) -> Result<Figure> {
    let rows = if batch.is_finite() { batch.round().max(1.0) as u64 } else { 1 };
    let commits: u64 = if harness.quick { 300 } else { 1_500 };
    let writers = [Writer::Journal, Writer::PlainSqlite];
    let results = harness.shuffled(&writers, |harness, writer| {
        let data = harness.directory()?;
        let ns = match writer {
            Writer::Journal => through_the_journal(&data, rows, commits)?,
            Writer::PlainSqlite => through_plain_sqlite(&data, rows, commits)?,
        };
        Ok((rows * commits) as f64 / (ns as f64 / 1e9))
    })?;
    let of = |writer| median_of(&results, writer, |rate| *rate);
    let rounds = |writer| spread(&values(&results, writer, |rate| *rate));
    let what = format!("journal throughput at {rows} deltas a commit, against SQLite FULL");
    let (journal, plain) = (of(Writer::Journal), of(Writer::PlainSqlite));
    Ok(Figure::at_least(&what, "/s", journal, plain, 0.8).note(format!(
        "rounds: journal {}, plain {}",
        rounds(Writer::Journal),
        rounds(Writer::PlainSqlite)
    )))
}

/// The next batch of so many deltas.
pub(super) fn batch(chat: &ChannelUri, seq: &mut u64, rows: u64) -> Batch {
    let mut records = Vec::new();
    for _ in 0..rows {
        *seq += 1;
        let envelope = envelope(chat, *seq);
        records.push(Record::Action { seq: Seq(*seq), channel: ChannelId(1), envelope });
    }
    Batch { seq: Seq(*seq), records }
}

pub(super) fn envelope(chat: &ChannelUri, seq: u64) -> Bytes {
    let text = "x".repeat(usize::try_from(DELTA_BYTES).unwrap_or(0));
    let delta = Action::delta("01900000-0000-7000-9000-000000000001", "p123", text);
    action::encode(chat, &delta.body, seq, None, None).envelope
}

pub(super) fn chat() -> Result<ChannelUri> {
    let session = "scripted:/01900000-0000-7000-8000-000000000001";
    Ok(ChannelUri::parse(&protocol::chat_of(session))?)
}

/// Nanoseconds for all commits.
fn through_the_journal(data: &Path, rows: u64, commits: u64) -> Result<u64> {
    let chat = chat()?;
    let (journal, _) = LocalJournal::start(Box::new(Sqlite::open(data)?))?;
    let began = now_ns();
    let mut seq = 0;
    for _ in 0..commits {
        let written = journal.append_in_place(batch(&chat, &mut seq, rows));
        written.map_err(|refused| refused.error)?;
    }
    let ns = now_ns() - began;
    drop(journal);
    Ok(ns)
}

fn through_plain_sqlite(data: &Path, rows: u64, commits: u64) -> Result<u64> {
    let mut sqlite = PlainSqlite::open(data)?;
    let began = now_ns();
    for _ in 0..commits {
        sqlite.commit(rows)?;
    }
    Ok(now_ns() - began)
}

/// One table of the shape of the journal's actions, with FULL durability and nothing around it.
pub(crate) struct PlainSqlite {
    conn: Connection,
    chat: ChannelUri,
    seq: u64,
}

impl PlainSqlite {
    pub(crate) fn open(data: &Path) -> Result<Self> {
        let conn = Connection::open(data.join("plain.sqlite"))?;
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE action (
                 channel INTEGER NOT NULL, seq INTEGER NOT NULL, bytes BLOB NOT NULL,
                 PRIMARY KEY (channel, seq)
             ) WITHOUT ROWID;",
        )?;
        Ok(Self { conn, chat: chat()?, seq: 0 })
    }

    /// So many deltas in one transaction.
    pub(crate) fn commit(&mut self, rows: u64) -> Result<()> {
        let behavior = TransactionBehavior::Immediate;
        let tx = self.conn.transaction_with_behavior(behavior)?;
        let sql = "INSERT INTO action (channel, seq, bytes) VALUES (?1, ?2, ?3)";
        let mut insert = tx.prepare_cached(sql)?;
        for _ in 0..rows {
            self.seq += 1;
            let envelope = envelope(&self.chat, self.seq);
            insert.execute(params![1, i64::try_from(self.seq)?, &envelope[..]])?;
        }
        drop(insert);
        Ok(tx.commit()?)
    }
}
