//! The real binary whose kernel panics: it says why, is not ready from then on, exits with an error, and has lost nothing when it
//! is started again.
//!
//! The binary is the one that people use. A library that the test builds from `kernel_fault/fault.c` and the loader puts in
//! front of the C library makes the clock fail on the kernel's thread, which is a panic (ADR 0147).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use client::{Connection, Envelope};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::kill::{Host, Watcher, start};
use crate::process_one::wait_until;

/// Longer than a busy machine takes: what never happens is found all the same.
const SOON: Duration = Duration::from_secs(60);
const NOT_READY: &str = "HTTP/1.1 503 Service Unavailable";

/// A host whose kernel's clock can be made to fail, and the directory of it all.
struct FaultyHost {
    directory: TempDir,
    host: Host,
}

impl FaultyHost {
    fn start(script: &serde_json::Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::write(path.join("script.json"), script.to_string()).unwrap();
        std::fs::create_dir(path.join("fault")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command
            .env("LD_PRELOAD", build_fault(path))
            .env("GREENROOM_TEST_FAULT", path.join("fault"))
            // Finding the names of a stack in a debug build takes seconds.
            .env("RUST_BACKTRACE", "0")
            // Threads that serve must not wait for their turn to log while the process is held at its last words.
            .env("GREENROOM_LOG", "error")
            .stderr(File::create(path.join("stderr")).unwrap());
        let host = Host::start_as(command, path);
        Self { directory, host }
    }

    fn fault(&self, name: &str) -> PathBuf {
        self.directory.path().join("fault").join(name)
    }

    /// Makes the kernel's clock fail at the given moment; the process is held while it dies.
    fn arm(&self, moment: &str) {
        File::create(self.fault("hold")).unwrap();
        File::create(self.fault(moment)).unwrap();
    }

    /// The first line of what `/readyz` answers.
    async fn ask_readyz(&self) -> String {
        let address =
            self.host.target.url.strip_prefix("ws://").unwrap().strip_suffix('/').unwrap();
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Looks at the host between the end of its kernel and its own.
    async fn check_dying(&self) {
        wait_until("the fault", || self.fault("fired").exists()).await;
        // The kernel's thread says that it panics, then it ends.
        let begun = Instant::now();
        while self.ask_readyz().await != NOT_READY {
            assert!(begun.elapsed() < SOON, "it is ready without a kernel");
        }
        for _ in 0..20 {
            assert_eq!(self.ask_readyz().await, NOT_READY);
        }
        let late = Connection::connect(&self.host.target).await;
        assert!(late.is_err(), "nobody is let in any more");
    }

    /// Lets the process end; what it wrote to standard error, and its directory for the next one.
    async fn let_end(mut self) -> (ExitStatus, String, TempDir) {
        std::fs::remove_file(self.fault("hold")).unwrap();
        let mut status = None;
        wait_until("the end of the process", || {
            status = self.host.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        let words = std::fs::read_to_string(self.directory.path().join("stderr")).unwrap();
        (status.unwrap(), words, self.directory)
    }
}

/// There is a C compiler wherever this was built: SQLite needs it.
fn build_fault(directory: &Path) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernel_fault/fault.c");
    let library = directory.join("fault.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .args([library.as_os_str(), source.as_ref()])
        .args(["-ldl", "-lpthread"])
        .stdin(Stdio::null())
        .status();
    assert!(built.expect("there is a C compiler").success());
    library
}

/// How every such host ends, whatever the reason.
fn check_end(status: ExitStatus, words: &str, data: &Path) {
    assert_eq!(status.code(), Some(1), "{words}");
    assert!(words.contains("thread 'kernel'"), "{words}");
    assert!(words.contains("the host cannot go on and stops"), "in the log: {words}");
    let last = words.lines().last().unwrap();
    assert!(last.starts_with("greenroom: the kernel stopped: "), "{last}");
    assert!(last.contains("this is a defect, please report it"));
    assert!(last.ends_with("start the host again"), "what to do: {last}");
    assert!(!data.join("data/endpoint.json").exists(), "no client is sent to a host that is gone");
}

/// The kernel dies between writing a batch and sending it, in the middle of a stream: nobody has heard of what it wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_that_panics_after_a_write_ends_the_process_and_loses_nothing() {
    let script = json!({"scenes": [{"steps": [{"stream": {"chunks": 100_000, "size": 24, "every_ms": 1}}]}]});
    let faulty = FaultyHost::start(&script);
    assert_eq!(faulty.ask_readyz().await, "HTTP/1.1 200 OK");
    let (mut ann, chat) = Watcher::create_session(&faulty.host, "ann").await;
    let mut bob = Watcher::connect(&faulty.host, "bob").await;
    bob.open(&chat).await;
    let begun = ann.connection.dispatch(&chat, start("turn-0", "go")).await;
    begun.unwrap();
    ann.watch(50).await;
    bob.watch(20).await;
    faulty.arm("commit");
    faulty.check_dying().await;
    let (status, words, directory) = faulty.let_end().await;
    check_end(status, &words, directory.path());
    assert!(
        words.contains("the kernel stopped: its thread panicked: called `Result::unwrap()`"),
        "{words}"
    );
    // Whatever was still on its way to them.
    ann.watch(usize::MAX).await;
    let heard = ann.mirror.last_seen();

    let host = Host::start(directory.path());
    ann.come_back(&host, &chat).await;
    bob.come_back(&host, &chat).await;
    assert_eq!(ann.seen, bob.seen, "both saw the same history");
    let mut fresh = Watcher::connect(&host, "fresh").await;
    fresh.open(&chat).await;
    let now = fresh.mirror.chat(chat.as_str()).unwrap().value();
    assert_eq!(ann.mirror.chat(chat.as_str()).unwrap().value(), now);
    let turn = &now["turns"][0];
    assert_eq!((&turn["id"], &turn["state"]), (&json!("turn-0"), &json!("error")));
    let parts = turn["responseParts"].as_array().unwrap();
    assert_eq!(parts.last().unwrap()["resumable"], true);
    let unheard = ann.seen.range(heard + 1..);
    let kinds: Vec<&str> = unheard.map(|(_, envelope)| envelope.action.name()).collect();
    assert!(
        kinds.len() >= 2 && kinds.last() == Some(&"chat/error"),
        "what was written and not sent, then the end of the turn: {kinds:?}"
    );
    // And it works.
    let again = ann.connection.dispatch(&chat, start("turn-1", "go")).await;
    again.unwrap();
    ann.watch(5).await;
}

/// The kernel's thread dies while it waits, outside of any step.
#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_whose_thread_ends_while_idle_ends_the_process_and_loses_nothing() {
    let faulty = FaultyHost::start(&json!({"scenes": []}));
    let (mut ann, chat) = Watcher::create_session(&faulty.host, "ann").await;
    let draft = json!({"type": "chat/draftChanged",
        "draft": {"text": "not lost", "origin": {"kind": "user"}}});
    ann.connection.dispatch(&chat, draft).await.unwrap();
    let is_draft = |envelope: &Envelope| envelope.action.name() == "chat/draftChanged";
    while !ann.seen.values().any(is_draft) {
        ann.watch(1).await;
    }
    faulty.arm("idle");
    // Its thread wakes for this one at the latest, and can answer no more.
    let unanswered = ann.connection.request("ping", json!({}));
    let (unanswered, ()) = tokio::join!(unanswered, async {
        faulty.check_dying().await;
        let (status, words, directory) = faulty.let_end().await;
        check_end(status, &words, directory.path());
        assert!(words.contains("its thread"), "{words}");
        let host = Host::start(directory.path());
        let mut fresh = Watcher::connect(&host, "fresh").await;
        fresh.open(&chat).await;
        let now = fresh.mirror.chat(chat.as_str()).unwrap().value();
        assert_eq!(now["draft"]["text"], "not lost");
    });
    assert!(unanswered.is_err());
}
