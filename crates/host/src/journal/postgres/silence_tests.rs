//! Connections that are never answered any more while new ones work, and connections that others use for long.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use kernel::{Answer, Batch, ChannelId, Query, Record, Seq};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::leases::NodeRegistration;
use super::test_server::TestServer;
use super::*;
use crate::cluster::{LeaseAnswer, LeaseAsk, NodeId};
use crate::journal::{Commit, SpaceJournal};

const SOCKET: &str = ".s.PGSQL.5432";
/// Two answers that do not come and what follows, on a machine that does much else; less than a statement may take.
const FEW_SECONDS: Duration = Duration::from_secs(15);

/// Passes bytes on to the server until its connections are silenced: those that are there then stay, and carry nothing more.
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
        tokio::spawn(carry_all(
            listener,
            server,
            Arc::clone(&silent_below),
            Arc::clone(&count),
        ));
        Self {
            directory,
            silent_below,
            count,
        }
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
    let action = Record::Action {
        seq,
        channel: ChannelId(1),
        envelope: Bytes::from_static(b"{}"),
    };
    let records = vec![action];
    Batch { seq, records }
}

async fn seqs(journal: &PostgresJournal) -> Vec<u64> {
    let query = Query::Log {
        floors: vec![(ChannelId(1), Seq(0))],
        through: Seq(u64::MAX),
        bytes_max: u64::MAX,
    };
    match journal.read(query).await.unwrap() {
        Answer::Log(slice) => slice.actions.iter().map(|(seq, ..)| seq.0).collect(),
        other => panic!("{other:?}"),
    }
}

async fn register(node: &PostgresNode) -> NodeId {
    let registration = NodeRegistration {
        name: "a".to_owned(),
        home: "home".to_owned(),
        address: String::new(),
        fingerprint: Vec::new(),
        mounts: Vec::new(),
    };
    node.register(&registration).await.unwrap()
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = T>) -> T {
    let done = timeout(limit, work).await;
    done.unwrap_or_else(|_| panic!("{what}: not within {limit:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_whose_connections_fall_silent_writes_and_reads_on_within_seconds() {
    let Some(server) = TestServer::start() else {
        return; // the line that says so is written
    };
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
    let Some(server) = TestServer::start() else {
        return; // the line that says so is written
    };
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
        while !matches!(
            node.ask(id, &LeaseAsk::Heartbeat).await,
            LeaseAnswer::Heartbeat(Some(_))
        ) {}
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
    let Some(server) = TestServer::start() else {
        return; // the line that says so is written
    };
    let settings = PostgresSettings {
        journal_patience_ms: 300,
        ..server.make_database()
    };
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
    assert!(
        matches!(written, Ok(()) | Err(JournalError::Lost(_))),
        "{written:?}"
    );
    assert_eq!(owned, LeaseAnswer::Owned(Vec::new()));
    assert!(found.unwrap().is_some());
    boot.unwrap();
    assert!(matches!(read, Ok(Answer::Messages(_))), "{read:?}");
}
