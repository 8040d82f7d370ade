//! Many spaces on one node: how many connections they share, how their batches share statements, and what they keep each other from.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use kernel::{Batch, ChannelId, Record, Seq};
use tokio::sync::oneshot;
use wire::{Digest, Timestamp};

use super::test_server::{TestServer, query_sql, run_sql};
use super::tests::{actions, register};
use super::writer::WriteOutcome;
use super::*;
use crate::blobs::{Blobs, Found};
use crate::cluster::{LeaseAnswer, LeaseAsk};
use crate::journal::{Commit, SpaceJournal};

/// As many as a node may have.
const CONNECTIONS_MAX: i64 = 8;

fn database(settings: &PostgresSettings) -> &str {
    settings.url.rsplit_once("dbname=").unwrap().1
}

fn batch(seq: u64, text: &str) -> Batch {
    let action = Record::Action {
        seq: Seq(seq),
        channel: ChannelId(1),
        envelope: Bytes::copy_from_slice(text.as_bytes()),
    };
    let (seq, records) = (Seq(seq), vec![action]);
    Batch { seq, records }
}

async fn open_spaces(node: &Arc<PostgresNode>, count: usize) -> Vec<PostgresJournal> {
    let mut spaces = Vec::new();
    for number in 0..count {
        let (journal, _) = node.open_space(&format!("s{number}")).await.unwrap();
        spaces.push(journal);
    }
    spaces
}

/// A kernel that was ended left a batch behind, and the one after it wrote under the next epoch: both wait for the same writer.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_lost_lease_is_not_written_along_with_one_of_its_space() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (journal, _) = node.open_space("team").await.unwrap();
    let (other, _) = node.open_space("other").await.unwrap();
    let noted = [journal.append(batch(1, "begun")), other.append(batch(1, "begun"))];
    assert_eq!(join_all(noted).await, [Ok(()), Ok(())]);
    let epoch: i64 = query_sql(
        server.socket(),
        database(&settings),
        "SELECT min(epoch) FROM greenroom.lease WHERE batch = 1",
    )
    .parse()
    .unwrap();
    let (sender, queue) = mpsc::channel(8);
    let mut outcomes = Vec::new();
    let space = |journal: &PostgresJournal| journal.blobs().space;
    for (space, epoch, seq, text) in [
        (space(&journal), epoch - 1, 2, "stale"),
        (space(&other), epoch, 2, "other"),
        (space(&journal), epoch, 3, "new"),
        (space(&journal), epoch - 1, 4, "stale"),
    ] {
        let (done, outcome) = oneshot::channel();
        let request = QueuedWrite {
            space,
            epoch,
            number: 1,
            batch: Arc::new(batch(seq, text)),
            bytes: 8,
            begins_day: false,
            queued_at: Instant::now(),
            pace: append_pace::AppendPace::default(),
            append: None,
            done,
        };
        sender.try_send(request).unwrap();
        outcomes.push(outcome);
    }
    drop(sender);
    let config = parse_near(&settings.url).unwrap();
    let watch = Arc::new(TimelineWatch::new(Failover::Unwatched));
    let pool = ConnectionPool::new(config, 1, SHORT_ANSWER_WAIT, &watch, &node.trust);
    let counters = Arc::default();
    write_batches(pool, queue, node.patience, counters).await;
    let outcomes = join_all(outcomes).await.into_iter().map(Result::unwrap);
    assert!(
        matches!(
            outcomes.collect::<Vec<_>>().as_slice(),
            [
                WriteOutcome::NotOwner,
                WriteOutcome::Written,
                WriteOutcome::Written,
                WriteOutcome::NotOwner
            ]
        ),
        "who holds the lease writes, and nobody else"
    );
    let begun = (1, Bytes::from_static(b"begun"));
    let new = (3, Bytes::from_static(b"new"));
    assert_eq!(actions(&journal).await, [begun, new]);
}

