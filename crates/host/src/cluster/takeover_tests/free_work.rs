//! Work in spaces that nobody has: after a leap, and since a node was started again. And nodes that have too much of it.

use std::time::{Duration, Instant};

use super::support::{TestCluster, connect, create_session, poll, serve_handle, wait_until_here};

#[tokio::test(flavor = "multi_thread")]
async fn work_in_a_space_that_nobody_has_is_taken_up_without_a_client() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let a = cluster.node("a").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    drop((socket, handle));
    let has_work = "UPDATE greenroom.channel SET duty = 2 WHERE uri LIKE 'scripted:%'";
    a.give_back("team").await.unwrap();
    cluster.run(has_work);
    assert_eq!(cluster.holder("team"), None);
    // A node that starts looks for it with its first heartbeat: the new one, or the first if it has sent none yet.
    let b = cluster.node("b").await;
    poll("a node takes it", async || cluster.holder("team").is_some()).await;
    // A leap takes everything from everybody.
    let holder = if cluster.holder("team") == Some(a.id()) { &a } else { &b };
    wait_until_here(holder, "team").await;
    holder.give_back("team").await.unwrap();
    cluster.run(&format!("{has_work}; UPDATE greenroom.node SET taken = taken + 1"));
    poll("somebody takes it", async || cluster.holder("team").is_some()).await;
}

/// Kernels of a database are tasks: one that is busy for long keeps a thread from all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_runtime_that_is_busy_delays_no_heartbeat() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let node = cluster.node("a").await;
    let expires =
        format!("SELECT extract(epoch FROM expires) FROM greenroom.node WHERE id = {}", node.id());
    // The only thread of the runtime does nothing else until three more heartbeats were answered.
    let busy = tokio::spawn(async move {
        let began = Instant::now();
        let mut seen = vec![cluster.ask(&expires)];
        while seen.len() < 4 {
            assert!(began.elapsed() < Duration::from_secs(25), "no heartbeat: {seen:?}");
            std::thread::sleep(Duration::from_millis(50));
            let now = cluster.ask(&expires);
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
        cluster
    });
    let cluster = busy.await.unwrap();
    assert!(node.shared().trust.may_speak());
    drop((node, cluster));
}
