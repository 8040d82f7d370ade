//! A journal in a real PostgreSQL: restarts, lost answers, lost leases, spaces side by side.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use bytes::Bytes;
use kernel::{Answer, Batch, ChannelId, Query, Record, Seq};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use wire::Digest;

use super::leases::NodeRegistration;
use super::test_server::{TestServer, query_sql};
use super::*;
use crate::blobs::{Blobs, Found};
use crate::cluster::NodeId;
use crate::journal::contract::{chat, session};
use crate::journal::{Commit, SpaceJournal};

fn action(seq: u64) -> Record {
    Record::Action {
        seq: Seq(seq),
        channel: ChannelId(1),
        envelope: Bytes::from(format!("action {seq}")),
    }
}

fn batch(seq: u64) -> Batch {
    Batch { seq: Seq(seq), records: vec![action(seq)] }
}

/// A batch that is no single statement.
fn mixed(seq: u64) -> Batch {
    let records = vec![action(seq), chat(1, "a")];
    let seq = Seq(seq);
    Batch { seq, records }
}

/// Registers a node that is called `a` and serves no address.
pub(super) async fn register(node: &PostgresNode) -> NodeId {
    let registration = NodeRegistration {
        name: "a".to_owned(),
        home: "home".to_owned(),
        address: String::new(),
        fingerprint: Vec::new(),
        mounts: Vec::new(),
    };
    node.register(&registration).await.unwrap()
}

