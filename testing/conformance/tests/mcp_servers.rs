//! MCP servers of the native agent, as real processes: what the model is offered, who is asked, what comes back, how they end.

use std::path::Path;

use crate::mcp::{
    SERVER, call, declare, entry, is_alive, is_offered, notices, offered, published, start,
    wait_for_end,
};
use agents::mcp::McpEntry;
use conformance::native::{ChatClient, NativeHarness, SESSION, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};

#[tokio::test]
async fn a_tool_is_offered_asked_about_and_run() {
    let mut harness = start(json!({}), vec![entry(&[])]).await;
    let echo = |text: &str| Answer::calls([call("echo", &json!({"text": text}))]);
    harness.model.answers([echo("hello"), ends()]);
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["displayName"], "echo", "{asked:#}");
    assert_eq!(asked["invocationMessage"], "echo (MCP server test)");
    let labels: Vec<&str> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| option["label"].as_str().unwrap())
        .collect();
    assert!(labels.iter().any(|label| label.contains("mcp__test__echo")), "{labels:?}");
    let choice = json!({"selectedOptionId": "approve-session"});
    harness.ann.decides_about(&asked, choice).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.last_results(), ["hello"]);
    let calls = calls_of(&turn);
    assert_eq!(calls[0]["structuredContent"], json!({"said": "hello"}), "{:#}", calls[0]);
    assert_eq!(calls[0]["success"], true);

    let tools = offered(&harness);
    let tool = tools.iter().find(|tool| tool["name"] == "mcp__test__echo").unwrap();
    assert_eq!(tool["description"], "Says `text` again");
    let body = harness.model.requests().last().unwrap().json();
    assert!(body.to_string().contains("to hear yourself"), "its instructions");

    // What was agreed to is the tool, whatever its input; another tool asks.
    harness.talk("again", [echo("once more"), ends()]).await;
    assert_eq!(harness.last_results().last().unwrap(), "once more");
    harness.model.answers([Answer::calls([call("fail", &json!({}))]), ends()]);
    harness.ann.sends_message("fail").await;
    let asked = harness.ann.asked().await;
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(calls_of(&turn)[0]["success"], false);
    assert!(harness.last_results().last().unwrap().contains("wrong phase"));
}

#[tokio::test]
async fn results_of_all_kinds_come_back() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    let turn = harness.talk("go", [Answer::calls([call("media", &json!({}))]), ends()]).await;
    let content = calls_of(&turn)[0]["content"].clone();
    let text = content[0]["text"].as_str().unwrap();
    for part in ["a picture:", "[image/png, 70 bytes]", "test://guide", "Mind the gap."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let kinds: Vec<&Value> = content.as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["text", "resource", "resource", "resource"]);
    assert_eq!(content[1]["contentType"], "image/png");
    let turn = harness
        .talk("go", [Answer::calls([call("big", &json!({"bytes": 200_000}))]), ends()])
        .await;
    let content = calls_of(&turn)[0]["content"].clone();
    assert!(content[0]["text"].as_str().unwrap().len() < 50_000);
    let whole = harness.ann.reads(&content[1]["uri"]).await;
    assert_eq!(whole.len(), 200_000);
    harness.talk("go", [Answer::calls([call("big", &json!({}))]), ends()]).await;
    let told = harness.last_results().pop().unwrap();
    assert!(told.contains("more than 16 MiB"), "{told}");
}

