//! What the journal costs at 1,000 deltas a second to 100 watchers with a 5 ms window.
//!
//! CPU: the host with its journal on disk against the same host with its journal in memory.
//!
//! Throughput: how many deltas a second the host's journal (its thread, its queue, its tables) commits with FULL
//! durability, one batch after the other, in batches as large as that host was seen to make; against plain SQLite
//! with FULL durability on one table of the same shape, the same rows, the same batches, in a plain loop. It is the
//! journal alone: the 1,000/s of the load are what the agent offers, not what the journal could take. `peak` shows
//! how much the whole host delivers.

use std::path::Path;

use anyhow::Result;
use bytes::Bytes;
use host::journal::{JournalThread, Sqlite};
use kernel::{Batch, ChannelId, Record, Seq};
use rusqlite::{Connection, TransactionBehavior, params};
use wire::{Action, ChannelUri, action};

use super::{median_of, values};
use crate::dial;
use crate::lab::{JournalKind, Lab};
use crate::measure::{now_ns, spread};
use crate::stage::{DELTA_BYTES, Load, Loaded, Subject};
use crate::table::Figure;

const OFF: Subject = Subject::Host(JournalKind::Memory);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Journal,
    PlainSqlite,
}

pub fn run(lab: &mut Lab) -> Result<Vec<Figure>> {
    let load = Load {
        every_ms: 1,
        window_ms: Some(5),
        seconds: lab.seconds(3.0),
    };
    let results = lab.shuffled(&[Subject::HOST, OFF], |lab, subject| load.run(lab, subject))?;
    let cost = |loaded: &Loaded| loaded.us_per_frame;
    let batch = median_of(&results, Subject::HOST, |loaded| loaded.batch);
    let cpu = Figure::at_most(
        "journal on, 1,000/s, 5 ms window: CPU against journal off",
        "us",
        median_of(&results, Subject::HOST, cost),
        median_of(&results, OFF, cost),
        1.3,
    )
    .note(format!(
        "journal thread {:.0} % of the host's CPU; {batch:.1} deltas a commit; delivered {:.0}/s",
        median_of(&results, Subject::HOST, |loaded| loaded.journal_share),
        median_of(&results, Subject::HOST, |loaded| loaded.rate),
    ))
    .note(format!(
        "rounds: on {}, off {}",
        spread(&values(&results, Subject::HOST, cost)),
        spread(&values(&results, OFF, cost)),
    ));
    Ok(vec![cpu, throughput(lab, batch)?])
}

fn throughput(lab: &mut Lab, batch: f64) -> Result<Figure> {
    let rows = if batch.is_finite() {
        batch.round().max(1.0) as u64
    } else {
        1
    };
    let commits: u64 = if lab.quick { 300 } else { 1_500 };
    let results = lab.shuffled(&[Writer::Journal, Writer::PlainSqlite], |lab, writer| {
        let data = lab.directory()?;
        let began = now_ns();
        match writer {
            Writer::Journal => through_the_journal(&data, rows, commits)?,
            Writer::PlainSqlite => through_plain_sqlite(&data, rows, commits)?,
        }
        Ok((rows * commits) as f64 / ((now_ns() - began) as f64 / 1e9))
    })?;
    let rate = |rate: &f64| *rate;
    let what = format!("journal throughput at {rows} deltas a commit, against SQLite FULL");
    let figures = (
        median_of(&results, Writer::Journal, rate),
        median_of(&results, Writer::PlainSqlite, rate),
    );
    Ok(
        Figure::at_least(&what, "/s", figures.0, figures.1, 0.8).note(format!(
            "rounds: journal {}, plain {}",
            spread(&values(&results, Writer::Journal, rate)),
            spread(&values(&results, Writer::PlainSqlite, rate)),
        )),
    )
}

fn envelope(chat: &ChannelUri, seq: u64) -> Bytes {
    let text = "x".repeat(usize::try_from(DELTA_BYTES).unwrap_or(0));
    let delta = Action::delta("01900000-0000-7000-9000-000000000001", "p123", text);
    action::encode(chat, &delta.body, seq, None, None).envelope
}

fn chat() -> Result<ChannelUri> {
    let session = "scripted:/01900000-0000-7000-8000-000000000001";
    Ok(ChannelUri::parse(&dial::chat_of(session))?)
}

fn through_the_journal(data: &Path, rows: u64, commits: u64) -> Result<()> {
    let chat = chat()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let (journal, _) = JournalThread::start(Box::new(Sqlite::open(data)?))?;
    runtime.block_on(async {
        let mut seq = 0;
        for _ in 0..commits {
            let mut records = Vec::new();
            for _ in 0..rows {
                seq += 1;
                let envelope = envelope(&chat, seq);
                records.push(Record::Action {
                    seq: Seq(seq),
                    channel: ChannelId(1),
                    envelope,
                });
            }
            journal
                .append(Batch {
                    seq: Seq(seq),
                    records,
                })
                .await?;
        }
        anyhow::Ok(())
    })?;
    journal.close();
    Ok(())
}

fn through_plain_sqlite(data: &Path, rows: u64, commits: u64) -> Result<()> {
    let chat = chat()?;
    let mut conn = Connection::open(data.join("plain.sqlite"))?;
    conn.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE action (
             channel INTEGER NOT NULL, seq INTEGER NOT NULL, bytes BLOB NOT NULL,
             PRIMARY KEY (channel, seq)
         ) WITHOUT ROWID;",
    )?;
    let mut seq = 0_i64;
    for _ in 0..commits {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let sql = "INSERT INTO action (channel, seq, bytes) VALUES (?1, ?2, ?3)";
        let mut insert = tx.prepare_cached(sql)?;
        for _ in 0..rows {
            seq += 1;
            let envelope = envelope(&chat, u64::try_from(seq)?);
            insert.execute(params![1, seq, &envelope[..]])?;
        }
        drop(insert);
        tx.commit()?;
    }
    Ok(())
}
