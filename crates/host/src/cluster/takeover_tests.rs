//! Nodes on a real PostgreSQL: spaces go where they are wanted, and on when their node is killed, stopped or cut off.

mod cutting_proxy;
mod database_faults;
mod drains;
mod failover;
mod formats;
mod free_work;
mod held_spaces;
mod mounts;
mod roles;
mod served_nodes;
mod space_top;
mod support;

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use self::cutting_proxy::CuttingProxy;
use self::support::{
    NODE_VARIABLE, TestCluster, arrived_texts, ask, config, connect, create_session, has_session,
    hear, hear_to_the_end, join, poll, send, serve_handle, session, wait_until_here,
};
use super::{SpaceLocation, SpaceUnavailable};

/// Does nothing unless it is started by another test.
#[tokio::test(flavor = "multi_thread")]
async fn node_in_a_process_of_its_own() {
    let Ok(facts) = std::env::var(NODE_VARIABLE) else {
        return; // it is only run as one of all tests
    };
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let text = |key: &str| facts[key].as_str().unwrap().to_owned();
    let node = join(&config(&text("name"), Path::new(&text("data")), &text("url"))).await;
    let (handle, _) = wait_until_here(&node, &text("space")).await;
    let mut address = serve_handle(&handle).await;
    address["id"] = json!(node.id());
    let (ready, staged) = (text("ready"), format!("{}.new", text("ready")));
    std::fs::write(&staged, address.to_string()).unwrap();
    std::fs::rename(staged, ready).unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_is_loaded_where_it_is_wanted_and_named_elsewhere() {
    let Some(cluster) = TestCluster::start(&["team", "other"]).await else { return };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let Ok(SpaceLocation::Here(handle)) = a.space("team").await else {
        panic!("nobody else wants it");
    };
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let Ok(SpaceLocation::At(owner)) = b.space("team").await else {
        panic!("the other node has it");
    };
    assert_eq!((owner.id, owner.name.as_str()), (a.id(), "a"));
    assert!(owner.address.starts_with("127.0.0.1:"), "{owner:?}");
    assert!(matches!(b.space("nowhere").await, Err(SpaceUnavailable::Missing)));
    assert!(matches!(b.space("other").await, Ok(SpaceLocation::Here(_))));
    assert_eq!((a.names(), b.names()), (vec!["team".to_owned()], vec!["other".to_owned()]));
    // Given back, it goes on where it is wanted next, with all it has; its clients are told to come again.
    a.give_back("team").await.unwrap();
    assert_eq!(cluster.holder("team"), None);
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    let (handle, _) = wait_until_here(&b, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    assert!(has_session(&mut socket, 1).await);
    assert!(!has_session(&mut socket, 2).await);
    assert!(matches!(a.space("team").await, Ok(SpaceLocation::At(owner)) if owner.id == b.id()));
    // A node that drains takes nothing.
    b.drain().await.unwrap();
    b.give_all_back().await;
    assert_eq!(cluster.holder("team"), None);
    assert!(
        matches!(b.space("team").await, Ok(SpaceLocation::At(taker)) if taker.id == a.id()),
        "another takes it for whoever comes"
    );
    assert_eq!(cluster.holder("team"), None);
    b.leave().await;
    assert_eq!(cluster.ask("SELECT count(*) FROM greenroom.node"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_space_costs_nothing_and_is_given_back() {
    let Some(cluster) = TestCluster::start(&["one", "two", "three"]).await else { return };
    let idle = cluster.node_with("a", |config| config.limits.server.space_idle_s = 1).await;
    let (handle, _) = wait_until_here(&idle, "one").await;
    wait_until_here(&idle, "two").await;
    poll("the space without a user is given back", async || cluster.holder("two").is_none()).await;
    assert_eq!(cluster.holder("one"), Some(idle.id()), "somebody has its handle");
    drop(handle);
    poll("so is the other", async || cluster.holder("one").is_none()).await;
    assert_eq!(idle.names(), Vec::<String>::new());
    drop(idle);

    // As often as a kernel may look for something to clear away: many times that happens while it is watched.
    let node = cluster.node_with("b", |config| config.limits.kernel.sweep_ms = 200).await;
    for space in ["one", "two", "three"] {
        wait_until_here(&node, space).await;
    }
    let log = cluster.log_statements();
    // Soon there are heartbeats, and no other statement of any kind.
    poll("nothing but heartbeats over ten of them", async || {
        let (from, mut beats) = (log.end(), 0);
        while beats < 10 {
            let made = log.statements_since(from);
            beats = made.iter().filter(|it| it.contains("WITH beat AS")).count();
            if made.len() > beats {
                return false; // what was begun before is not over, or somebody asks for something
            }
            let heard = log.end();
            poll("a statement", async || log.end() > heard).await;
        }
        true
    })
    .await;
    assert_eq!(node.names().len(), 3, "all are still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_followed_by_another_or_by_itself() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let b = cluster.node("b").await;
    let mut first = cluster.process("a", "team").await;
    let mut socket = connect(&first.address, "ann").await;
    create_session(&mut socket, 1).await;
    // The same node, started again, ends its predecessor at once.
    first.kill();
    let mut second = cluster.process("a", "team").await;
    assert_ne!(second.id(), first.id());
    assert_eq!(cluster.holder("team"), Some(second.id()), "nobody waited for it to be judged");
    let mut socket = connect(&second.address, "ann").await;
    assert!(has_session(&mut socket, 1).await);
    create_session(&mut socket, 2).await;
    // Something is left to do in it, so another takes it when the time of the dead one is over, though nobody asks.
    cluster.run("UPDATE greenroom.channel SET duty = 2 WHERE uri LIKE 'scripted:%'");
    second.kill();
    let took = poll("it is taken", async || cluster.holder("team") == Some(b.id())).await;
    eprintln!("taken over {took:?} after the kill");
    let (handle, _) = wait_until_here(&b, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    assert!(has_session(&mut socket, 1).await && has_session(&mut socket, 2).await);
    create_session(&mut socket, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_stopped_past_its_lease_writes_nothing_and_says_nothing() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let b = cluster.node("b").await;
    let zombie = cluster.process("a", "team").await;
    let mut old = connect(&zombie.address, "ann").await;
    create_session(&mut old, 1).await;
    zombie.signal(Signal::STOP);
    // Waiting in its socket: something to write, and something to answer without writing.
    send(&mut old, 50, "createSession", session(2)).await;
    send(&mut old, 51, "ping", json!({"channel": "ahp-root://"})).await;
    let (handle, took) = wait_until_here(&b, "team").await;
    eprintln!("taken over {took:?} after the stop");
    let mut socket = connect(&serve_handle(&handle).await, "bob").await;
    create_session(&mut socket, 3).await;
    // Batches are the new owner's own: it may still write what follows from the session. What is there is looked at below.
    let written = "SELECT epoch FROM greenroom.lease";
    let before = cluster.ask(written);
    // What it said before it was stopped.
    arrived_texts(&mut old).await;
    zombie.signal(Signal::CONT);
    let (texts, code) = hear_to_the_end(&mut old).await;
    assert!(texts.is_empty(), "it says something: {texts:?}");
    assert!(matches!(code, 0 | 1012 | 1013), "{code}");
    assert_eq!(cluster.ask(written), before);
    assert_eq!(cluster.holder("team"), Some(b.id()));
    let (first, second) = (has_session(&mut socket, 1).await, has_session(&mut socket, 2).await);
    assert_eq!((first, second), (true, false), "what the stopped one was asked for is not there");
    create_session(&mut socket, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stays_away_silences_a_node_until_it_is_back() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let epoch =
        "SELECT epoch FROM greenroom.lease JOIN greenroom.space ON id = space WHERE name = 'team'";
    let before = cluster.ask(epoch);
    // Right after a heartbeat, so that there is time before the node falls silent.
    let expires = format!("SELECT expires FROM greenroom.node WHERE id = {}", a.id());
    let expired = cluster.ask(&expires);
    poll("a heartbeat", async || cluster.ask(&expires) != expired).await;
    tokio::task::block_in_place(|| cluster.server.stop());
    // What needs no record is answered.
    let ping = json!({"channel": "ahp-root://"});
    let answer = ask(&mut socket, 51, "ping", ping).await.unwrap();
    assert!(answer["error"].is_null(), "{answer}");
    assert_eq!(hear(&mut socket, 99).await, Err(1013));
    assert!(matches!(a.space("team").await, Err(SpaceUnavailable::Nobody)));
    tokio::task::block_in_place(|| cluster.server.start_again());
    // Nobody has judged anybody: all were away.
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 2).await;
    assert!(has_session(&mut socket, 1).await);
    assert_eq!(cluster.ask(epoch), before, "it went on under its lease");
    assert!(matches!(b.space("team").await, Ok(SpaceLocation::At(owner)) if owner.id == a.id()));
}

/// A process that stops between two packets of a transaction keeps the lease locked.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_a_stopped_process_has_locked_is_taken() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let (client, connection) = tokio_postgres::Config::connect(
        cluster
            .settings
            .url
            .parse::<tokio_postgres::Config>()
            .unwrap()
            .application_name("greenroom"),
        tokio_postgres::NoTls,
    )
    .await
    .unwrap();
    let connection = tokio::spawn(connection);
    let node = cluster.node("a").await;
    wait_until_here(&node, "team").await;
    node.give_back("team").await.unwrap();
    client.batch_execute("BEGIN; UPDATE greenroom.lease SET batch = batch").await.unwrap();
    wait_until_here(&node, "team").await;
    let ended = connection.await.unwrap();
    assert!(ended.is_err(), "whoever held the lock is ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_whose_batch_is_there_though_it_was_refused_is_loaded_anew() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let proxy = CuttingProxy::start(cluster.server.socket());
    let url = proxy.through(&cluster.settings.url, cluster.server.socket());
    let node = cluster
        .node_with("a", |config| {
            config.postgres = Some(url);
            config.limits.server.journal_patience_ms = 1_500;
        })
        .await;
    let (handle, _) = wait_until_here(&node, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let made = session(2);
    proxy.cut_after_commit_of(made["channel"].as_str().unwrap());
    let refused = ask(&mut socket, 50, "createSession", made).await.unwrap();
    assert!(!refused["error"].is_null(), "{refused}");
    assert!(proxy.is_closed(), "its answer was lost");
    proxy.open();
    // The journal has what its kernel took back: that one ends, and another begins with what is there.
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    drop(handle);
    let (handle, _) = wait_until_here(&node, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    assert!(has_session(&mut socket, 1).await);
    assert!(has_session(&mut socket, 2).await, "the journal says so");
    create_session(&mut socket, 3).await;
    assert_eq!(cluster.holder("team"), Some(node.id()));
}
