//! Tools that clients offer reach the model: what it is offered, who is asked, who carries them out, and what it hears of it
//! (G-73, G-07).

use std::time::Duration;

use ahp::{Client, SubscriptionEvent};
use ahp_types::actions::StateAction;
use conformance::native::{ChatClient, NativeHarness, SESSION, bash, calls_of, ends, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::time::timeout;

use crate::published_client::arrives;

const DEADLINE: Duration = Duration::from_secs(60);

fn rename_tool() -> Value {
    json!({
        "name": "rename", "title": "Rename symbol", "description": "Renames a symbol everywhere.",
        "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
    })
}

fn rename(to: &str) -> Call {
    Call::new("call_rename", "rename", &json!({"to": to}))
}

fn done(text: &str) -> Value {
    json!({"success": true, "pastTenseMessage": "Renamed", "content": [{"type": "text", "text": text}]})
}

/// The tools of the last request, by their names.
fn offered(harness: &NativeHarness) -> Vec<Value> {
    let requests = harness.model.requests();
    let body = requests.last().unwrap().json();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    tools.into_iter().map(|mut tool| tool["function"].take()).collect()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn action(value: Value) -> StateAction {
    let action = serde_json::from_value(value).unwrap();
    assert!(!matches!(action, StateAction::Unknown(_)));
    action
}

/// A published client that offers a tool and carries out what is asked of it.
async fn bob_offers(harness: &NativeHarness, tools: Value) -> Client {
    let client = arrives(&harness.host().url, "bob").await;
    client.subscribe(SESSION.to_owned()).await.unwrap();
    let chat = harness.ann.chat.as_str().to_owned();
    client.subscribe(chat).await.unwrap();
    let entry = json!({"clientId": "bob", "displayName": "Bob", "tools": tools});
    let set = action(json!({"type": "session/activeClientSet", "activeClient": entry}));
    client.dispatch(SESSION.to_owned(), set).await.unwrap();
    client
}

#[tokio::test]
async fn a_published_client_carries_out_what_the_model_calls_once_somebody_approves() {
    let mut harness = NativeHarness::start().await;
    let bob = bob_offers(&harness, json!([rename_tool()])).await;
    let mut events = bob.events();
    harness
        .ann
        .until_session(SESSION, |state| {
            state["activeClients"].as_array().is_some_and(|all| !all.is_empty())
        })
        .await;
    harness.model.answers([Answer::calls([rename("n")]), ends()]);
    harness.ann.sends_message("rename it").await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["displayName"], "Rename symbol");
    assert_eq!(asked["contributor"], json!({"kind": "client", "clientId": "bob"}));
    assert_eq!(asked["options"][1]["id"], "approve-session");
    let tool = offered(&harness).pop().unwrap();
    assert_eq!(tool["name"], "rename");
    assert_eq!(tool["description"], "Renames a symbol everywhere.");
    assert_eq!(tool["parameters"], rename_tool()["inputSchema"]);
    harness.ann.decides_about(&asked, json!({})).await;
    // Bob hears that it runs, and answers.
    let carried_out = async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            let SubscriptionEvent::Action(envelope) = event.event else { continue };
            let StateAction::ChatToolCallConfirmed(confirmed) = &envelope.action else { continue };
            let result = json!({
                "type": "chat/toolCallComplete", "turnId": confirmed.turn_id,
                "toolCallId": confirmed.tool_call_id, "result": done("3 places"),
            });
            return bob.dispatch(envelope.channel.clone(), action(result)).await.unwrap();
        }
    };
    timeout(DEADLINE, carried_out).await.unwrap();
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.last_results(), ["3 places"]);
    let call = &calls_of(&turn)[0];
    assert_eq!((&call["status"], &call["success"]), (&json!("completed"), &json!(true)));
    bob.shutdown().await;
}

#[tokio::test]
async fn an_approval_for_the_session_covers_the_same_input_and_full_access_everything() {
    let mut harness = NativeHarness::start().await;
    harness.ann.offers_tools(json!([rename_tool()])).await;
    harness.model.answers([Answer::calls([rename("n")]), ends()]);
    harness.ann.sends_message("rename it").await;
    let choice = json!({"selectedOptionId": "approve-session"});
    harness.ann.decides(choice).await;
    harness.ann.completes_tool(done("once")).await;
    harness.ann.turn_over().await;
    harness.model.answers([Answer::calls([rename("n")]), ends()]);
    harness.ann.sends_message("again").await;
    let call = harness.ann.completes_tool(done("twice")).await;
    assert_eq!(call["confirmed"], "setting");
    harness.ann.turn_over().await;
    harness.model.answers([Answer::calls([rename("other")]), ends()]);
    harness.ann.sends_message("another").await;
    let denial = json!({"approved": false, "reason": "denied", "userSuggestion": {"text": "call it m", "origin": {"kind": "user"}}});
    harness.ann.decides(denial).await;
    harness.ann.turn_over().await;
    assert!(harness.last_results()[2].contains("call it m"), "{:?}", harness.last_results());
    let config = json!({"type": "session/configChanged", "config": {"approvals": "full-access"}});
    harness.ann.does_in(SESSION, config).await;
    harness.model.answers([Answer::calls([rename("m")]), ends()]);
    harness.ann.sends_message("now").await;
    harness.ann.completes_tool(done("m it is")).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.last_results()[3], "m it is");
}

