//! What a project has for agents, in a real session of the native agent: custom agents with their tools, rules, and what is
//! switched off (CU-5, CU-6, CU-8, CU-9).

use conformance::native::{NativeHarness, SESSION, ends};
use serde_json::{Value, json};
use testkit::model_server::{Answer, Call};

fn entry(session: &Value, name: &str) -> Option<Value> {
    let containers = session["customizations"].as_array()?;
    let children = containers.iter().filter_map(|container| container["children"].as_array());
    let mut all = containers.iter().chain(children.flatten());
    all.find(|entry| entry["name"] == name).cloned()
}

/// What a request told the model before anything else, and the names of its tools.
fn head_of(body: &Value) -> (String, Vec<String>) {
    let messages = body["messages"].as_array().unwrap();
    let system: Vec<String> = messages
        .iter()
        .filter(|message| message["role"] == "system")
        .map(|message| message["content"].to_string())
        .collect();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    (system.join("\n"), names.collect())
}

fn last_body(harness: &NativeHarness) -> Value {
    harness.model.requests().last().unwrap().json()
}

/// Writes the project's files and waits until the session has the customization of this name.
async fn harness(name: &str, files: &[(&str, &str)]) -> NativeHarness {
    let mut harness = NativeHarness::start().await;
    for (path, text) in files {
        std::fs::create_dir_all(harness.work().join(path).parent().unwrap()).unwrap();
        harness.write(path, text);
    }
    // What was found a moment ago counts for a while: a later message looks again.
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(200));
    for _ in 0..40 {
        harness.talk("hello", [ends()]).await;
        if entry(&harness.ann.sees_session(SESSION), name).is_some() {
            break;
        }
        looks.tick().await;
    }
    let has_it = |session: &Value| entry(session, name).is_some();
    harness.ann.until_session(SESSION, has_it).await;
    harness
}

async fn ask_agent(harness: &mut NativeHarness, uri: &Value) -> Value {
    ask_agent_with(harness, uri, vec![ends()]).await
}

/// The last request of a turn in which the model answers a custom agent's message like this.
async fn ask_agent_with(harness: &mut NativeHarness, uri: &Value, answers: Vec<Answer>) -> Value {
    harness.model.answers(answers);
    let message = json!({"text": "go", "origin": {"kind": "user"}, "agent": {"uri": uri}});
    harness.ann.sends_whole(message).await;
    harness.ann.turn_over().await;
    last_body(harness)
}

#[tokio::test]
async fn a_custom_agent_brings_its_words_and_its_tools() {
    let mut harness = harness("reviewer", &[(
        ".claude/agents/reviewer.md",
        "---\ndescription: Reviews\ntools: Read, Grep, Bash(git:*)\n---\nYou review and never write.",
    )])
    .await;
    let session = harness.ann.sees_session(SESSION);
    let reviewer = entry(&session, "reviewer").unwrap();
    assert_eq!(reviewer["tools"], json!(["Read", "Grep", "Bash(git:*)"]));
    let body = ask_agent(&mut harness, &reviewer["uri"]).await;
    let (system, tools) = head_of(&body);
    assert!(system.contains("You review and never write."), "{system}");
    assert_eq!(tools, ["read", "grep", "bash"].map(str::to_owned).to_vec(), "{tools:?}");
    // Only for the message that named it.
    harness.talk("again", [ends()]).await;
    let (system, tools) = head_of(&last_body(&harness));
    assert!(!system.contains("You review"));
    assert!(tools.contains(&"write".to_owned()));
}

