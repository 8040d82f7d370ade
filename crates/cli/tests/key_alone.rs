//! A key in the environment and nothing else: the real binary on a fresh data directory (G-70).

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Answer, CapturedRequest, ModelServer};

use crate::running::{data_directory, greenroom, result, text};

const KEY: &str = "sk-alone-0123456789";

/// A data directory in which nothing is, and an environment; the host that a verb started ends with it.
struct Fresh {
    data: TempDir,
    variables: Vec<(String, String)>,
}

impl Fresh {
    fn with(variables: &[(&str, &str)]) -> Self {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { data: tempfile::tempdir().unwrap(), variables: variables.collect() }
    }

    fn path(&self) -> &Path {
        self.data.path()
    }

    fn greenroom(&self, arguments: &[&str]) -> Command {
        let mut command = greenroom(self.path());
        let variables = self.variables.iter();
        command.args(arguments).envs(variables.map(|(name, value)| (name, value)));
        command
    }

    async fn run(&self, arguments: &[&str], input: &str) -> Output {
        Self::run_command(self.greenroom(arguments), input).await
    }

    /// Runs a verb while the servers of the test go on serving.
    async fn run_command(mut command: Command, input: &str) -> Output {
        let input = input.to_owned();
        let done = tokio::task::spawn_blocking(move || {
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            // A verb that ends early does not read all of it.
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
            child.wait_with_output().unwrap()
        });
        done.await.unwrap()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = self.greenroom(&["stop"]).output();
    }
}

fn events(values: &[Value]) -> String {
    let lines = values.iter().map(|value| {
        let kind = value["type"].as_str().unwrap_or("message");
        format!("event: {kind}\ndata: {value}\n\n")
    });
    lines.collect()
}

/// "Hello." as each vendor's server says it.
fn hello(request: &CapturedRequest) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    Answer::raw(match path {
        "/v1/messages" => events(&[
            json!({"type": "message_start", "message": {"role": "assistant", "content": [],
                "usage": {"input_tokens": 1000, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 100}}),
            json!({"type": "message_stop"}),
        ]),
        "/v1/responses" => {
            let item = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]});
            events(&[
                json!({"type": "response.created", "response": {"id": "r", "status": "in_progress"}}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}),
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": "Hello."}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": item.clone()}),
                json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item],
                    "usage": {"input_tokens": 1000, "output_tokens": 100}}}),
            ])
        }
        "/v1/chat/completions" => {
            let chunk = |delta: Value, finish: Value| json!({"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
            let chunks = [
                chunk(json!({"content": "Hello."}), Value::Null),
                chunk(json!({}), json!("stop")),
                json!({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 100}}),
            ];
            let lines = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
            format!("{}data: [DONE]\n\n", lines.collect::<String>())
        }
        gemini if gemini.ends_with(":streamGenerateContent") => {
            let chunk = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 100}});
            format!("data: {chunk}\n\n")
        }
        other => panic!("nobody asks {other}"),
    })
}

async fn server() -> ModelServer {
    let server = ModelServer::start().await;
    server.behaves(hello);
    server
}

/// The address of a server without its version.
fn root_of(server: &ModelServer) -> String {
    server.url().replace("/v1", "")
}

