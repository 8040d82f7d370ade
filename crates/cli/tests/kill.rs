//! The real binary is killed in the middle of a stream, again and again: no client loses what it saw.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::{Connection, Envelope, Events, HostTarget, Mirror, Reconnected};
use serde_json::{Value, json};
use tokio::time::timeout;
use wire::ChannelUri;

pub const SESSION: &str = "scripted:/killed";

/// A host process that dies with the test.
pub struct Host {
    pub child: Child,
    pub target: HostTarget,
}

impl Host {
    pub fn start(data: &Path) -> Self {
        Self::start_as(Command::new(env!("CARGO_BIN_EXE_greenroom")), data)
    }

    /// The same with variables or streams of its own.
    pub fn start_as(mut command: Command, data: &Path) -> Self {
        let mut child = command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--no-token",
                "--ready-json",
                "--workspace",
                ".",
            ])
            .args(["--data", "data", "--script", "script.json"])
            .current_dir(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let target = HostTarget { url: ready["url"].as_str().unwrap().to_owned(), token: None };
        Self { child, target }
    }

    /// SIGKILL: no warning, no flush.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one client saw: every envelope by its seq, and what it made of them.
pub struct Watcher {
    name: &'static str,
    pub connection: Connection,
    events: Events,
    pub mirror: Mirror,
    pub seen: BTreeMap<u64, Envelope>,
}

impl Watcher {
    pub async fn connect(host: &Host, name: &'static str) -> Self {
        let (connection, events) = Connection::connect(&host.target).await.unwrap();
        Self { name, connection, events, mirror: Mirror::default(), seen: BTreeMap::new() }
    }

    /// Creates the session and watches its chat.
    pub async fn create_session(host: &Host, name: &'static str) -> (Self, ChannelUri) {
        let mut watcher = Self::connect(host, name).await;
        watcher.connection.initialize(name, &[]).await.unwrap();
        let created = json!({"channel": SESSION});
        let created = watcher.connection.request("createSession", created).await;
        created.unwrap();
        let session = ChannelUri::parse(SESSION).unwrap();
        let snapshot = watcher.connection.subscribe(&session).await.unwrap().unwrap();
        let chat = ChannelUri::parse(snapshot.state["defaultChat"].as_str().unwrap()).unwrap();
        let snapshot = watcher.connection.subscribe(&chat).await;
        watcher.mirror.take_snapshot(snapshot.unwrap().unwrap()).unwrap();
        let left = json!({"channel": SESSION});
        watcher.connection.notify("unsubscribe", left).await.unwrap();
        (watcher, chat)
    }

    pub async fn open(&mut self, chat: &ChannelUri) {
        self.connection.initialize(self.name, &[]).await.unwrap();
        let snapshot = self.connection.subscribe(chat).await.unwrap().unwrap();
        self.mirror.take_snapshot(snapshot).unwrap();
    }

    fn take(&mut self, envelope: Envelope) {
        let seq = envelope.server_seq;
        assert!(envelope.rejection.is_none(), "{:?}", envelope.rejection);
        self.mirror.apply(&envelope);
        let before = self.seen.insert(seq, envelope);
        assert!(before.is_none(), "{} saw seq {seq} twice", self.name);
    }

