//! Plugins that a client brings along, over real sockets: read from that client alone, used like any other, gone with it (CU-7).

use crate::mcp::{SERVER, call, is_offered, wait_for_end};
use crate::plugin_window::{PLUGIN, PluginWindow, plugin};
use conformance::acp::{self, AcpSetup, scene};
use conformance::native::{NativeHarness, SESSION, ends};
use serde_json::{Value, json};
use testkit::Answer;

/// The plugin's entry in a session.
fn kit(session: &Value) -> Value {
    let entries = session["customizations"].as_array().into_iter().flatten();
    let mut kits = entries.filter(|entry| entry["clientId"] == "window");
    kits.next().cloned().unwrap_or_default()
}

fn child(kit: &Value, kind: &str) -> Value {
    let mut children =
        kit["children"].as_array().into_iter().flatten().filter(|child| child["type"] == kind);
    children.next().cloned().unwrap_or_default()
}

fn load(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |session| kit(session)["load"]["kind"] == kind
}

fn server_is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |session| child(&kit(session), "mcpServer")["state"]["kind"] == kind
}

fn last_system(harness: &NativeHarness) -> String {
    let body = harness.model.requests().last().unwrap().json();
    let messages = body["messages"].as_array().unwrap();
    let system = messages.iter().filter(|it| it["role"] == "system");
    system.map(Value::to_string).collect()
}

const FILES: [(&str, &str); 4] = [
    ("commands/go.md", "Go and $1."),
    ("agents/x y.md", "---\ndescription: X\n---\nYou are X."),
    ("skills/map/SKILL.md", "---\ndescription: Maps\n---\nMap it."),
    (".claude-plugin/plugin.json", "{\"version\": \"1.2\"}"),
];

#[tokio::test]
async fn a_plugin_is_read_from_its_client_used_and_gone_with_it() {
    let mut harness = NativeHarness::start().await;
    let mut window = PluginWindow::opens(harness.host(), &FILES).await;
    window.brings(json!([plugin("1")]));
    let session = harness.ann.until_session(SESSION, load("loaded")).await;
    let entry = kit(&session);
    assert_eq!((&entry["uri"], &entry["name"]), (&json!(PLUGIN), &json!("Kit")));
    assert_eq!(entry["version"], "1.2");
    let agent = child(&entry, "agent");
    assert_eq!(agent["uri"], format!("{PLUGIN}/agents/x%20y.md"));

    harness.talk("/kit:go home", [ends()]).await;
    let messages = harness.model.requests().last().unwrap().json()["messages"].to_string();
    assert!(messages.contains("Go and home."), "{messages}");
    assert!(last_system(&harness).contains("kit:map"));
    harness.model.answers([ends()]);
    let message = json!({"text": "go", "origin": {"kind": "user"}, "agent": {"uri": agent["uri"]}});
    harness.ann.sends_whole(message).await;
    harness.ann.turn_over().await;
    assert!(last_system(&harness).contains("You are X."));

    // The same nonce: nothing is asked again. Another one: all of it.
    let asked = window.asked().len();
    window.brings(json!([plugin("1")]));
    harness.talk("again", [ends()]).await;
    assert_eq!(window.asked().len(), asked);
    window.writes(&[("commands/stop.md", "Stop.")]);
    window.brings(json!([plugin("2")]));
    let has_stop = |session: &Value| kit(session).to_string().contains("stop.md");
    harness.ann.until_session(SESSION, has_stop).await;

    window.does(json!({"type": "session/activeClientRemoved", "clientId": "window"}));
    let gone = |session: &Value| kit(session).is_null();
    harness.ann.until_session(SESSION, gone).await;
    harness.talk("and now", [ends()]).await;
    assert!(!last_system(&harness).contains("kit:map"));
}

