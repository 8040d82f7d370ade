//! A space that a newer version changed: nodes of an older format leave it alone, whatever way it might come to them.

use super::support::{TestCluster, connect, create_session, serve_handle, wait_until_here};
use crate::cluster::{ClusterAdmin, ClusterAdminError, LeaseAnswer, LeaseAsk, SpaceLocation};
use crate::journal::MoveOrder;
use crate::mounts::MountEntry;

#[tokio::test(flavor = "multi_thread")]
async fn an_older_node_gets_no_space_that_a_newer_one_changed() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let files = tempfile::tempdir().unwrap();
    let mount = MountEntry { label: "src".to_owned(), path: files.path().to_owned() };
    cluster.run("INSERT INTO greenroom.lease (space, epoch, batch, seq, log_floor, format) SELECT id, 0, 0, 0, 0, 2 FROM greenroom.space");
    let a = cluster.node("a").await;
    let b = cluster.node_with("b", |config| config.mounts = vec![mount]).await;
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    let space: i64 = cluster.ask("SELECT id FROM greenroom.space").parse().unwrap();
    assert!(a.space("team").await.is_err(), "it is not taken");
    let taker = a.database().find_taker(a.id(), space, true).await;
    assert_eq!(taker.unwrap(), None);
    let refused = admin.move_space("team", "b").await;
    assert!(matches!(&refused, Err(ClusterAdminError::OlderNode { .. })), "{refused:?}");
    assert_eq!(cluster.ask("SELECT count(*) FROM greenroom.move_order"), "0");
    // An order from before it was changed.
    let order =
        MoveOrder { space, name: "team".to_owned(), target: b.id(), holder: None, epoch: 0 };
    cluster.run(&format!(
        "INSERT INTO greenroom.move_order (space, target, asked_at) VALUES ({space}, {}, clock_timestamp())",
        b.id()
    ));
    let handed_over = a.database().hand_over(&order, a.id()).await;
    assert!(!handed_over.unwrap());
    assert_eq!(cluster.holder("team"), None);
    cluster.run("DELETE FROM greenroom.move_order");
    cluster.run(&format!("UPDATE greenroom.lease SET node = {}", a.id()));
    assert!(!a.database().claim(space, b.id()).await.unwrap());
    cluster.run("UPDATE greenroom.lease SET node = NULL; UPDATE greenroom.space SET mount = 'src'");
    let find = LeaseAsk::Find { space };
    let offering = async || match a.database().ask(a.id(), &find).await {
        LeaseAnswer::Found(Some(found)) => found.offering.map(|node| node.id),
        answer => panic!("{answer:?}"),
    };
    assert_eq!(offering().await, None);
    // The same of a format that they know.
    cluster.run("UPDATE greenroom.lease SET format = 1");
    assert_eq!(offering().await, Some(b.id()));
    cluster.run("UPDATE greenroom.space SET mount = NULL");
    let taker = a.database().find_taker(a.id(), space, true).await;
    assert_eq!(taker.unwrap().map(|node| node.id), Some(b.id()));
    cluster.run(&format!("UPDATE greenroom.lease SET node = {}", a.id()));
    assert!(a.database().claim(space, b.id()).await.unwrap());
    cluster.run("DELETE FROM greenroom.move_order; UPDATE greenroom.lease SET node = NULL");
    admin.move_space("team", "b").await.unwrap();
    assert_eq!(cluster.holder("team"), Some(b.id()), "it is handed over");
    assert!(matches!(b.space("team").await, Ok(SpaceLocation::Here(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn work_in_a_space_of_a_newer_format_is_listed_to_no_older_node() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    drop((socket, handle));
    a.give_back("team").await.unwrap();
    // No statement of its own comes in between.
    a.drain().await.unwrap();
    cluster.run("UPDATE greenroom.channel SET duty = 2 WHERE uri LIKE 'scripted:%'");
    let listed = async || match a.database().ask(a.id(), &LeaseAsk::ListWork { limit: 50 }).await {
        LeaseAnswer::Work(work) => work.len(),
        answer => panic!("{answer:?}"),
    };
    assert_eq!(listed().await, 1);
    cluster.run("UPDATE greenroom.lease SET format = 2");
    assert_eq!(listed().await, 0);
}
