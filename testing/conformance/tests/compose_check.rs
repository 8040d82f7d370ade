//! `x-compose` with the published client: what a message would become for the chat's model, before it is sent.

use ahp::{Client, ClientConfig, ClientError};
use ahp_ws::WebSocketTransport;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use conformance::TestHost;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ModelServer};

const SESSION: &str = "native:/checked";
const TOKEN: &str = "a-token-of-the-test-0123456789abcdef";

struct Checked {
    client: Client,
    host: TestHost,
    server: ModelServer,
    directory: TempDir,
}

/// A host with two models of one server, one of which sees no pictures; the published client with its token.
async fn start(with_token: bool) -> Checked {
    let server = ModelServer::start().await;
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    std::fs::write(&token_file, TOKEN).unwrap();
    std::fs::write(directory.path().join("notes.txt"), "one\ntwo\n").unwrap();
    std::fs::write(directory.path().join("AGENTS.md"), "SECRET OF THE PROMPT").unwrap();
    let model = |mut table: Value| -> host::Model {
        table["base_url"] = json!(server.url());
        serde_json::from_value(table).unwrap()
    };
    let prices = json!({"input": 2.0, "output": 8.0});
    let sees = model(json!({"id": "sees", "context_tokens": 10_000, "prices": prices}));
    let blind = model(json!({"id": "blind", "vision": false}));
    let script = json!({"scenes": []});
    let work = directory.path().to_owned();
    let host = TestHost::start_with(directory.path(), &script, |config| {
        config.models = vec![sees, blind];
        config.workspaces = vec![work];
        if with_token {
            config.token = host::TokenChoice::File(token_file);
        }
    })
    .await;
    let url = if with_token { format!("{}?tkn={TOKEN}", host.url) } else { host.url.clone() };
    let transport = WebSocketTransport::connect(&url).await.unwrap();
    let client = Client::connect(transport, ClientConfig::default()).await.unwrap();
    let versions = vec!["1.0.0".to_owned()];
    let init = client.initialize("pub".to_owned(), versions, Vec::new()).await.unwrap();
    let announced = init.meta.unwrap_or_default();
    assert_eq!(announced.get("x-compose").is_some(), with_token);
    let directories = [format!("file://{}", directory.path().display())];
    let params =
        json!({"channel": SESSION, "provider": "native", "workingDirectories": directories});
    let _: Value = client.request("createSession", params).await.unwrap();
    Checked { client, host, server, directory }
}

fn message() -> Value {
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.resize(400, 1);
    let attached = |label: &str, kind: &str, data: &[u8]| json!({"type": "embeddedResource", "label": label, "contentType": kind, "data": BASE64.encode(data)});
    json!({
        "text": "see @file:notes.txt", "origin": {"kind": "user"},
        "attachments": [
            attached("p.png", "image/png", &picture),
            attached("a.psd", "image/vnd.adobe.photoshop", b"8BPS\0\x01"),
        ],
    })
}

impl Checked {
    async fn compose(&self, params: Value) -> Result<Value, ClientError> {
        self.client.request("x-compose", params).await
    }
}

fn treatments(result: &Value) -> Vec<(&str, &str)> {
    let parts = result["parts"].as_array().unwrap().iter().map(|part| {
        let text = |name: &str| part[name].as_str();
        let name = text("name").unwrap_or(text("kind").unwrap());
        (name, text("treatment").unwrap())
    });
    parts.collect()
}