#[tokio::test]
async fn what_a_client_decided_of_its_plugin_counts_until_somebody_decides_otherwise() {
    let mut harness = NativeHarness::start().await;
    let mut window = PluginWindow::opens(harness.host(), &FILES).await;
    let mut entry = plugin("1");
    entry["childEnablement"] = json!({"map": [{"kind": "global", "enabled": false}]});
    window.brings(json!([entry]));
    let session = harness.ann.until_session(SESSION, load("loaded")).await;
    let skill = child(&kit(&session), "skill");
    assert_eq!(skill["enabled"], false);
    harness.talk("one", [ends()]).await;
    assert!(!last_system(&harness).contains("kit:map"));
    let on = json!({"type": "session/customizationToggled", "id": skill["id"], "enablement": []});
    harness.ann.does_in(SESSION, on).await;
    let is_on = |session: &Value| child(&kit(session), "skill")["enabled"] == true;
    harness.ann.until_session(SESSION, is_on).await;
    harness.talk("two", [ends()]).await;
    assert!(last_system(&harness).contains("kit:map"));
}

#[tokio::test]
async fn tr_6_a_server_of_a_plugin_is_asked_about_and_ends_with_its_client() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let starts = harness.work().join("starts");
    let file = json!({"mcpServers": {"test": {
        "command": "${PLUGIN_ROOT}/bin/server", "args": ["--starts", starts]}}});
    let script = format!("#!/bin/sh\nexec {SERVER} \"$@\"\n");
    let (file, script) = (file.to_string(), script.as_str());
    let files = [(".mcp.json", file.as_str()), ("bin/server", script)];
    let mut window = PluginWindow::opens(harness.host(), &files).await;
    window.brings(json!([plugin("1")]));
    harness.ann.until_session(SESSION, server_is("stopped")).await;
    assert!(!starts.exists());

    harness.model.answers([Answer::calls([call("pid", &json!({}))]), ends()]);
    harness.ann.sends_message("one").await;
    let question = harness.ann.chooses("session").await;
    let text = question["message"].as_str().unwrap();
    assert!(text.contains("`kit`") && text.contains("`window`"), "{text}");
    assert!(text.contains("/bin/server"), "{text}");
    harness.ann.turn_over().await;
    assert!(is_offered(&harness, "mcp__test__pid"));
    let process = harness.last_results().pop().unwrap();
    let session = harness.ann.until_session(SESSION, server_is("ready")).await;
    let server = child(&kit(&session), "mcpServer");
    assert_eq!(server["uri"], format!("{PLUGIN}/.mcp.json"));
    let top = session["customizations"].as_array().unwrap();
    assert!(!top.iter().any(|entry| entry["type"] == "mcpServer"));

    // Another file of the plugin changed: a yes to what it was is none to what it is.
    // A new command shows when it was read.
    window.writes(&[("bin/other", "x"), ("commands/stop.md", "Stop.")]);
    window.brings(json!([plugin("2")]));
    wait_for_end(&process).await;
    let is_read = |session: &Value| kit(session).to_string().contains("stop.md");
    harness.ann.until_session(SESSION, is_read).await;
    harness.model.answers([ends()]);
    harness.ann.sends_message("two").await;
    harness.ann.chooses("session").await;
    harness.ann.turn_over().await;
    assert!(is_offered(&harness, "mcp__test__pid"));
    harness.talk("pid", [Answer::calls([call("pid", &json!({}))]), ends()]).await;
    let process = harness.last_results().pop().unwrap();

    window.does(json!({"type": "session/activeClientRemoved", "clientId": "window"}));
    wait_for_end(&process).await;
    harness.talk("three", [ends()]).await;
    assert!(!is_offered(&harness, "mcp__test__pid"));
}

