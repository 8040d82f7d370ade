//! What operators see of a real host: `/metrics` behind the token, a collector over OTLP/HTTP, and telemetry channels with a
//! published client. Nothing that users said is in any of it.

use std::time::Duration;

use conformance::TestHost;
use serde_json::{Value, json};
use testkit::{Answer, ModelServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{interval, timeout};

use crate::published_client::ready;

/// A process has one log, which whoever exports it takes: hosts of two tests in one process would take it from each other.
static LOG: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const SECRET: &str = "hello-nobody-may-read-this";

async fn get(host: &TestHost, path: &str, token: Option<&str>) -> String {
    let address = host.url.trim_start_matches("ws://").trim_end_matches('/');
    let mut socket = TcpStream::connect(address).await.expect("a socket");
    let token = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{token}\r\n");
    socket.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    answer
}

fn script() -> Value {
    let fails = json!({"success": false, "message": SECRET});
    json!({"scenes": [{"when": ".*", "steps": [
        {"tool": {"name": "look", "input": {"path": SECRET}}},
        {"tool": {"name": "break", "input": {}, "result": fails}},
        {"say": [SECRET]},
    ]}]})
}

/// An attribute of a span or a resource; empty if it has none of that name.
fn value_of(of: &Value, key: &str) -> String {
    let mut attributes = of["attributes"].as_array().into_iter().flatten();
    let found = attributes.find(|attribute| attribute["key"] == key);
    let text = found.and_then(|found| found["value"]["stringValue"].as_str());
    text.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_collector_tells_spaces_apart_and_gets_the_log_of_their_process() {
    let _log = LOG.lock().await;
    use tracing_subscriber::layer::SubscriberExt;
    let collector = ModelServer::start().await;
    collector.behaves(|_| Answer::document(&json!({})));
    let endpoint = collector.url();
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start_with(data.path(), &script(), |config| {
        config.otlp_endpoint = Some(endpoint);
        config.token = host::TokenChoice::InDataDir;
        config.spaces = vec![host::SpaceEntry {
            name: "red".to_owned(),
            data: data.path().join("red"),
            workspaces: Vec::new(),
        }];
    })
    .await;
    let mut ticks = interval(Duration::from_millis(100));
    let exported = async {
        loop {
            // Another host of this process may take a record, not all of them.
            let subscriber = tracing_subscriber::registry().with(host::telemetry::TelemetryLayer);
            tracing::subscriber::with_default(subscriber, || tracing::warn!("of the process"));
            let (mut spaces, mut has_log) = (Vec::new(), false);
            for request in collector.requests() {
                let body: Value = serde_json::from_slice(&request.body).expect("OTLP/JSON");
                if request.path.ends_with("/v1/metrics") {
                    let resource = &body["resourceMetrics"][0]["resource"];
                    spaces.push(value_of(resource, "greenroom.space"));
                } else if request.path.ends_with("/v1/logs") {
                    let resource = &body["resourceLogs"][0]["resource"];
                    assert_eq!(value_of(resource, "greenroom.space"), "");
                    has_log |= body.to_string().contains("of the process");
                }
            }
            spaces.sort();
            spaces.dedup();
            if has_log && spaces == ["default", "red"] {
                return;
            }
            ticks.tick().await;
        }
    };
    timeout(Duration::from_secs(120), exported).await.expect("both spaces and the log");
    host.stop().await;
}

#[tokio::test]
async fn metrics_need_the_token_and_count_turns() {
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start_with(data.path(), &script(), |config| {
        config.token = host::TokenChoice::InDataDir;
    })
    .await;
    assert!(get(&host, "/metrics", None).await.starts_with("HTTP/1.1 401"));
    let token = std::fs::read_to_string(data.path().join("data/token")).expect("a token");
    let text = get(&host, "/metrics", Some(token.trim())).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("text/plain; version=0.0.4"), "{text}");
    for line in [
        "# TYPE greenroom_commits_total counter",
        "greenroom_connections 0",
        "greenroom_turns_running 0",
    ] {
        assert!(text.lines().any(|each| each == line), "{line}:\n{text}");
    }
    host.stop().await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one conversation, told in order")]
async fn a_collector_and_a_subscriber_hear_of_a_turn_and_not_what_was_said() {
    let _log = LOG.lock().await;
    let collector = ModelServer::start().await;
    collector.behaves(|_| Answer::document(&json!({})));
    let endpoint = collector.url();
    let data = tempfile::tempdir().unwrap();
    let host = TestHost::start_with(data.path(), &script(), |config| {
        config.otlp_endpoint = Some(endpoint);
    })
    .await;
    // A published client may subscribe, though it hands no such notification to its program.
    let published = ready(&host, "published").await;
    let (result, _) =
        published.subscribe("ahp-otlp://host/logs/info".to_owned()).await.expect("subscribe");
    assert!(result.snapshot.is_none(), "no state");
    let target = client::HostTarget { url: host.url.clone(), token: None };
    let (connection, mut events) =
        client::Connection::connect(&target).await.expect("a connection");
    connection.initialize("ann", &[]).await.expect("initialize");
    let channel = |text: &str| wire::ChannelUri::parse(text).unwrap();
    let traces = connection.subscribe(&channel("ahp-otlp://host/traces")).await;
    assert!(traces.expect("subscribed").is_none(), "no state");
    let session = "ahp-session:/told";
    let params = json!({"channel": session, "provider": "scripted"});
    connection.request("createSession", params).await.expect("createSession");
    let chat = channel(&client::chat::default_chat_of(session));
    let action = json!({
        "type": "chat/turnStarted", "turnId": "t1", "startedAt": "2026-11-15T08:00:00.000Z",
        "message": {"text": SECRET, "origin": {"kind": "user"}},
    });
    connection.dispatch(&chat, action).await.expect("dispatch");
    let heard = async {
        let mut spans: Vec<Value> = Vec::new();
        loop {
            let event = events.next().await.expect("the stream goes on");
            if event.method == "otlp/exportTraces" {
                let resource = &event.params["payload"]["resourceSpans"][0];
                assert_eq!(value_of(&resource["resource"], "service.name"), "greenroom");
                let told = resource["scopeSpans"][0]["spans"].as_array();
                spans.extend(told.expect("spans").iter().cloned());
            }
            if spans.len() == 3 {
                return spans;
            }
        }
    };
    let spans =
        timeout(Duration::from_secs(60), heard).await.expect("spans of the turn and its calls");
    let turn = spans.iter().find(|span| span["name"] == "turn");
    let turn = turn.expect("the turn");
    assert_eq!(value_of(turn, "greenroom.tool_calls"), "2");
    for span in &spans {
        assert_eq!(span["traceId"], turn["traceId"]);
        assert_eq!(value_of(span, "ahp.session.id"), session);
        assert_eq!(value_of(span, "ahp.turn.id"), "t1");
    }
    for (tool, outcome, status) in [("look", "completed", 1), ("break", "failed", 2)] {
        let mut calls = spans.iter();
        let call = calls.find(|span| value_of(span, "gen_ai.tool.name") == tool);
        let call = call.expect("a call");
        assert_eq!(call["parentSpanId"], turn["spanId"]);
        assert_eq!(value_of(call, "greenroom.tool_call.outcome"), outcome);
        assert_eq!(call["status"]["code"], status);
        assert!(value_of(call, "ahp.tool_call.id").starts_with('c'));
    }
    let text = json!(spans).to_string();
    let mut ticks = interval(Duration::from_millis(100));
    let exported = async {
        loop {
            let requests = collector.requests();
            let all: Vec<(String, String)> = requests
                .iter()
                .map(|request| {
                    (request.path.clone(), String::from_utf8_lossy(&request.body).into_owned())
                })
                .collect();
            let has = |end: &str| all.iter().any(|(path, _)| path.ends_with(end));
            if has("/v1/traces") && has("/v1/metrics") {
                return all;
            }
            ticks.tick().await;
        }
    };
    let all = timeout(Duration::from_secs(60), exported).await.expect("exported");
    for (path, body) in &all {
        let _: Value = serde_json::from_str(body).expect("OTLP/JSON");
        assert!(!body.contains(SECRET), "{path}: {body}");
        assert!(!body.contains(&*data.path().to_string_lossy()), "{path}: {body}");
    }
    assert!(!text.contains(SECRET), "{text}");
    host.stop().await;
}
