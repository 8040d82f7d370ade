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

use super::*;
use crate::config::JournalChoice;
use crate::journal::{Journal, JournalReader, Memory};

const AT_ONCE: Duration = Duration::from_secs(2);

fn config(directory: &tempfile::TempDir) -> Config {
    Config {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: TokenChoice::None,
        journal: JournalChoice::Memory,
        workspaces: vec![directory.path().to_owned()],
        ..Config::default_for(directory.path().join("data"))
    }
}

/// A hook of an embedding program that panics: it is called by the kernel's thread.
fn with_panicking_hook(config: Config) -> Config {
    Config {
        on_log_level: Some(Arc::new(|_| panic!("the hook failed"))),
        ..config
    }
}

/// Connects a client and has it send one message after `initialize`.
async fn send_as_client(url: &str, message: Option<Value>) {
    let (mut socket, _) = connect_async(url).await.unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "ann",
        "initialSubscriptions": ["ahp-root://"]}});
    for message in [Some(initialize), message].into_iter().flatten() {
        socket
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
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
    let served = timeout(AT_ONCE, serve(config, ready, std::future::pending())).await;
    let failure = served.expect("the host ends at once").unwrap_err();
    assert!(matches!(&failure, ServeError::KernelStopped(reason)
        if reason == "its thread panicked: the hook failed"));
    assert!(failure.to_string().contains("start the host again"));
    assert!(
        !endpoint.exists(),
        "no client is sent to a host that is gone"
    );
}

#[tokio::test]
async fn from_the_end_of_the_kernel_on_the_host_is_not_ready() {
    let directory = tempfile::tempdir().unwrap();
    let config = with_panicking_hook(config(&directory));
    let parts = Parts::prepare(&config).unwrap();
    let clock = Clock::start();
    let bodies = create_bodies(&config, &parts, clock);
    let admission = create_admission(&config, None, Devices::in_memory(), &bodies);
    let mut supervisor = start_kernel(&config, parts, (bodies, clock), &admission).unwrap();
    supervisor.wait_until_booted().await.unwrap();
    admission.set_ready(true);
    let listener = bind(&config).unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(net::serve(
        listener,
        Arc::clone(&admission),
        supervisor.queue(),
        stop.clone(),
    ));
    assert_eq!(ask_readyz(address).await, "HTTP/1.1 200 OK");
    let url = format!("ws://{address}/");
    tokio::spawn(async move { send_as_client(&url, Some(change_log_level())).await });
    let failure = timeout(AT_ONCE, supervisor.wait_for_failure()).await;
    assert!(matches!(failure, Ok(ServeError::KernelStopped(_))));
    assert_eq!(
        ask_readyz(address).await,
        "HTTP/1.1 503 Service Unavailable"
    );
    stop.cancel();
}

#[tokio::test]
async fn a_host_that_is_stopped_ends_without_an_error() {
    let directory = tempfile::tempdir().unwrap();
    // In a task of its own, as programs that embed a host run it.
    let served = tokio::spawn(serve(config(&directory), |_| {}, std::future::ready(())));
    assert!(timeout(AT_ONCE, served).await.unwrap().unwrap().is_ok());
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
        assert!(
            !self.armed.load(Ordering::Relaxed),
            "the disk driver failed"
        );
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
    let mut parts = Parts::prepare(&config).unwrap();
    parts.journal = Box::new(Panicking {
        inner: Memory::new(),
        armed: Arc::clone(&armed),
    });
    let ready = move |ready: ServerReady| {
        armed.store(true, Ordering::Relaxed);
        tokio::spawn(async move { send_as_client(&ready.url, None).await });
    };
    let served = serve_with(&config, parts, ready, std::future::pending());
    let served = timeout(AT_ONCE, served).await;
    let failure = served.expect("the host ends at once").unwrap_err();
    assert!(matches!(&failure, ServeError::JournalStopped(reason)
        if reason == "writing panicked: the disk driver failed"));
}
