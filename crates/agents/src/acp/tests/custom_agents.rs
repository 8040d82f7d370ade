//! Custom agents that are modes of an agent of others (CU-9).

use std::sync::Arc;

use agent_api::{Agent, AgentInfo, HostNews};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::harness::{Input, Place, user};
use crate::acp::AcpAgent;

/// Modes of an agent that begins with `build`.
fn script(steps: &Value) -> Value {
    let modes = json!({"currentModeId": "build", "availableModes": [
        {"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan ahead"}, {"id": "review", "name": "Review"},
    ]});
    json!({"session": {"modes": modes}, "scenes": [{"steps": steps}]})
}

fn says() -> Value {
    json!([{"say": ["ok"]}])
}

fn of(mut input: Input, name: &str) -> Input {
    std::sync::Arc::make_mut(&mut input.turn.message)["agent"] =
        json!({"uri": format!("file:///w/{name}.md")});
    input.turn.custom_agent = Some(name.to_owned());
    input
}

/// The modes that were set and the prompts, in this order.
fn order(place: &Place) -> Vec<String> {
    let frames = place.received().into_iter().map(|line| line.frame);
    let named = frames.filter_map(|frame| match frame["method"].as_str()? {
        "session/set_mode" => Some(frame["params"]["modeId"].as_str()?.to_owned()),
        "session/prompt" => Some("prompt".to_owned()),
        _ => None,
    });
    named.collect()
}

/// The settings that an agent told of.
#[derive(Default)]
struct ToldSettings(Mutex<Vec<(String, Value)>>);

impl HostNews for ToldSettings {
    fn agent_changed(&self, _: AgentInfo) {}

    fn setting_changed(&self, _: &str, name: &str, value: Value) {
        self.0.lock().push((name.to_owned(), value));
    }

    fn mcp_servers(&self, _: &str, _: Vec<Value>) {}

    fn title(&self, _: &str, _: String) {}
}

fn following(agent: &AcpAgent) -> Arc<ToldSettings> {
    let told = Arc::new(ToldSettings::default());
    agent.start(Arc::clone(&told) as Arc<dyn HostNews>);
    told
}

impl ToldSettings {
    /// The modes that the session has by what was told, without repetitions.
    fn modes(&self) -> Vec<Value> {
        let told = self.0.lock();
        let mut modes: Vec<Value> = told
            .iter()
            .filter(|(name, _)| name == "agent_mode")
            .map(|(_, value)| value.clone())
            .collect();
        modes.dedup();
        modes
    }
}

#[tokio::test]
async fn cu_9_a_custom_agent_sets_its_mode_for_the_turn() {
    let place = Place::new(&script(&says()));
    let agent = place.agent();
    let told = following(&agent);
    assert_eq!(
        agent.custom_agents("conversation"),
        Some(Default::default()),
        "nothing is known before it ran"
    );
    let first = place.turn(&agent, of(user("t1", "one"), "Plan ahead")).await;
    assert_eq!(first.result, Ok(()));
    let names = agent.custom_agents("conversation").unwrap();
    assert!(names.contains("plan") && names.contains("Plan ahead") && names.contains("review"));
    assert_eq!(agent.custom_agents("another").unwrap(), names);
    let same = of(user("t2", "two").after("t1", &first), "plan");
    let same = place.turn(&agent, same).await;
    let other = of(user("t3", "three").after("t2", &same), "review");
    let other = place.turn(&agent, other).await;
    let none = place.turn(&agent, user("t4", "four").after("t3", &other)).await;
    assert_eq!(none.result, Ok(()));
    assert_eq!(order(&place), ["plan", "prompt", "prompt", "review", "prompt", "build", "prompt"]);
    assert_eq!(told.modes(), [json!("build")], "the session's own mode stays");
}

#[tokio::test]
async fn cu_9_what_a_client_sets_stays_and_what_the_agent_says_of_the_turn_does_not() {
    // The agent echoes the mode, as several do.
    let echo = json!({"update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}});
    let place = Place::new(&script(&json!([echo, {"say": ["ok"]}])));
    let agent = place.agent();
    let told = following(&agent);
    let review = |input: Input| input.with_config("agent_mode", json!("review"));
    let first = place.turn(&agent, of(review(user("t1", "one")), "plan")).await;
    assert_eq!(first.result, Ok(()));
    let next = review(user("t2", "two")).after("t1", &first);
    let next = place.turn(&agent, next).await;
    assert_eq!(next.result, Ok(()));
    assert_eq!(order(&place), ["review", "plan", "prompt", "review", "prompt"]);
    // In the second turn nobody chose it: it is the agent's own change.
    assert_eq!(told.modes(), [json!("plan")]);
}

#[tokio::test]
async fn cu_9_another_custom_agent_ends_the_turn_before_anything_is_said() {
    let place = Place::new(&script(&says()));
    let agent = place.agent();
    let error = place.turn(&agent, of(user("t1", "one"), "painter")).await.result.unwrap_err();
    assert_eq!(error.error_type, "customAgentMissing");
    assert!(error.message.contains("`painter`"), "{}", error.message);
    let mut gone = of(user("t1", "one"), "plan");
    gone.turn.custom_agent = None; // the session does not list it any more
    let gone = place.turn(&agent, gone).await.result.unwrap_err();
    assert_eq!(gone.error_type, "customAgentMissing");
    assert_eq!(order(&place), Vec::<String>::new());
}
