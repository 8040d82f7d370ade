//! What a space keeps of its log in days: which action was the first of a day, and which are too old.
//!
//! Promises: one row for each day on which something was recorded, written with the first batch of that day; only the clock of the
//! database says which day it is.
//! Must not know: what follows from an action being too old.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use kernel::{Batch, Record, Seq};

use super::connection::{BoundStatement, int, values};
use super::read::{PgReadResult, SpaceReader};

const SECONDS_OF_DAY: u64 = 86_400;

/// The row of the day that it is.
const NOTE_DAY: &str = "INSERT INTO greenroom.log_day (space, day, first_seq)
     VALUES ($1, floor(extract(epoch FROM clock_timestamp()) / 86400)::int, $2) ON CONFLICT (space, day) DO NOTHING";

/// Days whose actions are all gone: the next one began before the floor.
const FORGET_DAYS: &str =
    "DELETE FROM greenroom.log_day d USING greenroom.lease l WHERE d.space = $1 AND l.space = $1
     AND EXISTS (SELECT 1 FROM greenroom.log_day later WHERE later.space = $1 AND later.day > d.day
         AND later.first_seq <= l.log_floor + 1)";

/// Today, and as many whole days before it as are kept. What lies before the first day that is known may be of any age: nothing goes
/// before a day is known that is too old itself.
const LOG_FROM: &str = "SELECT min(d.first_seq) FILTER (WHERE d.day >= kept.first), bool_or(d.day < kept.first)
     FROM greenroom.log_day d, (SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int - $2::int AS first) AS kept
     WHERE d.space = $1";

/// The day for which a row is there, as far as this journal knows, by the clock of this machine: it only says when to look.
#[derive(Debug, Default)]
pub(super) struct LastDayRow(AtomicI64);

fn today() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = since.map_or(0, |since| since.as_secs() / SECONDS_OF_DAY);
    int(days)
}

impl LastDayRow {
    /// The day that a batch is to be noted for, if it may be the first of it.
    pub(super) fn due(&self, batch: &Batch) -> Option<i64> {
        let (noted, today) = (self.0.load(Ordering::Relaxed), today());
        let is_due = noted != today && first_seq(batch).is_some();
        is_due.then_some(today)
    }

    /// A batch that was due is written.
    pub(super) fn note(&self, day: Option<i64>) {
        if let Some(day) = day {
            self.0.store(day, Ordering::Relaxed);
        }
    }
}

fn first_seq(batch: &Batch) -> Option<Seq> {
    let seqs = batch.records.iter().filter_map(|record| match record {
        Record::Action { seq, .. } => Some(*seq),
        _ => None,
    });
    seqs.min()
}

/// What is written with a batch that may be the first of a day.
pub(super) fn statements(space: i64, batch: &Batch) -> Vec<BoundStatement> {
    let Some(first) = first_seq(batch) else {
        return Vec::new(); // nothing of it is in the log
    };
    vec![
        BoundStatement::new(NOTE_DAY, values![space, int(first.0)]),
        BoundStatement::new(FORGET_DAYS, values![space]),
    ]
}

impl SpaceReader<'_> {
    /// Where the log begins that is kept; none where days are not counted, or nothing is known of them.
    pub(super) async fn log_from(&mut self) -> PgReadResult<Option<Seq>> {
        if self.log_days == 0 {
            return Ok(None);
        }
        let days = i32::try_from(self.log_days).unwrap_or(i32::MAX / 2);
        let rows = self.conn.query(LOG_FROM, &[&self.space, &days]).await?;
        let Some(row) = rows.first() else {
            return Ok(None); // an aggregate has a row
        };
        let (from, has_older): (Option<i64>, Option<bool>) = (row.try_get(0)?, row.try_get(1)?);
        let from = from.filter(|_| has_older == Some(true));
        Ok(from.map(|from| Seq(u64::try_from(from).unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kernel::{Answer, ChannelId, Query};
    use wire::Timestamp;

    use super::*;
    use crate::journal::postgres::test_server::{TestServer, query_sql, run_sql};
    use crate::journal::{PostgresJournal, PostgresNode, SpaceJournal};

    fn batch(seq: u64) -> Batch {
        let action = Record::Action {
            seq: Seq(seq),
            channel: ChannelId(1),
            envelope: Bytes::from_static(b"{}"),
        };
        Batch { seq: Seq(seq), records: vec![action] }
    }

    async fn log_from(journal: &PostgresJournal, days: u64) -> Option<u64> {
        journal.counters().log_days.store(days, Ordering::Relaxed);
        let query = Query::EmptySessions { created_before: Timestamp(0), limit: 1 };
        match journal.read(query).await.unwrap() {
            Answer::EmptySessions(found) => found.log_from.map(|seq| seq.0),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_action_of_each_day_says_what_is_too_old() {
        let Some(server) = TestServer::start() else {
            return; // the line that says so is written
        };
        let settings = server.make_database();
        let database = settings.url.rsplit_once("dbname=").unwrap().1.to_owned();
        let node = PostgresNode::connect(&settings).await.unwrap();
        let (journal, _) = node.open_space("team").await.unwrap();
        let days = || {
            let sql = "SELECT string_agg(first_seq::text, ' ' ORDER BY day) FROM greenroom.log_day";
            query_sql(server.socket(), &database, sql)
        };
        for seq in 1..=3 {
            journal.append(batch(seq)).await.unwrap();
        }
        assert_eq!(days(), "1", "one row for a day");
        let older = "of what lies before it nobody knows the age";
        assert_eq!(log_from(&journal, 5).await, None, "{older}");
        // Ten days later, for a journal that was opened anew.
        let later = "UPDATE greenroom.log_day SET day = day - 10";
        run_sql(server.socket(), &database, later);
        journal.close().await;
        let (journal, _) = node.open_space("team").await.unwrap();
        assert_eq!(log_from(&journal, 5).await, None, "nothing is known yet");
        journal.append(batch(4)).await.unwrap();
        assert_eq!(days(), "1 4");
        assert_eq!(log_from(&journal, 5).await, Some(4));
        assert_eq!(log_from(&journal, 10).await, None, "ten days are kept");
        assert_eq!(log_from(&journal, 0).await, None, "any number of days");
        // Rows of days whose actions are gone go with the next day.
        let trim = Batch { seq: Seq(4), records: vec![Record::Trim { through: Seq(3) }] };
        journal.append(trim).await.unwrap();
        journal.close().await;
        let (journal, _) = node.open_space("team").await.unwrap();
        journal.append(batch(5)).await.unwrap();
        assert_eq!(days(), "4");
    }
}
