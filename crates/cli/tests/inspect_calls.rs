//! `greenroom inspect --call` and `--diff`: every request to a model as it was sent, over all wire formats, beside a running
//! host, after it was killed, and in the host that comes after it.

use crate::running;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use crate::spoken::{Said, WIRES, Wire};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use conformance::native::ChatClient;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, Gate, ModelServer};

use crate::running::{Host, greenroom, text};

const SESSION: &str = "native:/called";
const KEY: &str = "sk-never-to-be-seen-0123456789";

/// Large enough to be stored apart.
fn picture() -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend((0..6_000_u32).map(|n| (n * 7 % 251) as u8));
    BASE64.encode(bytes)
}

fn attached() -> Value {
    json!([{"type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": picture()}])
}

async fn run(mut command: Command) -> Output {
    let done = tokio::task::spawn_blocking(move || command.output().unwrap());
    done.await.unwrap()
}

/// A data directory in which a model of this server is configured, with a key and prices.
fn configure(wire: Wire, server: &ModelServer) -> TempDir {
    let data = tempfile::tempdir().unwrap();
    let key = data.path().join("key");
    std::fs::write(&key, KEY).unwrap();
    let settings = running::data_directory(data.path());
    std::fs::create_dir_all(&settings).unwrap();
    let table = format!(
        "[[models]]\nid = \"m\"\napi = \"{}\"\nbase_url = \"{}\"\nmodel = \"echo\"\nkey_file = \"{}\"\n\
         query = {{ version = \"7\", token = \"{KEY}\" }}\nprices = {{ input = 1.0, output = 10.0 }}\n",
        wire.api().name(),
        server.url(),
        key.display(),
    );
    std::fs::write(settings.join("greenroom.toml"), table).unwrap();
    std::fs::write(data.path().join("a.txt"), "one\n").unwrap();
    data
}

async fn serve(data: TempDir) -> Host {
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &[]));
    started.await.unwrap()
}

async fn connect(host: &Host) -> ChatClient {
    ChatClient::arrives_at(&host.target(), "ann").await
}

async fn begin(host: &Host) -> ChatClient {
    let mut ann = connect(host).await;
    let work = host.data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({})).await;
    ann
}

async fn talk(ann: &mut ChatClient, message: &str) -> Value {
    ann.sends_message(message).await;
    ann.turn_over().await
}

async fn inspect(data: &Path, more: &[&str]) -> Output {
    let mut command = greenroom(data);
    command.args(["inspect", SESSION]).args(more);
    run(command).await
}

async fn inspect_json(data: &Path, more: &[&str]) -> Value {
    let mut more = more.to_vec();
    more.push("--json");
    let output = inspect(data, &more).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every request that the server received is what `--call N --raw` prints.
async fn check_all(data: &Path, server: &ModelServer, wire: Wire) {
    let requests = server.requests();
    for (number, request) in (1..).zip(&requests) {
        let number = number.to_string();
        let shown = inspect(data, &["--call", &number, "--raw"]).await;
        assert!(shown.status.success(), "{wire:?}: {}", text(&shown.stderr));
        assert!(
            shown.stdout == request.body,
            "{wire:?}: call {number}: {}\n{}",
            text(&shown.stdout),
            text(&request.body)
        );
    }
    let listed = inspect_json(data, &["--call"]).await;
    assert_eq!(listed.as_array().unwrap().len(), requests.len(), "{listed:#}");
}

/// Answers in turn; a picture is refused once it is asked about a second time.
fn behave(server: &ModelServer, wire: Wire) {
    let said = |said: &Said| wire.stream(said);
    let call = said(&Said::calling(&[("c_1", "read", json!({"path": "a.txt"}))]));
    let plain = said(&Said::text("Fine."));
    let (status, words) = wire.refuses_pictures();
    server.behaves(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let refuses = body.contains("and now?") && body.contains(&picture());
        if refuses {
            return Answer::status(status, words);
        }
        if body.contains("look at it") && !body.contains("c_1") {
            Answer::raw(call.clone())
        } else {
            Answer::raw(plain.clone())
        }
    });
}

