//! `greenroom models refresh` with the real binary: what servers say of their models reaches the host that runs, and stays.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, ModelServer};

use crate::running::{Host, data_directory, greenroom, text};

/// Runs the verb while the server of this test goes on serving.
async fn models(data: &Path, arguments: &[&str]) -> Output {
    let mut command = greenroom(data);
    command.arg("models").args(arguments);
    let done = tokio::task::spawn_blocking(move || command.output().unwrap());
    done.await.unwrap()
}

/// The same, which must succeed; what it printed.
async fn models_ok(data: &Path, arguments: &[&str]) -> String {
    let done = models(data, arguments).await;
    let error = text(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {error}");
    text(&done.stdout)
}

async fn start(data: TempDir) -> Host {
    let started = tokio::task::spawn_blocking(move || Host::start_with(data, &[]));
    started.await.unwrap()
}

/// What programs read: nothing is new, and then all of it is, because it was lost.
async fn check_json(data: &Path, facts_file: &Path) {
    let again = models_ok(data, &["refresh", "routed", "--json"]).await;
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again[0]["changes"], json!([]), "{again:#}");
    assert_eq!(again[0]["told"]["context_tokens"], 200_000);
    assert_eq!((&again[0]["kept"], &again[0]["host"]), (&json!(false), &Value::Null));
    std::fs::remove_file(facts_file).unwrap();
    let said = models_ok(data, &["refresh", "--json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said[0]["kept"], &said[0]["host"]), (&json!(true), &json!("taken")));
}

/// A host that runs, and a server that says something of its models where Ollama, llama.cpp, OpenRouter and vLLM do.
#[tokio::test]
async fn servers_say_what_their_models_can_do_and_the_configuration_wins() {
    let server = ModelServer::start().await;
    let list = json!({"data": [
        {"id": "routed", "context_length": 200_000, "architecture": {"input_modalities": ["text"]},
         "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
        {"id": "small", "owned_by": "library"},
        {"id": "served", "owned_by": "llamacpp"},
        {"id": "vague", "owned_by": "vllm"},
    ]});
    server.has_document("/v1/models", Answer::document(&list));
    let shown = json!({"model_info": {"x.context_length": 99}, "capabilities": ["completion"], "parameters": "num_ctx 16384"});
    server.has_document("/api/show", Answer::document(&shown));
    let props = json!({"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": true, "audio": false}});
    server.has_document("/props", Answer::document(&props));
    let host = start(tempfile::tempdir().unwrap()).await;
    let data = host.data.path();
    for name in ["routed", "small", "served", "vague"] {
        models_ok(data, &["add", &format!("{}#{name}", server.url())]).await;
    }
    let file = data_directory(data).join("greenroom.toml");
    let toml = std::fs::read_to_string(&file)
        .unwrap()
        .replace("id = \"served\"\n", "id = \"served\"\ncontext_tokens = 4096\n");
    std::fs::write(&file, toml).unwrap();
    let facts_file = data_directory(data).join("model-facts.json");
    let dry = models_ok(data, &["refresh", "--dry-run"]).await;
    assert!(
        dry.contains("context_tokens 200000") && dry.contains("Dry run: nothing was saved."),
        "{dry}"
    );
    assert!(!facts_file.exists());
    let said = models_ok(data, &["refresh"]).await;
    assert!(said.contains("context_tokens 8192, but the configuration says 4096"), "{said}");
    assert!(said.contains("vague: the server gives no details about it."), "{said}");
    assert!(said.contains("The running host uses it now."), "{said}");
    let root = host.state("ahp-root://");
    let offered = root["agents"][0]["models"].as_array().unwrap();
    let find = |id: &str| offered.iter().find(|model| model["id"] == id).unwrap();
    assert_eq!(find("routed")["maxContextWindow"], 200_000);
    assert_eq!(find("routed")["supportsVision"], false);
    assert_eq!(find("routed")["_meta"]["greenroom.prices"]["output"], 2.0);
    assert_eq!(find("small")["maxContextWindow"], 16_384);
    assert_eq!(find("served")["maxContextWindow"], 4_096);
    assert_eq!(find("served")["supportsVision"], true);
    assert_eq!(find("vague").get("maxContextWindow"), None);
    check_json(data, &facts_file).await;
    let failed = models(data, &["refresh", "nobody"]).await;
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("there are: routed"));
    // It is there after a restart, and a server that is gone changes nothing.
    let host = start(host.kill()).await;
    drop(server);
    let failed = models(host.data.path(), &["refresh", "small"]).await;
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stdout).contains("small: its server does not answer"));
    let root = host.state("ahp-root://");
    assert!(root.to_string().contains("16384"), "{root:#}");
}
