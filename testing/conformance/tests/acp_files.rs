//! Files that an external agent reads and writes through the host (AG-50, AG-51): what is asked, what is written, what is refused.

use conformance::acp::{AcpHarness, AcpSetup, SESSION, scene};
use conformance::native::calls_of;
use serde_json::{Value, json};

const ENTRY: &str = "trust = \"always\"\nfs = true";

fn request(method: &str, path: &str, content: Option<&str>) -> Value {
    let mut params = json!({"sessionId": "{{session}}", "path": path});
    if let Some(content) = content {
        params["content"] = json!(content);
    }
    json!({"request": {"method": method, "params": params}})
}

fn write(path: &str, content: &str) -> Value {
    request("fs/write_text_file", path, Some(content))
}

fn read(path: &str) -> Value {
    request("fs/read_text_file", path, None)
}

async fn start(steps: Value, config: Value) -> AcpHarness {
    let setup = AcpSetup::new(json!({"scenes": [scene("", steps)]}))
        .entry(ENTRY)
        .file("a.txt", "one\ntwo\n")
        .config(config);
    setup.start().await
}

#[tokio::test]
async fn a_write_is_asked_about_with_its_diff_and_done_after_a_yes() {
    let steps = json!([write("{{cwd}}/a.txt", "one\nTWO\n"), {"say": ["done"]}]);
    let mut harness = start(steps, json!({})).await;
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["invocationMessage"], "Write a.txt", "{asked:#}");
    let item = &asked["edits"]["items"][0];
    let after = harness.ann.reads(&item["after"]["content"]["uri"]).await;
    assert_eq!(after, "one\nTWO\n");
    assert_eq!(harness.read("a.txt"), "one\ntwo\n", "nobody said yes yet");
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "one\nTWO\n");
    let call = calls_of(&turn).remove(0);
    assert_eq!(call["content"][0]["type"], "fileEdit", "{call:#}");
    assert_eq!(harness.answers()[0]["result"], json!({}));
    let offered = harness.received("initialize")[0]["clientCapabilities"]["fs"].clone();
    assert_eq!(offered["writeTextFile"], true);
}

#[tokio::test]
async fn nothing_is_written_without_a_yes_or_outside() {
    let steps = json!([write("{{cwd}}/a.txt", "x"), write("/etc/greenroom-test", "x"), write("{{cwd}}/../out.txt", "x"), {"say": ["done"]}]);
    let mut harness = start(steps.clone(), json!({})).await;
    harness.ann.sends_message("go").await;
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides(denied).await;
    let turn = harness.ann.completed_turn().await;
    assert_eq!(calls_of(&turn).len(), 1, "what lies outside is not asked about");
    let answers = harness.answers();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|answer| answer["error"]["code"] == -32602), "{answers:#?}");
    assert_eq!(harness.read("a.txt"), "one\ntwo\n");
    // The session only reads: nobody is asked.
    let mut harness = start(steps, json!({"approvals": "plan"})).await;
    let turn = harness.talk("go").await;
    assert_eq!(harness.read("a.txt"), "one\ntwo\n", "{turn:#}");
    assert!(harness.answers()[0]["error"].is_object());
}

/// A person or another program changed it: what the agent writes would take that back.
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_written() {
    let steps = json!([
        read("{{cwd}}/a.txt"), {"touch": "read"}, {"await": "changed"}, write("{{cwd}}/a.txt", "mine\n"), {"say": ["done"]},
    ]);
    let mut harness = start(steps, json!({"approvals": "full-access"})).await;
    harness.ann.sends_message("go").await;
    harness.until("it was read", |it| it.state().join("read").exists()).await;
    std::fs::write(harness.work().join("a.txt"), "somebody else's\n").unwrap();
    harness.touch("changed");
    harness.ann.turn_over().await;
    assert_eq!(harness.answers()[0]["result"]["content"], "one\ntwo\n");
    let refused = harness.answers()[1]["error"]["message"].to_string();
    assert!(refused.contains("changed"), "{refused}");
    assert_eq!(harness.read("a.txt"), "somebody else's\n");
}

/// The agent asked for the edit already: the same is not asked twice.
#[tokio::test]
async fn a_write_that_an_allowed_edit_names_is_not_asked_about_again() {
    let edit = json!({"title": "Edit", "kind": "edit", "ask": {}, "diff": {"path": "{{cwd}}/a.txt", "old": "two", "new": "TWO"},
        "steps": [write("{{cwd}}/a.txt", "one\nTWO\n")]});
    let mut harness = start(json!([{"tool": edit}, {"say": ["done"]}]), json!({})).await;
    harness.ann.sends_message("go").await;
    harness.ann.decides(json!({})).await;
    let turn = harness.ann.turn_over().await;
    let calls = calls_of(&turn);
    assert_eq!(calls.len(), 1, "{turn:#}");
    assert_eq!(calls[0]["content"][0]["type"], "fileEdit", "{turn:#}");
    assert_eq!(harness.read("a.txt"), "one\nTWO\n");
}