#[tokio::test]
async fn a_server_of_a_directory_starts_only_after_a_yes() {
    let mut harness = start(json!({"approvals": "full-access"}), Vec::new()).await;
    let starts = harness.work().join("starts");
    let count =
        |starts: &Path| std::fs::read_to_string(starts).map_or(0, |starts| starts.lines().count());
    let path = starts.to_str().unwrap().to_owned();
    declare(&harness, &["--starts", &path]);

    // Not even where everything is allowed.
    harness.model.answers([ends()]);
    harness.ann.sends_message("one").await;
    let request = harness.ann.questioned().await;
    let message = request["message"].as_str().unwrap();
    assert!(message.contains(SERVER) && message.contains("--starts"), "{message}");
    assert!(message.contains("SECRET") && !message.contains("s3cret"), "{message}");
    assert_eq!(count(&starts), 0, "nothing runs before the answer");
    harness.ann.chooses("no").await;
    let turn = harness.ann.turn_over().await;
    assert!(notices(&turn).contains("you did not allow it"), "{turn:#}");
    assert!(!is_offered(&harness, "mcp__test__echo"));
    assert_eq!(count(&starts), 0);

    // A no holds in its session; another asks again.
    harness.talk("two", [ends()]).await;
    let work = harness.work();
    let config = json!({"approvals": "full-access"});
    harness.ann.creates_session("native:/second", &work, config.clone()).await;
    harness.model.answers([ends()]);
    harness.ann.sends_message("three").await;
    harness.ann.chooses("session").await;
    harness.ann.turn_over().await;
    assert!(is_offered(&harness, "mcp__test__echo"));
    assert_eq!(count(&starts), 1);

    harness.ann.creates_session("native:/third", &work, config.clone()).await;
    harness.model.answers([ends()]);
    harness.ann.sends_message("four").await;
    harness.ann.chooses("always").await;
    harness.ann.turn_over().await;
    assert_eq!(count(&starts), 2);
    let trusted = std::fs::read_to_string(harness.data().join("data/trust.toml")).unwrap();
    assert!(trusted.contains("item = \"mcp:test\"") && trusted.contains("ann"), "{trusted}");

    // For good, until something of it changes.
    harness.ann.creates_session("native:/fourth", &work, config.clone()).await;
    harness.talk("five", [ends()]).await;
    assert!(is_offered(&harness, "mcp__test__echo"));
    declare(&harness, &["--starts", &path, "--garbage"]);
    harness.ann.creates_session("native:/fifth", &work, config).await;
    harness.model.answers([ends()]);
    harness.ann.sends_message("six").await;
    harness.ann.chooses("no").await;
    harness.ann.turn_over().await;
    assert!(!is_offered(&harness, "mcp__test__echo"));
}

#[tokio::test]
async fn a_server_asks_the_user_in_the_middle_of_a_call() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    harness.model.answers([Answer::calls([call("ask", &json!({}))]), ends()]);
    harness.ann.sends_message("go").await;
    let request = harness.ann.questioned().await;
    assert_eq!(request["message"], "The MCP server `test` asks: Who goes there?");
    let kinds: Vec<&Value> =
        request["questions"].as_array().unwrap().iter().map(|question| &question["kind"]).collect();
    assert_eq!(kinds, ["text", "integer", "single-select", "boolean"]);
    let answer = |kind: &str, value: Value| json!({"state": "submitted", "value": {"kind": kind, "value": value}});
    harness
        .ann
        .does(json!({
            "type": "chat/inputCompleted", "requestId": request["id"], "response": "accept",
            "answers": {"name": answer("text", json!("Ada")), "sure": answer("boolean", json!(true))},
        }))
        .await;
    harness.ann.turn_over().await;
    let told = harness.last_results().pop().unwrap();
    assert_eq!(told, r#"accepted {"name":"Ada","sure":true}"#);
}

#[tokio::test]
async fn a_server_that_fails_is_said_and_the_turn_goes_on() {
    let missing = McpEntry {
        name: "missing".to_owned(),
        command: Some("no-such-program".to_owned()),
        ..McpEntry::default()
    };
    let exits = McpEntry { name: "exits".to_owned(), ..entry(&["--exits"]) };
    let mut harness = start(json!({}), vec![missing, exits, entry(&[])]).await;
    harness.write(".mcp.json", "{ not json");
    let turn = harness.talk("go", [ends()]).await;
    let said = notices(&turn);
    assert!(
        said.contains("`missing` is not available: the command `no-such-program` was not found"),
        "{said}"
    );
    assert!(said.contains("`exits` is not available: it ended: there is no database"), "{said}");
    assert!(said.contains(".mcp.json: it is not understood"), "{said}");
    assert!(is_offered(&harness, "mcp__test__echo"));
    let turn = harness.talk("again", [ends()]).await;
    assert_eq!(notices(&turn), "", "it is said once");
}

