//! A host whose kernel or journal dies: it says why, is not ready any more, and does not go on serving.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{SinkExt, StreamExt};
use kernel::{Batch, Boot};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use wire::Digest;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::JournalChoice;
use crate::journal::postgres::test_server::TestServer;
use crate::journal::{Journal, JournalReader, Memory};
use crate::net;
use crate::node::bind;
use crate::space_host::PreparedSpace;
use crate::startup::{OpenedJournal, Parts};

/// Longer than a busy machine takes: what never ends is found all the same.
const SOON: Duration = Duration::from_secs(60);

fn config(directory: &tempfile::TempDir) -> Config {
    let mut config = Config::default_for(directory.path().join("data"));
    config.token = TokenChoice::None;
    config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.journal = JournalChoice::Memory;
    config.workspaces = vec![directory.path().to_owned()];
    config
}

/// A hook of an embedding program that panics: it is called by the kernel's thread.
fn with_panicking_hook(config: Config) -> Config {
    Config { on_log_level: Some(Arc::new(|_| panic!("the hook failed"))), ..config }
}

/// Connects a client and has it send one message after `initialize`.
async fn send_as_client(url: &str, message: Option<Value>) {
    let (mut socket, _) = connect_async(url).await.unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "ann",
        "initialSubscriptions": ["ahp-root://"]}});
    for message in [Some(initialize), message].into_iter().flatten() {
        socket.send(Message::text(message.to_string())).await.unwrap();
    }
    // Until the host lets go of the connection.
    while let Some(Ok(_)) = socket.next().await {}
}

fn change_log_level() -> Value {
    let action = json!({"type": "root/configChanged", "config": {"logLevel": "debug"}});
    json!({"jsonrpc": "2.0", "method": "dispatchAction",
        "params": {"channel": "ahp-root://", "clientSeq": 1, "action": action}})
}

async fn ask_readyz(address: SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_kernel_that_panics_ends_the_host_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let config = with_panicking_hook(config(&directory));
    let endpoint = config.data.join("endpoint.json");
    let ready = |ready: ServerReady| {
        assert!(endpoint.exists());
        tokio::spawn(async move { send_as_client(&ready.url, Some(change_log_level())).await });
    };
    let served = timeout(SOON, serve(config, ready, std::future::pending())).await;
    let failure = served.expect("the host ends at once").unwrap_err();
    assert!(matches!(&failure, ServeError::KernelStopped(reason)
        if reason == "its thread panicked: the hook failed"));
    assert!(failure.to_string().contains("start the host again"));
    assert!(!endpoint.exists(), "no client is sent to a host that is gone");
}

#[tokio::test]
async fn from_the_end_of_the_kernel_on_the_host_is_not_ready() {
    let directory = tempfile::tempdir().unwrap();
    let config = with_panicking_hook(config(&directory));
    let space = SpaceHost::prepare(&config, "s", None).await.unwrap().start().unwrap();
    let (admission, mut supervisor) = (space.admission, space.supervisor);
    supervisor.wait_until_booted().await.unwrap();
    admission.set_ready(true);
    let listener = bind(&config).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(net::serve(listener, Arc::clone(&admission), supervisor.queue(), stop.clone()));
    assert_eq!(ask_readyz(address).await, "HTTP/1.1 200 OK");
    let url = format!("ws://{address}/");
    tokio::spawn(async move { send_as_client(&url, Some(change_log_level())).await });
    let failure = timeout(SOON, supervisor.wait_for_failure()).await;
    assert!(matches!(failure, Ok(ServeError::KernelStopped(_))));
    assert_eq!(ask_readyz(address).await, "HTTP/1.1 503 Service Unavailable");
    stop.cancel();
}

#[tokio::test]
async fn a_host_that_is_stopped_ends_without_an_error() {
    let directory = tempfile::tempdir().unwrap();
    // In a task of its own, as programs that embed a host run it.
    let served = tokio::spawn(serve(config(&directory), |_| {}, std::future::ready(())));
    assert!(timeout(SOON, served).await.unwrap().unwrap().is_ok());
}

