//! Another server takes the place of the database's: a standby that has everything, and one that lacks commits.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::support::{
    TestCluster, ask, connect, create_session, has_session, hear, open_chat, poll, serve_handle,
    wait_until_here,
};
use crate::config::FailoverChoice;
use crate::journal::postgres::test_server::{TestServer, query_sql};

/// What seqs lead to that have leapt: the time. No space counts so far by itself.
const LEAPT: u64 = 1_700_000_000_000_000;

/// The address under which nodes find whichever server is in charge.
struct ServerAddress {
    directory: tempfile::TempDir,
}

impl ServerAddress {
    fn of(socket: &Path) -> Self {
        let address = Self { directory: tempfile::tempdir().unwrap() };
        address.point_to(socket);
        address
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("current")
    }

    fn point_to(&self, socket: &Path) {
        let staged = self.directory.path().join("next");
        std::os::unix::fs::symlink(socket, &staged).unwrap();
        std::fs::rename(staged, self.path()).unwrap();
    }

    fn url(&self, cluster: &TestCluster) -> String {
        let socket = cluster.server.socket().display().to_string();
        let here = self.path().display().to_string();
        cluster.settings.url.replace(&socket, &here)
    }
}

fn database_of(cluster: &TestCluster) -> &str {
    cluster.settings.url.rsplit_once('=').unwrap().1
}

/// Waits until a standby is connected to its server.
async fn wait_until_streaming(cluster: &TestCluster) {
    poll("the standby follows", async || {
        cluster.ask("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == "1"
    })
    .await;
}

/// The server crashes, and the standby is in charge.
fn fail_over(cluster: &TestCluster, standby: &TestServer, address: &ServerAddress) {
    tokio::task::block_in_place(|| {
        cluster.server.stop();
        standby.promote();
        address.point_to(standby.socket());
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_has_everything_goes_on_as_after_a_restart() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let standby = tokio::task::block_in_place(|| cluster.server.start_standby());
    wait_until_streaming(&cluster).await;
    // No commit is answered before the standby has it.
    cluster.run("ALTER SYSTEM SET synchronous_standby_names = '*'");
    cluster.run("SELECT pg_reload_conf()");
    let address = ServerAddress::of(cluster.server.socket());
    let node = cluster
        .node_with("a", |config| {
            config.postgres = Some(address.url(&cluster));
            config.limits.server.journal_patience_ms = 60_000;
            config.cluster.as_mut().unwrap().failover = FailoverChoice::Lossless;
        })
        .await;
    let (handle, _) = wait_until_here(&node, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let lease = "SELECT epoch || ' ' || seq FROM greenroom.lease JOIN greenroom.space ON id = space WHERE name = 'team'";
    let before = cluster.ask(lease);
    fail_over(&cluster, &standby, &address);
    let database = database_of(&cluster);
    let ask_standby = |sql: &str| query_sql(standby.socket(), database, sql);
    // Nobody follows the new one, so it waits for nobody.
    ask_standby("ALTER SYSTEM RESET synchronous_standby_names");
    ask_standby("SELECT pg_reload_conf()");
    assert_eq!(ask_standby(lease), before, "everything is there");
    // On a slow machine the node has fallen silent meanwhile, as it does when a restart takes long.
    let (handle, _) = wait_until_here(&node, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 2).await;
    assert!(has_session(&mut socket, 1).await && has_session(&mut socket, 2).await);
    let seq: u64 = ask_standby("SELECT max(seq) FROM greenroom.lease").parse().unwrap();
    assert!(seq < LEAPT, "nothing was lost, so nothing leaps");
    let timeline = ask_standby("SELECT right(timeline, 8) FROM greenroom.cluster");
    assert_eq!(timeline, "00000002", "it is known all the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_that_lacks_commits_gives_no_seq_a_second_time() {
    let Some(cluster) = TestCluster::start(&["team", "other"]).await else { return };
    let standby = tokio::task::block_in_place(|| cluster.server.start_standby());
    wait_until_streaming(&cluster).await;
    let address = ServerAddress::of(cluster.server.socket());
    let url = address.url(&cluster);
    let patient = |config: &mut crate::config::Config| {
        config.postgres = Some(url.clone());
        config.limits.server.journal_patience_ms = 60_000;
    };
    let (a, b) = (cluster.node_with("a", patient).await, cluster.node_with("b", patient).await);
    let (handle, _) = wait_until_here(&a, "team").await;
    wait_until_here(&b, "other").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let chat = open_chat(&mut socket, 1).await;
    let database = database_of(&cluster);
    let ask_standby = |sql: &str| query_sql(standby.socket(), database, sql);
    let written = "SELECT sum(batch) FROM greenroom.lease";
    poll("the standby has it", async || ask_standby(written) == cluster.ask(written)).await;
    // From now on it hears nothing, and its server goes on alone.
    ask_standby("ALTER SYSTEM SET primary_conninfo = ''");
    ask_standby("SELECT pg_reload_conf()");
    poll("the standby is cut off", async || {
        cluster.ask("SELECT count(*) FROM pg_stat_replication") == "0"
    })
    .await;
    create_session(&mut socket, 2).await;
    let seq =
        "SELECT seq FROM greenroom.lease JOIN greenroom.space ON id = space WHERE name = 'team'";
    let heard: u64 = cluster.ask(seq).parse().unwrap();
    let kept: u64 = ask_standby(seq).parse().unwrap();
    assert!(kept < heard, "a commit that a client has heard of is lost");
    fail_over(&cluster, &standby, &address);
    // Whatever the node believed is not what the database has: its clients come again.
    let closed = hear(&mut socket, 9_999).await;
    assert!(matches!(closed, Err(1012 | 1013 | 0)), "{closed:?}");
    drop(handle);
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "bob").await;
    let back = json!({"channel": "ahp-root://", "clientId": "ann", "lastSeenServerSeq": heard,
        "subscriptions": [chat]});
    let mut returned = super::support::connect_only(&serve_handle(&handle).await).await;
    let answer = ask(&mut returned, 60, "reconnect", back).await.unwrap();
    assert_eq!(answer["result"]["type"], "snapshot", "{answer}");
    assert!(has_session(&mut socket, 1).await);
    assert!(!has_session(&mut socket, 2).await, "it was lost");
    create_session(&mut socket, 3).await;
    let now: u64 = ask_standby(seq).parse().unwrap();
    assert!(now > LEAPT, "{now}");
    let first: u64 =
        ask_standby(&format!("SELECT min(seq) FROM greenroom.action WHERE seq > {kept}"))
            .parse()
            .unwrap();
    assert!(first > heard, "no seq that was heard is given again");
    // Once, though both nodes noticed.
    let leaps = ask_standby("SELECT max(taken) FROM greenroom.node");
    assert_eq!(leaps, "1");
    wait_until_here(&b, "other").await;
}
