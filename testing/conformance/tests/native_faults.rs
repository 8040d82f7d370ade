//! Models and their servers do what they like: unknown tools, broken input, overload, nonsense.

use conformance::native::{NativeHarness, calls_of, ends, error_of, parts_of, script_of, texts_in};
use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call};

fn results_of(turn: &Value) -> Vec<String> {
    let result = |call: &Value| {
        let text = call["content"][0]["text"].as_str().unwrap_or("-");
        format!("{} {} {text}", call["status"].as_str().unwrap(), call["success"])
    };
    calls_of(turn).iter().map(result).collect()
}

#[tokio::test]
async fn invalid_calls_fail_with_a_message_and_the_turn_continues() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let calls = [
        Call::new("1", "format_disk", &json!({"now": true})),
        Call::with_text("2", "read", "{\"path\": \"a.t"),
        Call::with_text("3", "read", ""),
        Call::with_text("4", "read", "[1]"),
        Call::with_text("5", "read", "null"),
        Call::new("6", "read", &json!({"path": 7})),
        Call::new("7", "read", &json!({"path": "nowhere.txt"})),
        Call::new("8", "bash", &json!({"command": "exit 3"})),
        Call::with_text("9", "list", ""),
        Call::new("10", "", &json!({})),
    ];
    let turn = harness.talk("go", [Answer::calls(calls), ends()]).await;
    assert_eq!(turn["state"], "complete");
    expect![[r#"
        [
            "completed false There is no tool `format_disk`. There are: read, view_image, list, glob, grep, write, edit, bash, bash_output, bash_kill, web_fetch, todo, ask_user, task.",
            "completed false The input is not JSON: EOF while parsing a string at line 1 column 13. Send the call again.",
            "completed false the input does not fit: missing field `path`, a text. For example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}",
            "completed false The input must be a JSON object.",
            "completed false The input must be a JSON object.",
            "completed false the input does not fit: `path` must be a text, and is another number. For example: {\"path\": \"src/main.rs\", \"offset\": 1, \"limit\": 200}",
            "completed false there is no nowhere.txt; `list` shows what is there",
            "completed false [no output]\n[exit code 3]",
            "completed true [nothing in .]",
            "completed false There is no tool ``. There are: read, view_image, list, glob, grep, write, edit, bash, bash_output, bash_kill, web_fetch, todo, ask_user, task.",
        ]
    "#]].assert_debug_eq(&results_of(&turn));
    let messages = harness.last_messages();
    assert_eq!(messages.len(), 2 + 10, "one result each");
    harness.talk("again", [ends()]).await;
    let messages = harness.last_messages();
    for call in messages[1]["tool_calls"].as_array().unwrap() {
        let input = call["function"]["arguments"].as_str().unwrap();
        let read: Result<Value, _> = serde_json::from_str(input);
        assert!(
            read.is_ok_and(|input| input.is_object()),
            "servers parse what they are sent back: {call}"
        );
    }
}

#[tokio::test]
async fn two_calls_of_one_id_are_two_calls() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    harness.write("b.txt", "two\n");
    let calls = [
        Call::new("same", "read", &json!({"path": "a.txt"})),
        Call::new("same", "read", &json!({"path": "b.txt"})),
    ];
    let turn = harness.talk("go", [Answer::calls(calls), ends()]).await;
    assert_eq!(calls_of(&turn).len(), 2);
    let messages = harness.last_messages();
    let ids: Vec<&Value> =
        messages[1]["tool_calls"].as_array().unwrap().iter().map(|call| &call["id"]).collect();
    assert_ne!(ids[0], ids[1], "results are distinguished by id");
    assert_eq!(messages[2]["tool_call_id"], *ids[0]);
    assert_eq!(messages[3]["tool_call_id"], *ids[1]);
    assert!(messages[2]["content"].as_str().unwrap().contains("one"));
    assert!(messages[3]["content"].as_str().unwrap().contains("two"));
}

