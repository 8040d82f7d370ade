//! What is left of the statement's own speed when batches of a hundred spaces go through the node's writers: batches a second,
//! against the same statement in a loop that somebody wrote by hand, on as many connections, with as many batches in each
//! statement as the writers were seen to put there.
//!
//! The loop knows its leases and numbers from the beginning, waits for nobody, and gives no answer to anybody.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use tokio_postgres::types::ToSql;

use super::full_load::{self, FullLoad, SPACES, WriterControl, join_all, measure};
use super::journal::{chat, envelope};
use super::{median_of, values};
use crate::database::{Database, make_runtime};
use crate::harness::Harness;
use crate::measure::spread;
use crate::table::Figure;

/// The node has as many for batches of this size.
const CONNECTIONS: usize = 2;

const APPEND: &str = "WITH own AS (UPDATE greenroom.lease SET seq = greatest(seq, t.q), batch = t.b + 1
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS t(s, e, b, q)
         WHERE space = t.s AND epoch = t.e AND batch = t.b RETURNING space),
     added AS (INSERT INTO greenroom.action (space, channel, seq, bytes)
         SELECT r.s, r.c, r.q, r.x FROM own JOIN unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[])
             AS r(s, c, q, x) ON r.s = own.space)
     SELECT space FROM own";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    Node,
    ByHand,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let Some(mut database) = Database::start()? else { return Ok(Vec::new()) };
    let runtime = make_runtime()?;
    let seen = full_load::on_postgres(&mut database, &runtime, harness.seconds(3.0))?;
    let merged = (seen.merged.round().max(1.0) as usize).min(SPACES / CONNECTIONS);
    let writers = [Writer::Node, Writer::ByHand];
    let results = harness.shuffled(&writers, |harness, writer| {
        let seconds = harness.seconds(5.0);
        match writer {
            Writer::Node => full_load::on_postgres(&mut database, &runtime, seconds),
            Writer::ByHand => by_hand(&mut database, &runtime, merged, seconds),
        }
    })?;
    let of = |writer, value: fn(&FullLoad) -> f64| median_of(&results, writer, value);
    let rounds = |writer| spread(&values(&results, writer, |load| load.rate));
    let what = format!("merged appends of 100 spaces, against the bare statement with {merged}");
    Ok(vec![
        Figure::at_least(
            &what,
            "/s",
            of(Writer::Node, |load| load.rate),
            of(Writer::ByHand, |load| load.rate),
            0.8,
        )
        .note(format!(
            "batches a transaction: {:.1}, by hand {:.1}; CPU a batch: {:.0} us, by hand {:.0} us",
            of(Writer::Node, |load| load.merged),
            of(Writer::ByHand, |load| load.merged),
            of(Writer::Node, |load| load.cpu_us),
            of(Writer::ByHand, |load| load.cpu_us),
        ))
        .note(format!(
            "rounds: node {}, by hand {}",
            rounds(Writer::Node),
            rounds(Writer::ByHand)
        )),
    ])
}

fn by_hand(
    database: &mut Database,
    runtime: &Runtime,
    merged: usize,
    seconds: Duration,
) -> Result<FullLoad> {
    let control = Arc::new(WriterControl::default());
    let mut tasks = JoinSet::new();
    for spaces in make_leases(database)?.chunks(SPACES / CONNECTIONS) {
        let (url, spaces) = (database.url(), spaces.to_vec());
        let writing = write_by_hand(url, spaces, merged, Arc::clone(&control));
        tasks.spawn_on(writing, runtime.handle());
    }
    let load = measure(database, &control, CONNECTIONS as u64, seconds);
    control.ends.store(true, Ordering::Relaxed);
    let ended = runtime.block_on(join_all(tasks));
    ended.and(load)
}

/// Spaces with a lease that nobody else knows of, by their numbers.
fn make_leases(database: &mut Database) -> Result<Vec<i64>> {
    let names = database.fresh_names(SPACES).join("','");
    let sql = format!(
        "WITH made AS (INSERT INTO greenroom.space (name) SELECT unnest(ARRAY['{names}']) RETURNING id)
         INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor)
             SELECT id, 1, 0, 0, 0 FROM made RETURNING space"
    );
    let made = database.sql(&sql)?;
    let mut spaces = made.lines().map(str::parse).collect::<Result<Vec<i64>, _>>()?;
    spaces.sort_unstable();
    ensure!(spaces.len() == SPACES, "not all spaces were made");
    Ok(spaces)
}

async fn write_by_hand(
    url: String,
    spaces: Vec<i64>,
    merged: usize,
    control: Arc<WriterControl>,
) -> Result<()> {
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let append = client.prepare(APPEND).await?;
    let chat = chat()?;
    // The number of the next batch of each: its seq is one more.
    let mut numbers = vec![0_i64; spaces.len()];
    let (mut next, mut is_first) = (0, true);
    while !control.is_over() {
        let mut places: Vec<usize> = (next..next + merged).map(|it| it % spaces.len()).collect();
        places.sort_unstable();
        next = (next + merged) % spaces.len();
        let own: Vec<i64> = places.iter().map(|place| spaces[*place]).collect();
        let batches: Vec<i64> = places.iter().map(|place| numbers[*place]).collect();
        let seqs: Vec<i64> = batches.iter().map(|number| number + 1).collect();
        let (epochs, channels) = (vec![1_i64; merged], vec![1_i64; merged]);
        let bytes: Vec<Vec<u8>> = seqs
            .iter()
            .map(|seq| envelope(&chat, seq.unsigned_abs()))
            .map(|envelope| envelope.to_vec())
            .collect();
        let values: [&(dyn ToSql + Sync); 8] =
            [&own, &epochs, &batches, &seqs, &own, &channels, &seqs, &bytes];
        let rows = client.query(&append, &values).await?;
        ensure!(rows.len() == merged, "a batch was not written");
        places.iter().for_each(|place| numbers[*place] += 1);
        control.note(merged as u64);
        if std::mem::take(&mut is_first) {
            control.writers.fetch_add(1, Ordering::Relaxed);
        }
    }
    drop(client);
    connection.await.context("the connection's task died")??;
    Ok(())
}