/// Works until it is armed, then panics at the next append.
struct Panicking {
    inner: Memory,
    armed: Arc<AtomicBool>,
}

impl Journal for Panicking {
    fn boot(&mut self) -> Result<Boot, JournalError> {
        self.inner.boot()
    }
    fn append(&mut self, batch: &Batch) -> Result<(), JournalError> {
        assert!(!self.armed.load(Ordering::Relaxed), "the disk driver failed");
        self.inner.append(batch)
    }
    fn probe(&mut self) -> Result<(), JournalError> {
        self.inner.probe()
    }
    fn find_unreferenced(&mut self, digests: &[Digest]) -> Result<Vec<Digest>, JournalError> {
        self.inner.find_unreferenced(digests)
    }
    fn release_space(&mut self) -> Result<bool, JournalError> {
        Ok(false)
    }

    fn reader(&self) -> Result<Box<dyn JournalReader>, JournalError> {
        self.inner.reader()
    }
}

#[tokio::test]
async fn a_journal_that_panics_ends_the_host_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let armed = Arc::new(AtomicBool::new(false));
    let mut parts = Parts::prepare(&config, "s", None).await.unwrap();
    parts.journal = OpenedJournal::Local(Box::new(Panicking {
        inner: Memory::new(),
        armed: Arc::clone(&armed),
    }));
    let ready = move |ready: ServerReady| {
        armed.store(true, Ordering::Relaxed);
        tokio::spawn(async move { send_as_client(&ready.url, None).await });
    };
    let space = PreparedSpace::over(&config, parts).unwrap();
    let node = Node::start(&config, space, None).await.unwrap();
    let served = timeout(SOON, node.serve(ready, std::future::pending())).await;
    let failure = served.expect("the host ends at once").unwrap_err();
    assert!(matches!(&failure, ServeError::JournalStopped(reason)
        if reason == "writing panicked: the disk driver failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_on_postgresql_goes_on_over_a_restart_of_the_server_and_its_own() {
    let Some(server) = TestServer::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = server.make_database();
    let mut config = config(&directory);
    config.journal = JournalChoice::Postgres;
    config.postgres = Some(settings.url);
    config.limits.server.journal_patience_ms = 20_000;
    for round in 0..2 {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let on_ready = move |info: ServerReady| ready.send(info.url).unwrap();
        let served = tokio::spawn(serve(config.clone(), on_ready, async {
            stopped.await.unwrap();
        }));
        let url = is_ready.await.unwrap();
        let (mut socket, _) = connect_async(&url).await.unwrap();
        let mut ask = async |id: u64, method: &str, params: Value| {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            socket.send(Message::text(request.to_string())).await.unwrap();
            loop {
                let Message::Text(text) = socket.next().await.unwrap().unwrap() else {
                    continue; // a ping
                };
                let answer: Value = serde_json::from_str(&text).unwrap();
                if answer["id"] == id {
                    return answer;
                }
            }
        };
        let params = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"],
            "clientId": format!("ann-{round}"), "initialSubscriptions": ["ahp-root://"]});
        ask(1, "initialize", params).await;
        let session = format!("scripted:/01900000-0000-7000-8000-00000000000{round}");
        let params = json!({"channel": session, "provider": "scripted"});
        let created = ask(2, "createSession", params).await;
        assert!(created["error"].is_null(), "{created}");
        tokio::task::block_in_place(|| server.restart("fast"));
        // That of the round before is there too.
        for session in
            (0..=round).map(|n| format!("scripted:/01900000-0000-7000-8000-00000000000{n}"))
        {
            let subscribed = ask(3, "subscribe", json!({"channel": session})).await;
            assert!(subscribed["error"].is_null(), "{subscribed}");
        }
        stop.send(()).unwrap();
        served.await.unwrap().unwrap();
    }
}
