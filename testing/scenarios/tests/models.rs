//! Models that come and go: added by a client while the host runs (G-71), and chats whose model is not there any more (G-12).

use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};

fn model_ids(client: &ScenarioClient) -> Vec<String> {
    let root = client.sees(ROOT);
    let models = root["agents"][0]["models"].as_array().unwrap().clone();
    let ids = models.iter().map(|model| model["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

fn last_turn(client: &ScenarioClient) -> Value {
    let chat = client.sees(&client.chat());
    chat["turns"].as_array().unwrap().last().unwrap().clone()
}

fn error_of(turn: &Value) -> Value {
    let parts = turn["responseParts"].as_array().unwrap();
    parts.last().unwrap().clone()
}

/// Starts a turn for a model; its id.
fn sends_to(client: &ScenarioClient, turn: &str, model: &str) {
    let mut action = client.turn_started(turn, "hi");
    action["message"]["model"] = json!({"id": model});
    client.tries(&client.chat(), action).unwrap();
}

fn forgets_model(s: &mut Scenario, id: &str) {
    s.host_is_killed();
    for agent in &mut s.world().facts.agents {
        let models = agent.info["models"].as_array_mut().unwrap();
        models.retain(|model| model["id"] != id);
    }
    s.host_restarts();
}

// G-71, H-105
#[test]
fn a_model_that_a_client_adds_is_announced_to_everybody() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    let added = ann.asks("x-addModel", json!({"model": {"id": "new", "base_url": "http://h"}}));
    assert_eq!(added, Ok(json!({"provider": "scripted", "model": "new"})));
    for client in [&ann, &bob] {
        assert_eq!(model_ids(client), ["plain", "fancy", "new"]);
    }
    sends_to(&ann, "t1", "new");
    assert_eq!(last_turn(&ann)["message"]["model"]["id"], "new");
    assert_eq!(ann.is_denied("x-addModel", json!({"model": {}})), -32602);
    assert_eq!(ann.is_denied("x-addModel", json!({})), -32602);
    let large = json!({"model": {"id": "m", "name": "x".repeat(100_000)}});
    assert_eq!(ann.is_denied("x-addModel", large), -32602);
    assert_eq!(ann.asks("x-reloadModels", Value::Null), Ok(json!({"provider": "scripted"})));
    assert_eq!(model_ids(&bob), ["plain", "fancy", "new"]);
}

// G-71
#[test]
fn a_host_without_a_token_changes_no_models() {
    let (mut s, ann) = Scenario::with_client();
    s.host_is_killed();
    s.world().facts.clients_have_token = false;
    s.host_restarts_for([&ann]);
    let model = json!({"model": {"id": "new"}});
    assert_eq!(ann.is_denied("x-addModel", model), -32009);
    assert_eq!(ann.is_denied("x-reloadModels", json!({})), -32009);
    assert_eq!(model_ids(&ann), ["plain", "fancy"]);
}

// G-15, G-71: the host has the model, whether it could be recorded or not
#[test]
fn a_model_whose_announcement_cannot_be_written_is_announced_later() {
    let (mut s, ann) = Scenario::with_client();
    let bob = s.client("bob").arrives();
    s.faults().break_disk();
    let model = json!({"model": {"id": "new"}});
    assert_eq!(ann.is_denied("x-addModel", model.clone()), -32603);
    assert_eq!(model_ids(&bob), ["plain", "fancy"]);
    assert_eq!(ann.is_denied("x-addModel", model), -32603, "nothing can be recorded");
    s.faults().mend_disk();
    s.advances_ms(1_000);
    for client in [&ann, &bob] {
        assert_eq!(model_ids(client), ["plain", "fancy", "new"]);
    }
}

// G-12, G-23
#[test]
fn an_agent_that_is_hidden_is_in_no_list_and_begins_no_session() {
    let (mut s, ann) = Scenario::with_chat();
    ann.sends_message("hi");
    s.host_is_killed();
    s.world().facts.agents[0].hidden = true;
    s.host_restarts_for([&ann]);
    assert_ne!(ann.sees(ROOT)["agents"][0]["provider"], "scripted");
    let new = json!({"channel": "ahp-session:/two", "provider": "scripted"});
    assert_eq!(ann.is_denied("createSession", new), -32002);
}

// G-12, ADR 0049
#[test]
fn a_message_for_a_model_that_is_gone_waits_for_somebody_to_choose() {
    let (mut s, ann, bob) = Scenario::with_shared_chat();
    sends_to(&ann, "t1", "fancy");
    let asked = s.asked().len();
    forgets_model(&mut s, "fancy");
    ann.reconnects();
    bob.reconnects();
    let turn = bob.sends_message("go on");
    for client in [&ann, &bob] {
        let last = last_turn(client);
        assert_eq!((&last["id"], &last["state"]), (&json!(turn), &json!("error")));
        assert_eq!(last["message"]["model"], json!({"id": "plain"}), "G-12");
        let error = error_of(&last);
        assert_eq!(
            (&error["error"]["errorType"], &error["resumable"]),
            (&json!("modelMissing"), &json!(true))
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains("`fancy`") && message.contains("`plain`"), "{message}");
    }
    assert_eq!(s.asked().len(), asked, "no agent heard of it");
    ann.resumes(&turn).unwrap();
    assert_eq!(last_turn(&bob)["state"], "complete");
    bob.sends_message("and on");
    assert_eq!(last_turn(&ann)["state"], "complete", "it was chosen");
}

// G-12, ADR 0049
#[test]
fn a_message_that_names_a_model_or_says_nothing_to_one_goes_on_without_the_lost_one() {
    let (mut s, ann) = Scenario::with_chat();
    sends_to(&ann, "t1", "fancy");
    forgets_model(&mut s, "fancy");
    ann.reconnects();
    ann.sends_message("/help");
    assert_eq!(last_turn(&ann)["state"], "complete", "{:#}", last_turn(&ann));
    assert_eq!(last_turn(&ann)["message"].get("model"), None, "what asked no model names none");
    ann.sends_message("hi");
    assert_eq!(
        error_of(&last_turn(&ann))["error"]["errorType"],
        "modelMissing",
        "nobody chose the default by asking for help"
    );
    let reason = {
        let mut action = ann.turn_started("t2", "hi");
        action["message"]["model"] = json!({"id": "fancy"});
        ann.tries(&ann.chat(), action).unwrap_err()
    };
    assert!(reason.contains("no model with this id; it has: plain"), "{reason}");
    s.all_agree();

    let (mut s, ann) = Scenario::with_chat();
    sends_to(&ann, "t1", "fancy");
    forgets_model(&mut s, "fancy");
    ann.reconnects();
    sends_to(&ann, "t2", "plain");
    assert_eq!(last_turn(&ann)["state"], "complete");
}

// G-08, ADR 0049: what waits is held after the error and goes on when somebody wants it to
#[test]
fn a_queued_message_that_named_no_model_is_told_when_it_starts() {
    let (mut s, ann) = Scenario::with_chat();
    sends_to(&ann, "t1", "fancy");
    forgets_model(&mut s, "fancy");
    ann.reconnects();
    let queued = json!({
        "type": "chat/pendingMessageSet", "kind": "queued", "id": "q1",
        "message": {"text": "later", "origin": {"kind": "user"}},
    });
    ann.tries(&ann.chat(), queued).unwrap();
    let last = last_turn(&ann);
    assert_eq!(error_of(&last)["error"]["errorType"], "modelMissing", "{last:#}");
    ann.resumes(last["id"].as_str().unwrap()).unwrap();
    assert_eq!(last_turn(&ann)["state"], "complete");
}