#[tokio::test]
async fn every_request_is_shown_as_it_was_sent_over_every_wire() {
    for wire in WIRES {
        let server = ModelServer::start().await;
        behave(&server, wire);
        let host = serve(configure(wire, &server)).await;
        let mut ann = begin(&host).await;
        let chat = ann.chat.as_str().to_owned();
        ann.sends_with_attachments("look at it", attached()).await;
        assert_eq!(ann.turn_over().await["state"], "complete");
        // Refused with the picture, then answered without it.
        talk(&mut ann, "and now?").await;
        talk(&mut ann, "/compact").await;
        talk(&mut ann, "go on").await;
        assert_eq!(server.requests().len(), 6, "{wire:?}");
        check_all(host.data.path(), &server, wire).await;

        let data = host.kill();
        check_all(data.path(), &server, wire).await;
        let host = serve(data).await;
        let mut ann = connect(&host).await;
        ann.enters(SESSION, &chat).await;
        talk(&mut ann, "again").await;
        check_all(host.data.path(), &server, wire).await;

        let data = host.data.path();
        check_facts(data, wire).await;
        check_secrets(data, wire).await;
    }
}

/// What is said of the calls that `every_request_is_shown_as_it_was_sent_over_every_wire` makes.
async fn check_facts(data: &Path, wire: Wire) {
    let listed = inspect_json(data, &["--call"]).await;
    let outcomes: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["outcome"].as_str().unwrap_or("?"))
        .collect();
    let answered = "answered";
    assert_eq!(
        outcomes,
        [answered, answered, "refused", answered, answered, answered, answered],
        "{wire:?}"
    );
    assert_eq!(listed[4]["purpose"], "compaction");
    assert_eq!(listed[0]["reason"], "tool calls");
    assert_eq!(listed[1]["inputTokens"], 120);
    assert_eq!(listed[1]["cacheReadTokens"], 80);
    let cost = listed[1]["cost"].as_f64().unwrap();
    assert!((cost - 0.00042).abs() < 1e-9, "{cost}");
    assert_eq!(listed[1]["round"], 1);

    let first = inspect_json(data, &["--call", "1"]).await;
    assert_eq!(first["isAsSent"], true);
    let parts = first["parts"].as_array().unwrap();
    let native = parts.iter().find(|part| part["name"] == "p.png").unwrap();
    assert_eq!(native["treatment"], "native", "{native:#}");
    let shown = first["request"].to_string();
    assert!(!shown.contains(&picture()), "{shown}");
    assert!(shown.contains("<image/png, 6008 bytes, sha256 "), "{shown}");
    let with_bodies = inspect_json(data, &["--call", "1", "--bodies"]).await;
    assert!(with_bodies["request"].to_string().contains(&picture()));

    let fourth = inspect_json(data, &["--call", "4"]).await;
    let parts = fourth["parts"].as_array().unwrap();
    let described = parts.iter().find(|part| part["name"] == "p.png").unwrap();
    assert_eq!(described["treatment"], "described", "{wire:?}: {described:#}");
    assert!(described["why"].is_string(), "{described:#}");

    let words = inspect(data, &["--call", "4"]).await;
    let words = text(&words.stdout);
    assert!(words.contains("as it was sent"), "{words}");
    assert!(words.contains("p.png, described"), "{words}");
    assert!(words.contains("== identity"), "{words}");
}

/// Neither what is shown nor what is stored holds the key.
async fn check_secrets(data: &Path, wire: Wire) {
    for number in [1, 3, 5] {
        for more in [&["--json"][..], &[], &["--raw"]] {
            let number = number.to_string();
            let mut arguments = vec!["--call", &number];
            arguments.extend(more);
            let shown = inspect(data, &arguments).await;
            assert!(!text(&shown.stdout).contains(KEY), "{wire:?}");
        }
    }
    let first = inspect_json(data, &["--call", "1"]).await;
    let (header, _) = wire.key(KEY);
    assert_eq!(first["headers"][header], "removed", "{first:#}");
    let url = first["url"].as_str().unwrap();
    assert!(url.contains("token=removed&version=7"), "{url}");
    for name in ["journal.sqlite", "journal.sqlite-wal"] {
        let stored = running::data_directory(data).join(name);
        let stored = std::fs::read(stored).unwrap_or_default();
        let key = KEY.as_bytes();
        assert!(!stored.windows(key.len()).any(|bytes| bytes == key), "{name}");
    }
}