/// An edit of `a.txt` that the agent asks for, with steps while it runs.
fn asked_edit(steps: Value) -> Value {
    json!({"tool": {"id": "edit", "title": "Edit", "kind": "edit", "ask": {}, "steps": steps,
        "diff": {"path": "{{cwd}}/a.txt", "old": "two", "new": "TWO"}}})
}

/// An edit that the agent says is running, without having asked.
fn unasked_edit(path: &str, content: &str) -> Value {
    json!({"tool": {"title": "Edit", "kind": "edit", "locations": [path], "steps": [write(path, content)]}})
}

/// The next question is about this write and shows it; Ann says no, and the agent hears so.
async fn denies_write(harness: &mut AcpHarness, name: &str, content: &str) {
    let asked = harness.ann.asked().await;
    assert_eq!(asked["invocationMessage"], format!("Write {name}"), "{asked:#}");
    let item = &asked["edits"]["items"][0];
    let after = harness.ann.reads(&item["after"]["content"]["uri"]).await;
    assert_eq!(after, content);
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides_about(&asked, denied).await;
    harness.ann.turn_over().await;
    let answers = harness.answers();
    let answer = answers.last().unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answers:#?}");
}

/// A yes to one file is none to another that the call names later.
#[tokio::test]
async fn ag_51_a_file_that_an_allowed_edit_names_afterwards_is_asked_about() {
    let later = json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "edit",
        "locations": [{"path": "{{cwd}}/.mcp.json"}],
        "content": [{"type": "diff", "path": "{{cwd}}/.mcp.json", "oldText": null, "newText": "{}"}]}});
    let steps = json!([
        asked_edit(json!([later, write("{{cwd}}/.mcp.json", "{}")])),
        {"say": ["done"]},
    ]);
    let mut harness = start(steps.clone(), json!({})).await;
    harness.ann.sends_message("go").await;
    harness.ann.decides(json!({})).await;
    denies_write(&mut harness, ".mcp.json", "{}").await;
    assert!(!harness.work().join(".mcp.json").exists());
    // The setting allows the edit; a file that steers agents is asked about all the same (G-63).
    let mut harness = start(steps, json!({"approvals": "accept-edits"})).await;
    harness.ann.sends_message("go").await;
    denies_write(&mut harness, ".mcp.json", "{}").await;
    assert!(!harness.work().join(".mcp.json").exists());
}

/// A question with a location beside its diff shows nothing of that file.
#[tokio::test]
async fn ag_51_a_file_that_was_only_named_in_the_question_is_asked_about() {
    let mut edit = asked_edit(json!([write("{{cwd}}/b.txt", "b\n")]));
    edit["tool"]["locations"] = json!(["{{cwd}}/b.txt"]);
    let mut harness = start(json!([edit, {"say": ["done"]}]), json!({})).await;
    harness.ann.sends_message("go").await;
    harness.ann.decides(json!({})).await;
    denies_write(&mut harness, "b.txt", "b\n").await;
    assert!(!harness.work().join("b.txt").exists());
}

/// That an agent does not ask is no consent: the settings decide.
#[tokio::test]
async fn ag_51_a_write_of_an_edit_that_runs_unasked_is_decided_by_the_settings() {
    let steps = json!([unasked_edit("{{cwd}}/a.txt", "mine\n"), {"say": ["done"]}]);
    let mut harness = start(steps.clone(), json!({"approvals": "ask"})).await;
    harness.ann.sends_message("go").await;
    denies_write(&mut harness, "a.txt", "mine\n").await;
    assert_eq!(harness.read("a.txt"), "one\ntwo\n");

    let mut harness = start(steps.clone(), json!({"approvals": "plan"})).await;
    harness.talk("go").await;
    assert_eq!(harness.read("a.txt"), "one\ntwo\n");
    assert_eq!(harness.answers()[0]["error"]["code"], -32602);

    let mut harness = start(steps, json!({"approvals": "accept-edits"})).await;
    harness.talk("go").await;
    assert_eq!(harness.read("a.txt"), "mine\n");

    let steps = json!([unasked_edit("{{cwd}}/.mcp.json", "{}"), {"say": ["done"]}]);
    let mut harness = start(steps, json!({"approvals": "accept-edits"})).await;
    harness.ann.sends_message("go").await;
    denies_write(&mut harness, ".mcp.json", "{}").await;
    assert!(!harness.work().join(".mcp.json").exists());
}

