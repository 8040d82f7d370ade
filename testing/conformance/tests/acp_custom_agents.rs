//! Custom agents in sessions of ACP agents: those that are modes of the agent can be chosen, others are refused (CU-9, CU-11).

use conformance::acp::{AcpHarness, AcpSetup, scene};
use serde_json::{Value, json};

async fn start() -> AcpHarness {
    let modes = json!({"currentModeId": "build", "availableModes": [
        {"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"},
    ]});
    let script = json!({
        "session": {"modes": modes}, "scenes": [scene("", json!([{"say": ["ok"]}]))],
    });
    let setup = AcpSetup::new(script)
        .file(
            ".agents/agents/plan.md",
            "---\ndescription: Plans\nmodel: big\ntools: read\n---\nPlan.",
        )
        .file(".agents/agents/painter.md", "Paint.")
        .file(".agents/skills/maps/SKILL.md", "Draw.");
    setup.start().await
}

/// Every customization and every child.
fn entries(session: &Value) -> Vec<Value> {
    let containers = session["customizations"].as_array().cloned().unwrap_or_default();
    let children: Vec<Value> = containers
        .iter()
        .filter_map(|container| container["children"].as_array())
        .flatten()
        .cloned()
        .collect();
    containers.into_iter().chain(children).collect()
}

fn named(session: &Value, name: &str) -> Option<Value> {
    let mut entries = entries(session).into_iter();
    entries.find(|entry| entry["name"] == name)
}

async fn sends_to(harness: &mut AcpHarness, uri: &Value) {
    let message = json!({"text": "go", "origin": {"kind": "user"}, "agent": {"uri": uri}});
    harness.ann.sends_whole(message).await;
}

fn modes(harness: &AcpHarness) -> Vec<String> {
    let set = harness.received("session/set_mode").into_iter();
    set.map(|params| params["modeId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_custom_agent_that_is_a_mode_can_be_chosen_and_no_other() {
    let mut harness = start().await;
    let session = harness.session().to_owned();
    let uri_of = |name: &str| {
        let work = harness.work().canonicalize().unwrap();
        let path = work.join(format!(".agents/agents/{name}.md"));
        json!(wire::file_uri::uri_of(path.as_os_str().as_encoded_bytes()))
    };
    let (plan, painter) = (uri_of("plan"), uri_of("painter"));
    harness.talk("one").await;
    // The agent has told its modes with its first turn.
    let has_plan = |session: &Value| named(session, "plan").is_some();
    let state = harness.ann.until_session(&session, has_plan).await;
    let listed = named(&state, "plan").unwrap();
    assert_eq!((&listed["type"], &listed["uri"]), (&json!("agent"), &plan));
    // Its own agent of that name has a model and tools of its own.
    assert!(listed.get("model").is_none() && listed.get("tools").is_none());
    assert!(named(&state, "painter").is_none() && named(&state, "maps").is_none());

    sends_to(&mut harness, &plan).await;
    harness.ann.turn_over().await;
    assert_eq!(modes(&harness), ["plan"]);
    harness.talk("two").await;
    assert_eq!(modes(&harness), ["plan", "build"]);
    let values = harness.ann.sees_session(&session)["config"]["values"].clone();
    assert_ne!(values["agent_mode"], "plan", "it was for one turn");

    sends_to(&mut harness, &painter).await;
    let refused = harness.ann.refused().await;
    assert!(refused.contains("no custom agent"), "{refused}");

    let id = listed["id"].clone();
    let off = json!({"type": "session/customizationToggled", "id": id, "enablement": [{"kind": "session", "enabled": false}]});
    harness.ann.does_in(&session, off).await;
    sends_to(&mut harness, &plan).await;
    let refused = harness.ann.refused().await;
    assert!(refused.contains("switched off"), "{refused}");
    assert_eq!(harness.received("session/prompt").len(), 3);
}
