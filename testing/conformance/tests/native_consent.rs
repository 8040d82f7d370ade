//! Nothing is edited or run without a word: who is asked, with what to choose from, and what is remembered.

use conformance::native::{NativeHarness, SESSION, bash, calls_of, ends, script_of, texts_in};
use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

fn edit(path: &str, old: &str, new: &str) -> Call {
    let edits = json!([{"old_text": old, "new_text": new}]);
    Call::new("call_edit", "edit", &json!({"path": path, "edits": edits}))
}

/// What became of the calls of the last turn.
fn statuses(turn: &Value) -> Vec<String> {
    let calls = calls_of(turn);
    let status = |call: &Value| {
        let confirmed = call["confirmed"].as_str().unwrap_or("-");
        format!("{} {confirmed} {}", call["status"].as_str().unwrap(), call["success"])
    };
    calls.iter().map(status).collect()
}

/// Lets the model make a call that needs no consent; the turn.
async fn unasked(harness: &mut NativeHarness, call: Call) -> Value {
    harness.talk("unasked", [Answer::calls([call]), ends()]).await
}

/// Lets the model make a call that is asked about, and approves it; the turn.
async fn approved(harness: &mut NativeHarness, call: Call, more: Value) -> Value {
    harness.model.answers([Answer::calls([call]), ends()]);
    harness.ann.sends_message("asked").await;
    harness.ann.decides(more).await;
    harness.ann.turn_over().await
}

async fn sets_approvals(harness: &mut NativeHarness, mode: &str) {
    let config = json!({"type": "session/configChanged", "config": {"approvals": mode}});
    harness.ann.does_in(SESSION, config).await;
    let mode = mode.to_owned();
    harness
        .ann
        .until_session(SESSION, move |state| {
            state["config"]["values"]["approvals"] == mode.as_str()
        })
        .await;
}

#[tokio::test]
async fn an_edit_is_previewed_and_made_when_approved() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\ntwo\n");
    let read = Call::new("r", "read", &json!({"path": "a.txt"}));
    harness.model.answers([
        Answer::calls([read]),
        Answer::calls([edit("a.txt", "two", "2")]),
        ends(),
    ]);
    harness.ann.sends_message("change it").await;
    let asked = harness.ann.asked().await;
    let kinds: Vec<[&Value; 2]> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| [&option["id"], &option["kind"]])
        .collect();
    assert_eq!(
        json!(kinds),
        json!([
            ["approve", "approve"],
            ["approve-session", "approve"],
            ["approve-project", "approve"],
            ["deny", "deny"]
        ])
    );
    assert_eq!(asked["editable"], true);
    let preview = asked["edits"]["items"][0].clone();
    let before = harness.ann.reads(&preview["before"]["content"]["uri"]).await;
    let after = harness.ann.reads(&preview["after"]["content"]["uri"]).await;
    assert_eq!((before.as_str(), after.as_str()), ("one\ntwo\n", "one\n2\n"));
    assert_eq!(harness.read("a.txt"), "one\ntwo\n", "not before it is allowed");
    let choice = json!({"selectedOptionId": "approve"});
    harness.ann.decides_about(&asked, choice).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "one\n2\n");
    let done = calls_of(&turn)[1].clone();
    let content = done["content"].as_array().unwrap().iter();
    let edits: Vec<&Value> = content.filter(|block| block["type"] == "fileEdit").collect();
    assert_eq!(edits.len(), 1, "{done:#}");
    let after = harness.ann.reads(&edits[0]["after"]["content"]["uri"]).await;
    assert_eq!(after, "one\n2\n");
    // Once is once.
    harness.model.answers([Answer::calls([edit("a.txt", "one", "1")]), ends()]);
    harness.ann.sends_message("again").await;
    harness.ann.decides(json!({"approved": false, "reason": "denied"})).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "one\n2\n");
}

