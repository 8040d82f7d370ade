//! `greenroom inspect`: what was said, what the model got of it and what did not go as it was meant; beside a
//! running host and after it is gone.

use std::process::{Command, Output};

use conformance::native::ChatClient;
use serde_json::{Value, json};
use testkit::{Answer, Gate, ModelServer};

use crate::running::{Host, greenroom, text};

const SESSION: &str = "native:/inspected";
const PICTURE: &str = "iVBORw0KGgo=";

/// Runs a verb while the model server of this test goes on serving.
async fn run(mut command: Command) -> Output {
    let done = tokio::task::spawn_blocking(move || command.output().unwrap());
    done.await.unwrap()
}

async fn start(server: &ModelServer) -> Host {
    let model = format!("{}#echo", server.url());
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("a.txt"), "one\n").unwrap();
    let commands = data.path().join(".greenroom/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("greet.md"), "Greet $1 warmly.\n").unwrap();
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &["--model", &model]));
    started.await.unwrap()
}

async fn arrives(host: &Host) -> ChatClient {
    let mut ann = ChatClient::arrives_at(&host.target(), "ann").await;
    let work = host.data.path().canonicalize().unwrap();
    ann.creates_session(SESSION, &work, json!({})).await;
    ann
}

fn inspects(mut command: Command, chat: &str, more: &[&str]) -> Command {
    command.args(["inspect", chat]).args(more);
    command
}

async fn run_to_json(command: Command) -> Value {
    let output = run(command).await;
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

/// Says three things: a mention, a command and a picture; the turns' ids.
async fn talks(ann: &mut ChatClient, server: &ModelServer) -> [String; 3] {
    server.answers(["Seen.", "Hello!", "A cat."].map(|answer| Answer::streams([answer])));
    let mentions = ann.sends_message("see @file:a.txt and @file:gone.txt").await;
    ann.turn_over().await;
    let commands = ann.sends_message("/greet Bob").await;
    ann.turn_over().await;
    let picture = json!([{
        "type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": PICTURE,
    }]);
    let shows = ann.sends_with_attachments("what is it?", picture).await;
    ann.turn_over().await;
    [mentions, commands, shows]
}

#[tokio::test]
async fn messages_and_lowerings_are_inspected_with_and_without_a_host() {
    let server = ModelServer::start().await;
    let host = start(&server).await;
    let mut ann = arrives(&host).await;
    let chat = ann.chat.as_str().to_owned();
    let ids = talks(&mut ann, &server).await;

    let all = run_to_json(inspects(host.greenroom(), &chat, &["--json"])).await;
    let turns: Vec<&str> = (0..3).map(|at| all[at]["turnId"].as_str().unwrap()).collect();
    assert_eq!(turns, ids, "{all:#}");
    let file = |path: &str| json!({"type": "mention", "target": {"kind": "file", "path": path}});
    let parts = |at: usize| &all[at]["messages"][0]["parts"];
    assert_eq!(
        *parts(0),
        json!([{"type": "text", "text": "see "}, file("a.txt"), {"type": "text", "text": " and "}, file("gone.txt")])
    );
    assert_eq!(
        *parts(1),
        json!([
            {"type": "command", "id": "/greet", "args": {"raw": "Bob", "argv": ["Bob"]}},
            {"type": "text", "text": "Greet Bob warmly.", "derived_from": {"part": 0}},
        ])
    );
    assert_eq!(parts(2)[1]["type"], "file-attachment");

    let calls = |at: usize| all[at]["lowered"].as_array().unwrap();
    for at in 0..3 {
        assert_eq!(calls(at).len(), 1, "one model call each: {:#}", all[at]);
        assert_eq!(calls(at)[0]["target"], "openai_chat");
        let sent = server.requests()[at].json()["messages"].clone();
        let sent = sent.as_array().unwrap().last().unwrap()["content"].clone();
        let blocks = match sent {
            Value::String(text) => json!([{"type": "text", "text": text}]),
            blocks => blocks,
        };
        assert_eq!(calls(at)[0]["blocks"], blocks, "what was sent is what is shown");
    }
    let diagnostics = calls(0)[0]["diagnostics"].to_string();
    assert!(diagnostics.contains("gone.txt"), "{diagnostics}");
    assert_eq!(calls(1)[0]["diagnostics"], json!([]));

    let one = ["--json", "--turn", &ids[1]];
    let only = run_to_json(inspects(host.greenroom(), &chat, &one)).await;
    assert_eq!(only, json!([all[1]]));
    let none = run(inspects(host.greenroom(), &chat, &["--turn", "nobody"])).await;
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("No turn `nobody` in this chat"));
    let words = run(inspects(host.greenroom(), SESSION, &[])).await;
    let words = text(&words.stdout);
    assert!(words.contains(r#"stored  {"type":"command","id":"/greet""#), "{words}");
    assert!(words.contains("sent to openai_chat"), "{words}");

    let data = host.kill();
    let after = run_to_json(inspects(greenroom(data.path()), &chat, &["--json"])).await;
    assert_eq!(after, all);
    let after = run_to_json(inspects(greenroom(data.path()), &chat, &one)).await;
    assert_eq!(after, only);
}

// C-080: a user's message is on disk before any model is asked
#[tokio::test]
async fn a_host_killed_during_a_model_request_has_stored_the_message() {
    let server = ModelServer::start().await;
    let host = start(&server).await;
    let mut ann = arrives(&host).await;
    let chat = ann.chat.as_str().to_owned();
    server.answers([Answer::streams(["Never."]).begins_after(&Gate::new())]);
    let picture = json!([{
        "type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": PICTURE,
    }]);
    let turn = ann.sends_with_attachments("see @file:a.txt", picture).await;
    server.asked(1).await;
    let data = host.kill();
    let all = run_to_json(inspects(greenroom(data.path()), &chat, &["--json"])).await;
    assert_eq!(all[0]["turnId"], turn.as_str(), "{all:#}");
    let parts = all[0]["messages"][0]["parts"].as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().filter_map(|part| part["type"].as_str()).collect();
    assert_eq!(kinds, ["text", "mention", "file-attachment"]);
    assert_eq!(parts[2]["data"], PICTURE);
}
