//! Whole nodes, with listeners for clients and for each other: requests come to any of them, and their own spaces are served again.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Error;

use serde_json::{Value, json};

use super::cutting_proxy::CuttingProxy;
use super::support::{
    TestCluster, ask, config, connect, create_session, has_session, hear, issue_token, poll,
    session,
};
use crate::accounts::{AccountAdmin, SpaceLimitKey};
use crate::blobs::BlobSettings;
use crate::config::Config;
use crate::server::{ServeError, ServerReady, serve};

/// A node that serves.
pub(super) struct ServedNode {
    url: String,
    token: Option<String>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Drop for ServedNode {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl ServedNode {
    pub(super) async fn start(
        cluster: &TestCluster,
        name: &str,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = config(name, &cluster.data(name), &cluster.settings.url);
        config.listen = ([127, 0, 0, 1], 0).into();
        change(&mut config);
        let (tell, told) = oneshot::channel();
        let on_ready = |ready: ServerReady| {
            assert!(tell.send((ready.url, ready.token)).is_ok());
        };
        let served = tokio::spawn(serve(config, on_ready, std::future::pending()));
        let Ok((url, token)) = told.await else {
            panic!("the node does not serve: {:?}", served.await);
        };
        Self { url, token, served }
    }

    fn address(&self) -> Value {
        json!({"url": self.url, "token": self.token})
    }

    pub(super) fn address_for(&self, token: &str) -> Value {
        json!({"url": self.url, "token": token})
    }

    /// The status with which a WebSocket is refused; `None`: it is let in.
    async fn refusal(&self, token: &str) -> Option<u16> {
        self.refusal_with_pause(token).await.map(|(status, _)| status)
    }

    /// The same, and after how many seconds the client is to come again.
    async fn refusal_with_pause(&self, token: &str) -> Option<(u16, Option<String>)> {
        match connect_async(format!("{}?tkn={token}", self.url)).await {
            Err(Error::Http(answer)) => {
                let pause = answer.headers().get("retry-after");
                let pause = pause.map(|pause| pause.to_str().unwrap().to_owned());
                Some((answer.status().as_u16(), pause))
            }
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    }

    /// Status and body of what is answered to a request.
    pub(super) async fn request(
        &self,
        head: &str,
        token: Option<&str>,
        body: &str,
    ) -> (u16, String) {
        let host = self.url.trim_start_matches("ws://").trim_end_matches('/');
        let mut request = format!("{head} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        if let Some(token) = token {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        if !body.is_empty() {
            let length = body.len();
            request += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        request += &format!("\r\n{body}");
        let mut socket = TcpStream::connect(host).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_accounts_are_answered_whichever_node_they_come_to() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let a = ServedNode::start(&cluster, "a", |_| {}).await;
    let b = ServedNode::start(&cluster, "b", |_| {}).await;
    let admin = AccountAdmin::connect(&cluster.settings).await.unwrap();
    admin.create_space("team").await.unwrap();
    let token = issue_token(&admin, "team", "ann", kernel::Role::Owner).await;
    let token = Some(token.as_str());
    assert_eq!(a.request("GET /status", token, "").await.0, 200);
    let owner = cluster.holder("team");
    assert!(owner.is_some());
    // All of this is asked of the node that does not serve the space.
    let (status, metrics) = b.request("GET /metrics", token, "").await;
    assert_eq!(status, 200, "{metrics}");
    assert!(metrics.contains("greenroom_"), "{metrics}");
    let stored = b.request("PUT /api/content", token, "\"hello\"").await;
    assert_eq!(stored.0, 201, "{stored:?}");
    let stored: Value = serde_json::from_str(&stored.1).unwrap();
    let wanted = json!({"items": [{"uri": stored["uri"], "contentType": "text/plain"}]});
    let target = "POST /api/content/addresses";
    let (status, addresses) = b.request(target, token, &wanted.to_string()).await;
    assert_eq!(status, 200, "{addresses}");
    let addresses: Value = serde_json::from_str(&addresses).unwrap();
    let address = addresses["items"][0].as_str().unwrap();
    for node in [&a, &b] {
        let content = node.request(&format!("GET {address}"), None, "").await;
        assert_eq!(content, (200, "\"hello\"".to_owned()));
        let forged = address.replace("exp=", "exp=9");
        let refused = node.request(&format!("GET {forged}"), None, "").await;
        assert_eq!(refused.0, 403, "{refused:?}");
    }
    let wrong = "grt_000000000000_nobody";
    assert_eq!(b.request("GET /metrics", Some(wrong), "").await.0, 401);
    assert_eq!(cluster.holder("team"), owner, "it stays where it is");
    // Whoever speaks to the node itself may not claim to come from another one.
    let claimed = "GET /forward/metrics HTTP/1.1\r\ngreenroom-forwarded-for: 127.0.0.1:1\r\nX: ";
    assert_eq!(b.request(claimed, token, "").await.0, 404);
}

/// As long as it takes to find out that nobody can have the space is too long for clients.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_accounts_are_answered_in_time_while_nobody_can_have_their_space() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let a = ServedNode::start(&cluster, "a", |_| {}).await;
    let admin = AccountAdmin::connect(&cluster.settings).await.unwrap();
    admin.create_space("team").await.unwrap();
    let token = issue_token(&admin, "team", "ann", kernel::Role::Owner).await;
    // Whoever has locked it is none of a node's to end.
    let client = cluster.connect_beside().await;
    let lock = "BEGIN; UPDATE greenroom.lease SET batch = batch WHERE node IS NULL";
    client.batch_execute(lock).await.unwrap();
    let began = Instant::now();
    let (status, words) = a.request("GET /status", Some(&token), "").await;
    assert_eq!(status, 503, "{words}");
    // Whoever asks once more and waits for the lock, and that four times, takes eight seconds.
    assert!(began.elapsed() < Duration::from_secs(7), "{began:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_of_a_node_are_for_whoever_has_the_token_of_its_data_directory() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let a = ServedNode::start(&cluster, "a", |_| {}).await;
    let admin = AccountAdmin::connect(&cluster.settings).await.unwrap();
    admin.create_space("team").await.unwrap();
    let token = issue_token(&admin, "team", "ann", kernel::Role::Owner).await;
    let _socket = connect(&a.address_for(&token), "ann").await;
    let asked = "GET /metrics/node";
    let (status, metrics) = a.request(asked, a.token.as_deref(), "").await;
    assert_eq!(status, 200, "{metrics}");
    for row in ["greenroom_node_connections 1", "greenroom_node_spaces_taken_total 1"] {
        assert!(metrics.lines().any(|line| line == row), "{row}: {metrics}");
    }
    assert_eq!(a.request(asked, Some(&token), "").await.0, 403, "of a space");
    assert_eq!(a.request(asked, None, "").await.0, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_for_a_space_that_is_loaded_when_it_is_wanted() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let a = ServedNode::start(&cluster, "a", |_| {}).await;
    let b = ServedNode::start(&cluster, "b", |_| {}).await;
    let admin = AccountAdmin::connect(&cluster.settings).await.unwrap();
    admin.create_space("team").await.unwrap();
    admin.set_space_limit("team", SpaceLimitKey::Connections, Some(1)).await.unwrap();
    let mut tokens = Vec::new();
    for principal in ["ann", "bob"] {
        tokens.push(issue_token(&admin, "team", principal, kernel::Role::Member).await);
    }
    let [ann, bob] = tokens.as_slice() else {
        panic!("two tokens");
    };
    let socket = connect(&a.address_for(ann), "ann").await;
    // Whether it comes to the node that serves the space or is relayed there.
    assert_eq!(a.refusal(bob).await, Some(429));
    assert_eq!(b.refusal(bob).await, Some(429));
    drop(socket);
    poll("the place is free again", async || a.refusal(bob).await.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_space_of_a_node_is_loaded_anew_and_the_node_goes_on() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let proxy = CuttingProxy::start(cluster.server.socket());
    let url = proxy.through(&cluster.settings.url, cluster.server.socket());
    let node = ServedNode::start(&cluster, "a", |config| {
        config.postgres = Some(url);
        config.limits.server.journal_patience_ms = 1_500;
    })
    .await;
    let mut socket = connect(&node.address(), "ann").await;
    create_session(&mut socket, 1).await;
    let made = session(2);
    proxy.cut_after_commit_of(made["channel"].as_str().unwrap());
    let refused = ask(&mut socket, 50, "createSession", made).await.unwrap();
    assert!(!refused["error"].is_null(), "{refused}");
    assert!(proxy.is_closed(), "its answer was lost");
    proxy.open();
    assert_eq!(hear(&mut socket, 99).await, Err(1012));
    poll("the node is ready again", async || node.request("GET /readyz", None, "").await.0 == 200)
        .await;
    let mut socket = connect(&node.address(), "ann").await;
    assert!(has_session(&mut socket, 1).await);
    assert!(has_session(&mut socket, 2).await, "the journal says so");
    create_session(&mut socket, 3).await;
    assert!(!node.served.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_object_store_is_away_large_bodies_are_refused_and_the_rest_goes_on() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    let place = tempfile::tempdir().unwrap();
    let (store, away) = (place.path().join("store"), place.path().join("away"));
    std::fs::create_dir(&store).unwrap();
    let node = ServedNode::start(&cluster, "a", |config| {
        config.blobs = Some(BlobSettings {
            from_bytes: 1_000,
            ..BlobSettings::at(&format!("file://{}", store.display()))
        });
    })
    .await;
    let token = node.token.as_deref();
    let large = |letter: &str| format!("\"{}\"", letter.repeat(2_000));
    let put = async |body: &str| node.request("PUT /api/content", token, body).await.0;
    assert_eq!(put(&large("a")).await, 201);
    // Where it was is something else.
    std::fs::rename(&store, &away).unwrap();
    std::fs::write(&store, "").unwrap();
    assert_eq!(put(&large("b")).await, 507);
    assert_eq!(put("\"small\"").await, 201);
    let mut socket = connect(&node.address(), "ann").await;
    create_session(&mut socket, 1).await;
    assert!(has_session(&mut socket, 1).await);
    std::fs::remove_file(&store).unwrap();
    std::fs::rename(&away, &store).unwrap();
    assert_eq!(put(&large("b")).await, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_others_cannot_reach_keeps_its_spaces_and_who_comes_elsewhere_tries_again() {
    let Some(cluster) = TestCluster::start(&[]).await else { return };
    // Nobody answers where the others look for it.
    let a = ServedNode::start(&cluster, "a", |config| {
        let own = config.cluster.as_mut().unwrap();
        own.listen = own.address.replace("127.0.0.1:1".to_owned());
    })
    .await;
    let b = ServedNode::start(&cluster, "b", |_| {}).await;
    let admin = AccountAdmin::connect(&cluster.settings).await.unwrap();
    admin.create_space("team").await.unwrap();
    let token = issue_token(&admin, "team", "ann", kernel::Role::Member).await;
    let mut socket = connect(&a.address_for(&token), "ann").await;
    let holder = cluster.holder("team");
    assert!(holder.is_some());
    let refused = b.refusal_with_pause(&token).await;
    assert_eq!(refused, Some((503, Some("1".to_owned()))));
    create_session(&mut socket, 1).await;
    assert!(has_session(&mut socket, 1).await);
    assert_eq!(cluster.holder("team"), holder, "it has a heartbeat");
}
