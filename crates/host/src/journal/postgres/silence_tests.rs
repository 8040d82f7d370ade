//! Connections that are never answered any more while new ones work, and connections that others use for long.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use kernel::{Answer, Batch, ChannelId, Query, Record, Seq};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::test_server::{TestServer, run_sql};
use super::tests::{register, seqs};
use super::writer::WriteOutcome;
use super::*;
use crate::cluster::{LeaseAnswer, LeaseAsk};
use crate::journal::{Commit, SpaceJournal};

const SOCKET: &str = ".s.PGSQL.5432";
/// Two answers that do not come and what follows, on a machine that does much else; less than a statement may take.
const FEW_SECONDS: Duration = Duration::from_secs(15);

/// Once some were silent it takes so long until a new connection is there.
const DELAY: Duration = Duration::from_millis(700);

/// Passes bytes on to the server until its connections are silenced: those that are there then stay, and carry nothing more, and new
/// ones take a moment.
struct SilentTunnel {
    directory: tempfile::TempDir,
    /// Connections with smaller numbers are silent.
    silent_below: Arc<watch::Sender<u64>>,
    count: Arc<AtomicU64>,
}

impl SilentTunnel {
    fn start(server: &TestServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let silent_below = Arc::new(watch::Sender::new(0));
        let count = Arc::new(AtomicU64::new(0));
        let server = server.socket().join(SOCKET);
        tokio::spawn(carry_all(listener, server, Arc::clone(&silent_below), Arc::clone(&count)));
        Self { directory, silent_below, count }
    }

    fn through(&self, settings: &PostgresSettings, server: &TestServer) -> PostgresSettings {
        let (near, far) = (self.directory.path(), server.socket());
        let far = far.display().to_string();
        PostgresSettings {
            url: settings.url.replace(&far, &near.display().to_string()),
            journal_patience_ms: 2_000,
            ..settings.clone()
        }
    }

    fn silence_connections(&self) {
        let count = self.count.load(Ordering::SeqCst);
        self.silent_below.send_replace(count);
    }
}

async fn carry_all(
    listener: UnixListener,
    server: PathBuf,
    silent_below: Arc<watch::Sender<u64>>,
    count: Arc<AtomicU64>,
) {
    while let Ok((mut near, _)) = listener.accept().await {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let mut far = UnixStream::connect(&server).await.unwrap();
        let mut silenced = silent_below.subscribe();
        tokio::spawn(async move {
            if *silenced.borrow() > 0 {
                tokio::time::sleep(DELAY).await;
            }
            tokio::select! {
                biased;
                () = wait_until_silent(&mut silenced, number) => {
                    std::future::pending::<()>().await; // nobody is told, and nothing is closed
                }
                _ended = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            }
        });
    }
}

async fn wait_until_silent(silenced: &mut watch::Receiver<u64>, number: u64) {
    // The other side is held by whoever accepts.
    let _open = silenced.wait_for(|below| number < *below).await;
}

