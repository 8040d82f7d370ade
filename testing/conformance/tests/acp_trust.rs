//! An external agent starts in a directory only after a yes: a cloned repository can make it run commands.

use conformance::acp::{AcpHarness, AcpSetup, SESSION, scene};
use conformance::native::{error_of, texts_in};
use serde_json::{Value, json};

/// An agent that does what real ones do with a repository's hooks: it runs them when a session is opened.
fn hooked() -> AcpSetup {
    let hook = json!({"write": {"path": "marker", "text": "ran"}});
    let script = json!({"on_open": [hook], "scenes": [scene("", json!([{"say": ["ok"]}]))]});
    AcpSetup::new(script)
        .entry("")
        .file(".mcp.json", r#"{"mcpServers": {"x": {"command": "touch", "args": ["marker"]}}}"#)
        .file(".claude/settings.json", r#"{"hooks": {}}"#)
}

fn has_marker(harness: &AcpHarness) -> bool {
    harness.work().join("marker").exists()
}

fn option(request: &Value, which: usize) -> String {
    let options = request["questions"][0]["options"].as_array().unwrap();
    assert_eq!(options.len(), 3, "for good, for this session, no: {request:#}");
    options[which]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_no_starts_nothing_and_a_yes_is_remembered() {
    let mut harness = hooked().start().await;
    harness.ann.sends_message("one").await;
    let request = harness.ann.questioned().await;
    let shown = request.to_string();
    assert!(shown.contains("Fake") && shown.contains(".mcp.json"), "{request:#}");
    assert!(shown.contains(".claude/settings.json"), "{request:#}");
    assert!(harness.starts().is_empty() && !has_marker(&harness));
    harness.ann.chooses(&option(&request, 2)).await;
    let error = error_of(&harness.ann.turn_over().await);
    assert_eq!(error["error"]["errorType"], "notTrusted", "{error:#}");
    assert!(harness.starts().is_empty() && !has_marker(&harness));

    harness.ann.sends_message("two").await;
    let request = harness.ann.questioned().await;
    harness.ann.chooses(&option(&request, 0)).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(texts_in(&turn, "markdown"), ["ok"], "{turn:#}");
    harness.until("the hook ran", has_marker).await;

    harness.restart().await;
    let turn = harness.talk("three").await;
    assert_eq!(texts_in(&turn, "markdown"), ["ok"], "nobody is asked again");
}

#[tokio::test]
async fn a_file_that_came_later_is_asked_about() {
    let mut harness = hooked().start().await;
    harness.ann.sends_message("one").await;
    let request = harness.ann.questioned().await;
    harness.ann.chooses(&option(&request, 0)).await;
    harness.ann.turn_over().await;
    harness.restart().await;
    let work = harness.work();
    std::fs::create_dir(work.join(".qwen")).unwrap();
    std::fs::write(work.join(".qwen/settings.json"), "{}").unwrap();
    let before = harness.starts().len();
    harness.ann.sends_message("two").await;
    let request = harness.ann.questioned().await;
    assert!(request.to_string().contains(".qwen"), "{request:#}");
    assert_eq!(harness.starts().len(), before);
    harness.ann.cancels().await;
    harness.ann.turn_over().await;
    assert_eq!(harness.starts().len(), before);
}

#[tokio::test]
async fn no_permission_mode_answers_and_never_asks_nobody() {
    let mut harness = hooked().config(json!({"approvals": "full-access"})).start().await;
    harness.ann.sends_message("one").await;
    harness.ann.questioned().await;
    assert!(harness.starts().is_empty());

    let mut harness = hooked().entry("trust = \"never\"").start().await;
    let error = error_of(&harness.talk("one").await);
    assert_eq!(error["error"]["errorType"], "notTrusted", "{error:#}");
    assert!(harness.starts().is_empty() && !has_marker(&harness));
}

#[tokio::test]
async fn trust_for_a_session_is_for_that_session() {
    let mut harness = hooked().start().await;
    harness.ann.sends_message("one").await;
    let request = harness.ann.questioned().await;
    harness.ann.chooses(&option(&request, 1)).await;
    harness.ann.turn_over().await;
    let turn = harness.talk("two").await;
    assert_eq!(texts_in(&turn, "markdown"), ["ok"]);
    let work = harness.work();
    harness.ann.creates_session("fake:/other", &work, json!({})).await;
    harness.ann.sends_message("three").await;
    harness.ann.questioned().await;
    assert_eq!(harness.received("session/new").len(), 1);
    let session = harness.ann.sees_session(SESSION);
    assert!(session.is_object());
}

#[tokio::test]
async fn secrets_of_the_host_do_not_reach_the_agent() {
    let script = json!({"scenes": [scene("", json!([{"say": ["ok"]}]))]});
    let mut harness = AcpSetup::new(script).start().await;
    harness.talk("one").await;
    let start = harness.starts().remove(0);
    let names: Vec<&String> = start.environment.keys().collect();
    let is_secret = |name: &&&String| {
        name.starts_with("GREENROOM_") || name.ends_with("_API_KEY") || name.ends_with("_TOKEN")
    };
    let secrets: Vec<&&String> = names.iter().filter(is_secret).collect();
    assert!(secrets.is_empty(), "{secrets:?}");
    assert!(start.environment.contains_key("PATH"));
}
