//! What operators see of the spaces that nodes serve.

use super::support::{TestCluster, connect, create_session, poll, serve_handle, wait_until_here};
use crate::accounts::{AccountAdmin, SpaceLoad};

async fn load_of(admin: &AccountAdmin, space: &str) -> SpaceLoad {
    admin.loads().await.unwrap().into_iter().find(|load| load.name == space).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_space_does_is_written_down_where_operators_look() {
    let Some(cluster) = TestCluster::start(&["team", "quiet"]).await else { return };
    let admin = AccountAdmin::connect(&cluster.settings).await.unwrap();
    let node = cluster.node("a").await;
    let (handle, _) = wait_until_here(&node, "team").await;
    wait_until_here(&node, "quiet").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    let mut sessions = 0;
    poll("records and bytes are counted", async || {
        sessions += 1;
        create_session(&mut socket, sessions).await;
        let activity = load_of(&admin, "team").await.activity;
        activity.is_some_and(|(name, rate)| {
            name == "a"
                && rate.connections == 1
                && rate.records_per_s > 0.0
                && rate.bytes_per_s > 0.0
        })
    })
    .await;
    poll("a space without anybody does nothing", async || {
        load_of(&admin, "quiet").await.activity.is_none()
    })
    .await;
    drop(socket);
    poll("nor does one whose client is gone", async || {
        load_of(&admin, "team").await.activity.is_none()
    })
    .await;
    assert_eq!(load_of(&admin, "team").await.sessions, i64::try_from(sessions).unwrap());
}