fn batch(seq: u64) -> Batch {
    let seq = Seq(seq);
    let action = Record::Action { seq, channel: ChannelId(1), envelope: Bytes::from_static(b"{}") };
    let records = vec![action];
    Batch { seq, records }
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = T>) -> T {
    timeout(limit, work).await.unwrap_or_else(|_| panic!("{what}: not within {limit:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_whose_connections_fall_silent_writes_and_reads_on_within_seconds() {
    let Some(server) = TestServer::start() else { return };
    let tunnel = SilentTunnel::start(&server);
    let settings = tunnel.through(&server.make_database(), &server);
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (writing, _) = node.open_space("writing").await.unwrap();
    let (reading, _) = node.open_space("reading").await.unwrap();
    writing.append(batch(1)).await.unwrap();
    reading.append(batch(1)).await.unwrap();
    assert_eq!(seqs(&reading).await, [1]);
    tunnel.silence_connections();
    // No heartbeat says anything here: whoever is not answered finds out alone.
    let both = async { tokio::join!(writing.append(batch(2)), seqs(&reading)) };
    let (written, read) = within(FEW_SECONDS, "both go on", both).await;
    assert_eq!((written, read), (Ok(()), vec![1]));
    assert_eq!(node.counts().unknown, 1, "it is known to be looked up");
    let rest = async {
        reading.append(batch(2)).await.unwrap();
        (seqs(&writing).await, seqs(&reading).await)
    };
    let (of_writing, of_reading) = within(FEW_SECONDS, "all are known", rest).await;
    assert_eq!((of_writing, of_reading), (vec![1, 2], vec![1, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_silent_connections_is_given_up_when_a_heartbeat_gets_through() {
    let Some(server) = TestServer::start() else { return };
    let tunnel = SilentTunnel::start(&server);
    let settings = tunnel.through(&server.make_database(), &server);
    let node = PostgresNode::connect(&settings).await.unwrap();
    let id = register(&node).await;
    let beat = node.ask(id, &LeaseAsk::Heartbeat).await;
    assert!(matches!(beat, LeaseAnswer::Heartbeat(Some(_))), "{beat:?}");
    let mut long = node.read_connection().await.unwrap();
    let mut asked = Box::pin(long.run("SELECT pg_sleep(600)"));
    let begun = timeout(Duration::from_millis(300), &mut asked).await;
    assert!(begun.is_err(), "it runs");
    tunnel.silence_connections();
    let ended = async {
        while !matches!(node.ask(id, &LeaseAsk::Heartbeat).await, LeaseAnswer::Heartbeat(Some(_))) {
        }
        asked.await
    };
    let ended = within(FEW_SECONDS, "nobody waits for it any more", ended).await;
    assert!(matches!(ended, Err(StatementError::Lost(_))), "{ended:?}");
    drop(long);
    let mut again = node.read_connection().await.unwrap();
    let asked = within(FEW_SECONDS, "a new one works", again.run("SELECT 1")).await;
    assert!(asked.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_others_to_be_served_is_not_told_that_the_database_is_away() {
    let Some(server) = TestServer::start() else { return };
    let settings = PostgresSettings { journal_patience_ms: 300, ..server.make_database() };
    let node = PostgresNode::connect(&settings).await.unwrap();
    let id = register(&node).await;
    let (journal, _) = node.open_space("team").await.unwrap();
    // The outcome of a batch is not known: the next looks it up.
    let Commit::Waiting(mut commit) = journal.commit(batch(1)) else {
        panic!("it is elsewhere");
    };
    assert!(futures_util::poll!(&mut commit).is_pending());
    drop(commit);
    let mut held = vec![node.lease_connection().await.unwrap()];
    for _ in 0..READERS {
        held.push(node.read_connection().await.unwrap());
    }
    let busy = held.into_iter().map(async |mut connection| {
        connection.run("SELECT pg_sleep(1.5)").await.unwrap();
    });
    let asked = async {
        tokio::join!(
            journal.append(Batch::default()),
            node.ask(id, &LeaseAsk::ListOwned),
            node.find_space("team"),
            journal.boot(),
            journal.read(Query::Message { id: "m".to_owned() }),
        )
    };
    let (_, answers) = tokio::join!(futures_util::future::join_all(busy), asked);
    let (written, owned, found, boot, read) = answers;
    assert!(matches!(written, Ok(()) | Err(JournalError::Lost(_))), "{written:?}");
    assert_eq!(owned, LeaseAnswer::Owned(Vec::new()));
    assert!(found.unwrap().is_some());
    boot.unwrap();
    assert!(matches!(read, Ok(Answer::Messages(_))), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_behind_one_that_is_not_answered_go_in_another_connection() {
    let Some(server) = TestServer::start() else { return };
    let tunnel = SilentTunnel::start(&server);
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let config = parse_near(&tunnel.through(&settings, &server).url).unwrap();
    let watch = Arc::new(TimelineWatch::new(Failover::Unwatched));
    let pool = ConnectionPool::new(config, 1, SHORT_ANSWER_WAIT, &watch, &node.trust);
    drop(pool.get(node.until()).await.unwrap());
    tunnel.silence_connections();
    let (sender, queue) = mpsc::channel(8);
    let (mut outcomes, mut paces) = (Vec::new(), Vec::new());
    for name in ["one", "two", "three", "four"] {
        let (journal, _) = node.open_space(name).await.unwrap();
        let (done, outcome) = oneshot::channel();
        let pace = append_pace::AppendPace::default();
        paces.push(pace.clone());
        let request = QueuedWrite {
            space: journal.blobs().space,
            epoch: 1,
            number: 0,
            batch: Arc::new(batch(1)),
            bytes: 8,
            // It has a transaction of its own.
            begins_day: true,
            queued_at: Instant::now(),
            pace,
            append: None,
            done,
        };
        sender.try_send(request).unwrap();
        outcomes.push(outcome);
    }
    drop(sender);
    let counters = Arc::<JournalCounters>::default();
    let writing = write_batches(pool, queue, node.patience, Arc::clone(&counters));
    within(FEW_SECONDS, "all are answered", writing).await;
    let outcomes: Vec<WriteOutcome> =
        futures_util::future::join_all(outcomes).await.into_iter().map(Result::unwrap).collect();
    let (first, others) = outcomes.split_first().unwrap();
    assert!(matches!(first, WriteOutcome::Unknown(_)), "{first:?}");
    let is_written = |outcome: &WriteOutcome| matches!(outcome, WriteOutcome::Written);
    assert!(others.iter().all(is_written), "{others:?}");
    let slowest = paces.iter().map(append_pace::AppendPace::current).max();
    assert!(slowest < Some(SHORT_ANSWER_WAIT / 2), "the server was fast: {slowest:?}");
    let queued = Duration::from_micros(counters.read().queued_us);
    assert!(queued < SHORT_ANSWER_WAIT, "in vain: {queued:?}");
}

/// The first batch from now on takes longer than anybody waits for it, and the next ones do not.
const STUCK_ONCE: &str = "CREATE SEQUENCE greenroom.tries;
     CREATE FUNCTION greenroom.stick() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN IF nextval('greenroom.tries') = 1 THEN PERFORM pg_sleep(25); END IF; RETURN NULL; END $$;
     CREATE TRIGGER stick AFTER INSERT ON greenroom.action FOR EACH STATEMENT EXECUTE FUNCTION greenroom.stick()";

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_the_server_is_stuck_with_is_ended_there_and_sent_once_more() {
    let Some(server) = TestServer::start() else { return };
    let settings = PostgresSettings { journal_patience_ms: 2_000, ..server.make_database() };
    let node = PostgresNode::connect(&settings).await.unwrap();
    let (journal, _) = node.open_space("team").await.unwrap();
    journal.append(batch(1)).await.unwrap();
    let database = settings.url.rsplit_once("dbname=").unwrap().1;
    run_sql(server.socket(), database, STUCK_ONCE);
    let written = within(FEW_SECONDS, "it is written", journal.append(batch(2))).await;
    assert_eq!(written, Ok(()));
    assert_eq!(node.counts().unknown, 1, "it was looked up");
    assert_eq!(seqs(&journal).await, [1, 2]);
}

/// Carries one connection until its first statement names a text, and nothing of it from then on. Ends when the near side closes it.
async fn carry_until(listener: UnixListener, server: PathBuf, text: &[u8]) {
    let (mut near, _) = listener.accept().await.unwrap();
    let mut far = UnixStream::connect(&server).await.unwrap();
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut is_silent = false;
    loop {
        tokio::select! {
            read = near.read(&mut asked) => {
                let count = read.unwrap_or(0);
                if count == 0 {
                    return;
                }
                let asked = &asked[..count];
                is_silent |= asked.windows(text.len()).any(|it| it == text);
                if !is_silent {
                    far.write_all(asked).await.unwrap();
                }
            }
            read = far.read(&mut answered), if !is_silent => {
                let count = read.unwrap();
                near.write_all(&answered[..count]).await.unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_falls_silent_before_it_can_be_used_is_closed() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let watch = Arc::new(TimelineWatch::new(Failover::Lossless));
    let mut known = node.read_connection().await.unwrap();
    known.begin_watch(&watch).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
    let far = server.socket().join(SOCKET);
    let closed = tokio::spawn(carry_until(listener, far, b"FROM greenroom.cluster"));
    let (near, far) = (directory.path(), server.socket().display().to_string());
    let url = settings.url.replace(&far, &near.display().to_string());
    let config = parse_near(&url).unwrap();
    let pool = ConnectionPool::new(config, 1, SHORT_ANSWER_WAIT, &watch, &node.trust);
    let refused = pool.get(Instant::now()).await.map(drop);
    assert_eq!(refused, Err("the server does not answer".to_owned()));
    within(FEW_SECONDS, "nobody holds it", closed).await.unwrap();
}
