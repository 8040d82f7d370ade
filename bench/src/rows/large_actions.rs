//! What large actions in the journal cost those that come after them.
//!
//! Twelve actions of 4 MiB are appended to a channel, as renames with large fields were, and then small ones to the same
//! channel, one a commit. Against the same small ones in a journal that holds nothing else. The writer is called in place: it
//! is the tables that are compared, and everything but them is the same.

use std::path::Path;

use anyhow::Result;
use bytes::Bytes;

use super::{median_of, values};
use crate::harness::Harness;
use crate::host_api::journal::{Batch, ChannelId, Journal, Record, Seq, Sqlite};
use crate::measure::{now_ns, percentile, spread};
use crate::table::Figure;

const LARGE: u64 = 12;
const LARGE_BYTES: usize = 4 << 20;
const SMALL_BYTES: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbours {
    Large,
    None,
}

/// Microseconds of one round.
struct Commits {
    small: f64,
    large_in_all: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let commits = if harness.quick { 200 } else { 1_000 };
    let results =
        harness.shuffled(&[Neighbours::Large, Neighbours::None], |harness, neighbours| {
            let data = harness.directory()?;
            append(&data, neighbours, commits)
        })?;
    let small = |commits: &Commits| commits.small;
    let of = |neighbours| median_of(&results, neighbours, small);
    let large = median_of(&results, Neighbours::Large, |commits| commits.large_in_all);
    Ok(vec![
        Figure::at_most(
            "commit of a small action beside twelve of 4 MiB, against alone",
            "us",
            of(Neighbours::Large),
            of(Neighbours::None),
            1.3,
        )
        .note(format!("the twelve took {:.0} ms in all", large / 1e3))
        .note(format!(
            "rounds: beside {}, alone {}",
            spread(&values(&results, Neighbours::Large, small)),
            spread(&values(&results, Neighbours::None, small)),
        )),
    ])
}

fn append(data: &Path, neighbours: Neighbours, commits: u64) -> Result<Commits> {
    let mut journal = Sqlite::open(data)?;
    let mut seq = 0;
    let mut append = |bytes: usize| {
        seq += 1;
        let record = Record::Action {
            seq: Seq(seq),
            channel: ChannelId(1),
            envelope: Bytes::from(vec![b'x'; bytes]),
        };
        let batch = Batch { seq: Seq(seq), records: vec![record] };
        let began = now_ns();
        journal.append(&batch)?;
        anyhow::Ok((now_ns() - began) as f64 / 1e3)
    };
    let mut large_in_all = 0.0;
    if neighbours == Neighbours::Large {
        for _ in 0..LARGE {
            large_in_all += append(LARGE_BYTES)?;
        }
    }
    let mut small = Vec::new();
    for _ in 0..commits {
        small.push(append(SMALL_BYTES)?);
    }
    Ok(Commits { small: percentile(&small, 50.0), large_in_all })
}
