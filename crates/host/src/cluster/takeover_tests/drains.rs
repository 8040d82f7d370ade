//! Spaces that leave a node in order.

use std::sync::Arc;

use super::support::{TestCluster, connect, create_session, hear, serve_door, wait_until_here};

#[tokio::test(flavor = "multi_thread")]
async fn who_is_told_to_connect_again_finds_the_space_free() {
    let Some(cluster) = TestCluster::start(&["team", "orphan"]).await else {
        return; // the line that says so is written
    };
    let a = cluster.node("a").await;
    let (door, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_door(&door).await, "ann").await;
    create_session(&mut socket, 1).await;
    // A lease that was not given back, of a space that nobody serves.
    wait_until_here(&a, "orphan").await;
    a.give_back("orphan").await.unwrap();
    cluster.run(&format!(
        "UPDATE greenroom.lease SET node = {} FROM greenroom.space WHERE id = space AND name = 'orphan'",
        a.id()
    ));
    let node = Arc::clone(&a);
    let draining = tokio::spawn(async move { node.drain_spaces().await });
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    assert_eq!(cluster.holder("team"), None, "before anybody was told");
    draining.await.unwrap();
    assert_eq!(cluster.holder("orphan"), None, "nobody is kept from it");
}
