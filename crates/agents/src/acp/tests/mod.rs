//! Turns against a real process: an agent that does what a script says, with the oddities of real ones.

mod custom_agents;
mod faults;
mod harness;
mod questions;
mod sessions;

use agent_api::AgentEvent;
use serde_json::json;

use harness::{Place, Reply, user};

fn say(text: &str) -> serde_json::Value {
    json!({"scenes": [{"steps": [{"say": [text]}]}]})
}

#[tokio::test]
async fn a_turn_is_a_prompt_and_its_answer() {
    let place = Place::new(&json!({
        "scenes": [{"when": "hello (.*)", "steps": [
            {"think": ["hm"]},
            {"say": ["Hel", "lo $1"]},
            {"tool": {"title": "List", "name": "ls", "kind": "read", "input": {"path": "."}, "outputs": ["a\nb"]}},
            {"say": ["Done."]},
        ]}],
    }));
    let agent = place.agent();
    let turn = place.turn(&agent, user("t1", "hello world")).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(turn.texts(), ["hm", "Hello world", "Done."]);
    let calls = turn.completed();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["content"][0]["text"], "a\nb");
    assert_eq!(calls[0]["success"], true);
    // Which session it is was on the disk before the prompt was sent.
    let noted = turn.position(|event| matches!(event, AgentEvent::ChatNotes(_)));
    let said = turn.position(|event| matches!(event, AgentEvent::PartOpened { .. }));
    assert!(noted.unwrap() < said.unwrap());

    let next = place.turn(&agent, user("t2", "hello again").after("t1", &turn)).await;
    assert_eq!(next.texts(), ["hm", "Hello again", "Done."]);
    assert_eq!(place.starts(), 1, "one process for the directory");
    assert_eq!(place.count("session/new"), 1, "one session for the chat");
    assert_eq!(place.count("session/prompt"), 2);
    let invalid: Vec<_> =
        place.received().into_iter().filter(|line| line.invalid.is_some()).collect();
    assert_eq!(invalid.len(), 0, "{invalid:?}");
}

#[tokio::test]
async fn nothing_runs_before_a_turn_and_a_missing_command_is_said() {
    let place = Place::new(&say("x"));
    let agent = place.agent();
    assert_eq!(place.starts(), 0);
    drop(agent);
    let missing = place.agent_with(|config| {
        config.command = "no-such-agent".to_owned();
        config.install = "Get it.".to_owned();
    });
    let error = place.turn(&missing, user("t1", "x")).await.result.unwrap_err();
    assert_eq!((error.error_type.as_str(), error.resumable), ("agentMissing", true));
    assert!(error.message.contains("no-such-agent") && error.message.contains("Get it."));
}

#[tokio::test]
async fn what_an_agent_says_of_itself_is_advertised_from_then_on() {
    use agent_api::Agent;
    let place = Place::new(&json!({
        "session": {"configOptions": [
            {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "a", "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]},
            {"id": "effort", "name": "Effort", "type": "select", "currentValue": "low", "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]},
        ]},
        "on_open": [{"commands": {"count": 3, "description_bytes": 10}}],
        "scenes": [{"steps": [{"say": ["x"]}]}],
    }));
    let agent = place.agent();
    assert_eq!(agent.info().models.len(), 1);
    let chosen = user("t1", "x").with_model("b").with_config("agent_effort", json!("high"));
    let turn = place.turn(&agent, chosen).await;
    assert_eq!(turn.result, Ok(()));
    let set: Vec<_> = place.frames("session/set_config_option");
    let values: Vec<_> = set.iter().map(|frame| frame["params"]["value"].clone()).collect();
    assert_eq!(values, [json!("high"), json!("b")]);
    drop(agent);
    let again = place.agent();
    let models: Vec<String> = again.info().models.into_iter().map(|model| model.id).collect();
    assert_eq!(models, ["default", "a", "b"]);
    assert!(again.info().description.starts_with("Fake Agent"), "{}", again.info().description);
    let effort = again.setting_values("", "agent_effort");
    assert_eq!(effort.len(), 2);
    assert_eq!(again.info().config_schema["properties"]["agent_effort"]["enumDynamic"], true);

    let error = place.turn(&again, user("t2", "x").with_model("z")).await.result.unwrap_err();
    assert!(error.message.contains("no model `z`"), "{}", error.message);
    assert_eq!(place.count("session/prompt"), 1);
}

#[tokio::test]
async fn a_steering_message_is_offered_while_the_agent_works() {
    let place = Place::new(&json!({
        "initialize": {"_meta": {"steering": {"supported": true}}},
        "scenes": [{"steps": ["await_steering", {"say": ["heard {{steering}}"]}]}],
    }));
    let agent = place.agent();
    let turn = place.turn_with(&agent, user("t1", "x"), vec![Reply::Steer("left")]).await;
    assert_eq!(turn.texts(), ["heard left"]);
    let taken = turn.position(|event| matches!(event, AgentEvent::SteeringTaken { .. }));
    assert!(taken.is_some());
}