#[tokio::test]
async fn a_session_that_plans_and_a_call_without_sense_run_nothing() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "plan"})).await;
    harness.ann.offers_tools(json!([rename_tool()])).await;
    let nonsense = Call::with_text("call_bad", "rename", "[1]");
    let turn = harness.talk("rename it", [Answer::calls([rename("n"), nonsense]), ends()]).await;
    let results = harness.last_results();
    assert!(results[0].contains("plan"), "{results:?}");
    assert!(results[1].contains("JSON object"), "{results:?}");
    for call in calls_of(&turn) {
        assert_eq!((&call["status"], &call["success"]), (&json!("completed"), &json!(false)));
    }
}

#[tokio::test]
async fn an_own_tool_wins_and_names_that_servers_refuse_are_changed_for_the_model_alone() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let stranger = json!({"name": "bash", "description": "A stranger's."});
    let dotted = json!({"name": "editor.find/all", "title": "Find"});
    harness.ann.offers_tools(json!([stranger, dotted])).await;
    harness.model.answers([Answer::calls([bash("echo own")]), ends()]);
    harness.ann.sends_message("run").await;
    harness.ann.turn_over().await;
    assert!(harness.last_results()[0].contains("own"));
    let tools = offered(&harness);
    let bashes: Vec<&Value> = tools.iter().filter(|tool| tool["name"] == "bash").collect();
    assert!(bashes.len() == 1 && bashes[0]["description"] != "A stranger's.");
    let name = names(&tools).last().unwrap().to_string();
    assert!(name.starts_with("editor_find_all_"), "{name}");
    assert_eq!(tools.last().unwrap()["parameters"], json!({"type": "object", "properties": {}}));
    let call = Call::new("call_find", &name, &json!({"what": "x"}));
    harness.model.answers([Answer::calls([call]), ends()]);
    harness.ann.sends_message("find").await;
    let running = harness.ann.completes_tool(done("found")).await;
    assert_eq!(running["toolName"], "editor.find/all", "its client knows it by this name");
    harness.ann.turn_over().await;
    harness.talk("and then", [ends()]).await;
    let history = Value::Array(harness.last_messages()).to_string();
    assert!(history.contains(&name) && !history.contains("editor.find/all"), "{history}");
}

#[tokio::test]
async fn what_clients_offer_counts_from_the_next_request_on() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    let read = Call::new("r", "read", &json!({"path": "a.txt"}));
    let gate = testkit::Gate::new();
    harness.model.answers([Answer::calls([read]).begins_after(&gate), ends()]);
    harness.ann.sends_message("look").await;
    harness.model.asked(1).await;
    assert!(!names(&offered(&harness)).contains(&"rename"));
    harness.ann.offers_tools(json!([rename_tool()])).await;
    gate.open();
    harness.ann.turn_over().await;
    assert!(names(&offered(&harness)).contains(&"rename"));
    harness.ann.offers_tools(json!([])).await;
    let turn = harness.talk("gone", [Answer::calls([rename("n")]), ends()]).await;
    assert!(!names(&offered(&harness)).contains(&"rename"));
    assert!(harness.last_results()[1].starts_with("There is no tool `rename`"));
    assert_eq!(calls_of(&turn)[0]["success"], false);
}

// G-07
#[tokio::test]
async fn a_client_that_leaves_fails_the_call_that_waits_for_consent_or_runs() {
    let mut harness = NativeHarness::start().await;
    for approve in [false, true] {
        let mut bob = ChatClient::arrives(harness.host(), "bob").await;
        bob.enters(SESSION, harness.ann.chat.as_str()).await;
        bob.offers_tools(json!([rename_tool()])).await;
        harness.model.answers([Answer::calls([rename("n")]), ends()]);
        harness.ann.sends_message("rename it").await;
        let asked = harness.ann.asked().await;
        if approve {
            harness.ann.decides_about(&asked, json!({})).await;
        }
        bob.does_in(SESSION, json!({"type": "session/activeClientRemoved", "clientId": "bob"}))
            .await;
        let turn = harness.ann.turn_over().await;
        assert_eq!(calls_of(&turn)[0]["success"], false);
        let result = harness.last_results().pop().unwrap();
        assert!(result.contains("has left"), "{result}");
    }
}

#[tokio::test]
async fn a_tool_that_is_too_large_for_a_request_is_left_out_and_said_once() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let large = json!({"name": "large", "inputSchema": {"type": "object", "description": "x".repeat(40_000)}});
    harness.ann.offers_tools(json!([large, rename_tool()])).await;
    harness.model.answers([Answer::calls([rename("n")]), ends()]);
    harness.ann.sends_message("rename it").await;
    harness.ann.completes_tool(done("done")).await;
    let turn = harness.ann.turn_over().await;
    assert!(!names(&offered(&harness)).contains(&"large"));
    let notices = texts_in(&turn, "systemNotification");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].contains("`large`: its input schema has more than 32768 bytes"),
        "{notices:?}"
    );
}
