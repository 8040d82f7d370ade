//! Spaces that leave a node in order.

use std::sync::Arc;

use super::served_nodes::ServedNode;
use super::support::{
    TestCluster, connect, create_session, has_session, hear, issue_token, poll, serve_handle,
    wait_until_here,
};
use crate::accounts::AccountAdmin;
use crate::cluster::{ClusterAdmin, ClusterNode, SpaceLocation};
use crate::journal::MoveOrder;

/// A lease that a node holds without serving its space: its last answer was lost, or the space failed.
async fn make_orphan(cluster: &TestCluster, node: &ClusterNode, space: &str) {
    wait_until_here(node, space).await;
    node.give_back(space).await.unwrap();
    cluster.run(&format!(
        "UPDATE greenroom.lease SET node = {} FROM greenroom.space WHERE id = space AND name = '{space}'",
        node.id()
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_told_to_connect_again_finds_the_space_free() {
    let Some(cluster) = TestCluster::start(&["team", "orphan"]).await else {
        return; // the line that says so is written
    };
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    make_orphan(&cluster, &a, "orphan").await;
    let node = Arc::clone(&a);
    let draining = tokio::spawn(async move { node.drain_spaces().await });
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    assert_eq!(cluster.holder("team"), None, "before anybody was told");
    draining.await.unwrap();
    assert_eq!(cluster.holder("orphan"), None, "nobody is kept from it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_nobody_uses_does_not_wait_for_turns_of_other_spaces() {
    let Some(cluster) = TestCluster::start(&["team", "orphan"]).await else {
        return; // the line that says so is written
    };
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    make_orphan(&cluster, &a, "orphan").await;
    // As if a turn ran in it.
    let tenure = handle.admission.tenure.clone().unwrap();
    tenure.set_busy(true);
    let node = Arc::clone(&a);
    let draining = tokio::spawn(async move { node.drain_spaces().await });
    poll("the lease is free", async || {
        cluster.holder("orphan").is_none()
    })
    .await;
    assert_eq!(cluster.holder("team"), Some(a.id()), "its turn may end");
    tenure.set_busy(false);
    draining.await.unwrap();
    assert_eq!(cluster.holder("team"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_to_a_node_that_drains_is_served_by_another() {
    let Some(cluster) = TestCluster::start(&[]).await else {
        return; // the line that says so is written
    };
    let a = ServedNode::start(&cluster, "a", |_| {}).await;
    let _b = ServedNode::start(&cluster, "b", |_| {}).await;
    let accounts = AccountAdmin::connect(&cluster.settings).await.unwrap();
    accounts.create_space("team").await.unwrap();
    let token = issue_token(&accounts, "team", "ann", kernel::Role::Owner).await;
    let mut socket = connect(&a.address_for(&token), "ann").await;
    create_session(&mut socket, 1).await;
    let first = cluster.holder("team");
    assert!(first.is_some());
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    admin.drain("a").await.unwrap();
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    // To the same node again: it takes nothing any more, and nobody has the space.
    let mut socket = connect(&a.address_for(&token), "ann").await;
    assert!(has_session(&mut socket, 1).await);
    let second = cluster.holder("team");
    assert!(second.is_some() && second != first, "{second:?}");
    let (status, _) = a.request("GET /status", Some(&token), "").await;
    assert_eq!(status, 200, "so are other requests");
}

/// Until the order was void, for a minute, neither its holder could take it nor the node it was ordered to.
#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_failed_while_it_was_to_move_goes_where_it_was_ordered_to() {
    let Some(cluster) = TestCluster::start(&["team"]).await else {
        return; // the line that says so is written
    };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    make_orphan(&cluster, &a, "team").await;
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    admin.move_space("team", "b").await.unwrap();
    assert!(a.space("team").await.is_err(), "it is ordered elsewhere");
    assert_eq!(cluster.holder("team"), Some(a.id()));
    let orders = [&a, &b].map(|node| tokio::spawn(Arc::clone(node).follow_orders(|| {})));
    poll("it is where it was ordered to", async || {
        matches!(b.space("team").await, Ok(SpaceLocation::Here(_)))
    })
    .await;
    assert_eq!(cluster.holder("team"), Some(b.id()));
    orders.iter().for_each(|it| it.abort());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_of_the_settings_of_a_node_is_ordered_away_in_vain() {
    let Some(cluster) = TestCluster::start(&["own"]).await else {
        return; // the line that says so is written
    };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let _held = a.hold("own").await.unwrap();
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    admin.move_space("own", "b").await.unwrap();
    let space = "SELECT id FROM greenroom.space WHERE name = 'own'";
    let order = MoveOrder {
        space: cluster.ask(space).parse().unwrap(),
        name: "own".to_owned(),
        target: b.id(),
        holder: Some(a.id()),
        epoch: cluster
            .ask("SELECT epoch FROM greenroom.lease JOIN greenroom.space ON id = space WHERE name = 'own'")
            .parse()
            .unwrap(),
    };
    a.follow_move(&order).await;
    assert_eq!(cluster.holder("own"), Some(a.id()));
}