#[tokio::test]
async fn a_command_that_was_approved_for_the_session_is_not_asked_about_again_but_another_is() {
    let mut harness = NativeHarness::start().await;
    let choice = json!({"selectedOptionId": "approve-session"});
    approved(&mut harness, bash("touch one"), choice).await;
    let turn = unasked(&mut harness, bash("touch one")).await;
    assert_eq!(statuses(&turn), ["completed setting true"]);
    harness.restart().await;
    let turn = unasked(&mut harness, bash("touch one")).await;
    assert_eq!(statuses(&turn), ["completed setting true"]);
    for other in ["touch one; touch two", "touch one two", "touch $(echo one)"] {
        harness.model.answers([Answer::calls([bash(other)]), ends()]);
        harness.ann.sends_message(other).await;
        harness.ann.decides(json!({"approved": false, "reason": "denied"})).await;
        let turn = harness.ann.turn_over().await;
        assert_eq!(calls_of(&turn)[0]["status"], "cancelled", "{other}");
    }
    // What is approved in one session means nothing in the next.
    let work = harness.work();
    harness.ann.creates_session("native:/other", &work, json!({})).await;
    harness.model.answers([Answer::calls([bash("touch one")]), ends()]);
    harness.ann.sends_message("elsewhere").await;
    harness.ann.decides(json!({})).await;
    harness.ann.turn_over().await;
}

#[tokio::test]
async fn a_denial_reaches_the_model_with_its_suggestion() {
    let mut harness = NativeHarness::start().await;
    harness.model.answers([Answer::calls([bash("rm -r .")]), ends()]);
    harness.ann.sends_message("tidy up").await;
    let suggestion = json!({"text": "use git clean -n", "origin": {"kind": "user"}});
    let denial = json!({"approved": false, "reason": "denied", "selectedOptionId": "deny", "userSuggestion": suggestion});
    harness.ann.decides(denial).await;
    harness.ann.turn_over().await;
    expect![[r#"
        user: tidy up
        assistant: - [bash {"command":"rm -r ."}]
        tool: The user denied this call and says instead: use git clean -n
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
    harness.talk("and now?", [ends()]).await;
    expect![[r#"
        user: tidy up
        assistant: - [bash {"command":"rm -r ."}]
        tool: The user denied this call and says instead: use git clean -n
        assistant: done
        user: and now?
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
}

#[tokio::test]
async fn the_edited_input_is_what_runs() {
    let mut harness = NativeHarness::start().await;
    let edited = json!({"command": "echo mine > made.txt; cat made.txt"}).to_string();
    let turn =
        approved(&mut harness, bash("touch theirs.txt"), json!({"editedToolInput": edited})).await;
    assert_eq!(harness.read("made.txt"), "mine\n");
    assert!(!harness.work().join("theirs.txt").exists());
    assert_eq!(calls_of(&turn)[0]["toolInput"], edited);
    let results = harness.last_results();
    assert!(results[0].contains("mine"), "{results:?}");
}

#[tokio::test]
async fn an_input_that_was_edited_into_nonsense_runs_nothing() {
    let mut harness = NativeHarness::start().await;
    for edited in ["{", "[]", "{\"command\": 7}"] {
        let turn =
            approved(&mut harness, bash("touch theirs.txt"), json!({"editedToolInput": edited}))
                .await;
        assert_eq!(calls_of(&turn)[0]["success"], false, "{edited}");
    }
    assert!(!harness.work().join("theirs.txt").exists());
}

#[tokio::test]
async fn who_edits_a_command_into_another_agreed_to_no_rule_about_the_first() {
    let mut harness = NativeHarness::start().await;
    let edited = json!({"command": "echo harmless"}).to_string();
    let choice = json!({"editedToolInput": edited, "selectedOptionId": "approve-session"});
    let turn = approved(&mut harness, bash("touch harm.txt"), choice).await;
    let notice = texts_in(&turn, "systemNotification").concat();
    assert!(notice.contains("bash(touch harm.txt) was not remembered"), "{turn:#}");
    for asked in ["touch harm.txt", "echo harmless"] {
        harness.model.answers([Answer::calls([bash(asked)]), ends()]);
        harness.ann.sends_message("again").await;
        let denial = json!({"approved": false, "reason": "denied"});
        harness.ann.decides(denial).await;
        harness.ann.turn_over().await;
    }
    assert!(!harness.work().join("harm.txt").exists());
    // An edit that the rule is about was meant.
    let edited = json!({"command": "ls -l"}).to_string();
    let choice = json!({"editedToolInput": edited, "selectedOptionId": "approve-session"});
    approved(&mut harness, bash("ls -a"), choice).await;
    let turn = unasked(&mut harness, bash("ls")).await;
    assert_eq!(statuses(&turn), ["completed setting true"]);
}

#[tokio::test]
async fn a_file_that_changed_while_its_edit_was_asked_about_is_not_overwritten() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let write = Call::new("w", "write", &json!({"path": "a.txt", "content": "theirs\n"}));
    let read = Call::new("r", "read", &json!({"path": "a.txt"}));
    harness.model.answers([Answer::calls([read]), Answer::calls([write]), ends()]);
    harness.ann.sends_message("write it").await;
    let asked = harness.ann.asked().await;
    harness.write("a.txt", "mine, meanwhile\n");
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "mine, meanwhile\n");
    assert_eq!(calls_of(&turn)[1]["success"], false);
}

#[tokio::test]
async fn accepting_edits_edits_but_asks_before_it_runs() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "accept-edits"})).await;
    let write = Call::new("w", "write", &json!({"path": "new.txt", "content": "made\n"}));
    let turn = unasked(&mut harness, write).await;
    assert_eq!(statuses(&turn), ["completed setting true"]);
    assert_eq!(harness.read("new.txt"), "made\n");
    let turn = approved(&mut harness, bash("echo hi"), json!({})).await;
    assert_eq!(statuses(&turn), ["completed user-action true"]);
}