#[tokio::test]
async fn an_answer_without_a_reason_to_stop_may_not_be_whole() {
    let mut harness = NativeHarness::start().await;
    let without = Answer::streams(["half"]).without_finish();
    let cut = without.clone().without_usage().without_end_mark();
    for answer in [without, cut] {
        let turn = harness.talk("hi", [answer]).await;
        assert_eq!(error_of(&turn)["resumable"], true);
        assert_eq!(texts_in(&turn, "markdown"), ["half"]);
    }
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_with_a_notice() {
    let mut harness = NativeHarness::start().await;
    let busy = Answer::error(429, "slow down").with_header("retry-after", "0");
    let turn = harness.talk("hi", [busy, Answer::streams(["here"])]).await;
    assert_eq!(turn["state"], "complete");
    let notices = parts_of(&turn, "systemNotification");
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0]["content"].to_string().contains("is busy (429); trying again"),
        "{notices:?}"
    );
    assert_eq!(texts_in(&turn, "markdown"), ["here"]);
    let late = Answer::error(429, "come back tomorrow").with_header("retry-after", "86400");
    let turn = harness.talk("hi", [late]).await;
    let error = error_of(&turn);
    assert!(error["resumable"] == true && error.to_string().contains("tomorrow"), "{error:#}");
    let asked = harness.model.requests().len();
    assert_eq!(asked, 3, "a wait until tomorrow is not made");
}

#[tokio::test]
async fn refusals_of_the_server_end_the_turn_with_its_message() {
    let cases = [
        (Answer::error(401, "bad key"), "requires a key (401): bad key", true),
        (Answer::error(400, "context too long: 9 > 8 tokens"), "context too long", false),
        (Answer::error(404, "no model echo"), "no model echo", false),
        (Answer::status(418, "<html>teapot</html>"), "418", false),
        (Answer::raw("this is no stream\n\n"), "", false),
        (Answer::raw("data: {\"choices\": 7}\n\n"), "", false),
        (Answer::raw(vec![0xff, 0xfe, 0, 1, 2, 10, 10]), "", false),
    ];
    let mut harness = NativeHarness::start().await;
    for (answer, words, resumable) in cases {
        let debug_text = format!("{answer:?}");
        let turn = harness.talk("hi", [answer]).await;
        let error = error_of(&turn);
        assert!(error.to_string().contains(words), "{words}: {error:#}");
        assert_eq!(
            error.get("resumable").unwrap_or(&json!(false)),
            resumable,
            "{debug_text} {error:#}"
        );
        assert_eq!(harness.model.answers_left(), 0);
    }
    // What failed does not stand in the way.
    harness.talk("now", [ends()]).await;
}

#[tokio::test]
async fn a_refusal_of_the_model_ends_the_turn() {
    let mut harness = NativeHarness::start().await;
    let turn = harness.talk("hi", [Answer::refuses("I will not.")]).await;
    assert_eq!(texts_in(&turn, "markdown"), ["I will not."]);
    let error = error_of(&turn)["error"].clone();
    assert_eq!(error["errorType"], "refusal", "{error:#}");
    assert_ne!(error_of(&turn)["resumable"], true);
}

/// An answer without a word is no answer that people understand.
#[tokio::test]
async fn a_model_that_says_nothing_is_told_of() {
    let mut harness = NativeHarness::start().await;
    let stops = |reason: &str| {
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        Answer::raw(format!("data: {end}\n\ndata: [DONE]\n\n"))
    };
    let turn = harness.talk("hi", [stops("stop")]).await;
    assert_eq!(texts_in(&turn, "systemNotification"), ["The model said nothing."]);
    let turn = harness.talk("hi?", [stops("nov`elty\u{1b}")]).await;
    let notice = "The model said nothing. Its server gives a reason: `novelty`.";
    assert_eq!(texts_in(&turn, "systemNotification"), [notice]);
    // After a call there may be nothing to add.
    let call = Call::new("1", "list", &json!({}));
    let turn = harness.talk("look", [Answer::calls([call]), stops("stop")]).await;
    assert_eq!(turn["state"], "complete");
    assert_eq!(texts_in(&turn, "systemNotification"), [""; 0]);
}