/// Looks at the server until it is told to stop: the most connections that a node had.
async fn watch_connections(settings: PostgresSettings, mut stop: oneshot::Receiver<()>) -> i64 {
    let config: Config = settings.url.parse().unwrap();
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let count = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = 'greenroom' AND datname = current_database()";
    let mut most = 0;
    while stop.try_recv().is_err() {
        let row = client.query_one(count, &[]).await.unwrap();
        most = most.max(row.get(0));
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn however_much_is_asked_a_node_has_eight_connections() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let id = register(&node).await;
    let spaces = open_spaces(&node, 40).await;
    let (stop, stopped) = oneshot::channel();
    let watching = tokio::spawn(watch_connections(settings, stopped));
    let large = "x".repeat(MERGED_BYTES_MAX + 1);
    let busy = spaces.iter().enumerate().map(async |(number, journal)| {
        let space = journal.blobs().space;
        for seq in 1..=8 {
            let text = if number < 4 && seq == 8 { &large } else { "{}" };
            let find = LeaseAsk::Find { space };
            let (written, read, found, collected) = tokio::join!(
                journal.append(batch(seq, text)),
                journal.boot(),
                node.ask(id, &find),
                journal.find_unreferenced(Vec::new()),
            );
            written.unwrap();
            read.unwrap();
            collected.unwrap();
            assert!(matches!(found, LeaseAnswer::Found(Some(_))), "{found:?}");
        }
    });
    // One at a time, as in a node: one that waits for others would come too late, and all connections were made anew.
    let beating = async {
        loop {
            let beat = node.ask(id, &LeaseAsk::Heartbeat).await;
            assert!(matches!(beat, LeaseAnswer::Heartbeat(Some(_))), "{beat:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _done = join_all(busy) => {}
        () = beating => {}
    }
    stop.send(()).unwrap();
    let most = watching.await.unwrap();
    assert_eq!(most, CONNECTIONS_MAX, "all of them were in use, and no more");
    for journal in &spaces {
        assert_eq!(actions(journal).await.len(), 8);
    }
}

/// Every statement about leases takes so long, however many it changes.
const SLOW: &str = "CREATE FUNCTION greenroom.slow() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END $$;
     CREATE TRIGGER slow BEFORE UPDATE ON greenroom.lease FOR EACH STATEMENT EXECUTE FUNCTION greenroom.slow()";

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_slow_batches_share_statements() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let spaces = open_spaces(&node, 60).await;
    // The first of a day is written with a note of it, and shares nothing.
    let first = spaces.iter().map(|journal| journal.append(batch(1, "{}")));
    assert!(join_all(first).await.iter().all(Result::is_ok));
    let before = node.counts();
    run_sql(server.socket(), database(&settings), SLOW);
    let slow = spaces.iter().map(async |journal| {
        for seq in 2..=5 {
            journal.append(batch(seq, "{}")).await.unwrap();
        }
    });
    join_all(slow).await;
    let after = node.counts();
    let batches = after.batches - before.batches;
    let commits = after.commits - before.commits;
    assert_eq!(batches, 240);
    assert!(commits * 5 <= batches, "{commits} commits");
    for journal in &spaces {
        assert_eq!(actions(journal).await.len(), 5);
    }
}

/// A sweep takes longer than a batch may, and removes what it is to remove all the same.
const SLOW_SWEEP: &str = "CREATE FUNCTION greenroom.slow() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(4.5); RETURN NULL; END $$;
     CREATE TRIGGER slow BEFORE DELETE ON greenroom.turn FOR EACH STATEMENT EXECUTE FUNCTION greenroom.slow()";

#[tokio::test(flavor = "multi_thread")]
async fn housekeeping_may_take_long_and_keeps_no_other_space_waiting() {
    let Some(server) = TestServer::start() else { return };
    let settings = PostgresSettings { journal_patience_ms: 2_000, ..server.make_database() };
    let node = PostgresNode::connect(&settings).await.unwrap();
    let spaces = open_spaces(&node, 3).await;
    for journal in &spaces {
        journal.append(batch(1, "{}")).await.unwrap();
    }
    run_sql(server.socket(), database(&settings), SLOW_SWEEP);
    let (swept, others) = spaces.split_first().unwrap();
    let sweep = Batch {
        seq: Seq(2),
        records: vec![Record::Sweep {
            disposed_before: Timestamp(1),
            clients_before: Timestamp(1),
            clients_max: 1,
        }],
    };
    let sweeping = tokio::spawn({
        let swept = swept.clone();
        async move { swept.append(sweep).await }
    });
    // One of them shares a writer with it.
    let rest = others.iter().map(|journal| journal.append(batch(2, "{}")));
    assert_eq!(join_all(rest).await, [Ok(()), Ok(())]);
    assert!(!sweeping.is_finished(), "nobody waits for it");
    assert_eq!(sweeping.await.unwrap(), Ok(()));
    assert_eq!(node.counts().unknown, 0, "nobody gave it up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_recorded_too_much_is_closed_at_once() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (journal, _) = node.open_space("team").await.unwrap();
    journal.counters().rate.set(1);
    // A hundred seconds' worth: what follows waits as long as anything ever does.
    journal.append(batch(1, &"x".repeat(100))).await.unwrap();
    let began = Instant::now();
    let Commit::Waiting(mut last) = journal.commit(batch(2, "{}")) else {
        panic!("it is elsewhere");
    };
    assert!(futures_util::poll!(&mut last).is_pending());
    journal.prepare_to_close();
    last.await.unwrap();
    journal.note(crate::journal::contract::chat(1, "a"));
    journal.close().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{began:?}");
    let (journal, boot) = node.open_space("team").await.unwrap();
    assert_eq!(boot.seq, Seq(2));
    assert_eq!(actions(&journal).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_refers_to_is_removed_in_one_transaction() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (journal, _) = node.open_space("team").await.unwrap();
    let blobs = Arc::new(journal.blobs());
    let put = Arc::clone(&blobs);
    let put = move || {
        let bodies = (0_u8..32).map(|n| put.put(&[n], Timestamp(1_000)).unwrap());
        bodies.collect::<Vec<Digest>>()
    };
    let digests = tokio::task::spawn_blocking(put).await.unwrap();
    run_sql(
        server.socket(),
        database(&settings),
        "CREATE TABLE public.removal (transaction bigint);
         CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.removal VALUES (txid_current()); RETURN NULL; END $$;
         CREATE TRIGGER note AFTER DELETE ON greenroom.blob FOR EACH ROW EXECUTE FUNCTION public.note()",
    );
    let removing = Arc::clone(&blobs);
    let remove = move |digests: &[Digest]| {
        let removed = removing.remove_all(digests, Timestamp(2_000));
        assert_eq!(removed, Ok(()));
    };
    journal.collect(digests.clone(), Box::new(remove)).await.unwrap();
    let count = "SELECT count(*) || ' in ' || count(DISTINCT transaction) FROM public.removal";
    assert_eq!(query_sql(server.socket(), database(&settings), count), "32 in 1");
    let chunks = "SELECT count(*) FROM greenroom.blob_chunk";
    assert_eq!(query_sql(server.socket(), database(&settings), chunks), "0");
    let left = tokio::task::spawn_blocking(move || blobs.read(&digests[0], 100)).await;
    assert_eq!(left.unwrap(), Ok(Found::Missing));
}
