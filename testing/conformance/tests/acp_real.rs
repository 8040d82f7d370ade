//! Agents that others make, behind the host: a turn with a tool and consent, a denial, an agent killed in mid-turn, and what it still
//! knows afterwards. `cargo run -p xtask -- interop` installs them and runs this; what worked goes into its table.

use crate::interop::{installed, note};
use crate::real_agents::model::{answer, made, run_tool, wait};
use crate::real_agents::processes::{children, kill, members};
use crate::real_agents::{CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, RealAgent};
use conformance::acp::{AcpHarness, AcpSetup};
use conformance::native::{calls_of, error_of, texts_in};
use serde_json::{Value, json};
use testkit::{Gate, ModelServer};

/// Starts a turn, answers what it asks; the turn.
async fn consented(harness: &mut AcpHarness, text: &str, approved: bool) -> Value {
    harness.ann.sends_message(text).await;
    let choice = if approved { json!({}) } else { json!({"approved": false, "reason": "denied"}) };
    harness.ann.decides(choice).await;
    harness.ann.turn_over().await
}

/// `kill -9` of the agent while it works; the group is gone, the turn can be resumed.
async fn killed(harness: &mut AcpHarness, before: &[u32]) -> Value {
    let agent = children().into_iter().find(|pid| !before.contains(pid));
    let agent = agent.expect("the agent runs");
    kill(agent);
    let turn = harness.ann.turn_over().await;
    let error = error_of(&turn);
    assert_eq!(error["error"]["errorType"], "agentExited", "{error:#}");
    assert_eq!(error["resumable"], true);
    harness.until("its group is gone", |_| members(agent).is_empty()).await;
    turn
}

async fn runs(agent: RealAgent) {
    let Some(place) = installed(agent.name) else { return };
    let server = ModelServer::start().await;
    let gate = Gate::new();
    let waiting = gate.clone();
    server.behaves(move |request| answer(request, &waiting));
    let home = tempfile::tempdir().unwrap();
    let url = server.url();
    let table = agent.table(&place, home.path(), url.trim_end_matches("/v1"));
    let setup = AcpSetup::new(json!({})).other_agent(agent.name, &table);
    let before = children();
    let mut harness = setup.start().await;
    let words = harness.talk("hello").await;
    assert_eq!(words["state"], "complete", "{words:#}");
    assert_eq!(texts_in(&words, "markdown").concat(), "Well.");
    for (name, value) in agent.config {
        let config = json!({"type": "session/configChanged", "config": {*name: value}});
        harness.ann.does_in(harness.session(), config).await;
    }
    let turn = consented(&mut harness, &run_tool(1), true).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert!(harness.work().join(made(1)).exists(), "{turn:#}");
    let call = calls_of(&turn).remove(0);
    assert_eq!(call["status"], "completed", "{call:#}");
    let denied = consented(&mut harness, &run_tool(2), false).await;
    assert!(!harness.work().join(made(2)).exists(), "{denied:#}");
    harness.ann.sends_message(&wait(3)).await;
    let asks = |it: &testkit::CapturedRequest| String::from_utf8_lossy(&it.body).contains(&wait(3));
    harness.until("the model is asked", |_| server.requests().iter().any(asks)).await;
    killed(&mut harness, &before).await;
    let next = consented(&mut harness, &run_tool(4), true).await;
    assert_eq!(next["state"], "complete", "{next:#}");
    assert!(harness.work().join(made(4)).exists(), "{next:#}");
    let last = server.requests().pop().unwrap();
    let knows = String::from_utf8_lossy(&last.body).contains(&run_tool(1));
    gate.open();
    let told = harness.agent_told(|_| true).await;
    let notices = texts_in(&next, "systemNotification").join(" ");
    // Agents have notices of their own.
    let history = match (knows, notices.contains("was started anew")) {
        (true, false) => "its own",
        (true, true) => "told anew",
        (false, _) => "lost",
    };
    harness.stop().await;
    let worked = [
        ("text", "yes".to_owned()),
        ("tool with consent", "yes".to_owned()),
        ("denial", calls_of(&denied)[0]["status"].as_str().unwrap().to_owned()),
        ("killed, next turn", "yes".to_owned()),
        ("history afterwards", history.to_owned()),
    ];
    note(agent.name, &told["description"], &worked);
    assert!(knows, "what was said before is not known any more");
}

#[tokio::test]
async fn real_claude() {
    runs(CLAUDE).await;
}

#[tokio::test]
async fn real_gemini() {
    runs(GEMINI).await;
}

#[tokio::test]
async fn real_opencode() {
    runs(OPENCODE).await;
}

#[tokio::test]
async fn real_codex() {
    runs(CODEX).await;
}

#[tokio::test]
async fn real_qwen() {
    runs(QWEN).await;
}

/// The example of the protocol's own SDK: no model, always the same turn.
#[tokio::test]
async fn real_sdk_example() {
    let Some(place) = installed("sdk-example") else { return };
    let script = place.join("node_modules/@agentclientprotocol/sdk/dist/examples/agent.js");
    let node = std::env::var("GREENROOM_NODE").unwrap_or_else(|_| "node".to_owned());
    let table = format!(
        "name = \"SDK example\"\ncommand = {}\nargs = [{}]\ntrust = \"always\"",
        json!(node),
        json!(script)
    );
    let setup = AcpSetup::new(json!({})).other_agent("example", &table);
    let before = children();
    let mut harness = setup.start().await;
    let turn = consented(&mut harness, "go", true).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let calls = calls_of(&turn);
    assert_eq!(calls.len(), 2, "{turn:#}");
    assert_eq!(calls[0]["displayName"], "Reading project files");
    assert_eq!(calls[1]["confirmed"], "user-action", "{turn:#}");
    let denied = consented(&mut harness, "again", false).await;
    assert_eq!(denied["state"], "complete", "{denied:#}");
    assert_eq!(calls_of(&denied)[1]["reason"], "denied", "{denied:#}");
    harness.ann.sends_message("once more").await;
    harness.ann.asked().await;
    killed(&mut harness, &before).await;
    let next = consented(&mut harness, "and again", true).await;
    assert_eq!(next["state"], "complete", "{next:#}");
    let notices = texts_in(&next, "systemNotification");
    assert_eq!(notices.len(), 1, "it has no memory, so it is told anew: {next:#}");
    let told = harness.agent_told(|_| true).await;
    harness.stop().await;
    let worked = [
        ("text", "yes".to_owned()),
        ("tool with consent", "yes".to_owned()),
        ("denial", "cancelled".to_owned()),
        ("killed, next turn", "yes".to_owned()),
        ("history afterwards", "told anew".to_owned()),
    ];
    note("sdk-example", &told["description"], &worked);
}