    /// Takes action envelopes until there are `count` of them or the connection ends.
    pub async fn watch(&mut self, count: usize) {
        let mut taken = 0;
        while taken < count {
            match timeout(Duration::from_secs(20), self.events.next())
                .await
                .expect("the stream moves")
            {
                Ok(event) if event.method == "action" => {
                    if event.params["channel"] != SESSION {
                        self.take(Envelope::from_value(event.params).unwrap());
                    }
                    taken += 1;
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Comes back on a new connection and takes what it missed.
    pub async fn come_back(&mut self, host: &Host, chat: &ChannelUri) {
        self.watch(usize::MAX).await; // what was still on its way when the host died
        let (connection, events) = Connection::connect(&host.target).await.unwrap();
        let last = self.mirror.last_seen();
        let back = connection.reconnect(self.name, last, std::slice::from_ref(chat)).await.unwrap();
        let Reconnected::Replay { actions, missing } = back else {
            panic!("{}: a replay, not snapshots", self.name)
        };
        assert!(missing.is_empty());
        (self.connection, self.events) = (connection, events);
        for envelope in actions {
            assert!(envelope.server_seq > last);
            self.take(envelope);
        }
    }
}

pub fn start(turn: &str, text: &str) -> Value {
    json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00Z",
        "message": {"text": text, "origin": {"kind": "user"}}})
}

#[tokio::test]
async fn after_a_kill_at_any_moment_every_client_continues_from_what_it_saw() {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"stream": {"chunks": 100_000, "size": 24, "every_ms": 1}}]}]});
    std::fs::write(data.path().join("script.json"), script.to_string()).unwrap();
    let host = Host::start(data.path());
    let (mut ann, chat) = Watcher::create_session(&host, "ann").await;
    let mut bob = Watcher::connect(&host, "bob").await;
    bob.open(&chat).await;

    let mut host = host;
    for (round, moment) in [3usize, 40, 1, 333, 90, 700].into_iter().enumerate() {
        let turn = format!("turn-{round}");
        ann.connection.dispatch(&chat, start(&turn, "go")).await.unwrap();
        // The two stop looking at different moments, then the host dies without a word.
        ann.watch(moment).await;
        bob.watch(moment / 2 + 1).await;
        host.kill();
        host = Host::start(data.path());
        ann.come_back(&host, &chat).await;
        bob.come_back(&host, &chat).await;
        assert_eq!(ann.seen, bob.seen, "round {round}: both saw the same history");
        let mut fresh = Watcher::connect(&host, "fresh").await;
        fresh.open(&chat).await;
        let now = fresh.mirror.chat(chat.as_str()).unwrap().value();
        assert_eq!(
            ann.mirror.chat(chat.as_str()).unwrap().value(),
            now,
            "round {round}: the mirror is the host"
        );
        let last = now["turns"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["id"], turn.as_str());
        assert_eq!(last["state"], "error");
        assert_eq!(last["responseParts"].as_array().unwrap().last().unwrap()["resumable"], true);
        assert!(now.get("activeTurn").is_none(), "nothing spins");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_that_was_confirmed_survives_the_kill() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("script.json"), r#"{"scenes": []}"#).unwrap();
    let channel = ChannelUri::parse(&format!("{SESSION}/annotations")).unwrap();
    let mut host = Host::start(data.path());
    for round in 0..3 {
        let mut ann = Watcher::connect(&host, "ann").await;
        ann.connection.initialize("ann", &[]).await.unwrap();
        if round == 0 {
            let params = json!({"channel": SESSION, "provider": "scripted"});
            let made = ann.connection.request("createSession", params).await;
            made.unwrap();
        }
        let snapshot = ann.connection.subscribe(&channel).await.unwrap().unwrap();
        ann.mirror.take_snapshot(snapshot).unwrap();
        let threads = |ann: &Watcher| {
            let state = ann.mirror.plain(channel.as_str()).unwrap();
            state.annotations().unwrap().annotations.len()
        };
        assert_eq!(threads(&ann), round);
        let annotation = json!({
            "id": format!("a{round}"), "origin": {"session": SESSION}, "resource": "file:///f",
            "resolved": false, "entries": [{"id": "e", "text": "why?"}],
        });
        let action = json!({"type": "annotations/set", "annotation": annotation});
        let sent = ann.connection.dispatch(&channel, action).await;
        sent.unwrap();
        ann.watch(1).await;
        assert_eq!(threads(&ann), round + 1);
        host.kill();
        host = Host::start(data.path());
    }
    host.kill();
}
