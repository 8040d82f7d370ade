//! A database with spaces, nodes on it, and clients of what they serve.
//!
//! A node that is to be killed is a process of its own: this very test program, told by its environment to be one.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, interval, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;

use crate::accounts::{AccountAdmin, NewToken};
use crate::cluster::{ClusterNode, SpaceLocation};
use crate::config::{Config, JournalChoice};
use crate::journal::postgres::test_server::{TestServer, query_sql, run_sql};
use crate::journal::{PostgresNode, PostgresSettings};
use crate::net::{self, SpaceHandle};

/// For what is certain to happen, on a machine that does much else.
const LONG: Duration = Duration::from_secs(60);
pub(super) const NODE_VARIABLE: &str = "GREENROOM_TEST_NODE";

pub(super) type NodeSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A database with some spaces.
pub(super) struct TestCluster {
    pub(super) server: TestServer,
    pub(super) settings: PostgresSettings,
    directory: tempfile::TempDir,
}

impl TestCluster {
    pub(super) async fn start(spaces: &[&str]) -> Option<Self> {
        let server = tokio::task::block_in_place(TestServer::start)?;
        let settings = server.make_database();
        let cluster = Self { server, settings, directory: tempfile::tempdir().unwrap() };
        // Makes the tables.
        drop(PostgresNode::connect(&cluster.settings).await.unwrap());
        for space in spaces {
            cluster.run(&format!("INSERT INTO greenroom.space (name) VALUES ('{space}')"));
        }
        Some(cluster)
    }

    fn database(&self) -> &str {
        self.settings.url.rsplit_once('=').unwrap().1
    }

    pub(super) fn run(&self, sql: &str) {
        run_sql(self.server.socket(), self.database(), sql);
    }

    pub(super) fn ask(&self, sql: &str) -> String {
        query_sql(self.server.socket(), self.database(), sql)
    }

    /// From now on the server writes down every statement, of all who are connected.
    pub(super) fn log_statements(&self) -> StatementLog {
        self.run("ALTER SYSTEM SET log_line_prefix = '%a|'");
        self.run("ALTER SYSTEM SET log_statement = 'all'");
        self.run("SELECT pg_reload_conf()");
        StatementLog(self.server.socket().join("log"))
    }

    /// A connection of somebody who is no node.
    pub(super) async fn connect_beside(&self) -> tokio_postgres::Client {
        let config: tokio_postgres::Config = self.settings.url.parse().unwrap();
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        // It ends with its client.
        tokio::spawn(async move { drop(connection.await) });
        client
    }

    pub(super) fn holder(&self, space: &str) -> Option<i64> {
        let sql = "SELECT node FROM greenroom.lease JOIN greenroom.space ON id = space WHERE name";
        self.ask(&format!("{sql} = '{space}'")).parse().ok()
    }

    pub(super) fn data(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(super) async fn node(&self, name: &str) -> Arc<ClusterNode> {
        self.node_with(name, |_| {}).await
    }

    pub(super) async fn node_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut Config),
    ) -> Arc<ClusterNode> {
        let mut config = config(name, &self.data(name), &self.settings.url);
        change(&mut config);
        join(&config).await
    }

    /// Starts a node as a process, which serves a space at an address.
    pub(super) async fn process(&self, name: &str, space: &str) -> NodeProcess {
        let file = self.directory.path().join(format!("{name}-{}.ready", uuid::Uuid::now_v7()));
        let facts = json!({"name": name, "data": self.data(name), "url": self.settings.url,
            "space": space, "ready": file});
        let program = std::env::current_exe().unwrap();
        let child = Command::new(program)
            .args(["--exact", "cluster::takeover_tests::node_in_a_process_of_its_own"])
            .args(["--nocapture", "--test-threads=1"])
            .env(NODE_VARIABLE, facts.to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut process = NodeProcess { child, address: Value::Null };
        poll("the process serves", async || {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            process.address = serde_json::from_str(&text).unwrap_or_default();
            !process.address.is_null()
        })
        .await;
        process
    }
}

/// What the server writes about every statement.
pub(super) struct StatementLog(PathBuf);