#[tokio::test]
async fn rules_hold_where_they_say() {
    let mut harness = harness(
        "style",
        &[
            (".claude/rules/style.md", "Short lines only."),
            (
                ".github/instructions/ts.instructions.md",
                "---\napplyTo: \"src/**/*.ts\"\ndescription: TypeScript\n---\nNo any, ever.",
            ),
            ("src/a/b.ts", "let x = 1;\n"),
            ("AGENTS.md", "Be kind."),
        ],
    )
    .await;
    let (system, _) = head_of(&last_body(&harness));
    assert!(system.contains("Short lines only.") && system.contains("Be kind."), "{system}");
    assert!(system.contains("ts.instructions.md") && system.contains("TypeScript"), "{system}");
    assert!(!system.contains("No any, ever."), "{system}");
    harness.talk("look at @file:src/a/b.ts", [ends()]).await;
    let (system, _) = head_of(&last_body(&harness));
    assert!(system.contains("No any, ever."), "{system}");
}

// CU-8
#[tokio::test]
async fn a_rule_about_files_holds_once_a_call_touches_one() {
    let rule = |globs: &str, text: &str| {
        format!("---\napplyTo: \"{globs}\"\ndescription: For some files\n---\n{text}")
    };
    let mut harness = harness(
        "ts",
        &[
            (".github/instructions/ts.instructions.md", &rule("src/**/*.ts", "No any, ever.")),
            (".github/instructions/py.instructions.md", &rule("**/*.py", "Type hints.")),
            ("src/a/b.ts", "let x = 1;\n"),
        ],
    )
    .await;
    let (system, _) = head_of(&last_body(&harness));
    assert!(!system.contains("No any, ever."), "{system}");
    let read = Call::new("c1", "read", &json!({"path": "src/a/b.ts"}));
    harness.talk("look", [Answer::calls([read]), ends()]).await;
    let (system, _) = head_of(&last_body(&harness));
    assert!(system.contains("No any, ever."), "{system}");
    assert!(!system.contains("Type hints."), "{system}");
    assert!(system.contains("py.instructions.md"), "{system}");
    // It goes on to hold in the session.
    harness.talk("and now?", [ends()]).await;
    let (system, _) = head_of(&last_body(&harness));
    assert!(system.contains("No any, ever."), "{system}");
}

#[tokio::test]
async fn a_custom_agent_without_tools_is_offered_none() {
    let files = [(".claude/agents/talker.md", "---\ntools: []\n---\nYou only talk.")];
    let mut harness = harness("talker", &files).await;
    let talker = entry(&harness.ann.sees_session(SESSION), "talker").unwrap();
    assert_eq!(talker["tools"], json!([]));
    let body = ask_agent(&mut harness, &talker["uri"]).await;
    let (system, tools) = head_of(&body);
    assert!(system.contains("You only talk."), "{system}");
    assert_eq!(tools, Vec::<String>::new());
}

#[tokio::test]
async fn a_worker_of_a_custom_agent_has_no_more_tools_than_it() {
    let files = [(".claude/agents/scout.md", "---\ntools: Read, Task\n---\nYou scout.")];
    let mut harness = harness("scout", &files).await;
    let scout = entry(&harness.ann.sees_session(SESSION), "scout").unwrap();
    let before = harness.model.requests().len();
    let task = Call::new("c1", "task", &json!({"title": "Look", "prompt": "Look around."}));
    let answers = vec![Answer::calls([task]), ends(), ends()];
    ask_agent_with(&mut harness, &scout["uri"], answers).await;
    let requests = harness.model.requests();
    let offered: Vec<Vec<String>> =
        requests[before..].iter().map(|request| head_of(&request.json()).1).collect();
    assert_eq!(offered, [vec!["read", "task"], vec!["read"], vec!["read", "task"]]);
}