/// Reads all actions of the first channel.
pub(super) async fn actions(journal: &PostgresJournal) -> Vec<(u64, Bytes)> {
    let floors = vec![(ChannelId(1), Seq(0))];
    let query = Query::Log { floors, through: Seq(u64::MAX), bytes_max: u64::MAX };
    match journal.read(query).await.unwrap() {
        Answer::Log(slice) => {
            let actions = slice.actions.into_iter();
            actions.map(|(seq, _, bytes)| (seq.0, bytes)).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Reads the numbers of all actions of the first channel.
pub(super) async fn seqs(journal: &PostgresJournal) -> Vec<u64> {
    actions(journal).await.into_iter().map(|(seq, _)| seq).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_records_too_much_waits_and_loses_nothing() {
    let Some(server) = TestServer::start() else { return };
    let node = PostgresNode::connect(&server.make_database()).await.unwrap();
    let (red, _) = node.open_space("red").await.unwrap();
    let (blue, _) = node.open_space("blue").await.unwrap();
    // A batch has eight bytes: one may come at once, the second makes the third wait for two seconds.
    red.counters().rate.set(4);
    let began = Instant::now();
    for seq in 1..=3 {
        red.append(batch(seq)).await.unwrap();
    }
    assert!(began.elapsed() >= Duration::from_millis(1_500));
    assert_eq!(seqs(&red).await, [1, 2, 3]);
    assert_eq!(blue.counters().rate.delay_of(1 << 30), Duration::ZERO);
    let counted = node.space_activities();
    let of_red = counted.iter().max_by_key(|it| it.records).unwrap();
    assert_eq!((of_red.records, of_red.bytes), (3, 24));
}

/// What was sent is written or not; either way nobody is kept from the space.
#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_that_is_ended_while_it_commits_leaves_a_lease_that_is_given_back() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    for round in 0..20 {
        let (journal, boot) = node.open_space("team").await.unwrap();
        let seq = boot.seq.0 + 1;
        let Commit::Waiting(mut commit) = journal.commit(batch(seq)) else {
            panic!("it is elsewhere");
        };
        let begun = futures_util::poll!(&mut commit);
        assert!(begun.is_pending(), "round {round}");
        if round % 2 == 0 {
            tokio::task::yield_now().await;
        }
        drop(commit);
        journal.note(chat(1, "a"));
        journal.close().await;
        let database = settings.url.rsplit_once("dbname=").unwrap().1;
        let free = "SELECT count(*) FROM greenroom.lease WHERE node IS NULL";
        assert_eq!(query_sql(server.socket(), database, free), "1", "{round}");
    }
    let (journal, boot) = node.open_space("team").await.unwrap();
    let seqs = seqs(&journal).await;
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    journal.append(batch(boot.seq.0 + 1)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_spaces_with_equal_ids_do_not_see_each_other() {
    let Some(server) = TestServer::start() else { return };
    let node = PostgresNode::connect(&server.make_database()).await.unwrap();
    let (red, _) = node.open_space("red").await.unwrap();
    let (blue, boot) = node.open_space("blue").await.unwrap();
    assert_eq!(boot.seq, Seq(0));
    let digest = Digest::new([7; 32]);
    let referring = Record::Reference {
        channel: ChannelId(1),
        turn: None,
        digest,
        content_type: Some("text/plain".to_owned()),
    };
    let records = vec![session(1, "s"), chat(2, "c"), action(3), referring];
    let seq = Seq(3);
    red.append(Batch { seq, records }).await.unwrap();
    let uri = || wire::ChannelUri::parse("test:/c").unwrap();
    let find = |journal: &PostgresJournal| {
        let journal = journal.clone();
        let query = Query::Channel { uri: uri(), turns_max: 1, bytes_max: 1 };
        async move {
            match journal.read(query).await.unwrap() {
                Answer::Channel(found) => found.is_some(),
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!((find(&red).await, find(&blue).await), (true, false));
    assert_eq!((seqs(&red).await, seqs(&blue).await), (vec![3], vec![]));
    assert_eq!(red.find_unreferenced(vec![digest]).await.unwrap(), []);
    assert_eq!(blue.find_unreferenced(vec![digest]).await.unwrap(), [digest]);
    // The same ids again: they are taken in one space only.
    blue.append(Batch { seq: Seq(3), records: vec![session(1, "s"), chat(2, "c"), action(3)] })
        .await
        .unwrap();
    assert_eq!(blue.boot().await.unwrap().seq, Seq(3));
    // Many at once, so that statements carry both.
    for seq in 4..40 {
        let (one, other) = tokio::join!(red.append(batch(seq)), blue.append(batch(seq)));
        assert_eq!((one, other), (Ok(()), Ok(())));
    }
    assert_eq!(seqs(&red).await, seqs(&blue).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_record_is_refused_and_takes_no_other_space_along() {
    let Some(server) = TestServer::start() else { return };
    let node = PostgresNode::connect(&server.make_database()).await.unwrap();
    let mut spaces = Vec::new();
    // Every second one has the same writer.
    for name in ["bad", "a", "good", "b", "fine"] {
        spaces.push(node.open_space(name).await.unwrap().0);
    }
    let [bad, _, good, _, fine] = spaces.as_slice() else {
        panic!("five spaces");
    };
    bad.append(batch(1)).await.unwrap();
    for seq in 1..40 {
        // Those that wait together go in one statement, and its seq was used.
        let (refused, one, other) =
            tokio::join!(bad.append(batch(1)), good.append(batch(seq)), fine.append(batch(seq)));
        assert!(matches!(refused, Err(JournalError::BadRecord { index: 0, .. })), "{refused:?}");
        assert_eq!((one, other), (Ok(()), Ok(())));
    }
    assert_eq!(seqs(bad).await, [1]);
    assert_eq!(seqs(good).await, seqs(fine).await);
    bad.append(batch(2)).await.unwrap();
    assert_eq!(seqs(bad).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lease_writes_nothing_and_stays_lost() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let (first, second) = (
        PostgresNode::connect(&settings).await.unwrap(),
        PostgresNode::connect(&settings).await.unwrap(),
    );
    let (old, _) = first.open_space("s").await.unwrap();
    old.append(batch(1)).await.unwrap();
    let (new, boot) = second.open_space("s").await.unwrap();
    assert_eq!(boot.seq, Seq(1));
    for attempt in [batch(2), mixed(2), Batch::default()] {
        let refused = old.append(attempt).await;
        assert!(matches!(refused, Err(JournalError::Lost(_))), "{refused:?}");
    }
    let read = old.read(Query::Message { id: "m".to_owned() }).await;
    assert!(matches!(read, Err(JournalError::Lost(_))), "{read:?}");
    assert!(old.failures().borrow().is_some(), "its kernel is told");
    old.close().await;
    new.append(mixed(2)).await.unwrap();
    assert_eq!(seqs(&new).await, [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_is_noticed_by_nobody() {
    let Some(server) = TestServer::start() else { return };
    let node = PostgresNode::connect(&server.make_database()).await.unwrap();
    let mut writers = Vec::new();
    let stop = tokio_util::sync::CancellationToken::new();
    let counts: [Arc<AtomicU64>; 4] = Default::default();
    for (space, count) in counts.iter().enumerate() {
        let (journal, _) = node.open_space(&format!("s{space}")).await.unwrap();
        journal.append(mixed(1)).await.unwrap();
        let (stop, count) = (stop.clone(), Arc::clone(count));
        writers.push(tokio::spawn(async move {
            let mut last = 1;
            while !stop.is_cancelled() {
                last += 1;
                match last % 3 {
                    0 => journal.append(mixed(last)).await.unwrap(),
                    _ => journal.append(batch(last)).await.unwrap(),
                }
                count.fetch_add(1, Ordering::SeqCst);
            }
            (journal, last)
        }));
    }
    for mode in ["fast", "immediate", "fast"] {
        tokio::task::block_in_place(|| server.restart(mode));
        let before = counts.each_ref().map(|count| count.load(Ordering::SeqCst));
        let mut look = tokio::time::interval(Duration::from_millis(10));
        for (count, before) in counts.iter().zip(before) {
            while count.load(Ordering::SeqCst) < before + 3 {
                look.tick().await;
            }
        }
    }
    stop.cancel();
    for writer in writers {
        let (journal, last) = writer.await.unwrap();
        let all: Vec<u64> = (1..=last).collect();
        assert_eq!(seqs(&journal).await, all, "each once, none missing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_a_full_disk_until_it_comes_back() {
    let Some(server) = TestServer::start() else { return };
    let settings = PostgresSettings { journal_patience_ms: 200, ..server.make_database() };
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (journal, _) = node.open_space("s").await.unwrap();
    journal.append(batch(1)).await.unwrap();
    tokio::task::block_in_place(|| server.stop());
    let refused = journal.append(batch(2)).await;
    assert!(matches!(refused, Err(JournalError::Unwritable(_))), "{refused:?}");
    assert!(journal.probe().await.is_err());
    tokio::task::block_in_place(|| server.start_again());
    assert_eq!(journal.probe().await, Ok(()));
    journal.append(batch(2)).await.unwrap();
    assert_eq!(seqs(&journal).await, [1, 2]);
}

/// What a proxy does with the next thing that a client sends.
#[derive(Clone, Copy)]
enum Cut {
    None,
    /// The server never gets it.
    Before,
    /// The server gets it, but nobody its answer.
    After,
}

/// Passes bytes on between a node and the server until told to cut a connection.
async fn pass_on(listener: UnixListener, server: std::path::PathBuf, cut: Arc<AtomicU8>) {
    while let Ok((near, _)) = listener.accept().await {
        let far = UnixStream::connect(&server).await.unwrap();
        tokio::spawn(pass_one(near, far, Arc::clone(&cut)));
    }
}

async fn pass_one(mut near: UnixStream, mut far: UnixStream, cut: Arc<AtomicU8>) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = near.read(&mut asked) => {
                let Ok(read @ 1..) = read else { return };
                let now = cut.swap(Cut::None as u8, Ordering::SeqCst);
                if now == Cut::Before as u8 {
                    return;
                }
                far.write_all(&asked[..read]).await.unwrap();
                if now == Cut::After as u8 {
                    // It is done when it is answered.
                    let _read = far.read(&mut answered).await;
                    return;
                }
            }
            read = far.read(&mut answered) => {
                let Ok(read @ 1..) = read else { return };
                if near.write_all(&answered[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn through(settings: &PostgresSettings, socket: &Path, proxy: &Path) -> PostgresSettings {
    let url = settings.url.replace(&socket.display().to_string(), &proxy.display().to_string());
    PostgresSettings { url, ..settings.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_lost_is_resolved_both_ways() {
    let Some(server) = TestServer::start() else { return };
    let proxy = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(proxy.path().join(".s.PGSQL.5432")).unwrap();
    let cut = Arc::new(AtomicU8::new(Cut::None as u8));
    let real = server.socket().join(".s.PGSQL.5432");
    tokio::spawn(pass_on(listener, real, Arc::clone(&cut)));
    let settings = through(&server.make_database(), server.socket(), proxy.path());
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (journal, _) = node.open_space("s").await.unwrap();
    journal.append(batch(1)).await.unwrap();
    journal.append(mixed(2)).await.unwrap();
    let mut seq = 2;
    for mode in [Cut::Before, Cut::After] {
        for make in [batch, mixed] {
            // Statements are prepared by now; the next thing that is sent is the batch.
            journal.append(make(seq + 1)).await.unwrap();
            cut.store(mode as u8, Ordering::SeqCst);
            journal.append(make(seq + 2)).await.unwrap();
            assert_eq!(cut.load(Ordering::SeqCst), Cut::None as u8, "it was cut");
            seq += 2;
        }
    }
    let all: Vec<u64> = (1..=seq).collect();
    assert_eq!(seqs(&journal).await, all, "each once, none missing");
    assert_eq!(journal.boot().await.unwrap().seq, Seq(seq));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_referred_to_is_not_removed_whoever_asks() {
    let Some(server) = TestServer::start() else { return };
    let node = PostgresNode::connect(&server.make_database()).await.unwrap();
    let (journal, _) = node.open_space("s").await.unwrap();
    let blobs = journal.blobs();
    let now = wire::Timestamp(1_000);
    let (blobs, kept, free) = tokio::task::spawn_blocking(move || {
        let kept = blobs.put(b"referred to", now).unwrap();
        let free = blobs.put(b"nobody's", now).unwrap();
        (blobs, kept, free)
    })
    .await
    .unwrap();
    let referring =
        Record::Reference { channel: ChannelId(1), turn: None, digest: kept, content_type: None };
    let records = vec![session(1, "s"), referring];
    journal.append(Batch { seq: Seq(1), records }).await.unwrap();
    // As whoever asked before the reference came, and removes after it.
    let removed = tokio::task::spawn_blocking(move || {
        let later = wire::Timestamp(2_000);
        for digest in [&kept, &free] {
            blobs.remove(digest, later).unwrap();
        }
        [&kept, &free].map(|digest| blobs.read(digest, 100).unwrap())
    });
    let left = removed.await.unwrap();
    let body = b"referred to".to_vec();
    assert_eq!(left, [Found::Body(body), Found::Missing]);
}

/// A server that takes what is sent and says nothing: nobody waits for it for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join(".s.PGSQL.5432")).unwrap();
    let silent = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            held.push(socket);
        }
    });
    let url = format!("host={} user=greenroom dbname=d", directory.path().display());
    let settings = PostgresSettings { journal_patience_ms: 100, ..PostgresSettings::new(url) };
    let refused = PostgresNode::connect(&settings).await.err();
    assert!(
        matches!(&refused, Some(JournalError::Unwritable(words)) if words.contains("does not answer")),
        "{refused:?}"
    );
    silent.abort();
}

/// As when all nodes of a cluster are started together on a database that is empty, by a first one that takes long.
#[tokio::test(flavor = "multi_thread")]
async fn tables_that_another_is_making_are_waited_for() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let config: Config = settings.url.parse().unwrap();
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("BEGIN;\n{SCHEMA}")).await.unwrap();
    let connecting = tokio::spawn(async move { PostgresNode::connect(&settings).await.map(drop) });
    // Longer than anybody waits for a lease.
    let waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
         AND clock_timestamp() - query_start > interval '1500 ms'";
    let mut look = tokio::time::interval(Duration::from_millis(50));
    while client.query(waiting, &[]).await.unwrap().is_empty() {
        assert!(!connecting.is_finished(), "it did not wait");
        look.tick().await;
        // A transaction sees others as they were when it first looked.
        let forget = "SELECT pg_stat_clear_snapshot()";
        client.batch_execute(forget).await.unwrap();
    }
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(connecting.await.unwrap(), Ok(()));
}