#[tokio::test]
async fn a_plan_reads_and_refuses_the_rest_without_asking() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "plan"})).await;
    harness.write("a.txt", "one\n");
    let calls = [
        Call::new("r", "read", &json!({"path": "a.txt"})),
        Call::new("w", "write", &json!({"path": "b.txt", "content": "x"})),
        bash("touch c.txt"),
    ];
    let turn = harness.talk("do it all", [Answer::calls(calls), ends()]).await;
    let success: Vec<Value> = calls_of(&turn).iter().map(|call| call["success"].clone()).collect();
    assert_eq!(success, [true, false, false]);
    assert!(!harness.work().join("b.txt").exists() && !harness.work().join("c.txt").exists());
    let results = harness.last_results();
    assert!(results[1].contains("only reads") && results[2].contains("only reads"));
    let system = harness.model.requests()[0].json()["messages"][0].to_string();
    assert!(system.contains("only read"), "{system}");
}

#[tokio::test]
async fn the_mode_can_be_changed_during_a_session_and_is_stored() {
    let mut harness = NativeHarness::start().await;
    sets_approvals(&mut harness, "full-access").await;
    let turn = unasked(&mut harness, bash("touch free.txt")).await;
    assert_eq!(statuses(&turn), ["completed setting true"]);
    assert!(harness.work().join("free.txt").exists());
    harness.restart().await;
    let turn = unasked(&mut harness, bash("touch free2.txt")).await;
    assert_eq!(statuses(&turn), ["completed setting true"]);
    sets_approvals(&mut harness, "ask").await;
    let turn = approved(&mut harness, bash("echo x"), json!({})).await;
    assert_eq!(statuses(&turn), ["completed user-action true"]);
    let nonsense = json!({"type": "session/configChanged", "config": {"approvals": "root"}});
    harness.ann.does_in(SESSION, nonsense).await;
    harness.ann.refused().await;
}

// G-46
#[tokio::test]
async fn the_setting_is_read_by_its_old_name_and_written_by_its_new_one() {
    let mut harness = NativeHarness::start_with(json!({"permissions": "read-only"})).await;
    let state = harness.ann.sees_session(SESSION);
    assert_eq!(state["config"]["values"], json!({"approvals": "plan"}));
    let schema = &state["config"]["schema"]["properties"]["approvals"];
    let modes = json!(["ask", "accept-edits", "plan", "full-access"]);
    assert_eq!(schema["enum"], modes);
    for texts in ["enumLabels", "enumDescriptions"] {
        assert_eq!(schema[texts].as_array().map(Vec::len), Some(4), "{schema}");
    }
    let old = json!({"type": "session/configChanged", "config": {"permissions": "full-access"}});
    harness.ann.does_in(SESSION, old).await;
    let state = harness
        .ann
        .until_session(SESSION, |state| state["config"]["values"]["approvals"] == "full-access")
        .await;
    assert_eq!(state["config"]["values"], json!({"approvals": "full-access"}));
    let params = json!({"channel": "ahp-root://", "provider": "native", "config": {"permissions": "read-only"}});
    let resolved = harness.ann.connection.request("resolveSessionConfig", params);
    assert_eq!(resolved.await.unwrap()["values"], json!({"approvals": "plan"}));
}

