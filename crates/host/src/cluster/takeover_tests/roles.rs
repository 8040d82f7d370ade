//! Nodes that may read and write rows and nothing else, on tables that another role has made.

use super::served_nodes::ServedNode;
use super::support::{
    TestCluster, connect, create_session, has_session, issue_token, open_chat, run_turn,
    serve_handle, wait_until_here,
};
use crate::accounts::AccountAdmin;
use crate::journal::{Failover, PostgresNode, PostgresSettings};

/// A database that is empty but for its roles, and how each of them reaches it.
async fn roles(cluster: &TestCluster) -> (PostgresSettings, PostgresSettings) {
    cluster.run("DROP SCHEMA greenroom CASCADE");
    cluster.run("CREATE ROLE greenroom_admin LOGIN");
    cluster.run("CREATE ROLE greenroom_node LOGIN");
    cluster.run(
        "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO greenroom_admin', current_database()); END $$",
    );
    let of = |role: &str| PostgresSettings {
        url: cluster.settings.url.replace("user=greenroom", &format!("user={role}")),
        failover: Failover::Lossy,
        ..cluster.settings.clone()
    };
    (of("greenroom_admin"), of("greenroom_node"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_works_with_rows_alone() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let (admin, node) = roles(&cluster).await;
    let refused = PostgresNode::connect(&node).await.err().unwrap();
    assert!(refused.to_string().contains("greenroom database prepare"), "{refused}");
    PostgresNode::prepare(&admin).await.unwrap();
    PostgresNode::prepare(&admin).await.unwrap(); // again: nothing is missing

    let a = ServedNode::start(&cluster, "a", |config| {
        config.postgres = Some(node.url.clone());
    })
    .await;
    let accounts = AccountAdmin::connect(&node).await.unwrap();
    accounts.create_space("team").await.unwrap();
    let token = issue_token(&accounts, "team", "ann", kernel::Role::Owner).await;
    let mut socket = connect(&a.address_for(&token), "ann").await;
    create_session(&mut socket, 1).await;
    let chat = open_chat(&mut socket, 1).await;
    let ended = run_turn(&mut socket, &chat, 1).await;
    assert_eq!(ended["type"], "chat/turnComplete", "{ended}");
    let stored = a.request("PUT /api/content", Some(&token), "\"hello\"").await;
    assert_eq!(stored.0, 201, "{stored:?}");
    drop((socket, a));

    // What it may not do.
    let config: tokio_postgres::Config = node.url.parse().unwrap();
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    for sql in [
        "CREATE TABLE greenroom.mine (n int)",
        "ALTER TABLE greenroom.space ADD COLUMN mine int",
        "DROP TABLE greenroom.lease",
        "TRUNCATE greenroom.action",
    ] {
        let refused = client.batch_execute(sql).await.unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "42501", "{sql}");
    }
}

/// A leap moves the numbers of sequences, and a space is removed with all its rows: both are done with rows alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_leap_and_a_removal_need_no_more_than_rows() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let (admin, node) = roles(&cluster).await;
    PostgresNode::prepare(&admin).await.unwrap();
    let accounts = AccountAdmin::connect(&node).await.unwrap();
    for space in ["team", "gone"] {
        accounts.create_space(space).await.unwrap();
    }
    drop(PostgresNode::connect(&node).await.unwrap());
    cluster.run("UPDATE greenroom.cluster SET timeline = 'restored/1'");
    let after = cluster.node_with("b", |config| config.postgres = Some(node.url.clone())).await;
    let (handle, _) = wait_until_here(&after, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    assert!(has_session(&mut socket, 1).await);
    let leapt = "SELECT count(*) FROM greenroom.lease WHERE seq > 1700000000000000";
    assert_eq!(cluster.ask(leapt), "2");
    accounts.remove_space("gone").await.unwrap();
    drop(socket);
}