#[tokio::test]
async fn each_vendors_key_is_enough_to_send_a_message() {
    for (key, base, path, header, model) in [
        (
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "/v1/messages",
            "x-api-key",
            "claude-sonnet-5-5",
        ),
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1/responses", "authorization", "gpt-6.1-sol"),
        (
            "GEMINI_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            "gemini-3.8-flash",
        ),
        (
            "GOOGLE_API_KEY",
            "GOOGLE_GEMINI_BASE_URL",
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            "gemini-3.8-flash",
        ),
        (
            "OPENROUTER_API_KEY",
            "OPENROUTER_BASE_URL",
            "/v1/chat/completions",
            "authorization",
            "anthropic/claude-sonnet-5.5",
        ),
    ] {
        let server = server().await;
        let url = match key {
            "OPENAI_API_KEY" | "OPENROUTER_API_KEY" => server.url(),
            _ => root_of(&server),
        };
        let fresh = Fresh::with(&[(key, KEY), (base, &url)]);
        let sent = fresh.run(&["send", "--json", "hello"], "").await;
        let said = text(&sent.stderr);
        let turn = result(&sent.stdout);
        assert_eq!(turn["text"], "Hello.", "{key}: {turn:#}{said}");
        assert!(said.contains(&format!("{model} answers, with the key in {key}, ")), "{said}");
        let authority = root_of(&server).replace("http://", "");
        assert!(said.contains(&format!("which goes to {authority} ({base}).")), "{said}");
        assert!(!said.contains(KEY) && !text(&sent.stdout).contains(KEY), "{said}");
        let request = server.requests().remove(0);
        assert_eq!(request.path, path, "{key}");
        let sent_key = request.header(header).unwrap();
        assert!(sent_key.ends_with(KEY), "{sent_key}");
        if !path.contains("gemini") {
            assert_eq!(request.json()["model"], model);
        }
        let log = std::fs::read_to_string(data_directory(fresh.path()).join("host.log")).unwrap();
        assert!(log.contains(key) && !log.contains(KEY), "{log}");
    }
}

#[tokio::test]
async fn a_chat_begins_with_a_key_and_nothing_else() {
    let server = server().await;
    let fresh =
        Fresh::with(&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &root_of(&server))]);
    let done = fresh.run(&["chat", "--plain"], "hello\n").await;
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    assert!(out.contains("Hello."), "{out}{err}");
    assert!(err.contains("with the key in ANTHROPIC_API_KEY"), "{err}");
    assert!(!err.contains("No model is configured"), "{err}");
    let body = server.requests()[0].json();
    assert_eq!(body["max_tokens"], 128_000, "as much as the model can write");
    assert_eq!(body["thinking"], json!({"type": "adaptive", "display": "summarized"}));
}

#[tokio::test]
async fn vendors_have_an_order_others_are_offered_and_a_configured_model_wins() {
    let server = server().await;
    server.has_models(["claude-sonnet-5-5", "gpt-6.1-sol", "mine"]);
    let fresh = Fresh::with(&[
        ("OPENAI_API_KEY", KEY),
        ("OPENAI_BASE_URL", &server.url()),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", &root_of(&server)),
    ]);
    let listed = fresh.run(&["models", "list", "--json"], "").await;
    let models: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let shown = |model: &Value| {
        (model["id"].clone(), model["source"].clone(), model["keyVariable"].clone())
    };
    assert_eq!(
        shown(&models[0]),
        (json!("claude-sonnet-5-5"), json!("environment"), json!("ANTHROPIC_API_KEY"))
    );
    assert_eq!(
        shown(&models[1]),
        (json!("gpt-6.1-sol"), json!("environment"), json!("OPENAI_API_KEY"))
    );
    assert_eq!(models[0]["default"], true);
    let listed = text(&fresh.run(&["models"], "").await.stdout);
    assert!(listed.contains("by the key in ANTHROPIC_API_KEY  answers"), "{listed}");
    // The other vendor's is there for whoever names it.
    let sent = fresh.run(&["send", "--json", "--model", "gpt-6.1-sol", "hello"], "").await;
    assert_eq!(result(&sent.stdout)["text"], "Hello.", "{}", text(&sent.stderr));
    assert_eq!(server.requests().last().unwrap().path, "/v1/responses");
    let sent = fresh.run(&["send", "--json", "--model", "anthropic", "hello"], "").await;
    assert_eq!(result(&sent.stdout)["text"], "Hello.", "{}", text(&sent.stderr));
    assert_eq!(server.requests().last().unwrap().path, "/v1/messages");
    let address = format!("{}#mine", server.url());
    let added = fresh.run(&["models", "add", &address], "").await;
    assert!(added.status.success(), "{}", text(&added.stderr));
    let listed = fresh.run(&["models", "--json"], "").await;
    let models: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(shown(&models[0]), (json!("mine"), json!("configuration"), Value::Null));
    assert_eq!(models.as_array().unwrap().len(), 1, "what is configured is all there is");
    let sent = fresh.run(&["send", "--json", "hello"], "").await;
    assert_eq!(result(&sent.stdout)["text"], "Hello.", "{}", text(&sent.stderr));
    assert!(!text(&sent.stderr).contains("with the key in"));
    assert_eq!(server.requests().last().unwrap().path, "/v1/chat/completions");
}