#[tokio::test]
async fn a_mode_that_changes_in_mid_turn_counts_from_the_next_call_on() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let gates = [Gate::new(), Gate::new()];
    harness.model.answers([
        Answer::calls([bash("touch first")]),
        Answer::calls([bash("touch second")]).waits(&gates[0]),
        Answer::calls([bash("touch third")]).waits(&gates[1]),
        ends(),
    ]);
    harness.ann.sends_message("all of them").await;
    gates[0].reached().await;
    sets_approvals(&mut harness, "plan").await;
    gates[0].open();
    gates[1].reached().await;
    let system = harness.model.requests()[2].json()["messages"][0].to_string();
    assert!(system.contains("only read"), "the prompt says so: {system}");
    sets_approvals(&mut harness, "ask").await;
    gates[1].open();
    harness.ann.decides(json!({})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(
        statuses(&turn),
        ["completed setting true", "completed not-needed false", "completed user-action true"]
    );
    let made = |name: &str| harness.work().join(name).exists();
    assert_eq!([made("first"), made("second"), made("third")], [true, false, true]);
}

#[tokio::test]
async fn a_call_asked_before_a_session_began_to_plan_is_not_run() {
    let mut harness = NativeHarness::start().await;
    harness.model.answers([Answer::calls([bash("touch made")]), ends()]);
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    sets_approvals(&mut harness, "plan").await;
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(statuses(&turn), ["completed user-action false"]);
    assert!(!harness.work().join("made").exists());
    assert!(harness.last_results()[0].contains("only reads"));
}

/// Waits until the first call of the turn says that it has begun.
async fn first_runs(harness: &mut NativeHarness) {
    let has_begun = |chat: &Value| {
        let calls = calls_of(&chat["activeTurn"]);
        let first = calls.first();
        first.is_some_and(|call| call["content"].to_string().contains("begun"))
    };
    harness.ann.until("the first runs", has_begun).await;
}

#[tokio::test]
async fn a_call_that_waits_for_the_one_before_it_obeys_the_mode_of_its_own_time() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let calls = [
        Call::new("x", "bash", &json!({"command": "echo begun; until [ -e go ]; do :; done"})),
        Call::new("y", "bash", &json!({"command": "touch made"})),
    ];
    harness.model.answers([Answer::calls(calls), ends()]);
    harness.ann.sends_message("go").await;
    first_runs(&mut harness).await;
    sets_approvals(&mut harness, "plan").await;
    harness.write("go", "");
    let turn = harness.ann.turn_over().await;
    assert_eq!(statuses(&turn), ["completed setting true", "completed not-needed false"]);
    assert!(!harness.work().join("made").exists());
}

/// An edit that needed no consent when its turn came, and does by the time it may begin: what is shown is what it would do now.
#[tokio::test]
async fn a_call_that_is_asked_about_after_it_waited_shows_what_it_would_do_by_then() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "one\ntwo\n");
    let wait = "echo begun; until [ -e go ]; do :; done; echo other >> a.txt";
    let calls = [Call::new("x", "bash", &json!({ "command": wait })), edit("a.txt", "two", "2")];
    harness.model.answers([Answer::calls(calls), ends()]);
    harness.ann.sends_message("go").await;
    first_runs(&mut harness).await;
    sets_approvals(&mut harness, "ask").await;
    harness.write("go", "");
    let asked = harness.ann.asked().await;
    let preview = asked["edits"]["items"][0].clone();
    let shown = harness.ann.reads(&preview["after"]["content"]["uri"]).await;
    assert_eq!(shown, "one\n2\nother\n");
    harness.ann.decides_about(&asked, json!({})).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), shown);
}

#[tokio::test]
async fn two_edits_of_one_file_that_were_both_approved_are_both_made() {
    for order in [[0, 1], [1, 0]] {
        let mut harness = NativeHarness::start().await;
        harness.write("a.txt", "one\ntwo\n");
        let edits = |id: &str, old: &str, new: &str| {
            let edits = json!([{"old_text": old, "new_text": new}]);
            Call::new(id, "edit", &json!({"path": "a.txt", "edits": edits}))
        };
        let calls = [edits("x", "one", "1"), edits("y", "two", "2")];
        harness.model.answers([Answer::calls(calls), ends()]);
        harness.ann.sends_message("both").await;
        let chat = harness.ann.until("both ask", both_ask).await;
        let both = calls_of(&chat["activeTurn"]);
        for index in order {
            harness.ann.decides_about(&both[index], json!({})).await;
        }
        let turn = harness.ann.turn_over().await;
        assert_eq!(
            statuses(&turn),
            ["completed user-action true", "completed user-action true"],
            "{:?}",
            harness.last_results()
        );
        assert_eq!(harness.read("a.txt"), "1\n2\n");
    }
}

