//! Commands that an external agent runs in terminals of the host (AG-52): what is asked, what runs, what is refused, what is seen.

use conformance::acp::{AcpHarness, AcpSetup, is_alive, scene};
use conformance::native::calls_of;
use serde_json::{Value, json};

fn create(more: Value) -> Value {
    let mut params = json!({"sessionId": "{{session}}"});
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    json!({"request": {"method": "terminal/create", "params": params}})
}

fn of_last(method: &str) -> Value {
    let params = json!({"sessionId": "{{session}}", "terminalId": "{{terminal}}"});
    json!({"request": {"method": format!("terminal/{method}"), "params": params}})
}

async fn start(steps: Value, config: Value) -> AcpHarness {
    let setup = AcpSetup::new(json!({"scenes": [scene("", steps)]})).file("sub/a.txt", "one\n");
    setup.config(config).start().await
}

#[tokio::test]
async fn a_command_is_asked_about_as_it_runs_and_is_shown_in_its_terminal() {
    let steps = json!([
        create(json!({"command": "printf", "args": ["%s-%s\n", "$(id) 'b'", "x"], "cwd": "{{cwd}}/sub", "env": [{"name": "CI", "value": "1"}]})),
        of_last("wait_for_exit"), of_last("output"), of_last("release"), of_last("output"), {"say": ["done"]},
    ]);
    let mut harness = start(steps, json!({})).await;
    harness.ann.sends_message("go").await;
    let asked = harness.ann.asked().await;
    let input: Value = serde_json::from_str(asked["toolInput"].as_str().unwrap()).unwrap();
    let line = r"printf '%s-%s
' '$(id) '\''b'\''' x";
    let cwd = harness.work().canonicalize().unwrap().join("sub");
    assert_eq!(input, json!({"command": line, "cwd": cwd, "env": {"CI": "1"}}), "{asked:#}");
    harness.ann.decides_about(&asked, json!({})).await;
    let turn = harness.ann.turn_over().await;
    let answers = harness.answers();
    assert!(answers[0]["result"]["terminalId"].is_string(), "{answers:#?}");
    assert_eq!(answers[1]["result"]["exitCode"], 0);
    let output = &answers[2]["result"];
    assert_eq!(output["output"], "$(id) 'b'-x\n");
    assert_eq!(output["truncated"], false);
    assert_eq!(output["exitStatus"]["exitCode"], 0);
    assert_eq!(answers[3]["result"], json!({}));
    assert_eq!(answers[4]["error"]["code"], -32002, "it was released");
    let call = calls_of(&turn).remove(0);
    let block = &call["content"][0];
    assert_eq!(block["type"], "terminal", "{call:#}");
    assert!(block["resource"].as_str().unwrap().starts_with("ahp-terminal:/"));
    assert_eq!(block["result"]["exitCode"], 0, "{call:#}");
    assert_eq!(call["status"], "completed", "{call:#}");
    let offered = harness.received("initialize")[0]["clientCapabilities"].clone();
    assert_eq!(offered["terminal"], true);
}

#[tokio::test]
async fn nothing_runs_without_a_yes_or_outside() {
    let steps = json!([
        create(json!({"command": "touch ran"})),
        create(json!({"command": "touch ran", "cwd": "/tmp"})),
        create(json!({"command": "touch ran", "cwd": "{{cwd}}/.."})),
        create(json!({"command": "touch ran", "cwd": "sub"})),
        create(json!({"command": "touch ran", "env": [{"name": "GREENROOM_CALL", "value": "x"}]})),
        create(json!({"command": " "})),
        of_last("output"), {"say": ["done"]},
    ]);
    let mut harness = start(steps.clone(), json!({})).await;
    harness.ann.sends_message("go").await;
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides(denied).await;
    let turn = harness.ann.completed_turn().await;
    assert_eq!(calls_of(&turn).len(), 1, "what is wrong is not asked about");
    let answers = harness.answers();
    assert_eq!(answers.len(), 7);
    assert!(answers.iter().all(|answer| answer["error"].is_object()), "{answers:#?}");
    assert!(!harness.work().join("ran").exists());
    // The session only reads: nobody is asked.
    let mut harness = start(steps, json!({"approvals": "plan"})).await;
    harness.talk("go").await;
    assert!(harness.answers()[0]["error"].is_object());
    assert!(!harness.work().join("ran").exists());
}

