//! Several spaces behind one address: a token names its space, and nothing of one is seen in another.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use futures_util::{SinkExt, StreamExt};
use host::{Config, EndpointRecord, ServeError, SpaceEntry, TokenChoice, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

const SESSION: &str = "scripted:/01900000-0000-7000-8000-000000000001";

struct RunningHost {
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl RunningHost {
    async fn start(config: Config) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel();
        let on_ready = move |_| ready.send(()).unwrap();
        let served = tokio::spawn(serve(config, on_ready, async {
            stopped.await.unwrap();
        }));
        is_ready.await.unwrap();
        let stop = Some(stop);
        Self { stop, served }
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

fn config(directory: &Path) -> Config {
    let space = |name: &str| SpaceEntry {
        name: name.to_owned(),
        data: directory.join(name),
        workspaces: Vec::new(),
    };
    let mut config = Config::default_for(directory.join("data"));
    config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.workspaces = vec![directory.to_owned()];
    config.spaces = vec![space("red"), space("blue")];
    config
}

fn endpoint(data: PathBuf) -> EndpointRecord {
    serde_json::from_slice(&std::fs::read(data.join("endpoint.json")).unwrap()).unwrap()
}

struct SpaceClient {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    requests: u64,
}

impl SpaceClient {
    async fn connect(endpoint: &EndpointRecord, client_id: &str) -> Self {
        let address = endpoint.url.split('?').next().unwrap();
        let token = endpoint.token.as_deref().unwrap();
        let (socket, _) = connect_async(format!("{address}?tkn={token}")).await.unwrap();
        let mut client = Self { socket, requests: 0 };
        let params = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"],
            "clientId": client_id, "initialSubscriptions": ["ahp-root://"]});
        client.ask("initialize", params).await;
        client
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        let text = Message::text(request.to_string());
        self.socket.send(text).await.unwrap();
        loop {
            let message = self.socket.next().await.unwrap().unwrap();
            let Message::Text(text) = message else {
                continue; // the host's pings
            };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == self.requests {
                return answer;
            }
        }
    }

    async fn say(&mut self, text: &str) {
        let chat =
            "ahp-chat://default/c2NyaXB0ZWQ6LzAxOTAwMDAwLTAwMDAtNzAwMC04MDAwLTAwMDAwMDAwMDAwMQ";
        let action = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": text,
            "message": {"text": text, "origin": {"kind": "user"}}});
        let params = json!({"channel": chat, "clientSeq": 1, "action": action});
        let request = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
        let text = Message::text(request.to_string());
        self.socket.send(text).await.unwrap();
    }

    /// The titles of all listed sessions.
    async fn titles(&mut self) -> Vec<String> {
        let answer = self.ask("listSessions", json!({"channel": "ahp-root://"})).await;
        let sessions = answer["result"]["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let titles = sessions.iter().map(|it| it["title"].as_str().unwrap().to_owned());
        titles.collect()
    }
}

async fn get(url: &str, target: &str) -> String {
    let address = url.trim_start_matches("ws://").split('/').next().unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_token_names_its_space_and_equal_names_in_two_spaces_are_two_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let host = RunningHost::start(config(directory.path())).await;
    let endpoints = ["data", "red", "blue"].map(|name| endpoint(directory.path().join(name)));
    let tokens: BTreeSet<_> = endpoints.iter().map(|it| it.token.clone()).collect();
    assert_eq!(tokens.len(), 3, "each has a token of its own");
    let mut clients = Vec::new();
    for endpoint in &endpoints {
        // The same client id in each: none drives another out.
        clients.push(SpaceClient::connect(endpoint, "ann").await);
    }
    let [_, red, blue] = &mut clients[..] else {
        panic!("three spaces");
    };
    for (client, title) in [(&mut *red, "in red"), (&mut *blue, "in blue")] {
        let params = json!({"channel": SESSION, "provider": "scripted"});
        let created = client.ask("createSession", params).await;
        assert!(created["error"].is_null(), "{created}");
        let action = json!({"type": "session/titleChanged", "title": title});
        let params = json!({"channel": SESSION, "clientSeq": 1, "action": action});
        let request = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
        client.socket.send(Message::text(request.to_string())).await.unwrap();
        client.say("hello").await;
    }
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(20));
    while red.titles().await.is_empty() || blue.titles().await.is_empty() {
        ticks.tick().await;
    }
    assert_eq!(red.titles().await, ["in red"]);
    assert_eq!(blue.titles().await, ["in blue"]);
    assert_eq!(clients[0].titles().await, [""; 0]);
    drop(clients);
    host.stop().await;
    assert!(!directory.path().join("red/endpoint.json").exists());

    // What was there is there again, each in its place.
    let host = RunningHost::start(config(directory.path())).await;
    let mut red = SpaceClient::connect(&endpoint(directory.path().join("red")), "bob").await;
    assert_eq!(red.titles().await, ["in red"]);
    host.stop().await;
}

#[tokio::test]
async fn every_space_proves_its_own_token_and_has_a_kernel_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let host = RunningHost::start(config(directory.path())).await;
    let [first, red] = ["data", "red"].map(|name| endpoint(directory.path().join(name)));
    assert!(red.url.ends_with("/?space=red"), "{}", red.url);
    let nonce = "0".repeat(32);
    let body = |answer: String| answer.split("\r\n\r\n").nth(1).unwrap().to_owned();
    let of_first = body(get(&first.url, &format!("/proof?nonce={nonce}")).await);
    let of_red = body(get(&first.url, &format!("/proof?nonce={nonce}&space=red")).await);
    assert_eq!((of_first.len(), of_red.len()), (64, 64));
    assert_ne!(of_first, of_red);
    let unknown = get(&first.url, &format!("/proof?nonce={nonce}&space=green")).await;
    assert!(unknown.starts_with("HTTP/1.1 404 "), "{unknown}");
    let status = |token: &str| format!("/status?tkn={token}");
    for (target, expected) in [
        (status(red.token.as_deref().unwrap()), "HTTP/1.1 200 "),
        (status("wrong"), "HTTP/1.1 401 "),
        ("/status".to_owned(), "HTTP/1.1 401 "),
        ("/readyz".to_owned(), "HTTP/1.1 200 "),
    ] {
        let answer = get(&first.url, &target).await;
        assert!(answer.starts_with(expected), "{target}: {answer}");
    }
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let kernels = names.filter(|name| name.trim() == "kernel").count();
    assert!(kernels >= 3, "{kernels}");
    host.stop().await;
}

#[tokio::test]
async fn spaces_without_tokens_or_with_the_same_are_refused_with_words() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |config: Config| async {
        let served = serve(config, |_| {}, std::future::pending()).await;
        served.unwrap_err().to_string()
    };
    let without = Config { token: TokenChoice::None, ..config(directory.path()) };
    let why = refused(without).await;
    assert!(why.contains("token names the space"), "{why}");
    for name in ["red", "blue"] {
        std::fs::create_dir_all(directory.path().join(name)).unwrap();
        std::fs::write(directory.path().join(name).join("token"), "the same for both").unwrap();
    }
    let why = refused(config(directory.path())).await;
    assert!(why.contains("the space blue has the token of another"), "{why}");
}
