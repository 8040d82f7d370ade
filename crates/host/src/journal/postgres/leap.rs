//! The leap of all numbers, when the database may lack some that were given out (ADR 0114, ADR 0120).
//!
//! Where a leap leads to is the time: microseconds since 1970 for seqs and epochs, milliseconds for the numbers of nodes and spaces.
//! Nobody counts as fast as that, so whatever was given out before lies below, also after an earlier leap from the same backup.
//!
//! Promises: nothing that was given out before is given out again, if the clock of the database was not set back; how far a leap
//! has come is in the log.
//! Must not know: when a leap is due.

use std::time::{Duration, Instant};

use tokio_postgres::{Error, Transaction};

/// Every node learns that it holds nothing any more.
const TELL_NODES: &str = "UPDATE greenroom.node SET taken = taken + 1";

/// One moment for all of them, and how many they are.
const MOMENT: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
     (SELECT count(*) FROM greenroom.lease)";

/// At least so much further, should the clock lag behind what an earlier leap has led to.
const LEAP_SPACES: &str = "WITH part AS (SELECT space FROM greenroom.lease WHERE space > $1 ORDER BY space LIMIT $2),
     leapt AS (UPDATE greenroom.lease l SET node = NULL, epoch = greatest(l.epoch + 1048576, $3::bigint),
         seq = greatest(l.seq + 1048576, $3::bigint), log_floor = greatest(l.seq + 1048576, $3::bigint)
         FROM part WHERE l.space = part.space RETURNING l.space)
     SELECT max(space), count(*) FROM leapt";

const LEAP_IDS: &str =
    "SELECT setval(s::regclass, greatest(nextval(s::regclass) + 1048576, $1::bigint / 1000))
     FROM (VALUES (pg_get_serial_sequence('greenroom.node', 'id')),
         (pg_get_serial_sequence('greenroom.space', 'id'))) AS sequences(s)";

/// Spaces in one statement: few enough that the log says something now and then.
const SPACES_AT_ONCE: i64 = 5_000;
/// How often the log says how far it has come.
const LOG_INTERVAL: Duration = Duration::from_secs(2);

/// Has every number leap, in a transaction of the caller's.
pub(super) async fn leap(changes: &Transaction<'_>) -> Result<(), Error> {
    changes.execute(TELL_NODES, &[]).await?;
    let row = changes.query_one(MOMENT, &[]).await?;
    let (moment, all): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let (mut last, mut done) = (i64::MIN, 0_i64);
    let mut logged_at = Instant::now();
    loop {
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&last, &SPACES_AT_ONCE, &moment];
        let row = changes.query_one(LEAP_SPACES, &values).await?;
        let (reached, count): (Option<i64>, i64) = (row.try_get(0)?, row.try_get(1)?);
        let Some(reached) = reached else {
            break; // there are no more
        };
        (last, done) = (reached, done + count);
        if logged_at.elapsed() >= LOG_INTERVAL {
            logged_at = Instant::now();
            tracing::info!(
                done,
                all,
                "sequence numbers of all spaces are raised, because commits may be lost"
            );
        }
    }
    changes.query(LEAP_IDS, &[&moment]).await?;
    tracing::info!(spaces = done, "sequence numbers of all spaces were raised");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kernel::{Batch, Seq};

    use super::*;
    use crate::journal::postgres::test_server::{TestServer, query_sql, run_sql};
    use crate::journal::{Failover, PostgresNode, PostgresSettings, SpaceJournal};

    /// A database, and its nodes.
    struct LeapingDatabase {
        server: TestServer,
        settings: PostgresSettings,
    }

    impl LeapingDatabase {
        fn start() -> Option<Self> {
            let server = TestServer::start()?;
            let settings = PostgresSettings { failover: Failover::Lossy, ..server.make_database() };
            Some(Self { server, settings })
        }

        fn database(&self) -> &str {
            self.settings.url.rsplit_once('=').unwrap().1
        }

        fn ask(&self, sql: &str) -> String {
            query_sql(self.server.socket(), self.database(), sql)
        }

        fn run(&self, sql: &str) {
            run_sql(self.server.socket(), self.database(), sql);
        }

        async fn node(&self) -> Arc<PostgresNode> {
            PostgresNode::connect(&self.settings).await.unwrap()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_backup_that_is_restored_twice_leaps_to_other_numbers_each_time() {
        let Some(database) = LeapingDatabase::start() else {
            return; // the line that says so is written
        };
        let node = database.node().await;
        let (journal, _) = node.open_space("team").await.unwrap();
        let write = |seq: u64| Batch { seq: Seq(seq), records: Vec::new() };
        journal.append(write(5)).await.unwrap();
        journal.close().await;
        drop((journal, node));
        database.run("CREATE TABLE public.backup AS SELECT * FROM greenroom.lease");
        let mut given = Vec::new();
        for restored in ["one", "two"] {
            // The rows of the backup, in a server of another name.
            database.run(&format!(
                "UPDATE greenroom.lease l SET node = b.node, epoch = b.epoch, batch = b.batch, seq = b.seq, log_floor = b.log_floor
                     FROM public.backup b WHERE b.space = l.space;
                 UPDATE greenroom.cluster SET timeline = 'restored/{restored}'"
            ));
            let node = database.node().await;
            let (journal, boot) = node.open_space("team").await.unwrap();
            let leapt = boot.seq.0;
            assert!(leapt > 1_700_000_000_000_000, "{leapt}");
            assert!(leapt < 1 << 53, "a JSON number");
            assert_eq!(boot.log_floor.0, leapt, "there is no log of it");
            journal.append(write(leapt + 1_000)).await.unwrap();
            let epoch: i64 = database.ask("SELECT epoch FROM greenroom.lease").parse().unwrap();
            let next = "SELECT nextval(pg_get_serial_sequence('greenroom.space', 'id'))";
            let next: i64 = database.ask(next).parse().unwrap();
            given.push((leapt, leapt + 1_000, epoch, next));
            journal.close().await;
        }
        let [first, second] = given.as_slice() else {
            panic!("two restores");
        };
        assert!(second.0 > first.1, "nothing that was heard: {given:?}");
        assert!(second.2 > first.2 && second.3 > first.3, "{given:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_leap_that_takes_longer_than_anybody_waits_is_finished() {
        let Some(mut database) = LeapingDatabase::start() else {
            return; // the line that says so is written
        };
        database.settings.journal_patience_ms = 300;
        let node = database.node().await;
        database.run(
            "INSERT INTO greenroom.space (name) SELECT 'team-' || n FROM generate_series(1, 60) AS n;
             INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor, format) SELECT id, 0, 0, 0, 0, 1 FROM greenroom.space;
             CREATE FUNCTION greenroom.slow() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$;
             CREATE TRIGGER slow BEFORE UPDATE ON greenroom.lease FOR EACH ROW
                 WHEN (NEW.epoch > OLD.epoch + 1) EXECUTE FUNCTION greenroom.slow();
             UPDATE greenroom.cluster SET timeline = 'restored/1'",
        );
        let mut is_refused = false;
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
            // Every connection is made anew, and asks which server it is.
            if !is_refused {
                database.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'greenroom'",
                );
            }
            match node.find_space("team-1").await {
                Ok(found) if is_refused => {
                    assert!(found.is_some());
                    break;
                }
                Ok(_) => {} // in a connection of before
                Err(_) => is_refused = true,
            }
        }
        let leapt = "SELECT count(*) FROM greenroom.lease WHERE seq > 1700000000000000";
        assert_eq!(database.ask(leapt), "60");
    }
}
