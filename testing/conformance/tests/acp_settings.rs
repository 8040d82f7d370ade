//! Models, modes, options and commands of ACP agents.

use conformance::acp::{AcpHarness, AcpSetup, scene};
use conformance::native::texts_in;
use serde_json::{Value, json};

fn options() -> Value {
    json!([
        {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small", "options": [
            {"value": "small", "name": "Small"}, {"value": "large", "name": "Large", "description": "Costs more"},
        ]},
        {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "ask", "options": [
            {"value": "ask", "name": "Ask"}, {"value": "auto", "name": "Auto"},
        ]},
        {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false},
    ])
}

fn talking() -> Value {
    json!([
        scene("^hang", json!([{"say": ["half"]}, {"await": "go"}])),
        scene("", json!([{"say": ["ok"]}])),
    ])
}

async fn with_options() -> AcpHarness {
    let script = json!({"session": {"configOptions": options()}, "scenes": talking()});
    AcpSetup::new(script).start().await
}

const KNOWN: &str = "fake:/known";

/// A session that begins when the agent's options are known: what can be set is said when a session is made (H-096).
async fn known(script: Value) -> AcpHarness {
    let mut harness = AcpSetup::new(script).start().await;
    harness.talk("hello").await;
    // What it said between turns comes when it comes.
    loop {
        let params = json!({"channel": "ahp-root://", "provider": "fake"});
        let form = harness.ann.connection.request("resolveSessionConfig", params).await.unwrap();
        if form["schema"]["properties"]["agent_mode"].is_object() {
            break;
        }
    }
    let work = harness.work();
    harness.ann.creates_session(KNOWN, &work, json!({})).await;
    harness
}

fn model_ids(agent: &Value) -> Vec<&str> {
    let models = agent["models"].as_array().unwrap().iter();
    models.map(|model| model["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn models_are_offered_once_the_agent_told_them_and_stay_known() {
    let mut harness = with_options().await;
    let agent = harness.agent_told(|_| true).await;
    assert_eq!(model_ids(&agent), ["default"], "nothing runs before a turn");
    harness.talk("one").await;
    let all = ["default", "small", "large"];
    harness.agent_told(|agent| model_ids(agent) == all).await;
    harness.restart().await;
    let agent = harness.agent_told(|_| true).await;
    assert_eq!(model_ids(&agent), all);
}

#[tokio::test]
async fn the_model_of_a_message_is_set_before_it_is_sent_and_only_if_it_differs() {
    let mut harness = with_options().await;
    harness.talk("one").await;
    assert!(harness.received("session/set_config_option").is_empty());
    for _ in 0..2 {
        harness.ann.sends_to_model("two", json!({"id": "large"})).await;
        harness.ann.turn_over().await;
    }
    let set = harness.received("session/set_config_option");
    assert_eq!(set.len(), 1, "{set:#?}");
    assert_eq!(set[0]["configId"], "model");
    assert_eq!(set[0]["value"], "large");
    let methods = harness.methods();
    let at = |name: &str| methods.iter().rposition(|method| method == name).unwrap();
    assert!(at("session/set_config_option") < at("session/prompt"));
}

#[tokio::test]
async fn models_of_the_older_shape_are_set_the_older_way() {
    let models = json!({"currentModelId": "auto", "availableModels": [
        {"modelId": "auto", "name": "Auto"}, {"modelId": "pro", "name": "Pro"},
    ]});
    let script = json!({"session": {"models": models}, "scenes": talking()});
    let mut harness = AcpSetup::new(script).start().await;
    harness.talk("one").await;
    harness.agent_told(|agent| model_ids(agent) == ["default", "auto", "pro"]).await;
    harness.ann.sends_to_model("two", json!({"id": "pro"})).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.received("session/set_model")[0]["modelId"], "pro");
}

async fn sets(harness: &mut AcpHarness, name: &str, value: Value) {
    let config = json!({"type": "session/configChanged", "config": {name: value}});
    harness.ann.does_in(KNOWN, config).await;
}

fn config_is(name: &'static str, value: Value) -> impl Fn(&Value) -> bool {
    move |state| state["config"]["values"][name] == value
}

#[tokio::test]
async fn a_mode_that_a_client_sets_reaches_the_agent_also_in_mid_turn() {
    let script = json!({"session": {"configOptions": options()}, "scenes": talking()});
    let mut harness = known(script).await;
    harness.talk("one").await;
    harness.ann.sends_message("hang").await;
    harness
        .ann
        .until("it works", |chat| texts_in(&chat["activeTurn"], "markdown") == ["half"])
        .await;
    sets(&mut harness, "agent_mode", json!("auto")).await;
    harness.until("it is told", |it| !it.received("session/set_config_option").is_empty()).await;
    assert_eq!(harness.received("session/set_config_option")[0]["value"], "auto");
    harness.touch("go");
    harness.ann.turn_over().await;
}

#[tokio::test]
async fn modes_without_an_option_are_set_by_their_own_method_and_again_after_a_reopen() {
    let modes = json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "auto", "name": "Auto"},
    ]});
    let script = json!({
        "session": {"modes": modes}, "scenes": talking(),
        "initialize": {"agentCapabilities": {"loadSession": false, "sessionCapabilities": {"resume": null}}},
    });
    let mut harness = known(script).await;
    harness.talk("one").await;
    sets(&mut harness, "agent_mode", json!("auto")).await;
    harness.ann.until_session(KNOWN, config_is("agent_mode", json!("auto"))).await;
    harness.talk("two").await;
    assert_eq!(harness.received("session/set_mode")[0]["modeId"], "auto");
    harness.restart().await;
    harness.talk("three").await;
    let set = harness.received("session/set_mode");
    assert_eq!(set.len(), 2, "a new session of the agent is set as this one is: {set:#?}");
}

