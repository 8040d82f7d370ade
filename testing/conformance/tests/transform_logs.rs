//! What a section says is in no log, at any level; what went through a client is logged at debug, as hashes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use client::{Connection, HostTarget};
use conformance::TestHost;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

const SESSION: &str = "ahp-session:/logged";

/// Sends a turn and waits until it is over; everything the client received.
async fn plays(connection: &Connection, events: &mut client::Events, turn: &str) -> String {
    let chat = wire::ChannelUri::parse(&testkit::default_chat(SESSION)).unwrap();
    let start = json!({"type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": "go", "origin": {"kind": "user"}}});
    connection.dispatch(&chat, start).await.unwrap();
    let mut log_text = String::new();
    loop {
        let notification = events.next().await.unwrap();
        log_text.push_str(&notification.params.to_string());
        if notification.params["action"]["type"] == "chat/turnComplete" {
            return log_text;
        }
    }
}

#[tokio::test]
async fn no_section_is_in_the_log() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("AGENTS.md"), "SECRET-BEFORE").unwrap();
    let script = json!({"scenes": [{"steps": [{"show_prompt": true}]}]});
    let host = TestHost::start(data.path(), &script).await;
    let target = HostTarget { url: host.url.clone(), token: None };
    let (connection, mut events) = Connection::connect(&target).await.unwrap();
    let answers = Arc::new(Mutex::new(vec![
        json!({"sections": {"custom_instructions": {"content": "SECRET-AFTER"}}}),
        json!({"sections": {"custom_instructions": {"content": ["SECRET-MALFORMED"]}}}),
    ]));
    connection.answer_with(Arc::new(move |_| {
        let answer: Value = answers.lock().unwrap().remove(0);
        Box::pin(async { Ok(answer) })
    }));
    connection.initialize("ann", &[]).await.unwrap();
    let opt_in = json!({"sections": ["custom_instructions"]});
    let active = json!({"clientId": "ann", "tools": [], "systemMessageTransform": opt_in});
    let params = json!({"channel": SESSION, "activeClient": active});
    connection.request("createSession", params).await.unwrap();
    let chat = wire::ChannelUri::parse(&testkit::default_chat(SESSION)).unwrap();
    connection.subscribe(&chat).await.unwrap();
    let first = plays(&connection, &mut events, "t1").await;
    assert!(first.contains("SECRET-AFTER"), "the agent sends the rendered sections");
    let second = plays(&connection, &mut events, "t2").await;
    assert!(second.contains("SECRET-BEFORE"), "a malformed answer changes nothing");
    host.stop().await;
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let audited: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("custom_instructions:") && line.contains("client=\"ann\""))
        .collect();
    assert_eq!(audited.len(), 2, "{log}");
    assert!(
        audited.iter().all(|line| line.contains("DEBUG") && line.contains(SESSION)),
        "{audited:?}"
    );
    assert!(audited[0].contains("rewritten") && audited[1].contains("malformed"), "{audited:?}");
    assert!(!log.contains("SECRET"), "a section is in the log");
}