// MC-4, MC-6
#[tokio::test]
async fn what_is_left_out_and_what_is_shadowed_is_listed_and_said() {
    let mut harness = start(json!({}), vec![entry(&["--tools", "10000"])]).await;
    declare(&harness, &["--exits"]);
    let turn = harness.talk("go", [ends()]).await;
    assert!(notices(&turn).contains("at most 128 tools"), "{turn:#}");
    assert!(!notices(&turn).contains("there is no database"), "{turn:#}");
    // One of the 128 is `exit_plan`, which is offered in plan mode alone.
    assert_eq!(offered(&harness).len(), 127);
    let all = |session: &Value| -> Vec<Value> {
        let all = session["customizations"].as_array().into_iter().flatten();
        let servers = all.filter(|entry| entry["type"] == "mcpServer");
        servers.cloned().collect()
    };
    let is_told = |session: &Value| {
        let servers = all(session);
        servers.iter().any(|server| !server["_meta"]["toolsLeftOut"].is_null())
    };
    let session = harness.ann.until_session(SESSION, is_told).await;
    let servers = all(&session);
    let shadowed = servers
        .iter()
        .find(|server| !server["_meta"]["shadowedBy"].is_null())
        .unwrap_or_else(|| panic!("{servers:#?}"));
    assert_eq!(shadowed["state"]["kind"], "stopped");
    let file = shadowed["uri"].as_str().unwrap();
    assert!(file.ends_with("/.mcp.json"), "{shadowed:#}");
    let told = servers.iter().map(|server| &server["_meta"]["toolsLeftOut"]);
    let told: Vec<&Value> = told.filter(|told| !told.is_null()).collect();
    assert!(told[0].to_string().contains("9504 tools"), "{told:?}");
}

#[tokio::test]
async fn sessions_have_processes_of_their_own_that_end_with_them() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    let pid = || [Answer::calls([call("pid", &json!({}))]), ends()];
    harness.talk("one", pid()).await;
    let first = harness.last_results().pop().unwrap();
    harness.talk("two", pid()).await;
    assert_eq!(harness.last_results().pop().unwrap(), first, "it goes on");
    let work = harness.work();
    let config = json!({"approvals": "full-access"});
    harness.ann.creates_session("native:/second", &work, config).await;
    harness.talk("three", pid()).await;
    let second = harness.last_results().pop().unwrap();
    assert_ne!(first, second);
    assert!(is_alive(&first) && is_alive(&second));
    let params = json!({"channel": SESSION});
    let disposed = harness.ann.connection.request("disposeSession", params);
    disposed.await.unwrap();
    wait_for_end(&first).await;
    assert!(is_alive(&second));
}

#[tokio::test]
async fn a_cancelled_turn_cancels_its_call() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    let slow = call("slow", &json!({"steps": 100_000, "ms": 20}));
    harness.model.answers([Answer::calls([slow])]);
    harness.ann.sends_message("go").await;
    harness
        .ann
        .until("progress", |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            let shown = calls.first().map(|call| call["content"].to_string());
            shown.is_some_and(|shown| shown.contains("of 100000: step"))
        })
        .await;
    harness.ann.cancels().await;
    harness.ann.turn_over().await;
    // The same process takes the next call.
    harness.talk("on", [Answer::calls([call("echo", &json!({"text": "on"}))]), ends()]).await;
    assert_eq!(harness.last_results().last().unwrap(), "on");
}

