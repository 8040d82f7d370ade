//! Latency to the last of 100 watchers at 200 frames a second.
//!
//! The scripted agent's text cannot carry a time, so the driver dispatches `chat/draftChanged` with the monotonic
//! time of its sending in the draft, 200 a second, and watchers compare when the echo comes. That is the way of a
//! delta (kernel, journal, fan-out) with a socket and a JSON decoder before it and one row more in its transaction:
//! the chat's head, which a delta does not rewrite. The bare server takes the same frames from the same socket
//! through the same decoder and pushes a frame made before. So the figure is a little worse than a delta's own.
//!
//! A commit is an append of the same two records to a journal on the same disk at the same pace, with nothing else
//! going on: shorter, if anything, than the commits of a host whose writers share the processors.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use wire::state::{ChatState, status};
use wire::{Action, ActionKind, ChannelUri, Timestamp, action};

use super::{median_of, values};
use crate::driver::{Driver, Subject, WATCHERS, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::host_api::journal::{
    Batch, ChannelFields, ChannelId, Head, Journal, Record, Seq, Sqlite, StoredKind, channel_record,
};
use crate::measure::{now_ns, percentile, spread};
use crate::protocol::{self, Stamp};
use crate::table::Figure;

pub(super) const EVERY: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timed {
    Of(Subject),
    Commit,
}

/// Percentiles of one round, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Percentiles {
    pub p50: f64,
    pub p99: f64,
}

impl Percentiles {
    pub(super) fn of(values: &[f64]) -> Self {
        Self { p50: percentile(values, 50.0), p99: percentile(values, 99.0) }
    }
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let subjects = [Timed::Of(Subject::HOST), Timed::Of(Subject::Bare), Timed::Commit];
    let results = harness.shuffled(&subjects, |harness, who| {
        let count = u32::try_from(harness.seconds(3.0).as_millis() / EVERY.as_millis())?;
        match who {
            Timed::Of(subject) => measure_echoes(harness, subject, count),
            Timed::Commit => commits(harness, count, EVERY),
        }
    })?;
    let of = |who, value: fn(&Percentiles) -> f64| median_of(&results, who, value);
    let figure =
        |what: &str, value: fn(&Percentiles) -> f64, factor: f64, times: f64, words: &str| {
            let (host, bare) =
                (of(Timed::Of(Subject::HOST), value), of(Timed::Of(Subject::Bare), value));
            let commit = of(Timed::Commit, value);
            let bound = factor * bare + times * commit;
            Figure::within(what, "us", host, bare, bound, words)
                .note(format!("a commit: {commit:.0} us"))
                .note(format!(
                    "rounds: host {}, bare {}, commit {}",
                    spread(&values(&results, Timed::Of(Subject::HOST), value)),
                    spread(&values(&results, Timed::Of(Subject::Bare), value)),
                    spread(&values(&results, Timed::Commit, value)),
                ))
        };
    Ok(vec![
        figure("latency to the last of 100, p50", |t| t.p50, 1.5, 1.0, "1.5 x + 1 commit"),
        figure("latency to the last of 100, p99", |t| t.p99, 2.0, 2.0, "2 x + 2 commits"),
    ])
}

fn measure_echoes(harness: &mut Harness, subject: Subject, count: u32) -> Result<Percentiles> {
    let mut driver = Driver::on(subject.start(harness)?)?;
    let mut watchers = Watchers::join(harness, &driver, &WatcherOptions::stamped(WATCHERS))?;
    time_drafts(&mut driver, &mut watchers, count)
}

/// Sends stamped drafts and says when the last watcher had each, leaving out the first half second.
pub(super) fn time_drafts(
    driver: &mut Driver,
    watchers: &mut Watchers,
    count: u32,
) -> Result<Percentiles> {
    watchers.mark(100)?;
    driver.stamp(100, EVERY)?;
    watchers.wait()?;
    watchers.mark(u64::from(count))?;
    driver.stamp(count, EVERY)?;
    watchers.wait()?;
    Ok(Percentiles::of(&watchers.latencies_us()?))
}

/// Appends of what a draft records, at a pace, with nothing else going on.
pub(super) fn commits(harness: &mut Harness, count: u32, every: Duration) -> Result<Percentiles> {
    let mut journal = Sqlite::open(&harness.directory()?).context("a journal of its own")?;
    let chat =
        ChannelUri::parse(&protocol::chat_of("scripted:/01900000-0000-7000-8000-000000000001"))?;
    let mut times = Vec::new();
    let began = now_ns();
    for index in 0..count {
        let due = began + u64::from(index) * u64::try_from(every.as_nanos())?;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(now_ns())));
        let batch = draft_batch(&chat, index);
        let before = now_ns();
        journal.append(&batch)?;
        times.push((now_ns() - before) as f64 / 1_000.0);
    }
    Ok(Percentiles::of(&times))
}

/// What the host records for a draft.
fn draft_batch(chat: &ChannelUri, index: u32) -> Batch {
    let seq = Seq(u64::from(index) + 10);
    let text = Stamp { index, sent_ns: now_ns() }.text();
    let draft = json!({"text": text, "origin": {"kind": "user"}});
    let act = Action::host(ActionKind::ChatDraftChanged, json!({"draft": draft}));
    let envelope = action::encode(chat, &act.body, seq.0, None, None).envelope;
    let moment = Timestamp(1_750_000_000_000).to_rfc3339();
    let mut state = ChatState::new(chat.as_str(), "New session", status::IDLE, moment);
    state.draft = Some(draft);
    let head = channel_record(ChannelFields {
        id: ChannelId(2),
        uri: chat.clone(),
        kind: StoredKind::Chat,
        parent: Some(ChannelId(1)),
        head: Head::Chat(Arc::new(state)),
        head_seq: seq,
        private: b"{}".to_vec(),
    });
    let action = Record::Action { seq, channel: ChannelId(2), envelope };
    Batch { seq, records: vec![action, head] }
}
