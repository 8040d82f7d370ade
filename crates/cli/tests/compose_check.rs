//! `greenroom compose --model` and `--session`: what one model would get of a message, without a host and from one.

use crate::running;

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use testkit::{Answer, ModelServer};

use crate::running::{Host, greenroom, text};

fn compose(data: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = greenroom(data)
        .arg("compose")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A verb that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn to_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

fn configure(data: &Path, base_url: &str) {
    let settings = running::data_directory(data);
    std::fs::create_dir_all(&settings).unwrap();
    let models = format!(
        "[[models]]\nid = \"sees\"\nbase_url = \"{base_url}\"\ncontext_tokens = 8000\n\
         [[models]]\nid = \"blind\"\nbase_url = \"{base_url}\"\nvision = false\n"
    );
    std::fs::write(settings.join("greenroom.toml"), models).unwrap();
}

fn with_picture() -> String {
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.resize(400, 1);
    let attached = json!([{"type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": BASE64.encode(picture)}]);
    json!({"text": "what is it?", "attachments": attached}).to_string()
}

#[test]
fn a_model_of_the_configuration_needs_no_host() {
    let data = tempfile::tempdir().unwrap();
    configure(data.path(), "http://127.0.0.1:9/v1");
    let message = with_picture();
    for (model, treatment, target) in [
        ("sees", "native", "openai_chat"),
        ("blind", "described", "openai_chat"),
        ("anthropic+http://127.0.0.1:9/v1#m", "native", "anthropic"),
    ] {
        let checked = to_json(&compose(data.path(), &["--model", model, "--json"], &message));
        assert_eq!(checked["parts"][1]["treatment"], treatment, "{model}: {checked:#}");
        assert_eq!(checked["target"], target);
    }
    let words = text(&compose(data.path(), &["--model", "sees"], &message).stdout);
    assert!(
        words.contains("part 1: file-attachment p.png, native (image), about 1500 tokens"),
        "{words}"
    );
    assert!(words.contains("Window: 8000 tokens, nothing used yet, 8000 left"), "{words}");
    let unknown = compose(data.path(), &["--model", "nobody"], "hi");
    assert_eq!(unknown.status.code(), Some(1));
    let stderr = text(&unknown.stderr);
    assert!(stderr.contains("no model `nobody` is configured; there are: sees, blind"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_says_what_its_model_would_get_and_how_much_room_there_is() {
    let server = ModelServer::start().await;
    server.answers([Answer::streams(["Fine."]).with_usage(5_000, 100)]);
    let data = tempfile::tempdir().unwrap();
    configure(data.path(), &server.url());
    let checks = tokio::task::spawn_blocking(move || {
        let host = Host::start_with(data, &[]);
        let sent = host.run(&["send", "--json", "--model", "blind", "hello"]);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        let session = running::result(&sent.stdout)["session"].as_str().unwrap().to_owned();
        let data = host.data.path();
        let of_chat = compose(data, &["--session", &session, "--json"], &with_picture());
        let other = ["--session", &session, "--model", "sees", "--json"];
        let other = compose(data, &other, &with_picture());
        let nobody = compose(data, &["--session", &session, "--model", "nobody"], "hi");
        (to_json(&of_chat), to_json(&other), text(&nobody.stderr))
    });
    let (of_chat, other, nobody) = checks.await.unwrap();
    assert_eq!(of_chat["model"], "blind", "the chat stays with its model: {of_chat:#}");
    assert_eq!(of_chat["parts"][1]["treatment"], "described");
    assert_eq!(other["model"], "sees");
    assert_eq!(other["parts"][1]["treatment"], "native");
    assert_eq!(other["context"], json!({"size": 8000, "used": 5100, "left": 2900}), "{other:#}");
    assert!(nobody.contains("no model with this id"), "{nobody}");
    assert_eq!(server.requests().len(), 1, "only the message was sent");
}
