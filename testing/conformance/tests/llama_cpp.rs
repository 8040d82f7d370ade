//! A server that others wrote: llama.cpp's own, with a tiny model of random weights. It speaks Chat Completions as it does, and
//! refuses what it does not take in its own words.
//!
//! `testing/conformance/tests/llama_cpp/install` installs it; without it these tests say that they are skipped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use conformance::native::{NativeHarness, SESSION, texts_in};
use host::journal::Archive;
use serde_json::{Value, json};
use tempfile::TempDir;

/// One pixel.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// llama.cpp's server; it ends with this value.
struct LlamaServer {
    child: Child,
    url: String,
    _directory: TempDir,
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::var_os("GREENROOM_LLAMA_PYTHON")
        .map_or_else(|| root.join("target/llama-cpp/bin/python"), PathBuf::from)
}

/// The server, or none where it is not installed. That is said where also a test that passes is heard.
fn start_server() -> Option<LlamaServer> {
    let python = python();
    if !python.exists() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: a test against llama.cpp's server; testing/conformance/tests/llama_cpp/install installs it"
        );
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama_cpp/serve.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(directory.path().join("tiny.gguf"))
        .arg(port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let url = line.trim().to_owned();
    assert!(url.starts_with("http://127.0.0.1:"), "it does not serve: {line}");
    Some(LlamaServer { child, url, _directory: directory })
}

async fn start(server: &LlamaServer) -> NativeHarness {
    let url = format!("{}/v1", server.url);
    // Nothing that a random model writes may run.
    NativeHarness::start_with_model(json!({"approvals": "plan"}), move |model| {
        model.base_url = url;
        model.context_tokens = Some(65_536);
        model.output_tokens = Some(12);
    })
    .await
}

async fn talk(harness: &mut NativeHarness, text: &str, attachments: Value) -> Value {
    harness.ann.sends_with_attachments(text, attachments).await;
    harness.ann.turn_over().await
}

/// How the calls of the chat ended, as they are recorded.
fn outcomes(harness: &NativeHarness) -> Vec<String> {
    let archive = Archive::open(&harness.data().join("data")).unwrap();
    let session = wire::ChannelUri::parse(SESSION).unwrap();
    let session = archive.session(&session).unwrap().unwrap();
    let calls = archive.calls(&session.chats[0]).unwrap();
    let outcome =
        |end: Option<Value>| end.unwrap_or_default()["outcome"].as_str().map(str::to_owned);
    calls.into_iter().map(|call| outcome(call.end).unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_chat_with_llama_cpp_outlives_a_picture_a_compaction_and_a_restart() {
    let Some(server) = start_server() else {
        return; // it said so
    };
    let mut harness = start(&server).await;
    let turn = talk(&mut harness, "hello", json!([])).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert!(!texts_in(&turn, "markdown").is_empty(), "{turn:#}");
    assert!(turn["usage"]["inputTokens"].as_u64().unwrap() > 100, "{turn:#}");
    assert_eq!(turn["usage"]["outputTokens"], 12, "{turn:#}");

    // "image input is not supported": described instead, said once, and remembered.
    let picture = json!([{"type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": PICTURE}]);
    let turn = talk(&mut harness, "what is it?", picture).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let notices = texts_in(&turn, "systemNotification").join("\n");
    assert!(notices.contains("does not take"), "{notices}");
    harness.restart().await;
    for text in ["and now?", "/compact", "go on"] {
        let turn = talk(&mut harness, text, json!([])).await;
        assert_eq!(turn["state"], "complete", "{text}: {turn:#}");
    }
    let outcomes = outcomes(&harness);
    let refused = outcomes.iter().filter(|outcome| *outcome == "refused");
    assert_eq!(refused.count(), 1, "{outcomes:?}");
    assert_eq!(outcomes[..3], ["answered", "refused", "answered"]);
}

#[tokio::test]
async fn llama_cpp_says_which_models_it_has() {
    let Some(server) = start_server() else {
        return; // it said so
    };
    let model = host::Model::parse(&format!("{}/v1#tiny", server.url)).unwrap();
    let answered = host::model_server::ask(&model).await.expect("it answers");
    let host::model_server::ServerModels::Listed(names) = answered else {
        panic!("{answered:?}");
    };
    assert!(names.iter().any(|name| name.contains("tiny")), "{names:?}");
}
