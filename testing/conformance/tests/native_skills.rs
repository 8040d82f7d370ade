//! Skills in a conversation with a model: offered where there are any, read by the tool, the same each time.

use conformance::native::NativeHarness;
use serde_json::{Value, json};
use testkit::{Answer, Call};

fn tools(harness: &NativeHarness) -> Vec<String> {
    let requests = harness.model.requests();
    let asked = requests.last().expect("the model was asked").json();
    let tools = asked["tools"].as_array().cloned().unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn a_skill_is_offered_when_there_is_one_and_needs_no_consent() {
    let mut harness = NativeHarness::start().await;
    harness.talk("hello", [Answer::streams(["ok"])]).await;
    assert!(!tools(&harness).contains(&"skill".to_owned()));

    let directory = harness.work().join(".agents/skills/tables");
    std::fs::create_dir_all(&directory).unwrap();
    let skill = "---\nname: tables\ndescription: Makes tables\n---\nUse rules.\n";
    std::fs::write(directory.join("SKILL.md"), skill).unwrap();
    let call = |id: &str, name: &str| Call::new(id, "skill", &json!({"name": name}));
    let turn = harness
        .talk(
            "draw a table",
            [
                Answer::calls([call("a", "tables"), call("b", "chairs")]),
                Answer::calls([call("c", "tables")]),
                Answer::streams(["done"]),
            ],
        )
        .await;
    assert_eq!(turn["state"], "complete", "{turn}");
    assert!(tools(&harness).contains(&"skill".to_owned()));
    let expected = "<skill_content name=\"tables\">Use rules.</skill_content>";
    assert_eq!(
        harness.last_results(),
        [expected, "there is no such skill; there are: tables", expected]
    );
}
