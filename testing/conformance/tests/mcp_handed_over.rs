//! MCP servers that an external agent is handed over, and how clients see them.

use conformance::acp::{AcpHarness, AcpSetup, SESSION, scene};
use conformance::native::calls_of;
use serde_json::{Value, json};

const SERVERS: &str = r#"
[[mcp]]
name = "files"
command = "sh"
args = ["-c", "exec cat"]
env = { KEY = "s3cret" }

[[mcp]]
name = "web"
url = "https://mcp.example/mcp"
headers = { Authorization = "Bearer t0ken" }
"#;

fn script(initialize: Value) -> Value {
    let tool =
        json!({"title": "Read", "name": "mcp__files__read", "kind": "other", "outputs": ["x"]});
    json!({
        "initialize": initialize,
        "scenes": [scene("call", json!([{"tool": tool}])), scene("", json!([{"say": ["ok"]}]))],
    })
}

fn handed_over(harness: &AcpHarness, method: &str) -> Value {
    let opened = harness.received(method);
    opened.last().unwrap()["mcpServers"].clone()
}

fn server(session: &Value, name: &str) -> Value {
    let mut all = session["customizations"].as_array().into_iter().flatten();
    let found = all.find(|entry| entry["type"] == "mcpServer" && entry["name"] == name);
    found.cloned().unwrap_or_default()
}

// MC-9
#[tokio::test]
async fn an_agent_gets_the_users_servers_and_those_of_a_trusted_directory() {
    let of_directory = r#"{"mcpServers": {"own": {"command": "sh", "cwd": "sub"}, "files": {"command": "other"}}}"#;
    let setup = AcpSetup::new(script(json!({})))
        .settings(SERVERS)
        .file(".mcp.json", of_directory)
        .file("sub/x", "");
    let mut harness = setup.start().await;
    let turn = harness.talk("call").await;
    let servers = handed_over(&harness, "session/new");
    let servers = servers.as_array().unwrap();
    assert_eq!(servers.len(), 3, "{servers:#?}");
    assert_eq!(servers[0]["name"], "files");
    let command = servers[0]["command"].as_str().unwrap();
    assert!(command.starts_with('/') && command.ends_with("/sh"), "{command}");
    assert_eq!(servers[0]["args"], json!(["-c", "exec cat"]));
    assert_eq!(servers[0]["env"], json!([{"name": "KEY", "value": "s3cret"}]));
    let web = json!({
        "type": "http", "name": "web", "url": "https://mcp.example/mcp",
        "headers": [{"name": "Authorization", "value": "Bearer t0ken"}],
    });
    assert_eq!(servers[1], web);
    let (own, sub) = (&servers[2], harness.work().join("sub"));
    assert_eq!((&own["name"], &own["args"][0]), (&json!("own"), &json!("-C")));
    assert_eq!(own["args"][1], json!(sub));

    let is_ready = |session: &Value| server(session, "files")["state"]["kind"] == "ready";
    let session = harness.ann.until_session(SESSION, is_ready).await;
    let files = server(&session, "files");
    assert_eq!(files["_meta"]["assumed"], true);
    let contributor = json!({"kind": "mcp", "customizationId": files["id"]});
    assert_eq!(calls_of(&turn)[0]["contributor"], contributor);
    assert!(!session.to_string().contains("s3cret") && !session.to_string().contains("t0ken"));
}