#[tokio::test]
async fn a_plugin_that_cannot_be_read_says_why() {
    let mut harness = NativeHarness::start().await;
    let mut window = PluginWindow::opens(harness.host(), &[("a.md", "a")]).await;
    let outside = json!({"entries": [{"name": "..", "type": "directory"}]});
    let many: Vec<Value> =
        (0..600).map(|n| json!({"name": format!("{n}.md"), "type": "file"})).collect();
    let endless = json!({"entries": [{"name": "d", "type": "directory"}]});
    for (nonce, list, why) in [
        ("1", outside, "not the name of a file"),
        ("2", json!({"entries": many}), "more than 512 files"),
        ("3", json!({"entries": 5}), "sent an invalid response"),
        (
            "4",
            json!({"entries": [{"name": "gone.md", "type": "file"}]}),
            "`gone.md` could not be read",
        ),
    ] {
        window.has.lock().unwrap().lists.insert(PLUGIN.to_owned(), list);
        window.brings(json!([plugin(nonce)]));
        let says = move |session: &Value| {
            let kit = kit(session);
            let message = kit["load"]["message"].as_str().unwrap_or_default();
            kit["load"]["kind"] == "error" && message.contains(why)
        };
        harness.ann.until_session(SESSION, says).await;
    }
    let mut uri = PLUGIN.to_owned();
    for _ in 0..20 {
        window.has.lock().unwrap().lists.insert(uri.clone(), endless.clone());
        uri.push_str("/d");
    }
    window.brings(json!([plugin("5")]));
    let deep = |session: &Value| kit(session)["load"].to_string().contains("in each other");
    harness.ann.until_session(SESSION, deep).await;
    let below = |asked: &String| asked.contains(PLUGIN) && !asked.contains("..");
    assert!(window.asked().iter().all(below));
}

#[tokio::test]
async fn a_client_that_is_cut_off_while_it_is_read_is_read_when_it_is_there_again() {
    let mut harness = NativeHarness::start().await;
    let mut window = PluginWindow::opens(harness.host(), &FILES).await;
    let silent = format!("{PLUGIN}/commands/go.md");
    window.has.lock().unwrap().silent.push(silent.clone());
    window.brings(json!([plugin("1")]));
    harness.ann.until_session(SESSION, load("loading")).await;
    let is_asked = || window.asked().iter().any(|asked| asked.contains(&silent));
    conformance::acp::until(is_asked).await;
    drop(window);
    let _window = PluginWindow::opens(harness.host(), &FILES).await;
    harness.ann.until_session(SESSION, load("loaded")).await;
}

// AG-37
#[tokio::test]
async fn an_agent_of_others_that_takes_additions_to_its_prompt_is_told_what_a_plugin_says() {
    let takes = json!({"agentCapabilities": {"sessionCapabilities": {"systemPrompt": {}}}});
    let scenes = json!([scene("", json!([{"say": ["ok"]}]))]);
    let setup = AcpSetup::new(json!({"initialize": takes, "scenes": scenes}));
    let mut harness = setup.start().await;
    harness.talk("before").await;
    let first = harness.received("session/new").pop().unwrap();
    assert!(first["systemPrompt"].is_null(), "nothing is added: {first:#}");

    let files = [
        ("rules/tone.md", "Be brief over here."),
        ("skills/map/SKILL.md", "---\ndescription: Draws maps\n---\nDraw."),
    ];
    let mut window = PluginWindow::opens_in(harness.host(), acp::SESSION, &files).await;
    window.brings(json!([plugin("1")]));
    let session = harness.ann.until_session(acp::SESSION, load("loaded")).await;
    harness.talk("one").await;
    let opened = harness.received("session/resume").pop().unwrap();
    let added = &opened["systemPrompt"];
    assert_eq!(added["mode"], "append", "{opened:#}");
    let text = added["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Be brief over here."), "{text}");
    assert!(text.contains("kit:map") && text.contains("Draws maps"), "{text}");
    harness.talk("two").await;
    let reopened = harness.received("session/resume").len();
    assert_eq!(reopened, 1, "the same words open nothing anew");

    let off = json!([{"kind": "session", "enabled": false}]);
    let toggle = json!({"type": "session/customizationToggled", "id": kit(&session)["id"], "enablement": off});
    harness.ann.does_in(acp::SESSION, toggle).await;
    harness.talk("three").await;
    let opened = harness.received("session/resume").pop().unwrap();
    assert!(opened["systemPrompt"].is_null(), "it is switched off: {opened:#}");
}