#[tokio::test]
async fn a_message_is_checked_for_the_model_and_the_room_and_nothing_happens() {
    let checked = start(true).await;
    let chat = testkit::default_chat(SESSION);
    let result = checked.compose(json!({"channel": chat, "message": message()})).await.unwrap();
    assert_eq!(result["model"], "sees", "{result:#}");
    assert_eq!(
        treatments(&result),
        [("text", "text"), ("notes.txt", "text"), ("p.png", "native"), ("a.psd", "described"),],
        "{result:#}"
    );
    assert!(result["parts"][3]["why"].is_string(), "{result:#}");
    assert_eq!(result["context"], json!({"size": 10_000, "left": 10_000}));
    let tokens = result["tokens"].as_f64().unwrap();
    assert!(tokens > 1_500.0 && tokens < 1_700.0, "{result:#}");
    let cost = result["cost"].as_f64().unwrap();
    assert!((cost - tokens * 2.0 / 1e6).abs() < 1e-12, "{result:#}");
    assert!(!result.to_string().contains("SECRET OF THE PROMPT"));

    // Of a session its default chat is meant; another model sees no pictures.
    let params = json!({"channel": SESSION, "message": message(), "model": {"id": "blind"}});
    let result = checked.compose(params).await.unwrap();
    assert_eq!(result["model"], "blind");
    assert_eq!(treatments(&result)[2], ("p.png", "described"), "{result:#}");
    assert!(result.get("context").is_none(), "{result:#}");

    let command = json!({"text": "/help", "origin": {"kind": "user"}});
    let result = checked.compose(json!({"channel": chat, "message": command}));
    assert_eq!(result.await.unwrap()["reachesModel"], false);
    let conflict = json!({
        "text": "say hi /rewind", "origin": {"kind": "user"},
        "attachments": [{
            "type": "simple", "label": "/rewind", "displayKind": "command",
            "range": {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": 14}},
            "_meta": {"compositor/part": {"type": "command", "id": "/rewind"}},
        }],
    });
    let result = checked.compose(json!({"channel": chat, "message": conflict}));
    let refused = result.await.unwrap_err().to_string();
    assert!(refused.contains("send it alone"), "as when it is sent: {refused}");

    assert!(checked.server.requests().is_empty(), "no model was asked");
    let blobs = checked.directory.path().join("data/blobs/sha256");
    let stored = std::fs::read_dir(blobs).map_or(0, Iterator::count);
    assert_eq!(stored, 0, "nothing is stored");
    let chat_state = checked.client.subscribe(chat).await.unwrap();
    let snapshot = serde_json::to_value(chat_state.0).unwrap().to_string();
    assert!(!snapshot.contains("notes.txt"), "{snapshot}");
    checked.host.stop().await;
}

#[tokio::test]
async fn what_was_used_and_what_was_refused_in_the_chat_counts() {
    let checked = start(true).await;
    let chat = testkit::default_chat(SESSION);
    let refusal = r#"{"error":{"message":"Invalid content type. image_url is only supported by certain models.","type":"invalid_request_error"}}"#;
    checked.server.behaves(move |request| {
        if String::from_utf8_lossy(&request.body).contains("image_url") {
            Answer::status(400, refusal)
        } else {
            Answer::streams(["Fine."]).with_usage(3_000, 40)
        }
    });
    let mut events = checked.client.events();
    checked.client.subscribe(chat.clone()).await.unwrap();
    let start = json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-11-15T08:00:00.000Z", "message": message()});
    let start = serde_json::from_value(start).unwrap();
    checked.client.dispatch(chat.clone(), start).await.unwrap();
    let ends = async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            let event = format!("{:?}", event.event);
            if event.contains("ChatTurnComplete") {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), ends).await.expect("the turn ends");
    let result = checked.compose(json!({"channel": chat, "message": message()})).await.unwrap();
    assert_eq!(treatments(&result)[2], ("p.png", "described"), "{result:#}");
    assert_eq!(
        result["context"],
        json!({"size": 10_000, "used": 3_040, "left": 6_960}),
        "{result:#}"
    );
    checked.host.stop().await;
}

#[tokio::test]
async fn who_has_no_token_or_names_nothing_is_told() {
    let code_of = |error: ClientError| match error {
        ClientError::Rpc(error) => error.code,
        other => panic!("{other:?}"),
    };
    let open = start(false).await;
    let chat = testkit::default_chat(SESSION);
    let denied = open.compose(json!({"channel": chat, "message": message()}));
    assert_eq!(code_of(denied.await.unwrap_err()), -32009);
    open.host.stop().await;

    let checked = start(true).await;
    let empty = json!({"text": "", "origin": {"kind": "user"}});
    for (params, code) in [
        (json!({"channel": chat}), -32602),
        (json!({"channel": chat, "message": message(), "model": {"id": "nobody"}}), -32602),
        (json!({"channel": chat, "message": empty}), -32602),
        (json!({"channel": "ahp-session:/nowhere", "message": message()}), -32001),
        (json!({"channel": "ahp-root://", "message": message()}), -32008),
    ] {
        let refused = checked.compose(params.clone()).await;
        assert_eq!(code_of(refused.unwrap_err()), code, "{params}");
    }
    checked.host.stop().await;
}