/// A service is started again with the environment of its manager, not with that of a shell.
#[tokio::test]
async fn a_service_that_has_no_key_is_not_advised_to_start_again() {
    let fresh = Fresh::with(&[]);
    let mut service = fresh.greenroom(&["serve", "--service", "--listen", "127.0.0.1:0"]);
    let mut service = service.spawn().unwrap();
    while !fresh.run(&["status"], "").await.status.success() {
        assert_eq!(service.try_wait().unwrap(), None, "it runs");
    }
    let mut command = fresh.greenroom(&["chat", "--plain"]);
    command.env("GEMINI_API_KEY", KEY);
    let said = text(&Fresh::run_command(command, "hello\n").await.stderr);
    assert!(
        said.contains("GEMINI_API_KEY is set here")
            && said.contains("environment file of the unit"),
        "{said}"
    );
    assert!(!said.contains("starts it with this variable"), "{said}");
    let server = server().await;
    server.has_models(["m"]);
    let address = format!("{}#m", server.url());
    let mut add = fresh.greenroom(&["models", "add", &address, "--key-env", "SOME_KEY"]);
    add.env("SOME_KEY", KEY);
    let added = Fresh::run_command(add, "").await;
    let said = text(&added.stdout) + &text(&added.stderr);
    assert!(said.contains("environment file of the unit"), "{said}");
    assert!(fresh.run(&["stop"], "").await.status.success());
    service.wait().unwrap();
}

#[tokio::test]
async fn what_a_message_becomes_is_said_of_a_model_that_is_there_by_its_key() {
    let fresh = Fresh::with(&[("ANTHROPIC_API_KEY", KEY)]);
    let compose = ["compose", "--model", "claude-sonnet-5-5"];
    let composed = fresh.run(&compose, "hello").await;
    let (out, err) = (text(&composed.stdout), text(&composed.stderr));
    assert!(out.starts_with("For claude-sonnet-5-5"), "{out}{err}");
}

#[tokio::test]
async fn a_variable_of_the_client_does_not_decide_where_the_hosts_key_goes() {
    let (hosts, clients) = (server().await, server().await);
    let mut fresh =
        Fresh::with(&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &root_of(&hosts))]);
    let started = fresh.run(&["send", "hello"], "").await;
    assert!(started.status.success(), "{}", text(&started.stderr));
    fresh.variables[1].1 = root_of(&clients);
    for model in ["anthropic", "anthropic#claude-opus-4-8"] {
        let sent = fresh.run(&["send", "--json", "--model", model, "hello"], "").await;
        let said = text(&sent.stderr);
        assert_eq!(result(&sent.stdout)["text"], "Hello.", "{said}");
    }
    assert!(clients.requests().is_empty(), "it got the host's key");
    assert_eq!(hosts.requests().last().unwrap().json()["model"], "claude-opus-4-8");
    let plain =
        Fresh::with(&[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", "http://proxy.example")]);
    let listed = plain.run(&["models"], "").await;
    let said = text(&listed.stderr);
    assert!(said.contains("unencrypted to proxy.example") && said.contains("https://"), "{said}");
}

#[tokio::test]
async fn a_key_that_the_host_does_not_have_and_an_address_that_is_none_are_said() {
    let without = Fresh::with(&[]);
    let done = without.run(&["chat", "--plain"], "hello\n").await;
    assert!(done.status.success(), "the scripted agent answers");
    let mut command = greenroom(without.path());
    command.args(["chat", "--plain"]).env("GEMINI_API_KEY", KEY);
    let said = text(&Fresh::run_command(command, "hello\n").await.stderr);
    assert!(
        said.contains("GEMINI_API_KEY is set here") && said.contains("greenroom restart"),
        "{said}"
    );
    assert!(!said.contains(KEY), "{said}");
    let nowhere = Fresh::with(&[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", "nowhere")]);
    let listed = nowhere.run(&["models"], "").await;
    let said = text(&listed.stderr);
    assert!(
        said.contains("a key of the environment is not used") && said.contains("http://"),
        "{said}"
    );
    assert!(text(&listed.stdout).contains("No models are configured"));
}