#[tokio::test]
async fn tr_3_a_server_of_the_directory_that_reads_variables_is_asked_about_with_their_names() {
    let of_directory = r#"{"mcpServers": {"plain": {"command": "sh"},
        "reads": {"command": "sh", "env": {"WHERE": "${env:HOME}"}}}}"#;
    let setup = AcpSetup::new(script(json!({}))).file(".mcp.json", of_directory);
    let mut harness = setup.start().await;
    let names = |harness: &AcpHarness, method: &str| {
        let servers = handed_over(harness, method);
        let servers = servers.as_array().unwrap().iter();
        let names = servers.map(|server| server["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    harness.ann.sends_message("one").await;
    let question = harness.ann.questioned().await;
    let text = question["message"].as_str().unwrap();
    assert!(text.contains("`reads`") && text.contains("`HOME`"), "{text}");
    harness.ann.chooses("no").await;
    harness.ann.turn_over().await;
    assert_eq!(names(&harness, "session/new"), ["plain"]);
    harness.talk("two").await;
    assert_eq!(harness.received("session/resume").len(), 0, "a no holds");

    harness.restart().await;
    harness.ann.sends_message("three").await;
    harness.ann.chooses("always").await;
    harness.ann.turn_over().await;
    assert_eq!(names(&harness, "session/resume"), ["plain", "reads"]);
    harness.restart().await;
    harness.talk("four").await;
    assert_eq!(names(&harness, "session/resume"), ["plain", "reads"]);
}

#[tokio::test]
async fn an_agent_gets_no_server_that_it_cannot_reach_and_none_if_its_entry_says_so() {
    let no_http = json!({"agentCapabilities": {"mcpCapabilities": {"http": false, "sse": false}}});
    let setup = AcpSetup::new(script(no_http)).settings(SERVERS);
    let mut harness = setup.start().await;
    harness.talk("hello").await;
    let servers = handed_over(&harness, "session/new");
    assert_eq!(servers.as_array().unwrap().len(), 1, "{servers:#}");
    let is_wrong = |session: &Value| server(session, "web")["state"]["kind"] == "error";
    let session = harness.ann.until_session(SESSION, is_wrong).await;
    let state = server(&session, "web")["state"].to_string();
    assert!(state.contains("takes no MCP servers over HTTP"), "{state}");

    let setup = AcpSetup::new(script(json!({})))
        .settings(SERVERS)
        .entry("trust = \"always\"\nmcp = \"none\"");
    let mut harness = setup.start().await;
    harness.talk("hello").await;
    assert_eq!(handed_over(&harness, "session/new"), json!([]));
}

/// What clients are told of the agent before any session.
async fn customizations_of_agent(harness: &AcpHarness) -> Value {
    let params = json!({"channel": "ahp-root://"});
    let root = harness.ann.connection.request("subscribe", params).await;
    let root = root.unwrap()["snapshot"].clone();
    let agents = root["state"]["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["provider"] == "fake");
    agent.unwrap()["customizations"].clone()
}

// MC-9
#[tokio::test]
async fn an_agent_is_listed_with_the_users_servers_that_it_would_get() {
    let of_directory = r#"{"mcpServers": {"own": {"command": "sh"}}}"#;
    let setup = AcpSetup::new(script(json!({}))).settings(SERVERS);
    let harness = setup.file(".mcp.json", of_directory).start().await;
    let listed = customizations_of_agent(&harness).await;
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["files", "web"]);
    assert_eq!(listed[0]["type"], "mcpServer");
    assert_eq!(listed[0]["state"], json!({"kind": "stopped"}));
    let text = listed.to_string();
    assert!(!text.contains("s3cret") && !text.contains("t0ken"), "{text}");

    let setup = AcpSetup::new(script(json!({}))).settings(SERVERS);
    let harness = setup.entry("trust = \"always\"\nmcp = \"none\"").start().await;
    let listed = customizations_of_agent(&harness).await;
    assert!(listed.is_null(), "it would get none: {listed}");
}

// CU-6
#[tokio::test]
async fn a_server_that_is_switched_off_is_gone_with_the_next_turn() {
    let setup = AcpSetup::new(script(json!({}))).settings(SERVERS);
    let mut harness = setup.start().await;
    harness.talk("hello").await;
    let is_ready = |session: &Value| server(session, "web")["state"]["kind"] == "ready";
    let session = harness.ann.until_session(SESSION, is_ready).await;
    let id = server(&session, "web")["id"].clone();
    let off = json!([{"kind": "session", "enabled": false}]);
    let toggle = json!({"type": "session/customizationToggled", "id": id, "enablement": off});
    harness.ann.does_in(SESSION, toggle).await;
    let is_pending = |session: &Value| server(session, "web")["_meta"]["pending"] == true;
    harness.ann.until_session(SESSION, is_pending).await;
    harness.talk("again").await;
    let servers = handed_over(&harness, "session/resume");
    assert_eq!(servers.as_array().unwrap().len(), 1, "{servers:#}");
    let is_off = |session: &Value| {
        let web = server(session, "web");
        web["state"]["kind"] == "stopped" && web["_meta"].is_null()
    };
    harness.ann.until_session(SESSION, is_off).await;
}

// MC-9
#[tokio::test]
async fn a_server_that_the_agent_could_not_start_is_not_said_to_be_ready() {
    let notice = json!({"update": {
        "sessionUpdate": "notice", "severity": "warning", "title": "MCP server \"files\" failed to start",
    }});
    let failing = scene("fail", json!([notice, {"say": ["no"]}]));
    let scenes = json!([failing, scene("", json!([{"say": ["ok"]}]))]);
    let setup = AcpSetup::new(json!({"scenes": scenes})).settings(SERVERS);
    let mut harness = setup.start().await;
    harness.talk("fail").await;
    let is_wrong = |session: &Value| server(session, "files")["state"]["kind"] == "error";
    let session = harness.ann.until_session(SESSION, is_wrong).await;
    let files = server(&session, "files");
    assert!(files["state"].to_string().contains("failed to start"));
    assert!(files["_meta"]["assumed"].is_null(), "{files:#}");
    assert_eq!(server(&session, "web")["state"]["kind"], "ready");
    harness.talk("next").await;
    let session = harness.ann.sees_session(SESSION);
    assert!(is_wrong(&session), "it did not start since");
}

// MC-9
#[tokio::test]
async fn a_server_that_failed_before_anything_was_asked_is_not_said_to_be_ready() {
    let words = json!([{"type": "content", "content": {"type": "text", "text": "No such file"}}]);
    let failed = json!({"update": {
        "sessionUpdate": "tool_call", "toolCallId": "startup.1", "kind": "other", "title": "mcp__files__startup",
        "status": "failed", "content": words,
    }});
    let scenes = json!([scene("", json!([{"say": ["ok"]}]))]);
    let script = json!({"on_open": [failed], "scenes": scenes});
    let mut harness = AcpSetup::new(script).settings(SERVERS).start().await;
    harness.talk("hello").await;
    let is_wrong = |session: &Value| server(session, "files")["state"]["kind"] == "error";
    let session = harness.ann.until_session(SESSION, is_wrong).await;
    let state = server(&session, "files")["state"].to_string();
    assert!(state.contains("No such file"), "{state}");
    assert_eq!(server(&session, "web")["state"]["kind"], "ready");
}
