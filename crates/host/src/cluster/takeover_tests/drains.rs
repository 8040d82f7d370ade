//! Spaces that leave a node in order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::{Input, PeerId};

use super::served_nodes::ServedNode;
use super::support::{
    TestCluster, connect, create_session, has_session, hear, issue_token, poll, serve_handle,
    wait_until_here,
};
use crate::ServerLimits;
use crate::accounts::AccountAdmin;
use crate::cluster::{ClusterAdmin, ClusterAdminError, ClusterNode, SpaceLocation};
use crate::config::Config;
use crate::journal::MoveOrder;

/// Nothing ends a space of the node before the next one has loaded it, however busy the machine is.
fn wait_for_successors(config: &mut Config) {
    config.limits.server.shutdown_ms = 60_000;
}

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
    let Some(cluster) = TestCluster::start(&["team", "orphan"]).await else { return };
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
    let Some(cluster) = TestCluster::start(&["team", "orphan"]).await else { return };
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    make_orphan(&cluster, &a, "orphan").await;
    // As if a turn ran in it.
    let tenure = handle.admission.tenure.clone().unwrap();
    tenure.set_busy(true);
    let node = Arc::clone(&a);
    let draining = tokio::spawn(async move { node.drain_spaces().await });
    poll("the lease is free", async || cluster.holder("orphan").is_none()).await;
    assert_eq!(cluster.holder("team"), Some(a.id()), "its turn may end");
    tenure.set_busy(false);
    draining.await.unwrap();
    assert_eq!(cluster.holder("team"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn work_in_a_space_that_a_draining_node_held_and_did_not_serve_goes_on_elsewhere() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let _b = ServedNode::start(&cluster, "b", wait_for_successors).await;
    // It has looked for work that nobody has, and does so no more.
    let beats = || cluster.ask("SELECT expires FROM greenroom.node WHERE name = 'b'");
    for _ in 0..2 {
        let before = beats();
        poll("a heartbeat", async || beats() != before).await;
    }
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    drop((socket, handle));
    make_orphan(&cluster, &a, "team").await;
    cluster.run("UPDATE greenroom.channel SET duty = 2 WHERE uri LIKE 'scripted:%'");
    a.drain_spaces().await;
    let holder = cluster.holder("team");
    assert!(holder.is_some() && holder != Some(a.id()), "{holder:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_to_a_node_that_drains_is_served_by_another() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let a = ServedNode::start(&cluster, "a", wait_for_successors).await;
    let _b = ServedNode::start(&cluster, "b", wait_for_successors).await;
    let accounts = AccountAdmin::connect(&cluster.settings).await.unwrap();
    accounts.create_space("team").await.unwrap();
    let token = issue_token(&accounts, "team", "ann", kernel::Role::Owner).await;
    let mut socket = connect(&a.address_for(&token), "ann").await;
    create_session(&mut socket, 1).await;
    let first = cluster.holder("team");
    assert!(first.is_some());
    ClusterAdmin::connect(&cluster.settings).await.unwrap().drain("a").await.unwrap();
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    let second = cluster.holder("team");
    assert!(
        second.is_some() && second != first,
        "another has it before anybody was told: {second:?}"
    );
    // To the same node again: it takes nothing any more.
    let mut socket = connect(&a.address_for(&token), "ann").await;
    assert!(has_session(&mut socket, 1).await);
    assert_eq!(cluster.holder("team"), second);
    let (status, _) = a.request("GET /status", Some(&token), "").await;
    assert_eq!(status, 200, "so are other requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_moves_is_where_it_was_ordered_to_before_its_clients_are_told() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let a = ServedNode::start(&cluster, "a", wait_for_successors).await;
    let mut others = Vec::new();
    for name in ["b", "c"] {
        others.push(ServedNode::start(&cluster, name, wait_for_successors).await);
    }
    let accounts = AccountAdmin::connect(&cluster.settings).await.unwrap();
    accounts.create_space("team").await.unwrap();
    let token = issue_token(&accounts, "team", "ann", kernel::Role::Owner).await;
    let mut from = a.address_for(&token);
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    for (target, node) in ["b", "c"].into_iter().zip(&others) {
        let mut socket = connect(&from, "ann").await;
        admin.move_space("team", target).await.unwrap();
        assert_eq!(hear(&mut socket, 99).await, Err(1012));
        let place = admin.place_of("team").await.unwrap();
        assert_eq!(place.as_deref(), Some(target));
        from = node.address_for(&token);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_row_says_that_it_drains_passes_clients_on_before_it_has_read_that() {
    let Some(cluster) = TestCluster::start(&["team", "other"]).await else { return };
    // Neither follows orders.
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    assert!(matches!(a.space("other").await, Ok(SpaceLocation::Here(_))));
    admin.drain("a").await.unwrap();
    let found = a.space("team").await;
    assert!(matches!(found, Ok(SpaceLocation::At(taker)) if taker.id == b.id()));
}

/// Nobody waits for its inputs to end: what comes behind the word to stop comes too late.
#[tokio::test(flavor = "multi_thread")]
async fn a_space_whose_queue_is_never_empty_is_given_back_in_order() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    let queue = handle.queue.clone();
    let flood = tokio::spawn(async move {
        loop {
            let nothing = Input::Disconnected { peer: PeerId(u64::MAX) };
            if queue.send(nothing.into()).await.is_err() {
                return; // the kernel has ended
            }
        }
    });
    let began = Instant::now();
    a.give_back("team").await.unwrap();
    let limit = Duration::from_millis(ServerLimits::default().shutdown_ms);
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    assert_eq!(cluster.holder("team"), None);
    flood.await.unwrap();
}

/// Until the order was void, for a minute, neither its holder could take it nor the node it was ordered to.
#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_failed_while_it_was_to_move_goes_where_it_was_ordered_to() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    make_orphan(&cluster, &a, "team").await;
    ClusterAdmin::connect(&cluster.settings).await.unwrap().move_space("team", "b").await.unwrap();
    let passed_on = a.space("team").await;
    assert!(matches!(passed_on, Ok(SpaceLocation::At(target)) if target.id == b.id()));
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
    let Some(cluster) = TestCluster::start(&["own"]).await else { return };
    let (a, b) = (cluster.node("a").await, cluster.node("b").await);
    let _held = a.hold("own").await.unwrap();
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    let refused = admin.move_space("own", "b").await.unwrap_err();
    assert!(
        matches!(&refused, ClusterAdminError::HeldSpace { node, .. } if node == "a"),
        "{refused}"
    );
    // One that was ordered before the node had it.
    assert!(a.database().order_move("own", "b").await.unwrap());
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

#[tokio::test(flavor = "multi_thread")]
async fn a_space_is_not_ordered_to_a_node_that_cannot_serve_its_clients() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let _a = cluster.node("a").await;
    let _alone = cluster
        .node_with("alone", |config| {
            if let Some(cluster) = &mut config.cluster {
                cluster.address = None;
            }
        })
        .await;
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    let refused = admin.move_space("team", "alone").await.unwrap_err();
    assert!(refused.to_string().contains("has no `address`"), "{refused}");
    admin.drain("a").await.unwrap();
    let refused = admin.move_space("team", "a").await.unwrap_err();
    assert!(refused.to_string().contains("is being drained"), "{refused}");
    let refused = admin.move_space("team", "nobody").await.unwrap_err();
    assert!(refused.to_string().contains("no node named"), "{refused}");
}
