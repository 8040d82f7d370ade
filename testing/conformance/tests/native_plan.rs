//! Plans: only reading until somebody approves, and then in the mode that was chosen (G-46, G-68).

use std::time::Duration;

use ahp::{Client, ClientConfig, SubscriptionEvent};
use ahp_types::actions::StateAction;
use ahp_ws::WebSocketTransport;
use conformance::native::{NativeHarness, SESSION, bash, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::time::timeout;

const PLAN: &str = "# Plan\n\n1. Write `made.txt`.\n2. Check it.";
const DEADLINE: Duration = Duration::from_secs(60);

fn exit_plan(id: &str) -> Call {
    Call::new(id, "exit_plan", &json!({"plan": PLAN}))
}

fn write(path: &str) -> Call {
    Call::new("w", "write", &json!({"path": path, "content": "new\n"}))
}

async fn planning() -> NativeHarness {
    NativeHarness::start_with(json!({"approvals": "plan"})).await
}

fn mode(harness: &NativeHarness) -> Value {
    harness.ann.sees_session(SESSION)["config"]["values"]["approvals"].clone()
}

/// The names of the tools in a request.
fn tools(harness: &NativeHarness, request: usize) -> Vec<String> {
    let request = harness.model.requests()[request].json();
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_approved_plan_sets_the_mode_and_the_turn_goes_on_in_it() {
    let mut harness = planning().await;
    harness.model.answers([
        Answer::calls([exit_plan("p")]),
        Answer::calls([write("made.txt")]),
        ends(),
    ]);
    harness.ann.sends_message("plan it").await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["invocationMessage"], json!({"markdown": PLAN}));
    assert_eq!(asked["confirmationTitle"], "Carry out this plan?");
    let options: Vec<[&Value; 2]> = asked["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| [&option["id"], &option["kind"]])
        .collect();
    let expected =
        json!([["ask", "approve"], ["accept-edits", "approve"], ["keep-planning", "deny"]]);
    assert_eq!(json!(options), expected);
    let choice = json!({"selectedOptionId": "accept-edits"});
    harness.ann.decides_about(&asked, choice).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("made.txt"), "new\n");
    assert_eq!(calls_of(&turn)[1]["confirmed"], "setting");
    assert_eq!(mode(&harness), "accept-edits");
    assert!(
        harness.last_results()[0]
            .contains("The user approved the plan. Files may be edited without asking")
    );
    assert!(tools(&harness, 0).contains(&"exit_plan".to_owned()));
    assert!(!tools(&harness, 1).contains(&"exit_plan".to_owned()));
    let system =
        |request: usize| harness.model.requests()[request].json()["messages"][0].to_string();
    assert!(system(0).contains("call `exit_plan`") && !system(1).contains("exit_plan"));
    harness.restart().await;
    assert_eq!(mode(&harness), "accept-edits");
}

#[tokio::test]
async fn who_keeps_planning_may_say_why_and_a_plain_yes_asks_before_each_step() {
    let mut harness = planning().await;
    harness.model.answers([
        Answer::calls([exit_plan("p")]),
        Answer::calls([bash("touch early")]),
        Answer::calls([exit_plan("q")]),
        Answer::calls([bash("touch late")]),
        ends(),
    ]);
    harness.ann.sends_message("plan it").await;
    let words = json!({"text": "and the tests?", "origin": {"kind": "user"}});
    let denial = json!({"approved": false, "reason": "denied", "selectedOptionId": "keep-planning", "userSuggestion": words});
    harness.ann.decides(denial).await;
    let asked = harness.ann.asked().await;
    assert_eq!(asked["toolName"], "exit_plan");
    assert_eq!(mode(&harness), "plan");
    // As a client that knows no options approves.
    harness.ann.decides_about(&asked, json!({})).await;
    let asked = harness.ann.asked().await;
    assert_eq!(mode(&harness), "ask");
    assert!(!harness.work().join("early").exists());
    harness.ann.decides_about(&asked, json!({})).await;
    harness.ann.turn_over().await;
    assert!(harness.work().join("late").exists());
    let results = harness.last_results();
    let words = "The user wants you to keep planning and says: and the tests?";
    assert_eq!(results[0], words);
    harness.talk("and then?", [ends()]).await;
    assert_eq!(harness.last_results()[0], words, "later turns say the same");
    assert!(results[1].contains("only reads"), "{results:?}");
    assert!(results[2].contains("The user is asked before each edit and command"), "{results:?}");
}

#[tokio::test]
async fn a_plan_that_was_edited_is_what_the_model_carries_out() {
    let mut harness = planning().await;
    harness.model.answers([Answer::calls([exit_plan("p")]), ends()]);
    harness.ann.sends_message("plan it").await;
    let edited = json!({"plan": "only the tests"}).to_string();
    let choice = json!({"editedToolInput": edited, "selectedOptionId": "ask"});
    harness.ann.decides(choice).await;
    harness.ann.turn_over().await;
    let result = &harness.last_results()[0];
    assert!(
        result.contains("with changes; it is now") && result.contains("only the tests"),
        "{result}"
    );
}

#[tokio::test]
async fn a_plan_without_words_or_outside_of_planning_is_not_asked_about() {
    let mut harness = planning().await;
    let empty = Call::new("p", "exit_plan", &json!({}));
    harness.talk("plan", [Answer::calls([empty]), ends()]).await;
    assert!(harness.last_results()[0].contains("`plan` is missing"));
    let config = json!({"type": "session/configChanged", "config": {"approvals": "ask"}});
    harness.ann.does_in(SESSION, config).await;
    harness.talk("go", [Answer::calls([exit_plan("q")]), ends()]).await;
    let results = harness.last_results();
    assert!(results[1].contains("There is no tool `exit_plan`"), "{results:?}");
}

#[tokio::test]
async fn a_published_client_approves_a_plan() {
    let mut harness = planning().await;
    let transport = WebSocketTransport::connect(&harness.host().url).await.unwrap();
    let config = ClientConfig { subscription_buffer: 65_536, ..ClientConfig::default() };
    let bob = Client::connect(transport, config).await.unwrap();
    bob.initialize("bob".to_owned(), vec!["1.0.0".to_owned()], vec![]).await.unwrap();
    let chat = harness.ann.chat.as_str().to_owned();
    bob.subscribe(chat.clone()).await.unwrap();
    let mut events = bob.events();
    harness.model.answers([
        Answer::calls([exit_plan("p")]),
        Answer::calls([write("made.txt")]),
        ends(),
    ]);
    harness.ann.sends_message("plan it").await;
    let approves = async {
        loop {
            let event = events.recv().await.expect("the stream goes on");
            let SubscriptionEvent::Action(envelope) = event.event else { continue };
            let StateAction::ChatToolCallReady(ready) = &envelope.action else { continue };
            let action = json!({
                "type": "chat/toolCallConfirmed", "turnId": ready.turn_id, "toolCallId": ready.tool_call_id,
                "approved": true, "confirmed": "user-action", "selectedOptionId": "accept-edits",
            });
            let action: StateAction = serde_json::from_value(action).unwrap();
            return bob.dispatch(chat.clone(), action).await.unwrap();
        }
    };
    timeout(DEADLINE, approves).await.unwrap();
    harness.ann.turn_over().await;
    assert_eq!(mode(&harness), "accept-edits");
    assert_eq!(harness.read("made.txt"), "new\n");
    bob.shutdown().await;
}