#[tokio::test]
async fn differences_say_what_was_added_and_whether_the_cache_is_kept() {
    let wire = Wire::Anthropic;
    let server = ModelServer::start().await;
    behave(&server, wire);
    let host = serve(configure(wire, &server)).await;
    let mut ann = begin(&host).await;
    talk(&mut ann, "one").await;
    talk(&mut ann, "two").await;
    let data = host.data.path();
    let diff = inspect_json(data, &["--diff", "1", "2"]).await;
    assert_eq!(diff["messages"], json!({"same": 1, "removed": 0, "added": 2}), "{diff:#}");
    assert_eq!(diff["keepsCache"], true, "{diff:#}");
    assert_eq!(diff["sectionsChanged"], json!([]));
    let lines = diff["diff"].as_str().unwrap();
    assert!(lines.lines().any(|line| line.starts_with('+') && line.contains("\"two\"")), "{lines}");
    assert!(
        !lines.lines().any(|line| line.starts_with('-') && line.contains("\"one\"")),
        "{lines}"
    );

    // A section that is rewritten changes the prompt from its beginning on.
    let answer = || async { Ok(json!({"sections": {"tone": {"content": "Sing."}}})) };
    ann.connection.answer_with(Arc::new(move |_| Box::pin(answer())));
    let opt_in =
        json!({"clientId": "ann", "tools": [], "systemMessageTransform": {"sections": ["tone"]}});
    ann.does_in(SESSION, json!({"type": "session/activeClientSet", "activeClient": opt_in})).await;
    talk(&mut ann, "three").await;
    let third = inspect_json(data, &["--call", "3"]).await;
    let sections = third["sections"].as_array().unwrap();
    let tone = sections.iter().find(|section| section["id"] == "tone").unwrap();
    assert_eq!(tone["after"], "Sing.", "{tone:#}");
    assert_ne!(tone["before"], "Sing.");
    assert_eq!(third["transform"]["outcome"], "rewritten");
    assert_eq!(third["transform"]["asked"]["clientId"], "ann");
    let diff = inspect_json(data, &["--diff", "2", "3"]).await;
    assert_eq!(diff["sectionsChanged"], json!(["tone"]), "{diff:#}");
    assert_eq!(diff["keepsCache"], false);
    let words = text(&inspect(data, &["--diff", "2", "3"]).await.stdout);
    assert!(words.contains("sections changed: tone"), "{words}");
    assert!(words.contains("+") && words.contains("Sing."), "{words}");
    let words = text(&inspect(data, &["--call"]).await.stdout);
    assert!(words.contains("call  time") && words.lines().count() == 5, "{words}");
    let missing = inspect(data, &["--call", "9"]).await;
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("call 9 is not stored; there are 1 to 3"));
}

/// A call is stored before its request is sent; one whose answer nobody waits for is told apart from one that ended.
#[tokio::test]
async fn a_call_is_there_while_it_runs_and_after_it_was_cancelled() {
    let server = ModelServer::start().await;
    let gate = Gate::new();
    server.answers([Answer::streams(["Never."]).begins_after(&gate)]);
    let host = serve(configure(Wire::Chat, &server)).await;
    let mut ann = begin(&host).await;
    ann.sends_message("wait").await;
    server.asked(1).await;
    let running = inspect_json(host.data.path(), &["--call", "1"]).await;
    assert!(running["outcome"].is_null() && running["isAsSent"] == true, "{running:#}");
    ann.until("the turn runs", |chat| !chat["activeTurn"].is_null()).await;
    ann.cancels().await;
    ann.turn_over().await;
    // The end is written with whatever is written next.
    server.answers([Answer::streams(["Now."])]);
    talk(&mut ann, "again").await;
    let ended = inspect_json(host.data.path(), &["--call", "1"]).await;
    assert_eq!(ended["outcome"], "abandoned", "{ended:#}");
}

/// What cannot be put together again is not shown as if it were what was sent.
#[tokio::test]
async fn a_body_that_is_gone_is_said() {
    let server = ModelServer::start().await;
    behave(&server, Wire::Chat);
    let host = serve(configure(Wire::Chat, &server)).await;
    let mut ann = begin(&host).await;
    ann.sends_with_attachments("see", attached()).await;
    ann.turn_over().await;
    let data = host.kill();
    let blobs = running::data_directory(data.path()).join("blobs");
    std::fs::remove_dir_all(&blobs).unwrap();
    let raw = inspect(data.path(), &["--call", "1", "--raw"]).await;
    assert_eq!(raw.status.code(), Some(1));
    assert!(raw.stdout.is_empty());
    assert!(text(&raw.stderr).contains("is not stored any more"), "{}", text(&raw.stderr));
    let words = inspect(data.path(), &["--call", "1"]).await;
    assert_eq!(words.status.code(), Some(1));
    assert!(text(&words.stdout).contains("NOT as it was sent"));
    assert!(!blobs.exists(), "inspecting makes nothing");
}
