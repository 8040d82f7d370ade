//! Workers of the native agent: a task in a chat of its own, with its own model and tools; its prompts reach the user there.

use conformance::native::{ChatClient, NativeHarness, SESSION, calls_of, ends, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call, Gate};

fn task(id: &str, input: Value) -> Call {
    Call::new(id, "task", &input)
}

/// The request that holds a text as what the user said.
fn request_with(harness: &NativeHarness, text: &str) -> Value {
    let requests = harness.model.requests();
    let mut bodies = requests.iter().map(|request| request.json());
    let holds = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().any(|message| message["role"] == "user" && message["content"] == text)
    };
    bodies.find(holds).expect("it was asked")
}

fn tool_names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn workers_do_tasks_in_chats_of_their_own_and_report() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "forty-two\n");
    let calls = Answer::calls([
        task("a", json!({"title": "Look it up", "prompt": "What is in a.txt?"})),
        task("b", json!({"prompt": "Say hello.", "tools": ["read"], "model": "echo"})),
        task("c", json!({"prompt": "Nobody can.", "model": "gpt-9"})),
        task("d", json!({"prompt": 7})),
    ]);
    harness.model.answers_to(
        "\"What is in a.txt?\"",
        [
            Answer::calls([Call::new("r", "read", &json!({"path": "a.txt"}))]),
            Answer::streams(["It says ", "forty-two."]),
        ],
    );
    harness.model.answers_to("\"Say hello.\"", [Answer::streams(["Hello."])]);
    let turn = harness.talk("find out", [calls, ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let results = harness.last_results();
    assert_eq!(results[..2], ["It says forty-two.", "Hello."]);
    assert_eq!(results[2], "There is no model `gpt-9`. There are: echo.");
    assert!(results[3].contains("`prompt` must be a text"), "{}", results[3]);

    let calls = calls_of(&turn);
    assert_eq!(calls.len(), 4, "one call for each: {calls:#?}");
    assert_eq!(calls[0]["toolName"], "task");
    assert_eq!(calls[0]["_meta"]["toolKind"], "subagent");
    let worker = &calls[0]["content"][0];
    assert_eq!(worker["type"], "subagent");
    assert_eq!(worker["title"], "Look it up");
    let chat = worker["resource"].as_str().unwrap();
    let mut bob = ChatClient::arrives(harness.host(), "bob").await;
    bob.enters(SESSION, chat).await;
    let chat = bob.sees();
    assert_eq!(chat["origin"]["kind"], "tool");
    assert_eq!(chat["origin"]["toolCallId"], calls[0]["toolCallId"]);
    assert_eq!(texts_in(&chat["turns"][0], "markdown"), ["It says forty-two."]);

    let first = request_with(&harness, "What is in a.txt?");
    let names = tool_names(&first);
    assert!(names.contains(&"bash") && names.contains(&"todo"), "{names:?}");
    assert!(!names.contains(&"task") && !names.contains(&"ask_user"), "{names:?}");
    let system = first["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("Another agent gave you this task"), "{system}");
    let second = request_with(&harness, "Say hello.");
    assert_eq!(tool_names(&second), ["read"]);
    // A later turn tells the model the same.
    harness.talk("thanks", [ends()]).await;
    assert_eq!(harness.last_results(), results);
}

#[tokio::test]
async fn a_worker_asks_for_consent_in_its_own_chat() {
    let mut harness = NativeHarness::start().await;
    let calls = Answer::calls([task("a", json!({"prompt": "Make a file."}))]);
    harness.model.answers([calls]);
    let write = json!({"path": "made", "content": "x"});
    harness.model.answers_to(
        "\"Make a file.\"",
        [Answer::calls([Call::new("w", "write", &write)]), Answer::streams(["Made."])],
    );
    harness.ann.sends_message("delegate").await;
    let chat = harness
        .ann
        .until("a worker works", |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            calls.iter().any(|call| call["content"][0]["type"] == "subagent")
        })
        .await;
    let worker = calls_of(&chat["activeTurn"])[0]["content"][0]["resource"]
        .clone()
        .as_str()
        .unwrap()
        .to_owned();
    let mut bob = ChatClient::arrives(harness.host(), "bob").await;
    bob.enters(SESSION, &worker).await;
    let asked = bob.asked().await;
    assert_eq!(asked["toolName"], "write");
    let named = worker.clone();
    harness
        .ann
        .until_session(SESSION, move |state| state["inputNeeded"].to_string().contains(&named))
        .await;
    assert!(!harness.work().join("made").exists());
    harness.model.answers([ends()]);
    bob.decides_about(&asked, json!({})).await;
    harness.ann.completed_turn().await;
    assert_eq!(harness.last_results(), ["Made."]);
    assert_eq!(harness.read("made"), "x");
}

#[tokio::test]
async fn a_worker_is_cancelled_with_its_parent_and_leaves_nothing_running() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let calls = Answer::calls([task("a", json!({"prompt": "Serve."}))]);
    harness.model.answers([calls]);
    let background = json!({"command": "echo $$ > pid; exec sleep 1000", "background": true});
    let never = Gate::default();
    harness.model.answers_to(
        "\"Serve.\"",
        [
            Answer::calls([Call::new("b", "bash", &background)]),
            Answer::streams(["Ser"]).begins_after(&never),
        ],
    );
    harness.ann.sends_message("delegate").await;
    harness.model.asked(3).await;
    let pid = loop {
        let pid = std::fs::read_to_string(harness.work().join("pid"));
        match pid.ok().filter(|pid| pid.ends_with('\n')) {
            Some(pid) => break pid.trim().to_owned(),
            None => tokio::task::yield_now().await,
        }
    };
    let chat = harness
        .ann
        .until("the worker is seen", |chat| {
            let calls = calls_of(&chat["activeTurn"]);
            calls.iter().any(|call| call["content"][0]["type"] == "subagent")
        })
        .await;
    let worker = calls_of(&chat["activeTurn"])[0]["content"][0]["resource"].clone();
    harness.ann.cancels().await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "cancelled", "{turn:#}");
    harness.model.abandoned(1).await;
    let stat = format!("/proc/{pid}/stat");
    let is_alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    while is_alive() {
        tokio::task::yield_now().await;
    }
    let mut bob = ChatClient::arrives(harness.host(), "bob").await;
    bob.enters(SESSION, worker.as_str().unwrap()).await;
    assert_eq!(bob.sees()["turns"][0]["state"], "cancelled");
}