impl StatementLog {
    /// How long it is.
    pub(super) fn end(&self) -> usize {
        std::fs::read(&self.0).unwrap().len()
    }

    /// The first lines of the statements that nodes made behind a place of it.
    pub(super) fn statements_since(&self, from: usize) -> Vec<String> {
        let log = std::fs::read(&self.0).unwrap();
        let log = String::from_utf8_lossy(&log[from..]);
        let of_nodes = log.lines().filter(|line| line.starts_with("greenroom|"));
        let made = of_nodes.filter(|it| it.contains("execute ") || it.contains("statement: "));
        made.map(str::to_owned).collect()
    }
}

pub(super) struct NodeProcess {
    child: Child,
    pub(super) address: Value,
}

impl NodeProcess {
    pub(super) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn id(&self) -> i64 {
        self.address["id"].as_i64().unwrap()
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // It may be dead already.
        let _dead = self.child.kill();
        let _dead = self.child.wait();
    }
}

pub(super) fn config(name: &str, data: &Path, url: &str) -> Config {
    let cluster = format!("name = {name:?}\naddress = \"127.0.0.1:0\"\n");
    let mut config = Config::default_for(data.to_owned());
    config.journal = JournalChoice::Postgres;
    config.postgres = Some(url.to_owned());
    config.cluster = Some(toml::from_str(&cluster).unwrap());
    config.agents_auto = false;
    config.workspaces = vec![data.parent().unwrap().to_owned()];
    config.limits.server.journal_patience_ms = 2_000;
    config
}

pub(super) async fn join(config: &Config) -> Arc<ClusterNode> {
    let failover = config.cluster.as_ref().unwrap().failover;
    let settings = PostgresSettings {
        url: config.postgres.clone().unwrap(),
        journal_patience_ms: config.limits.server.journal_patience_ms,
        failover: failover.into(),
    };
    let database = PostgresNode::connect(&settings).await.unwrap();
    ClusterNode::join(config, database).await.unwrap()
}

pub(super) async fn poll(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    let mut again = interval(Duration::from_millis(50));
    while !is_so().await {
        assert!(began.elapsed() < LONG, "{what}: not after {LONG:?}");
        again.tick().await;
    }
    began.elapsed()
}

pub(super) async fn wait_until_here(node: &ClusterNode, space: &str) -> (SpaceHandle, Duration) {
    let mut handle = None;
    let took = poll("the space is here", async || {
        if let Ok(SpaceLocation::Here(here)) = node.space(space).await {
            handle = Some(here);
        }
        handle.is_some()
    })
    .await;
    (handle.unwrap(), took)
}

/// Serves a space on a socket of its own; its address and its token.
pub(super) async fn serve_handle(handle: &SpaceHandle) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let (admission, queue) = (Arc::clone(&handle.admission), handle.queue.clone());
    let token = admission.token.clone();
    tokio::spawn(net::serve(listener, admission, queue, CancellationToken::new()));
    json!({"url": url, "token": token})
}

/// What lets somebody into a space.
pub(super) async fn issue_token(
    accounts: &AccountAdmin,
    space: &str,
    principal: &str,
    role: kernel::Role,
) -> String {
    let new_token =
        NewToken { space: space.to_owned(), principal: principal.to_owned(), role, seconds: None };
    accounts.issue_token(&new_token).await.unwrap().token.reveal()
}

pub(super) async fn connect(address: &Value, client: &str) -> NodeSocket {
    let mut socket = connect_only(address).await;
    let params = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": client,
        "initialSubscriptions": ["ahp-root://"]});
    let answer = ask(&mut socket, 1, "initialize", params).await.unwrap();
    assert!(answer["error"].is_null(), "{answer}");
    socket
}

/// A connection on which nothing was said yet.
pub(super) async fn connect_only(address: &Value) -> NodeSocket {
    let mut request = address["url"].as_str().unwrap().into_client_request().unwrap();
    let token = format!("Bearer {}", address["token"].as_str().unwrap());
    request.headers_mut().insert("authorization", token.parse().unwrap());
    let (socket, _) = connect_async(request).await.unwrap();
    socket
}

pub(super) async fn send(socket: &mut NodeSocket, id: u64, method: &str, params: Value) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    socket.send(Message::text(request.to_string())).await.unwrap();
}