/// The agent asked for the command already: the same is not asked twice, and a consent is good for once.
#[tokio::test]
async fn a_command_that_an_allowed_call_named_is_not_asked_about_again() {
    let run = create(json!({"command": "bash", "args": ["-c", "echo x >> ran"]}));
    let shown = json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "run", "content": [{"type": "terminal", "terminalId": "{{terminal}}"}]}});
    let tool = json!({"id": "run", "title": "Run", "kind": "execute", "input": {"command": "echo x >> ran"}, "ask": {},
        "steps": [run.clone(), shown, of_last("wait_for_exit"), run, of_last("wait_for_exit")]});
    let mut harness = start(json!([{"tool": tool}, {"say": ["done"]}]), json!({})).await;
    harness.ann.sends_message("go").await;
    let first = harness.ann.asked().await;
    assert_eq!(first["displayName"], "Run", "{first:#}");
    harness.ann.decides_about(&first, json!({})).await;
    let id = first["toolCallId"].clone();
    let is_again = |turn: &Value| {
        let calls = calls_of(turn);
        calls
            .iter()
            .any(|call| call["toolCallId"] != id && call["status"] == "pending-confirmation")
    };
    harness.ann.until("a second question", |chat| is_again(&chat["activeTurn"])).await;
    assert_eq!(harness.read("ran"), "x\n", "the first ran unasked, the second did not");
    let denied = json!({"approved": false, "reason": "denied"});
    harness.ann.decides(denied).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.read("ran"), "x\n");
    let call = calls_of(&turn).remove(0);
    let blocks = call["content"].as_array().unwrap();
    let terminals = blocks.iter().filter(|block| block["type"] == "terminal");
    assert_eq!(terminals.count(), 1, "{call:#}");
}

#[tokio::test]
async fn output_is_bounded_and_what_is_killed_says_so() {
    let steps = json!([
        create(json!({"command": "yes ä | head -c 3000000; echo end; sleep 1000", "outputByteLimit": 100})),
        {"await": "printed"}, of_last("output"), of_last("kill"), of_last("wait_for_exit"), of_last("output"), {"say": ["done"]},
    ]);
    let mut harness = start(steps, json!({"approvals": "full-access"})).await;
    harness.ann.sends_message("go").await;
    let turn = harness.ann.until("a terminal", |chat| {
        let calls = calls_of(&chat["activeTurn"]);
        calls.first().is_some_and(|call| call["content"][0]["type"] == "terminal")
    });
    turn.await;
    harness.touch("printed");
    let turn = harness.ann.turn_over().await;
    let answers = harness.answers();
    assert_eq!(answers[2]["result"], json!({}));
    assert_eq!(answers[3]["result"]["signal"], "9", "{answers:#?}");
    let last = &answers[4]["result"];
    let output = last["output"].as_str().unwrap();
    assert!(output.len() <= 100, "{output}");
    assert_eq!(last["exitStatus"]["signal"], "9");
    assert_eq!(calls_of(&turn)[0]["status"], "completed", "{turn:#}");
}

#[tokio::test]
async fn what_runs_at_the_end_of_the_turn_ends_with_it() {
    let steps = json!([
        create(json!({"command": "echo $$ > pid.new; mv pid.new pid; sleep 1000 & wait"})), {"await": "started"}, {"say": ["done"]},
    ]);
    let mut harness = start(steps, json!({"approvals": "full-access"})).await;
    harness.ann.sends_message("go").await;
    harness.until("it runs", |it| it.work().join("pid").exists()).await;
    let process: u32 = harness.read("pid").trim().parse().unwrap();
    assert!(is_alive(process));
    harness.touch("started");
    let turn = harness.ann.completed_turn().await;
    assert_eq!(calls_of(&turn)[0]["status"], "completed", "{turn:#}");
    harness.until("its end", |_| !is_alive(process)).await;
}

/// As many as an agent may have at once.
const TERMINALS_MAX: usize = 32;

