//! Many spaces that write batches of one record as fast as they can, each one batch after the other: what `pg-spaces` and
//! `pg-merged` measure.
//!
//! Promises: every space has written before anything is counted, and none stops before all is; a space that fails ends the
//! measurement with its reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::journal::{batch, chat};
use crate::database::Database;
use crate::host_api::journal::{LocalJournal, Sqlite};
use crate::host_api::spaces::{JournalHandle, PostgresNode};
use crate::measure::{now_ns, own_cpu_ns};

/// As many spaces as write at once.
pub(super) const SPACES: usize = 100;
/// All have begun, and statements are prepared.
const WARM_UP: Duration = Duration::from_millis(500);
/// Longer than it takes on any machine to open all journals, to begin, or to end.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// What was written in a while.
#[derive(Debug, Clone, Copy)]
pub(super) struct FullLoad {
    /// Batches a second, of all spaces together.
    pub rate: f64,
    /// CPU of this process for each: the node's, not the server's.
    pub cpu_us: f64,
    /// CPU of the server for each; not a number where there is none.
    pub server_us: f64,
    /// Batches in a transaction of the server; not a number where there is none.
    pub merged: f64,
}

/// What writers count, and when they end.
#[derive(Default)]
pub(super) struct WriterControl {
    pub batches: AtomicU64,
    pub writers: AtomicU64,
    pub ends: AtomicBool,
}

impl WriterControl {
    pub(super) fn note(&self, batches: u64) {
        self.batches.fetch_add(batches, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// Measures for so long while writers write.
pub(super) fn measure(
    database: &Database,
    control: &WriterControl,
    writers: u64,
    seconds: Duration,
) -> Result<FullLoad> {
    let until = Instant::now() + WAIT_MAX;
    while control.writers.load(Ordering::Relaxed) < writers {
        ensure!(Instant::now() < until, "not every space writes");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(WARM_UP);
    let written = || control.batches.load(Ordering::Relaxed);
    // Asking takes a while, in which batches are written, too: they are counted with the answers.
    let transactions = (database.transactions()?, written());
    let server = (database.cpu_ns()?, written());
    let (batches, cpu, began) = (written(), own_cpu_ns(), now_ns());
    std::thread::sleep(seconds);
    let batches = written().saturating_sub(batches) as f64;
    let (cpu, ns) = (own_cpu_ns() - cpu, now_ns() - began);
    let server_us = database.cpu_ns()?.saturating_sub(server.0) as f64 / 1_000.0;
    let server_batches = written().saturating_sub(server.1) as f64;
    let merged = database.transactions()?.saturating_sub(transactions.0 + 1) as f64;
    let merged_batches = written().saturating_sub(transactions.1) as f64;
    ensure!(batches > 0.0, "nothing was written");
    Ok(FullLoad {
        rate: batches / (ns as f64 / 1e9),
        cpu_us: cpu as f64 / 1_000.0 / batches,
        server_us: server_us / server_batches,
        merged: merged_batches / merged,
    })
}

/// All spaces on the writers of one node.
pub(super) fn on_postgres(
    database: &mut Database,
    runtime: &Runtime,
    seconds: Duration,
) -> Result<FullLoad> {
    let (names, settings) = (database.fresh_names(SPACES), database.settings());
    let opening = async {
        let node = PostgresNode::connect(&settings).await?;
        let mut journals = Vec::new();
        for name in &names {
            let (journal, _) = node.open_space(name).await?;
            journals.push(JournalHandle::over(Arc::new(journal)));
        }
        anyhow::Ok(journals)
    };
    let journals = runtime
        .block_on(async { timeout(WAIT_MAX, opening).await })
        .context("the spaces are not opened in time")??;
    let control = Arc::new(WriterControl::default());
    let mut tasks = JoinSet::new();
    for journal in journals {
        let control = Arc::clone(&control);
        tasks.spawn_on(write_to_postgres(journal, control), runtime.handle());
    }
    let load = measure(database, &control, SPACES as u64, seconds);
    control.ends.store(true, Ordering::Relaxed);
    let ended = runtime.block_on(join_all(tasks));
    // Why a writer failed says more than that nothing was measured.
    ended.and(load)
}

/// Waits until all have ended; the first error among theirs.
pub(super) async fn join_all(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    let joining = async {
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    let joined = timeout(WAIT_MAX, joining).await;
    joined.context("a writer does not end")?
}

async fn write_to_postgres(journal: JournalHandle, control: Arc<WriterControl>) -> Result<()> {
    let (chat, mut seq) = (chat()?, 0);
    while !control.is_over() {
        let written = journal.commit(batch(&chat, &mut seq, 1)).await;
        written.map_err(|refused| refused.error)?;
        control.note(1);
        if seq == 1 {
            control.writers.fetch_add(1, Ordering::Relaxed);
        }
    }
    journal.close().await;
    Ok(())
}

/// A file for each space, each written by a thread of its own, as a host does.
pub(super) fn on_sqlite(database: &mut Database, seconds: Duration) -> Result<FullLoad> {
    let mut journals = Vec::new();
    for _ in 0..SPACES {
        let sqlite = Sqlite::open(&database.directory()?)?;
        journals.push(LocalJournal::start(Box::new(sqlite))?.0);
    }
    let control = &WriterControl::default();
    let load = std::thread::scope(|threads| {
        let writers: Vec<_> = journals
            .iter()
            .map(|journal| threads.spawn(move || write_to_sqlite(journal, control)))
            .collect();
        let load = measure(database, control, SPACES as u64, seconds);
        control.ends.store(true, Ordering::Relaxed);
        for writer in writers {
            match writer.join() {
                Ok(written) => written?,
                Err(_) => bail!("a writer panicked"),
            }
        }
        load
    })?;
    // The server did nothing for them.
    Ok(FullLoad { server_us: f64::NAN, merged: f64::NAN, ..load })
}

fn write_to_sqlite(journal: &LocalJournal, control: &WriterControl) -> Result<()> {
    let (chat, mut seq) = (chat()?, 0);
    while !control.is_over() {
        let written = journal.append_in_place(batch(&chat, &mut seq, 1));
        written.map_err(|refused| refused.error)?;
        control.note(1);
        if seq == 1 {
            control.writers.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