#[tokio::test]
async fn colliding_edits_are_made_once_and_the_model_gets_the_reason() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let edits = |id: &str, new: &str| {
        let edits = json!([{"old_text": "one", "new_text": new}]);
        Call::new(id, "edit", &json!({"path": "a.txt", "edits": edits}))
    };
    // The last one is the first once more, word for word.
    let calls = [edits("x", "1"), edits("y", "eins"), edits("z", "1")];
    harness.model.answers([Answer::calls(calls), ends()]);
    harness.ann.sends_message("all").await;
    let chat = harness.ann.until("all ask", |chat| asking(chat) == 3).await;
    for call in calls_of(&chat["activeTurn"]) {
        harness.ann.decides_about(&call, json!({})).await;
    }
    harness.ann.turn_over().await;
    assert_eq!(harness.read("a.txt"), "1\n");
    let results = harness.last_results();
    assert!(results[0].starts_with("Edited a.txt"), "{results:?}");
    for result in &results[1..] {
        assert!(result.contains("Nothing was changed"), "{results:?}");
    }
}

/// How many calls wait for a decision.
fn asking(chat: &Value) -> usize {
    let calls = calls_of(&chat["activeTurn"]);
    let waits = |call: &&Value| call["status"] == "pending-confirmation";
    calls.iter().filter(waits).count()
}

fn both_ask(chat: &Value) -> bool {
    asking(chat) == 2
}

#[tokio::test]
async fn calls_that_ask_at_the_same_time_are_decided_one_by_one() {
    let mut harness = NativeHarness::start().await;
    let calls = [
        Call::new("x", "bash", &json!({"command": "touch x"})),
        Call::new("y", "bash", &json!({"command": "touch y"})),
    ];
    harness.model.answers([Answer::calls(calls), ends()]);
    harness.ann.sends_message("both").await;
    harness.ann.until("both ask", both_ask).await;
    let both = calls_of(&harness.ann.sees()["activeTurn"]);
    harness.ann.decides_about(&both[1], json!({})).await;
    let denial = json!({"approved": false, "reason": "denied"});
    harness.ann.decides_about(&both[0], denial).await;
    harness.ann.turn_over().await;
    assert!(!harness.work().join("x").exists() && harness.work().join("y").exists());
    let messages = harness.last_messages();
    let ids: Vec<&Value> =
        messages.iter().filter_map(|message| message.get("tool_call_id")).collect();
    assert_eq!(ids, ["x", "y"]);
}

fn reads(id: &str) -> Call {
    Call::new(id, "read", &json!({"path": "a.txt"}))
}

fn writes(id: &str, content: &str) -> Call {
    let input = json!({"path": "./a.txt", "content": content});
    Call::new(id, "write", &input)
}

/// A model that looks at a file and replaces it in one answer has read it, although calls run side by side.
#[tokio::test]
async fn a_file_that_is_read_and_written_in_one_answer_is_read_first() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    harness.write("a.txt", "one\n");
    let calls = [reads("r"), writes("w", "two\n"), reads("s")];
    harness.talk("go", [Answer::calls(calls), ends()]).await;
    let results = harness.last_results();
    assert!(results[0].contains("one"), "{results:?}");
    assert!(results[1].starts_with("Replaced a.txt"), "{results:?}");
    assert!(results[2].contains("two"), "{results:?}");
    assert_eq!(harness.read("a.txt"), "two\n");
}

#[tokio::test]
async fn calls_of_one_file_wait_for_each_other_and_for_nobody_else() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let calls =
        [reads("r"), writes("w", "two\n"), reads("s"), writes("x", "three\n"), bash("touch made")];
    harness.model.answers([Answer::calls(calls), ends()]);
    harness.ann.sends_message("go").await;
    let chat = harness.ann.until("both ask", both_ask).await;
    let waits = |call: &Value| call["status"] == "pending-confirmation";
    let calls = calls_of(&chat["activeTurn"]);
    let asked: Vec<bool> = calls.iter().map(waits).collect();
    assert_eq!(asked, [false, true, false, false, true], "{calls:#?}");
    assert_eq!(calls[2]["status"], "streaming", "it waits: {:#}", calls[2]);
    harness.ann.decides_about(&calls[4], json!({})).await;
    harness.ann.decides_about(&calls[1], json!({})).await;
    let last = harness.ann.decides(json!({})).await;
    assert_eq!(last["toolCallId"], calls[3]["toolCallId"]);
    harness.ann.turn_over().await;
    let results = harness.last_results();
    assert!(results[0].contains("one"), "{results:?}");
    assert!(results[2].contains("two"), "{results:?}");
    assert!(results[3].starts_with("Replaced a.txt"), "{results:?}");
    assert_eq!(harness.read("a.txt"), "three\n");
}