#[tokio::test]
async fn a_released_terminal_ends_and_another_may_take_its_place() {
    let mut steps = vec![
        create(json!({"command": "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"})),
        json!({"await": "started"}),
        of_last("release"),
        json!({"await": "ended"}),
    ];
    for _ in 0..TERMINALS_MAX + 4 {
        steps.push(create(json!({"command": "sleep 1000"})));
        steps.push(of_last("release"));
    }
    steps.push(json!({"say": ["done"]}));
    let mut harness = start(json!(steps), json!({"approvals": "full-access"})).await;
    harness.ann.sends_message("go").await;
    let has_started = |it: &AcpHarness| it.work().join("pid").exists();
    harness.until("it runs", has_started).await;
    let process: u32 = harness.read("pid").trim().parse().unwrap();
    harness.touch("started");
    // While the turn goes on.
    harness.until("its end", |_| !is_alive(process)).await;
    harness.touch("ended");
    let turn = harness.ann.completed_turn().await;
    let answers = harness.answers();
    assert_eq!(answers.len(), 2 * (TERMINALS_MAX + 5));
    let failed = answers.iter().find(|answer| answer["error"].is_object());
    assert_eq!(failed, None);
    let calls = calls_of(&turn);
    assert_eq!(calls.len(), TERMINALS_MAX + 5);
    assert!(calls.iter().all(|call| call["status"] == "completed"));
}

#[tokio::test]
async fn an_agent_has_so_many_terminals_at_once() {
    let mut steps = vec![create(json!({"command": "true"})); TERMINALS_MAX + 1];
    steps.push(of_last("release"));
    steps.push(create(json!({"command": "true"})));
    steps.push(json!({"say": ["done"]}));
    let mut harness = start(json!(steps), json!({"approvals": "full-access"})).await;
    let turn = harness.talk("go").await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let answers = harness.answers();
    let (first, rest) = answers.split_at(TERMINALS_MAX);
    assert!(first.iter().all(|answer| answer["result"].is_object()));
    let refused = rest[0]["error"]["message"].as_str().unwrap();
    assert_eq!(refused, "there are 32 terminals already: release one first");
    assert!(rest[1]["result"].is_object(), "{rest:#?}");
    assert!(rest[2]["result"].is_object(), "one was released");
    assert_eq!(calls_of(&turn).len(), TERMINALS_MAX + 1);
}

/// The turn does not wait for a person who types where the agent looks no longer.
#[tokio::test]
async fn a_released_terminal_that_a_person_holds_is_left_to_that_person() {
    let steps = json!([
        create(json!({"command": "echo $$ > pid.new; mv pid.new pid; read line; echo \"$line\" > typed; sleep 1000"})),
        {"await": "held"}, of_last("release"), {"say": ["done"]},
    ]);
    let mut harness = start(steps, json!({"approvals": "full-access"})).await;
    harness.ann.sends_message("go").await;
    let is_shown = |turn: &Value| {
        let calls = calls_of(turn);
        let block = calls.first().map(|call| call["content"][0].clone());
        block.filter(|block| block["type"] == "terminal")
    };
    let chat = harness.ann.until("a terminal", |chat| is_shown(&chat["activeTurn"]).is_some());
    let block = is_shown(&chat.await["activeTurn"]).unwrap();
    let uri = block["resource"].as_str().unwrap().to_owned();
    harness.until("it runs", |it| it.work().join("pid").exists()).await;
    let process: u32 = harness.read("pid").trim().parse().unwrap();
    let params = json!({"channel": uri});
    let subscribed = harness.ann.connection.request("subscribe", params.clone());
    subscribed.await.unwrap();
    let claim = json!({"kind": "client", "clientId": "ann"});
    let action = json!({"type": "terminal/claimed", "claim": claim});
    harness.ann.does_in(&uri, action).await;
    let mut claimed = Value::Null;
    while claimed["kind"] != "client" {
        let answer = harness.ann.connection.request("subscribe", params.clone());
        claimed = answer.await.unwrap()["snapshot"]["state"]["claim"].clone();
    }
    harness.touch("held");
    let turn = harness.ann.completed_turn().await;
    assert_eq!(calls_of(&turn)[0]["status"], "completed", "{turn:#}");
    let typed = json!({"type": "terminal/input", "data": "hello\r"});
    harness.ann.does_in(&uri, typed).await;
    let has_typed = |it: &AcpHarness| it.work().join("typed").exists();
    harness.until("it reads", has_typed).await;
    assert!(is_alive(process), "it goes on");
}