#[tokio::test]
async fn nothing_outside_of_the_working_directory_is_read() {
    let mut harness = NativeHarness::start().await;
    let secret = harness.work().parent().unwrap().join("secret.txt");
    std::fs::write(&secret, "top secret\n").unwrap();
    std::os::unix::fs::symlink(&secret, harness.work().join("link.txt")).unwrap();
    std::os::unix::fs::symlink("..", harness.work().join("up")).unwrap();
    let path = |id: &str, path: &str| Call::new(id, "read", &json!({"path": path}));
    let calls = [
        path("1", "../secret.txt"),
        path("2", "link.txt"),
        path("3", "up/secret.txt"),
        path("4", secret.to_str().unwrap()),
        path("5", "/etc/passwd"),
        Call::new("6", "grep", &json!({"pattern": "top", "path": "up"})),
        Call::new("7", "list", &json!({"path": ".."})),
        Call::new("8", "grep", &json!({"pattern": "top", "include_ignored": true})),
    ];
    let turn = harness.talk("look", [Answer::calls(calls), ends()]).await;
    for call in &calls_of(&turn)[..7] {
        assert_eq!(call["success"], false, "{call:#}");
        assert!(call["content"][0]["text"].as_str().unwrap().len() > 10, "in words: {call:#}");
    }
    let sent = script_of(&harness.last_messages());
    assert!(!sent.contains("top secret") && !sent.contains("root:"), "{sent}");
}

#[tokio::test]
async fn nothing_outside_of_the_working_directory_is_written() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let outside = harness.work().parent().unwrap().join("outside.txt");
    std::fs::write(&outside, "mine\n").unwrap();
    std::os::unix::fs::symlink(&outside, harness.work().join("link.txt")).unwrap();
    std::os::unix::fs::symlink("..", harness.work().join("up")).unwrap();
    let write =
        |id: &str, path: &str| Call::new(id, "write", &json!({"path": path, "content": "theirs"}));
    let calls = [
        write("1", "../outside.txt"),
        write("2", "link.txt"),
        write("3", "up/outside.txt"),
        write("4", "up/new.txt"),
        write("5", outside.to_str().unwrap()),
        write("6", "a/../../new.txt"),
    ];
    harness.talk("write", [Answer::calls(calls), ends()]).await;
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine\n");
    assert!(!harness.work().parent().unwrap().join("new.txt").exists());
}

#[tokio::test]
async fn a_key_repeated_by_a_server_is_redacted() {
    const KEY: &str = "sk-very-secret-0123456789";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let mut harness =
        NativeHarness::start_with_model(json!({}), |model| model.key_file = Some(file.clone()))
            .await;
    let repeats = format!("Incorrect API key provided: {KEY}.");
    let busy = Answer::error(503, &repeats).with_header("retry-after", "0");
    let turn = harness.talk("hi", [busy, Answer::error(401, &repeats)]).await;
    let request = &harness.model.requests()[0];
    let sent = format!("Bearer {KEY}");
    assert_eq!(request.header("authorization"), Some(sent.as_str()));
    assert!(error_of(&turn).to_string().contains("Incorrect API key"), "{turn:#}");
    assert!(!harness.ann.sees().to_string().contains(KEY));
    assert!(!request.json().to_string().contains(KEY));
    // A key that is mended is used at once.
    std::fs::write(&file, "another").unwrap();
    harness.model.answers([ends()]);
    harness.ann.resumes(&turn).await;
    let over = |chat: &Value| chat["turns"][0]["state"] == "complete";
    harness.ann.until("it goes on", over).await;
    let requests = harness.model.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer another"));
}

#[tokio::test]
async fn a_key_that_expires_in_mid_answer_does_not_repeat_the_question() {
    let mut harness = NativeHarness::start_with_model(json!({}), |model| {
        model.key_command = Some(["echo", "sk-of-a-command"].map(str::to_owned).to_vec());
    })
    .await;
    let expired = "data: {\"error\": {\"message\": \"the token has expired\", \"code\": 401}}\n\n";
    let half = Answer::streams(["Half "]).without_finish().writes(expired);
    let turn = harness.talk("hi", [half]).await;
    assert!(error_of(&turn).to_string().contains("has expired"), "{turn:#}");
    assert_eq!(harness.model.requests().len(), 1, "its answer had begun");
    // Before anything of an answer was sent on, another key is read and the question asked again.
    let refused = Answer::raw(expired);
    let turn = harness.talk("again", [refused, ends()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(harness.model.requests().len(), 3);
}