/// A yes to one text is none to another.
#[tokio::test]
async fn ag_51_another_text_than_the_allowed_edit_showed_is_asked_about() {
    let steps = json!([asked_edit(json!([write("{{cwd}}/a.txt", "evil\n")])), {"say": ["done"]}]);
    let mut harness = start(steps, json!({})).await;
    harness.ann.sends_message("go").await;
    harness.ann.decides(json!({})).await;
    denies_write(&mut harness, "a.txt", "evil\n").await;
    assert_eq!(harness.read("a.txt"), "one\ntwo\n");
}

/// A yes is good for one write: what the call was allowed is not done once more after somebody took it back.
#[tokio::test]
async fn ag_51_what_an_allowed_edit_showed_is_written_once() {
    let (mine, back) = ("one\nTWO\n", "one\ntwo\n");
    let writes = [mine, back, mine].map(|content| write("{{cwd}}/a.txt", content));
    let steps = json!([asked_edit(json!(writes)), {"say": ["done"]}]);
    let mut harness = start(steps, json!({})).await;
    harness.ann.sends_message("go").await;
    harness.ann.decides(json!({})).await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["invocationMessage"], "Write a.txt", "{asked:#}");
    assert_eq!(harness.read("a.txt"), mine, "that was allowed");
    harness.ann.decides_about(&asked, json!({})).await;
    denies_write(&mut harness, "a.txt", mine).await;
    assert_eq!(harness.read("a.txt"), back);
}

#[tokio::test]
async fn ag_51_a_write_that_is_allowed_while_the_session_only_reads_is_not_done() {
    let steps = json!([write("{{cwd}}/a.txt", "mine\n"), {"say": ["done"]}]);
    let mut harness = start(steps, json!({})).await;
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    let config = json!({"type": "session/configChanged", "config": {"approvals": "plan"}});
    harness.ann.does_in(SESSION, config).await;
    let is_so = |state: &Value| state["config"]["values"]["approvals"] == "plan";
    harness.ann.until_session(SESSION, is_so).await;
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "one\ntwo\n");
    assert_eq!(calls_of(&turn)[0]["success"], false, "{turn:#}");
    let answers = harness.answers();
    let words = answers[0]["error"]["message"].as_str().unwrap();
    assert!(words.contains("only reads"), "{answers:#?}");
}

/// The files that the host wrote for a call are recorded with it, each, also if the agent says that the call failed.
#[tokio::test]
async fn ag_51_what_the_host_wrote_for_a_call_is_recorded_however_the_call_ends() {
    for (outcome, success) in [("completed", true), ("failed", false)] {
        let diffs = json!([
            {"type": "diff", "path": "{{cwd}}/a.txt", "oldText": "two", "newText": "TWO"},
            {"type": "diff", "path": "{{cwd}}/b.txt", "oldText": null, "newText": "b\n"},
        ]);
        let asks = json!({"sessionId": "{{session}}",
            "options": [{"optionId": "once", "name": "Allow", "kind": "allow_once"}],
            "toolCall": {"toolCallId": "edit", "title": "Edit", "kind": "edit", "status": "pending", "content": diffs}});
        let progress = |status: &str| json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "edit", "status": status}});
        let steps = json!([
            {"request": {"method": "session/request_permission", "params": asks}},
            progress("in_progress"),
            write("{{cwd}}/a.txt", "one\nTWO\n"),
            write("{{cwd}}/b.txt", "b\n"),
            progress(outcome),
            {"say": ["done"]},
        ]);
        let mut harness = start(steps, json!({})).await;
        harness.ann.sends_message("go").await;
        harness.ann.decides(json!({})).await;
        let turn = harness.ann.turn_over().await;
        let call = calls_of(&turn).remove(0);
        assert_eq!(call["success"], success, "{turn:#}");
        let edits = call["_meta"]["greenroom.edits"].as_array().unwrap();
        let made: Vec<(bool, &Value)> = edits
            .iter()
            .map(|edit| (edit["uri"].as_str().unwrap().ends_with("/a.txt"), &edit["made"]))
            .collect();
        assert_eq!(made, [(true, &json!(true)), (false, &json!(true))], "{call:#}");
        assert_eq!(
            (harness.read("a.txt"), harness.read("b.txt")),
            ("one\nTWO\n".to_owned(), "b\n".to_owned())
        );
        harness.ann.sends_message("/undo").await;
        harness.ann.chooses("restore").await;
        let undone = harness.ann.turn_over().await;
        assert_eq!(harness.read("a.txt"), "one\ntwo\n", "{undone:#}");
        assert!(!harness.work().join("b.txt").exists(), "{undone:#}");
    }
}
