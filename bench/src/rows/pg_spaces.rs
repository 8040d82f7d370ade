//! A hundred spaces that write batches of one record as fast as they can, over one node's connections to PostgreSQL, against
//! as many SQLite files with FULL durability, each written by its own thread, on the same disk.
//!
//! CPU is that of the process that has the journals: the node's. What the server takes for a batch is told beside it.

use anyhow::Result;

use super::full_load::{self, FullLoad};
use super::{median_of, values};
use crate::database::{Database, make_runtime};
use crate::harness::Harness;
use crate::measure::spread;
use crate::table::Figure;

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
        let seconds = harness.seconds(5.0);
        match writer {
            Writer::Postgres => full_load::on_postgres(&mut database, &runtime, seconds),
            Writer::Sqlite => full_load::on_sqlite(&mut database, seconds),
        }
    })?;
    let of = |writer, value: fn(&FullLoad) -> f64| median_of(&results, writer, value);
    let rounds = |value: fn(&FullLoad) -> f64| {
        format!(
            "rounds: PostgreSQL {}, SQLite {}",
            spread(&values(&results, Writer::Postgres, value)),
            spread(&values(&results, Writer::Sqlite, value)),
        )
    };
    let rate: fn(&FullLoad) -> f64 = |load| load.rate;
    let cpu: fn(&FullLoad) -> f64 = |load| load.cpu_us;
    Ok(vec![
        Figure::at_least(
            "batches/s of 100 spaces, 1 record each, against 100 SQLite files",
            "/s",
            of(Writer::Postgres, rate),
            of(Writer::Sqlite, rate),
            2.0,
        )
        .note(format!("{:.1} batches a transaction", of(Writer::Postgres, |load| load.merged)))
        .note(rounds(rate)),
        Figure::at_most(
            "the same: the node's own CPU a batch",
            "us",
            of(Writer::Postgres, cpu),
            of(Writer::Sqlite, cpu),
            0.5,
        )
        .note(format!(
            "the server takes {:.0} us a batch beside it",
            of(Writer::Postgres, |load| load.server_us)
        ))
        .note(rounds(cpu)),
    ])
}
