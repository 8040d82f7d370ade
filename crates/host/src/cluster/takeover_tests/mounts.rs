//! Spaces that work in a directory which some nodes offer: those nodes run their turns, the others serve them for reading.

use std::path::Path;
use std::sync::Arc;

use super::support::{
    TestCluster, config, connect, create_session, has_session, join, open_chat, poll, run_turn,
    serve_handle, wait_until_here,
};
use crate::cluster::{ClusterAdmin, ClusterAdminError, ClusterNode, SpaceLocation};
use crate::config::Config;
use crate::journal::PostgresNode;
use crate::mounts::MountEntry;

fn offer(label: &str, path: &Path) -> impl FnOnce(&mut Config) + use<> {
    let mount = MountEntry { label: label.to_owned(), path: path.to_owned() };
    move |config| config.mounts = vec![mount]
}

async fn is_at(node: &ClusterNode, space: &str, owner: &ClusterNode) -> bool {
    matches!(node.space(space).await, Ok(SpaceLocation::At(at)) if at.id == owner.id())
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_a_space_run_where_its_mount_is_and_nowhere_else() {
    let Some(cluster) = TestCluster::start(&["team", "free"]).await else { return };
    let files = tempfile::tempdir().unwrap();
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    admin.name_mount("team", Some("src")).await.unwrap();
    assert_eq!(admin.mount_of("team").await.unwrap().as_deref(), Some("src"));

    // Nobody offers it: it is served for reading.
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let chat = open_chat(&mut socket, 1).await;
    let refused = run_turn(&mut socket, &chat, 1).await;
    let words = refused.to_string();
    assert_eq!(refused["type"], "chat/error", "{words}");
    assert!(words.contains("workspace_unavailable") && words.contains("`src`"), "{words}");
    drop((socket, handle));

    // Whoever offers it has it from now on, though nobody asks there.
    let b = cluster.node_with("b", offer("src", files.path())).await;
    let orders = [&a, &b].map(|node| tokio::spawn(Arc::clone(node).follow_orders(|| {})));
    poll("it is where its mount is", async || cluster.holder("team") == Some(b.id())).await;
    poll("clients of others are sent there", async || is_at(&a, "team", &b).await).await;
    let (handle, _) = wait_until_here(&b, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    assert!(has_session(&mut socket, 1).await, "nothing is lost");
    create_session(&mut socket, 2).await;
    let chat = open_chat(&mut socket, 2).await;
    let ended = run_turn(&mut socket, &chat, 2).await;
    assert_eq!(ended["type"], "chat/turnComplete", "{ended}");
    orders.iter().for_each(|it| it.abort());
    drop((socket, handle));

    // Free again, and asked for where it cannot work: not taken there.
    b.give_back("team").await.unwrap();
    assert!(is_at(&a, "team", &b).await, "its turns can run there");
    assert_eq!(cluster.holder("team"), None);
    // One that names none is anybody's.
    wait_until_here(&a, "free").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_is_named_later_takes_the_space_from_who_does_not_offer_it() {
    let Some(cluster) = TestCluster::start(&["team", "own"]).await else { return };
    let files = tempfile::tempdir().unwrap();
    let a = cluster.node("a").await;
    let b = cluster.node_with("b", offer("src", files.path())).await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let admin = ClusterAdmin::connect(&cluster.settings).await.unwrap();
    admin.name_mount("team", Some("src")).await.unwrap();
    drop((socket, handle));
    poll("the node without it has dropped it", async || is_at(&a, "team", &b).await).await;
    let (handle, _) = wait_until_here(&b, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    assert!(has_session(&mut socket, 1).await);

    let refused = admin.move_space("team", "a").await.unwrap_err();
    assert!(matches!(refused, ClusterAdminError::NoMount { .. }), "{refused}");
    let refused = admin.name_mount("team", Some("no label")).await;
    assert!(matches!(refused, Err(ClusterAdminError::BadLabel(_))));
    let refused = admin.name_mount("nowhere", None).await;
    assert!(matches!(refused, Err(ClusterAdminError::NoSpace(_))));
    let _held = a.hold("own").await.unwrap();
    let refused = admin.name_mount("own", Some("src")).await;
    assert!(matches!(refused, Err(ClusterAdminError::OwnSpace(_))));
    let listed = admin.nodes().await.unwrap();
    let of_b = listed.iter().find(|node| node.name == "b").unwrap();
    assert_eq!(of_b.mounts.len(), 1);
    assert_eq!(of_b.mounts[0].path, files.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_leads_to_one_path_on_all_nodes() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _a = cluster.node_with("a", offer("src", one.path())).await;
    let mut other = config("b", &cluster.data("b"), &cluster.settings.url);
    offer("src", two.path())(&mut other);
    let database = PostgresNode::connect(&cluster.settings).await.unwrap();
    let refused = ClusterNode::join(&other, Arc::clone(&database)).await.err().unwrap().to_string();
    assert!(
        refused.contains("the node a offers `src`") && refused.contains("same path"),
        "{refused}"
    );
    offer("src", &two.path().join("none"))(&mut other);
    let refused = ClusterNode::join(&other, database).await;
    assert!(refused.is_err(), "what is not there cannot be offered");
    offer("src", one.path())(&mut other);
    join(&other).await;
}
