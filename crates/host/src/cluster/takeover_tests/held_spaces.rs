//! Spaces that a node holds for as long as it runs: it gets them back, and does not wait for ever.

use std::time::Duration;

use super::cutting_proxy::CuttingProxy;
use super::support::{
    TestCluster, connect, create_session, hear, poll, serve_handle, wait_until_here,
};
use crate::cluster::ClusterAdmin;
use crate::journal::JournalError;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_gets_a_space_of_its_own_back_and_nobody_takes_it_again() {
    let Some(cluster) = TestCluster::start(&["own"]).await else { return };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    // Taken over while its node was away.
    let (handle, _) = wait_until_here(&b, "own").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    drop(handle);
    let orders = tokio::spawn(std::sync::Arc::clone(&b).follow_orders(|| {}));
    let held = a.hold("own").await.unwrap();
    assert_eq!(cluster.holder("own"), Some(a.id()));
    assert!(held.boot.seq.0 > 0, "with what was written meanwhile");
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    // It is of the settings of `a`: an operator who drains it does not wait for it, and no other node gets it.
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    let nodes = admin.nodes().await.unwrap();
    let listed = nodes.iter().find(|node| node.id == a.id()).unwrap();
    assert_eq!((listed.spaces, listed.movable_spaces), (1, 0));
    let refused = b.hold("own").await.err();
    assert!(
        matches!(&refused, Some(JournalError::Locked(words)) if words.contains("the node a serves")),
        "{refused:?}"
    );
    orders.abort();
}

/// Longer than it takes where nothing is wrong, shorter than anything else that ends a wait.
const PATIENCE: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_find_out_who_has_its_space_does_not_wait_for_ever() {
    let Some(cluster) = TestCluster::start(&["own"]).await else { return };
    let proxy = CuttingProxy::start(cluster.server.socket());
    let url = proxy.through(&cluster.settings.url, cluster.server.socket());
    let node = cluster.node_with("a", |config| config.postgres = Some(url)).await;
    // Nobody but the lease of this space makes anybody wait, and whoever has locked it is none of ours to end.
    wait_until_here(&node, "own").await;
    node.give_back("own").await.unwrap();
    let client = cluster.connect_beside().await;
    client.batch_execute("BEGIN; UPDATE greenroom.lease SET batch = batch").await.unwrap();
    let refused = node.hold_within("own", PATIENCE).await.err();
    assert!(
        matches!(&refused, Some(JournalError::Locked(words)) if words.contains("not found out in time")),
        "{refused:?}"
    );
    client.batch_execute("ROLLBACK").await.unwrap();
    // It goes on as if nothing had been asked.
    let mut held = None;
    poll("it is held", async || {
        held = node.hold_within("own", PATIENCE).await.ok();
        held.is_some()
    })
    .await;
    assert_eq!(cluster.holder("own"), Some(node.id()));
    // The network carries nothing any more, and nobody says so.
    proxy.silence();
    let refused = node.hold_within("other", PATIENCE).await.err();
    assert!(refused.is_some(), "somebody answered");
}