#[tokio::test]
async fn what_is_switched_off_is_not_used_by_anybody() {
    let mut harness = harness(
        "maps",
        &[
            (".agents/skills/maps/SKILL.md", "---\ndescription: Draws maps\n---\nDraw."),
            (".claude/commands/fix.md", "Fix it all."),
            ("AGENTS.md", "Be kind."),
        ],
    )
    .await;
    let session = harness.ann.sees_session(SESSION);
    for name in ["maps", "fix", "AGENTS.md"] {
        let id = entry(&session, name).unwrap()["id"].clone();
        let off = json!([{"kind": "session", "enabled": false}]);
        let toggle = json!({"type": "session/customizationToggled", "id": id, "enablement": off});
        harness.ann.does_in(SESSION, toggle).await;
        let is_off =
            |session: &Value| entry(session, name).is_some_and(|entry| entry["enabled"] == false);
        harness.ann.until_session(SESSION, is_off).await;
    }
    harness.talk("/fix now", [ends()]).await;
    let body = last_body(&harness);
    let (system, tools) = head_of(&body);
    assert!(!system.contains("maps") && !system.contains("Be kind."), "{system}");
    assert!(!tools.contains(&"skill".to_owned()), "no skill is left: {tools:?}");
    assert!(!body.to_string().contains("Fix it all."));
}

// H-309, CU-3
#[tokio::test]
async fn a_skill_that_a_client_writes_is_listed_at_once() {
    let mut harness = NativeHarness::start().await;
    harness.talk("hello", [ends()]).await;
    // The directory is not there, and clients know where they may put skills.
    let is_told = |session: &Value| entry(session, ".agents/skills").is_some();
    let session = harness.ann.until_session(SESSION, is_told).await;
    let empty = entry(&session, ".agents/skills").unwrap();
    assert_eq!((&empty["writable"], &empty["children"]), (&json!(true), &json!([])));
    assert!(!harness.work().join(".agents").exists());
    let directory = session["workingDirectories"][0].as_str().unwrap();
    let skill = format!("{}/.agents/skills/maps", directory.trim_end_matches('/'));
    let text = "---\nname: maps\ndescription: Draws maps\n---\nDraw.";
    let write = json!({
        "channel": "ahp-root://", "uri": format!("{skill}/SKILL.md"), "data": text, "encoding": "utf-8",
    });
    let connection = &harness.ann.connection;
    connection.request("resourceWrite", write).await.unwrap();
    let has_it = |session: &Value| entry(session, "maps").is_some();
    let session = harness.ann.until_session(SESSION, has_it).await;
    let listed = entry(&session, ".agents/skills").unwrap();
    assert_eq!(listed["writable"], true, "{listed:#}");
    assert_eq!(listed["id"], empty["id"], "it is the same directory");
    let delete = json!({"channel": "ahp-root://", "uri": skill, "recursive": true});
    let connection = &harness.ann.connection;
    connection.request("resourceDelete", delete).await.unwrap();
    let is_gone = |session: &Value| entry(session, "maps").is_none();
    harness.ann.until_session(SESSION, is_gone).await;
}

// CU-4
#[tokio::test]
async fn a_plugin_that_leads_outside_is_used_without_that_and_says_so() {
    let manifest =
        r#"{"commands": ["../../../other", "mine"], "mcpServers": "../../../servers.json"}"#;
    let servers = json!({"mcpServers": {"evil": {"command": "touch", "args": ["ran-evil"]}}});
    let mut harness = harness(
        "kit",
        &[
            (".agents/plugins/kit/plugin.json", manifest),
            (".agents/plugins/kit/mine/own.md", "Do my own."),
            ("other/evil.md", "Do evil."),
            ("servers.json", &servers.to_string()),
        ],
    )
    .await;
    let session = harness.ann.sees_session(SESSION);
    let plugin = entry(&session, "kit").unwrap();
    assert_eq!(plugin["load"]["kind"], "degraded", "{plugin:#}");
    let said = plugin["load"]["message"].as_str().unwrap();
    assert!(said.contains("../../../other"), "{said}");
    assert_eq!(said.matches("leads out of the plugin").count(), 2, "{said}");
    let names: Vec<&Value> = plugin["children"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 1, "{plugin:#}");
    harness.talk("/kit:own", [ends()]).await;
    assert!(last_body(&harness).to_string().contains("Do my own."));
    assert!(!harness.work().join("ran-evil").exists());
}
