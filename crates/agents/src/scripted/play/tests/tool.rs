//! Tool calls, from their start to what `{{last}}` holds of them.

use agent_api::ToolResult;

use super::*;

const CALL: u64 = 0;

fn decided(approved: bool) -> AgentReply {
    AgentReply::ToolDecided {
        call: CALL,
        approved,
        input: None,
        selected_option: None,
        suggestion: None,
        reason: None,
    }
}

fn last() -> Value {
    json!({"notify": "{{last}}"})
}

#[tokio::test(start_paused = true)]
async fn a_tool_without_a_result_returns_what_it_ran_with() {
    let steps = json!([{"tool": {"name": "read", "display": "Read $2", "input": {"path": "$2", "n": 1}}}, last()]);
    check(steps, "read it", expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 read "Read it"
        0 ready 0.0 {"invocationMessage":"Read it","toolInput":"{\"path\":\"it\",\"n\":1}","confirmed":"not-needed"}
        0 completed 0.0 {"success":true,"pastTenseMessage":"Read it: done","content":[{"type":"text","text":"{\"path\":\"it\",\"n\":1}"}]}
        0 checkpoint {"step":2,"last":{"approved":true,"input":"{\"path\":\"it\",\"n\":1}","success":true,"content":[{"type":"text","text":"{\"path\":\"it\",\"n\":1}"}]}}
        0 Notice { text: "{\"approved\":true,\"input\":\"{\\\"path\\\":\\\"it\\\",\\\"n\\\":1}\",\"success\":true,\"content\":[{\"type\":\"text\",\"text\":\"{\\\"path\\\":\\\"it\\\",\\\"n\\\":1}\"}]}" }
        complete
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn input_is_streamed_and_output_grows() {
    let steps = json!([{"tool": {
        "name": "grep",
        "input_chunks": ["{\"for\":", "\"$2\"}"],
        "updates": [[{"type": "text", "text": "1"}], [{"type": "text", "text": "1 $2"}]],
        "result": {"success": false, "message": {"markdown": "**No** $2"}, "content": [{"type": "text", "text": "none"}],
            "structured": {"hits": 0, "for": "$2"}, "error": "nothing for $2"},
    }}, last()]);
    check(steps, "find x", expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 grep "grep"
        0 input 0.0 "{\"for\":"
        0 input 0.0 "\"x\"}"
        0 ready 0.0 {"invocationMessage":"Run grep","toolInput":"{\"for\":\"x\"}","confirmed":"not-needed"}
        0 update 0.0 [{"type":"text","text":"1"}]
        0 update 0.0 [{"type":"text","text":"1 x"}]
        0 completed 0.0 {"success":false,"pastTenseMessage":{"markdown":"**No** x"},"content":[{"type":"text","text":"none"}],"structuredContent":{"hits":0,"for":"x"},"error":{"message":"nothing for x"}}
        0 checkpoint {"step":2,"last":{"approved":true,"input":"{\"for\":\"x\"}","success":false,"content":[{"type":"text","text":"none"}]}}
        0 Notice { text: "{\"approved\":true,\"input\":\"{\\\"for\\\":\\\"x\\\"}\",\"success\":false,\"content\":[{\"type\":\"text\",\"text\":\"none\"}]}" }
        complete
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_approved_call_runs_with_the_edited_input() {
    let steps = json!([{"tool": {"name": "rm", "input": {"path": "a"}, "confirm": "ask", "title": "Remove $2",
        "editable": true, "edits": [{"before": {"uri": "file:///a", "content": {"uri": "file:///a", "sizeHint": "$2"}}}]}}, last()]);
    let approved = AgentReply::ToolDecided {
        call: CALL,
        approved: true,
        input: Some("{\"path\":\"b\"}".to_owned()),
        selected_option: Some(json!({"id": "approve", "label": "Approve", "kind": "approve"})),
        suggestion: None,
        reason: None,
    };
    check_with_replies(steps, "rm 7", vec![approved], expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 rm "rm"
        0 ready 0.0 {"invocationMessage":"Run rm","toolInput":"{\"path\":\"a\"}","confirmationTitle":"Remove 7","edits":{"items":[{"before":{"uri":"file:///a","content":{"uri":"file:///a","sizeHint":7}}}]},"editable":true,"options":[{"id":"approve","label":"Approve","kind":"approve"},{"id":"deny","label":"Deny","kind":"deny"}]}
        10 completed 0.0 {"success":true,"pastTenseMessage":"Ran rm","content":[{"type":"text","text":"{\"path\":\"b\"}"}]}
        10 checkpoint {"step":2,"last":{"approved":true,"input":"{\"path\":\"b\"}","selectedOption":{"id":"approve","label":"Approve","kind":"approve"},"success":true,"content":[{"type":"text","text":"{\"path\":\"b\"}"}]}}
        10 Notice { text: "{\"approved\":true,\"input\":\"{\\\"path\\\":\\\"b\\\"}\",\"selectedOption\":{\"id\":\"approve\",\"label\":\"Approve\",\"kind\":\"approve\"},\"success\":true,\"content\":[{\"type\":\"text\",\"text\":\"{\\\"path\\\":\\\"b\\\"}\"}]}" }
        complete
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_is_over_and_the_scene_goes_on() {
    let options = json!([
        {"id": "once", "label": "Once", "kind": "approve", "group": 1},
        {"id": "no", "label": "No, $2", "kind": "deny", "group": "2"},
    ]);
    let steps = json!([
        {"tool": {"name": "rm", "confirm": "ask", "options": options, "updates": [[]], "confirm_result": true}},
        last(),
    ]);
    let denied = AgentReply::ToolDecided {
        call: CALL,
        approved: false,
        input: Some("{}".to_owned()),
        selected_option: Some(
            json!({"id": "no", "label": "No, never", "kind": "deny", "group": 2}),
        ),
        suggestion: Some(json!({"text": "ask me later"})),
        reason: Some(json!("denied")),
    };
    check_with_replies(steps, "rm never", vec![denied], expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 rm "rm"
        0 ready 0.0 {"invocationMessage":"Run rm","toolInput":"{}","options":[{"id":"once","label":"Once","kind":"approve","group":1},{"id":"no","label":"No, never","kind":"deny","group":2}]}
        10 checkpoint {"step":2,"last":{"approved":false,"input":"{}","selectedOption":{"id":"no","label":"No, never","kind":"deny","group":2},"suggestion":{"text":"ask me later"}}}
        10 Notice { text: "{\"approved\":false,\"input\":\"{}\",\"selectedOption\":{\"id\":\"no\",\"label\":\"No, never\",\"kind\":\"deny\",\"group\":2},\"suggestion\":{\"text\":\"ask me later\"}}" }
        complete
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_running_call_asks_again_and_may_be_denied_then() {
    let steps = json!([{"tool": {"name": "push", "updates": [[{"type": "text", "text": "half"}]],
        "reconfirm": "Really push $2?"}}, last()]);
    let (approved, denied) = (decided(true), decided(false));
    check_with_replies(steps.clone(), "push it", vec![approved], expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 push "push"
        0 ready 0.0 {"invocationMessage":"Run push","toolInput":"{}","confirmed":"not-needed"}
        0 update 0.0 [{"type":"text","text":"half"}]
        0 ready 0.0 {"invocationMessage":"Really push it?","toolInput":"{}","options":[{"id":"approve","label":"Approve","kind":"approve"},{"id":"deny","label":"Deny","kind":"deny"}]}
        10 completed 0.0 {"success":true,"pastTenseMessage":"Ran push","content":[{"type":"text","text":"{}"}]}
        10 checkpoint {"step":2,"last":{"approved":true,"input":"{}","success":true,"content":[{"type":"text","text":"{}"}]}}
        10 Notice { text: "{\"approved\":true,\"input\":\"{}\",\"success\":true,\"content\":[{\"type\":\"text\",\"text\":\"{}\"}]}" }
        complete
    "#]]).await;
    let (lines, result) = transcript_with_replies(steps, input("push it"), vec![denied]).await;
    assert_eq!(result, Ok(()));
    assert!(!lines.contains("completed"), "{lines}");
    assert!(lines.contains(r#"{\"approved\":false,\"input\":\"{}\"}"#), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn a_result_is_reviewed_before_the_script_gets_it() {
    let steps = json!([{"tool": {"name": "read", "result": {"content": [{"type": "text", "text": "secret"}]},
        "confirm_result": true}}, last()]);
    let reviewed = |approved| AgentReply::ResultDecided { call: CALL, approved };
    check_with_replies(steps.clone(), "x", vec![reviewed(true)], expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 read "read"
        0 ready 0.0 {"invocationMessage":"Run read","toolInput":"{}","confirmed":"not-needed"}
        0 completed 0.0 {"success":true,"pastTenseMessage":"Ran read","content":[{"type":"text","text":"secret"}]} for review
        10 checkpoint {"step":2,"last":{"approved":true,"input":"{}","success":true,"content":[{"type":"text","text":"secret"}]}}
        10 Notice { text: "{\"approved\":true,\"input\":\"{}\",\"success\":true,\"content\":[{\"type\":\"text\",\"text\":\"secret\"}]}" }
        complete
    "#]]).await;
    let (lines, _) = transcript_with_replies(steps, input("x"), vec![reviewed(false)]).await;
    let (_, notice) = lines.split_once("Notice").unwrap();
    assert_eq!(notice, " { text: \"{\\\"approved\\\":false,\\\"input\\\":\\\"{}\\\"}\" }\n");
}

#[tokio::test(start_paused = true)]
async fn labels_are_in_the_language_of_the_host() {
    let steps = json!([{"tool": {"name": "read", "confirm": "ask"}}]);
    let script = Script::parse(&json!({"scenes": [{"steps": steps}]}).to_string()).unwrap();
    let mut session =
        ScriptedSession::new(Arc::new(script), Locale::German, SessionContext::default());
    let (sender, mut receiver) = mpsc::channel(8);
    let replies = PendingReplies::default();
    let events = channel_sink(sender, replies.clone());
    let host = async {
        let mut transcript = String::new();
        while let Some(event) = receiver.recv().await {
            transcript.push_str(&format!("{}\n", line(&event)));
            if event.awaits().is_some() {
                replies.deliver(decided(true)).unwrap();
            }
        }
        transcript
    };
    let turn = async {
        let events = events;
        session.turn(input("x"), &events).await
    };
    let (transcript, result) = tokio::join!(host, turn);
    assert_eq!(result, Ok(()));
    expect![[r#"
        checkpoint {"step":1}
        start 0.0 read "read"
        ready 0.0 {"invocationMessage":"read ausführen","toolInput":"{}","options":[{"id":"approve","label":"Erlauben","kind":"approve"},{"id":"deny","label":"Ablehnen","kind":"deny"}]}
        completed 0.0 {"success":true,"pastTenseMessage":"read ausgeführt","content":[{"type":"text","text":"{}"}]}
    "#]].assert_eq(&transcript);
}

#[tokio::test(start_paused = true)]
async fn a_client_tool_is_called_and_its_result_is_used() {
    let steps = json!([{"client_tool": {"name": "open", "input": {"file": "$2"}, "timeout_ms": "500"}}, last()]);
    let content = vec![json!({"type": "text", "text": "ok"})];
    let result = ToolResult::new(true, "Opened").with_content(content);
    let ended = AgentReply::ToolEnded { call: CALL, result };
    check_with_replies(steps.clone(), "open a", vec![ended], expect![[r#"
        0 checkpoint {"step":1}
        0 client tool 0.0 open {"file":"a"} 500 ms
        10 checkpoint {"step":2,"last":{"approved":true,"input":"{\"file\":\"a\"}","success":true,"content":[{"type":"text","text":"ok"}]}}
        10 Notice { text: "{\"approved\":true,\"input\":\"{\\\"file\\\":\\\"a\\\"}\",\"success\":true,\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}" }
        complete
    "#]]).await;

    let (lines, _) = transcript_with_replies(steps, input("open a"), vec![decided(false)]).await;
    assert!(lines.contains(r#"{\"approved\":false,\"input\":"#), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_played_is_not_begun() {
    let steps = json!([{"tool": {"name": "a", "confirm": "ask",
        "options": [{"id": "a", "label": "A", "kind": "deny", "group": "$2"}]}}]);
    check(steps, "x many", expect![[r#"
        0 checkpoint {"step":1}
        failed scripted "scenes[0].steps[0].tool.options[0]: invalid type: string \"many\", expected i64" resumable false
    "#]]).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_something_else_ends_the_turn() {
    let steps = json!([{"tool": {"name": "a", "confirm": "ask"}}]);
    let reply = AgentReply::ResultDecided { call: CALL, approved: true };
    check_with_replies(steps, "x", vec![reply], expect![[r#"
        0 checkpoint {"step":1}
        0 start 0.0 a "a"
        0 ready 0.0 {"invocationMessage":"Run a","toolInput":"{}","options":[{"id":"approve","label":"Approve","kind":"approve"},{"id":"deny","label":"Deny","kind":"deny"}]}
        failed scripted "the host answered something else: ResultDecided" resumable true
    "#]]).await;
}