#[tokio::test]
async fn clients_see_servers_and_start_and_stop_them() {
    let mut harness = start(json!({"approvals": "full-access"}), vec![entry(&[])]).await;
    let turn = harness.talk("go", [Answer::calls([call("pid", &json!({}))]), ends()]).await;
    let is =
        |kind: &'static str| move |session: &Value| published(session)["state"]["kind"] == kind;
    let session = harness.ann.until_session(SESSION, is("ready")).await;
    let server = published(&session);
    assert_eq!(server["name"], "test");
    assert!(server["uri"].as_str().unwrap().ends_with("/greenroom.toml"), "{server}");
    let id = server["id"].clone();
    let contributor = json!({"kind": "mcp", "customizationId": id});
    assert_eq!(calls_of(&turn)[0]["contributor"], contributor);
    let first = harness.last_results().pop().unwrap();

    let stop = json!({"type": "session/mcpServerStopRequested", "id": id});
    harness.ann.does_in(SESSION, stop).await;
    harness.ann.until_session(SESSION, is("stopped")).await;
    wait_for_end(&first).await;
    harness.talk("without", [ends()]).await;
    assert!(!is_offered(&harness, "mcp__test__echo"), "it stays stopped");

    let begin = json!({"type": "session/mcpServerStartRequested", "id": id});
    harness.ann.does_in(SESSION, begin.clone()).await;
    harness.ann.until_session(SESSION, is("ready")).await;
    harness.talk("with", [ends()]).await;
    assert!(is_offered(&harness, "mcp__test__echo"));

    let off = json!([{"kind": "session", "enabled": false}]);
    let toggle = json!({"type": "session/customizationToggled", "id": id, "enablement": off});
    harness.ann.does_in(SESSION, toggle).await;
    harness.ann.until_session(SESSION, is("stopped")).await;
    harness.ann.does_in(SESSION, begin).await;
    harness.talk("off", [ends()]).await;
    assert!(!is_offered(&harness, "mcp__test__echo"), "nothing starts it");
    harness.ann.until_session(SESSION, is("stopped")).await;

    let other = json!({"type": "session/mcpServerStartRequested", "id": "mcpServer-0"});
    harness.ann.does_in(SESSION, other).await;
    assert_eq!(harness.ann.refused().await, "no MCP server has this id");
}

// MC-3
#[tokio::test]
async fn a_session_that_nobody_looks_at_has_no_processes_and_gets_others_when_it_goes_on() {
    let entries = vec![entry(&[])];
    let settings = move |host: &mut host::Config| {
        host.mcp.clone_from(&entries);
        host.limits.kernel.channel_idle_ms = 1_000;
    };
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_settings(config, |_| {}, settings).await;
    let pid = || [Answer::calls([call("pid", &json!({}))]), ends()];
    harness.talk("one", pid()).await;
    let first = harness.last_results().pop().unwrap();
    let chat = harness.ann.chat.to_string();
    // She leaves, and the session leaves memory.
    harness.ann = ChatClient::arrives(harness.host(), "bob").await;
    wait_for_end(&first).await;
    harness.ann.enters(SESSION, &chat).await;
    harness.talk("two", pid()).await;
    let second = harness.last_results().pop().unwrap();
    assert_ne!(first, second);
    harness.ann.connection.request("disposeSession", json!({"channel": SESSION})).await.unwrap();
    wait_for_end(&second).await;
}

// MC-2
#[tokio::test]
async fn a_directory_that_is_added_is_told_to_a_server_that_runs() {
    let entries = vec![entry(&[])];
    let settings = move |config: &mut host::Config| {
        config.mcp.clone_from(&entries);
        let above = config.workspaces[0].parent().unwrap().to_owned();
        config.workspaces.push(above);
    };
    let approvals = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_settings(approvals, |_| {}, settings).await;
    let answers = || {
        let call = |tool: &str| Call::new(tool, &format!("mcp__test__{tool}"), &json!({}));
        [Answer::calls([call("roots"), call("pid")]), ends()]
    };
    harness.talk("where", answers()).await;
    let before = harness.last_results();
    let more = harness.work().with_file_name("more");
    std::fs::create_dir(&more).unwrap();
    let uri = format!("file://{}", more.display());
    let set = json!({"type": "session/workingDirectorySet", "directory": uri});
    harness.ann.does_in(SESSION, set).await;
    let has_both = |session: &Value| {
        let all = session["workingDirectories"].as_array();
        all.is_some_and(|all| all.len() == 2)
    };
    harness.ann.until_session(SESSION, has_both).await;
    harness.talk("and now", answers()).await;
    let after = harness.last_results();
    let (roots, process) = (&after[after.len() - 2], &after[after.len() - 1]);
    assert!(roots.ends_with(&uri), "{roots}");
    assert_eq!(process, &before[before.len() - 1], "it is the same process");
}