/// The answer; or the code that the connection was closed with, 0 without one.
pub(super) async fn ask(
    socket: &mut NodeSocket,
    id: u64,
    method: &str,
    params: Value,
) -> Result<Value, u16> {
    send(socket, id, method, params).await;
    hear(socket, id).await
}

pub(super) async fn hear(socket: &mut NodeSocket, id: u64) -> Result<Value, u16> {
    loop {
        match timeout(LONG, socket.next()).await.expect("nothing came") {
            Some(Ok(Message::Text(text))) => {
                let answer: Value = serde_json::from_str(&text).unwrap();
                if answer["id"] == id {
                    return Ok(answer);
                }
            }
            Some(Ok(Message::Close(frame))) => return Err(frame.map_or(0, |it| it.code.into())),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Err(0),
        }
    }
}

/// The texts that have arrived and were not read yet.
pub(super) async fn arrived_texts(socket: &mut NodeSocket) -> Vec<String> {
    let mut texts = Vec::new();
    // Nothing more is on its way: a moment is enough to see what is there.
    while let Ok(Some(Ok(message))) = timeout(Duration::from_millis(200), socket.next()).await {
        if let Message::Text(text) = message {
            texts.push(text.to_string());
        }
    }
    texts
}

/// All texts until the connection ends, and the code that it ends with, 0 without one.
pub(super) async fn hear_to_the_end(socket: &mut NodeSocket) -> (Vec<String>, u16) {
    let mut texts = Vec::new();
    loop {
        match timeout(LONG, socket.next()).await.expect("nothing came") {
            Some(Ok(Message::Text(text))) => texts.push(text.to_string()),
            Some(Ok(Message::Close(frame))) => {
                return (texts, frame.map_or(0, |it| it.code.into()));
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return (texts, 0),
        }
    }
}

pub(super) fn session(n: u64) -> Value {
    json!({"channel": format!("scripted:/01900000-0000-7000-8000-{n:012}"), "provider": "scripted"})
}

pub(super) async fn create_session(socket: &mut NodeSocket, n: u64) {
    let created = ask(socket, 10 + n, "createSession", session(n)).await.unwrap();
    assert!(created["error"].is_null(), "{created}");
}

/// Opens the chat of a session and returns its address.
pub(super) async fn open_chat(socket: &mut NodeSocket, n: u64) -> Value {
    let channel = session(n)["channel"].clone();
    let opened = ask(socket, 200 + n, "subscribe", json!({"channel": channel})).await;
    let chat = opened.unwrap()["result"]["snapshot"]["state"]["defaultChat"].clone();
    assert!(chat.is_string(), "a session has a chat");
    let opened = ask(socket, 300 + n, "subscribe", json!({"channel": chat})).await;
    assert!(opened.unwrap()["error"].is_null());
    chat
}

/// Starts a turn, with a number that grows, and waits for the action that ends it.
pub(super) async fn run_turn(socket: &mut NodeSocket, chat: &Value, number: u64) -> Value {
    let turn = format!("turn-{number}");
    let action = json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-01-01T00:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}}});
    let params = json!({"channel": chat, "clientSeq": number, "action": action});
    let said = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
    socket.send(Message::text(said.to_string())).await.unwrap();
    loop {
        match timeout(LONG, socket.next()).await.expect("nothing came") {
            Some(Ok(Message::Text(text))) => {
                let heard: Value = serde_json::from_str(&text).unwrap();
                let action = &heard["params"]["action"];
                let is_end =
                    matches!(action["type"].as_str(), Some("chat/error" | "chat/turnComplete"));
                if is_end && action["turnId"] == *turn {
                    return action.clone();
                }
            }
            Some(Ok(_)) => {}
            ended => panic!("the turn did not end: {ended:?}"),
        }
    }
}

/// Whether there is such a session.
pub(super) async fn has_session(socket: &mut NodeSocket, n: u64) -> bool {
    let channel = &session(n)["channel"];
    let subscribed = ask(socket, 100 + n, "subscribe", json!({"channel": channel}));
    subscribed.await.unwrap()["error"].is_null()
}
