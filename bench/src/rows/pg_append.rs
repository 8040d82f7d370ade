//! How long a space waits for a batch of five records in PostgreSQL, 200 batches a second, against the journal in SQLite with
//! FULL durability at the same pace on the same disk.
//!
//! Both are called in place: the one from a task of a runtime like a node's, as its kernels are, the other on a thread, as the
//! kernel of a host is. The server is on the same machine, on its socket.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::journal::{batch, chat};
use super::latency::{EVERY, Percentiles};
use super::{median_of, values};
use crate::database::{Database, make_runtime};
use crate::harness::Harness;
use crate::host_api::journal::{LocalJournal, Sqlite};
use crate::host_api::spaces::{JournalHandle, PostgresNode, PostgresSettings};
use crate::measure::{now_ns, spread};
use crate::table::Figure;

const RECORDS: u64 = 5;
/// The first ones connect and prepare statements.
const WARM_UP: u32 = 50;
const ROUND_WAIT: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Postgres,
    Sqlite,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let Some(mut database) = Database::start()? else { return Ok(Vec::new()) };
    let runtime = make_runtime()?;
    let writers = [Writer::Postgres, Writer::Sqlite];
    let results = harness.shuffled(&writers, |harness, writer| {
        let count = u32::try_from(harness.seconds(5.0).as_millis() / EVERY.as_millis())?;
        match writer {
            Writer::Postgres => append_to_postgres(&mut database, &runtime, count),
            Writer::Sqlite => append_to_sqlite(&mut database, count),
        }
    })?;
    let figure = |what: &str, value: fn(&Percentiles) -> f64, factor: f64| {
        let of = |writer| median_of(&results, writer, value);
        let rounds = |writer| spread(&values(&results, writer, value));
        Figure::at_most(what, "us", of(Writer::Postgres), of(Writer::Sqlite), factor).note(format!(
            "rounds: PostgreSQL {}, SQLite {}",
            rounds(Writer::Postgres),
            rounds(Writer::Sqlite)
        ))
    };
    Ok(vec![
        figure(
            "append of 5 records to PostgreSQL, 1 space, 200/s, against SQLite FULL, p50",
            |times| times.p50,
            2.0,
        ),
        figure("the same, p99", |times| times.p99, 2.5),
    ])
}

/// How long it is until the batch of this number is due.
fn wait_for(began: u64, index: u32) -> Result<Duration> {
    let due = began + u64::from(index) * u64::try_from(EVERY.as_nanos())?;
    Ok(Duration::from_nanos(due.saturating_sub(now_ns())))
}

fn append_to_postgres(
    database: &mut Database,
    runtime: &Runtime,
    count: u32,
) -> Result<Percentiles> {
    let name = database.fresh_names(1).pop().context("a name")?;
    let appending = runtime.spawn(append_in_task(database.settings(), name, count));
    let times = runtime
        .block_on(async { timeout(ROUND_WAIT, appending).await })
        .context("the batches are not written in time")??;
    Ok(Percentiles::of(&times?))
}

/// Microseconds for each batch.
async fn append_in_task(settings: PostgresSettings, name: String, count: u32) -> Result<Vec<f64>> {
    let node = PostgresNode::connect(&settings).await?;
    let (journal, _) = node.open_space(&name).await?;
    let journal = JournalHandle::over(Arc::new(journal));
    let (chat, mut seq, mut times) = (chat()?, 0, Vec::new());
    let began = now_ns();
    for index in 0..WARM_UP + count {
        tokio::time::sleep(wait_for(began, index)?).await;
        let batch = batch(&chat, &mut seq, RECORDS);
        let before = now_ns();
        let written = journal.commit(batch).await;
        let ns = now_ns() - before;
        written.map_err(|refused| refused.error)?;
        times.push(ns as f64 / 1_000.0);
    }
    journal.close().await;
    Ok(times.split_off(WARM_UP as usize))
}

fn append_to_sqlite(database: &mut Database, count: u32) -> Result<Percentiles> {
    let (journal, _) = LocalJournal::start(Box::new(Sqlite::open(&database.directory()?)?))?;
    let (chat, mut seq, mut times) = (chat()?, 0, Vec::new());
    let began = now_ns();
    for index in 0..WARM_UP + count {
        std::thread::sleep(wait_for(began, index)?);
        let batch = batch(&chat, &mut seq, RECORDS);
        let before = now_ns();
        let written = journal.append_in_place(batch);
        let ns = now_ns() - before;
        written.map_err(|refused| refused.error)?;
        times.push(ns as f64 / 1_000.0);
    }
    Ok(Percentiles::of(&times.split_off(WARM_UP as usize)))
}