#[tokio::test]
async fn what_the_agent_changes_itself_is_seen() {
    let update =
        json!({"update": {"sessionUpdate": "current_mode_update", "currentModeId": "auto"}});
    let modes = json!({"currentModeId": "ask", "availableModes": [
        {"id": "ask", "name": "Ask"}, {"id": "auto", "name": "Auto"},
    ]});
    let script = json!({"session": {"modes": modes}, "scenes": [scene("^hello", json!([])), scene("", json!([update]))]});
    let mut harness = known(script).await;
    harness.talk("one").await;
    harness.ann.until_session(KNOWN, config_is("agent_mode", json!("auto"))).await;
}

#[tokio::test]
async fn a_value_that_the_agent_refuses_goes_back() {
    let rule = json!({"method": "session/set_config_option", "answer": {"error": {"code": -32602, "message": "not today"}}});
    let script =
        json!({"session": {"configOptions": options()}, "answers": [rule], "scenes": talking()});
    let mut harness = known(script).await;
    harness.talk("one").await;
    sets(&mut harness, "agent_mode", json!("auto")).await;
    let turn = harness.talk("two").await;
    harness.ann.until_session(KNOWN, config_is("agent_mode", json!("ask"))).await;
    let notices = texts_in(&turn, "systemNotification").concat();
    assert!(notices.contains("not today"), "{turn:#}");
}

#[tokio::test]
async fn a_command_of_the_agent_is_sent_as_it_was_typed() {
    let commands = json!([
        {"name": "review", "description": "Review changes", "input": {"hint": "[branch]"}},
        {"name": "memory show", "description": "Shows the memory"},
    ]);
    let update =
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    let script = json!({"on_open": [{"update": update}], "scenes": talking()});
    let mut harness = AcpSetup::new(script).start().await;
    harness.talk("one").await;
    for words in ["/review main", "/memory show"] {
        harness.talk(words).await;
        let prompt = harness.received("session/prompt").pop().unwrap();
        assert_eq!(prompt["prompt"][0]["text"], words, "{prompt:#}");
    }
    let params = json!({"channel": harness.ann.chat.as_str(), "kind": "userMessage", "text": "/rev", "offset": 4});
    let completed = harness.ann.connection.request("completions", params).await.unwrap();
    assert!(completed.to_string().contains("/review"), "{completed:#}");
}

#[tokio::test]
async fn half_a_megabyte_of_commands_is_taken_in_one_line() {
    let commands = json!({"commands": {"count": 200, "description_bytes": 2800}});
    let script = json!({"on_open": [commands], "scenes": talking()});
    let mut harness = AcpSetup::new(script).start().await;
    let turn = harness.talk("one").await;
    assert_eq!(texts_in(&turn, "markdown"), ["ok"]);
    harness.talk("/command-7 now").await;
    assert_eq!(harness.prompts().pop().unwrap(), "/command-7 now");
}

#[tokio::test]
async fn a_title_that_a_user_gives_reaches_an_agent_that_takes_titles_and_stays() {
    let initialize = json!({"agentCapabilities": {"sessionCapabilities": {"title": {}}}});
    let named = json!({"sessionUpdate": "session_info_update", "title": "the agent's"});
    let script = json!({"initialize": initialize, "scenes": [
        scene("^late", json!([{"say": ["ok"]}, {"end": {}}, {"await": "later"}, {"update": named}])),
        scene("", json!([{"say": ["ok"]}])),
    ]});
    let mut harness = AcpSetup::new(script).start().await;
    let session = harness.session().to_owned();
    // Between turns the agent names the session.
    harness.talk("late").await;
    harness.touch("later");
    harness.ann.until_session(&session, |state| state["title"] == "the agent's").await;
    let title = json!({"type": "session/titleChanged", "title": "mine"});
    harness.ann.does_in(&session, title).await;
    harness.until("it is told", |it| !it.received("session/set_title").is_empty()).await;
    assert_eq!(harness.received("session/set_title")[0]["title"], "mine");
    harness.talk("late again").await;
    let state = harness.ann.until_session(&session, |_| true).await;
    assert_eq!(state["title"], "mine");
}