#[tokio::test]
async fn a_worker_is_given_only_tools_that_there_are() {
    let mut harness = NativeHarness::start().await;
    let tools = json!([
        {"name": "rename", "inputSchema": {"type": "object"}},
        {"name": "other", "inputSchema": {"type": "object"}},
    ]);
    harness.ann.offers_tools(tools).await;
    let calls = Answer::calls([
        task("a", json!({"prompt": "One.", "tools": ["read", "rename"]})),
        task("b", json!({"prompt": "Two.", "tools": ["raed", "task"]})),
    ]);
    harness.model.answers_to("\"One.\"", [Answer::streams(["Done."])]);
    let turn = harness.talk("delegate", [calls, ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let results = harness.last_results();
    assert_eq!(results[0], "Done.");
    assert!(
        results[1].starts_with("A worker has no tool `raed`, `task`. There are: read, "),
        "{results:?}"
    );
    assert!(results[1].contains("rename") && !results[1].contains("ask_user"));
    let asked = request_with(&harness, "One.");
    assert_eq!(tool_names(&asked), ["read", "rename"]);
}

#[tokio::test]
async fn a_worker_with_another_model_is_asked_about() {
    let add = |models: &mut Vec<host::Model>| {
        let mut dear = models[0].clone();
        dear.id = "dear".to_owned();
        dear.prices = Some(serde_json::from_str(r#"{"input": 15.0, "output": 75.0}"#).unwrap());
        models.push(dear);
    };
    let mut harness = NativeHarness::start_with_models(json!({}), add).await;
    let call = || task("a", json!({"title": "Think", "prompt": "Think.", "model": "dear"}));
    harness.model.answers([Answer::calls([call()]), ends()]);
    harness.ann.sends_message("delegate").await;
    let asked = harness.ann.asked().await;
    let words = asked["invocationMessage"].to_string();
    for part in ["Think (with dear)", "This chat uses echo", "$15", "$75"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let denial = json!({"approved": false, "reason": "denied"});
    harness.ann.decides_about(&asked, denial).await;
    harness.ann.turn_over().await;
    assert_eq!(harness.model.requests().len(), 2, "no worker began");
    // Whoever said that it need not be asked is not asked.
    let config = json!({"type": "session/configChanged", "config": {"approvals": "full-access"}});
    harness.ann.does_in(SESSION, config).await;
    harness.model.answers_to("\"Think.\"", [Answer::streams(["Thought."])]);
    let turn = harness.talk("again", [Answer::calls([call()]), ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(harness.last_results().last().unwrap(), "Thought.");
}

#[tokio::test]
async fn a_task_that_begins_like_a_command_is_told_and_not_run() {
    let mut harness = NativeHarness::start().await;
    let prompt = "!touch ran.txt";
    let calls = Answer::calls([task("a", json!({"title": "Touch", "prompt": prompt}))]);
    harness.model.answers_to(&format!("\"{prompt}\""), [Answer::streams(["No."])]);
    let turn = harness.talk("have it done", [calls, ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(harness.last_results(), ["No."]);
    request_with(&harness, prompt);
    assert!(!harness.work().join("ran.txt").exists());
}
