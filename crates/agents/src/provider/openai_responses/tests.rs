//! Requests compared whole, and streams as the server sends them.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::stream_tests::{
    check, check_prefixes, decode, decode_damaged, long_request, recorded, stream_of,
};
use super::super::{ModelMessage, ModelRequest};
use super::encode;

fn body(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode(request)).unwrap()
}

fn request() -> ModelRequest {
    let blocks = json!([
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
    ]);
    let items = json!([
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\": \"a\"}"},
        {"id": "fc_2", "type": "function_call", "call_id": "c2", "name": "read", "arguments": "{\"path\": \"b\"}"},
    ]);
    let settings =
        json!({"reasoning": {"effort": "low", "summary": "auto"}, "store": true, "input": []});
    long_request(blocks, items, settings)
}

#[test]
fn a_request_with_everything() {
    let expected = json!({
        "model": "m-1",
        "instructions": "You are one.\n\nIt is Monday.\n\nBe brief.",
        "tools": [{
            "type": "function", "name": "read", "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}, "strict": false,
        }],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Told."}]},
            {"type": "function_call", "call_id": "old", "name": "list", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "old", "output": "a.rs"},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            ]},
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\": \"a\"}"},
            {"id": "fc_2", "type": "function_call", "call_id": "c2", "name": "read", "arguments": "{\"path\": \"b\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "A"},
            {"type": "function_call_output", "call_id": "c2", "output": "B"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and hurry"}]},
        ],
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 4096,
        "reasoning": {"effort": "low", "summary": "auto"},
    });
    assert_eq!(body(&request()), expected);
}

#[test]
fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
    check_prefixes(&request(), encode, r#"],"stream""#);
}

#[test]
fn bodies_of_results_go_with_them() {
    let picture =
        json!({"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"});
    let mut request = request();
    request.messages.truncate(6);
    if let Some(ModelMessage::ToolResult { blocks, .. }) = request.messages.last_mut() {
        blocks.push(picture.clone());
    }
    let body = body(&request);
    let last = body["input"].as_array().unwrap().last().unwrap();
    assert_eq!(last["output"], json!([{"type": "input_text", "text": "A"}, picture]));
}

recorded! {
    super::decoder;
    broken_off: "broken_off.sse" => expect![[r#"
        Text("Hel")
        Interrupted: the answer of the model server broke off
    "#]];
    document: "document.json" => expect![[r#"
        Text("Grüße.")
        CallStarted { index: 0, id: "call_A", name: "read" }
        CallInput { index: 0, text: "{\"path\":\"a.rs\"}" }
        item {"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Grüße.","annotations":[],"logprobs":[]}]}
        item {"id":"fc_1","type":"function_call","status":"completed","call_id":"call_A","name":"read","arguments":"{\"path\":\"a.rs\"}"}
        Usage(Usage { input_tokens: Some(120), output_tokens: Some(50), cache_read_tokens: Some(64), cache_write_tokens: None })
        Stopped(ToolCalls)
    "#]];
    error: "error.sse" => expect![[r#"
        Unavailable: the model server reports an error: Slow down
    "#]];
    fails: "fails.sse" => expect![[r#"
        Unavailable: the model server reports an error: The model failed.
    "#]];
    refuses: "refuses.sse" => expect![[r#"
        Refusal("I can't help.")
        item {"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"I can't help."}]}
        Stopped(Refusal)
    "#]];
    searches: "searches.sse" => expect![[r#"
        ServerCall { id: "ws_1", name: "web_search", input: "{\"type\":\"search\",\"query\":\"rust\"}" }
        ServerResult { id: "ws_1", text: "", success: true }
        Text("A language.")
        Text(" ([Rust](https://www.rust-lang.org/))")
        item {"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"rust"}}
        item {"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A language.","annotations":[{"type":"url_citation","start_index":0,"end_index":10,"url":"https://www.rust-lang.org/","title":"Rust"}]}]}
        Usage(Usage { input_tokens: Some(120), output_tokens: Some(50), cache_read_tokens: Some(64), cache_write_tokens: None })
        Stopped(End)
    "#]];
    thinks_and_calls: "thinks_and_calls.sse" => expect![[r#"
        Reasoning("**Look")
        Reasoning("ing**")
        Reasoning("\n\n")
        Reasoning("**Reading**")
        Text("Grü")
        Text("ße.")
        CallStarted { index: 0, id: "call_A", name: "read" }
        CallStarted { index: 1, id: "call_B", name: "list" }
        CallInput { index: 0, text: "{\"path\":" }
        CallInput { index: 0, text: "\"a.rs\"}" }
        CallInput { index: 1, text: "{}" }
        item {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"**Looking**"},{"type":"summary_text","text":"**Reading**"}],"encrypted_content":"gAAAAABo"}
        item {"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Grüße.","annotations":[],"logprobs":[]}]}
        item {"id":"fc_1","type":"function_call","status":"completed","call_id":"call_A","name":"read","arguments":"{\"path\":\"a.rs\"}"}
        item {"id":"fc_2","type":"function_call","status":"completed","call_id":"call_B","name":"list","arguments":"{}"}
        Usage(Usage { input_tokens: Some(120), output_tokens: Some(50), cache_read_tokens: Some(64), cache_write_tokens: None })
        Stopped(ToolCalls)
    "#]];
    too_long: "too_long.sse" => expect![[r#"
        Text("Once")
        Usage(Usage { input_tokens: Some(120), output_tokens: Some(50), cache_read_tokens: Some(64), cache_write_tokens: None })
        Stopped(Length)
    "#]];
}

/// Events, items and parts that are not known here end no answer, and items go back as they came.
#[test]
fn what_is_new_ends_nothing() {
    let item = json!({"id": "h1", "type": "hologram", "data": "AAAA"});
    let part = json!([{"type": "hologram"}, {"type": "output_text", "text": "Hi"}]);
    let message = json!({"id": "m1", "type": "message", "content": part});
    let stream = stream_of(&[
        json!({"type": "response.created", "response": {}}),
        json!({"type": "response.compaction.compacting"}),
        json!({"type": "response.hologram.delta", "delta": {"a": 1}, "output_index": "none"}),
        json!(null),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
        json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "novelty"}}}),
    ]);
    check(
        super::decoder,
        &stream,
        &expect![[r#"
            Text("Hi")
            item {"id":"h1","type":"hologram","data":"AAAA"}
            item {"id":"m1","type":"message","content":[{"type":"hologram"},{"type":"output_text","text":"Hi"}]}
            Stopped(Other("novelty"))
        "#]],
    );
}

/// Gateways that make this of another wire format give every item the same index.
#[test]
fn items_of_one_index_are_told_apart() {
    let call = |id: &str, input: &str| json!({"id": id, "type": "function_call", "call_id": id, "name": "read", "arguments": input});
    let added = |item: &Value| json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    let done = |item: &Value| json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let text = json!([{"type": "output_text", "text": "Hi"}]);
    let message = json!({"id": "m1", "type": "message", "content": text});
    let stream = stream_of(&[
        added(&json!({"id": "m1", "type": "message", "content": []})),
        json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}),
        done(&message),
        added(&call("c1", "")),
        json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"}),
        done(&call("c1", "{}")),
        done(&call("c2", "{\"a\":1}")),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ]);
    check(
        super::decoder,
        &stream,
        &expect![[r#"
            Text("Hi")
            CallStarted { index: 0, id: "c1", name: "read" }
            CallInput { index: 0, text: "{}" }
            CallStarted { index: 1, id: "c2", name: "read" }
            CallInput { index: 1, text: "{\"a\":1}" }
            item {"id":"m1","type":"message","content":[{"type":"output_text","text":"Hi"}]}
            item {"id":"c1","type":"function_call","call_id":"c1","name":"read","arguments":"{}"}
            item {"id":"c2","type":"function_call","call_id":"c2","name":"read","arguments":"{\"a\":1}"}
            Stopped(ToolCalls)
        "#]],
    );
    let endless = (0..2_000).map(|n| done(&call(&format!("c{n}"), "{}")));
    let endless = stream_of(&endless.collect::<Vec<_>>());
    let read = decode(super::decoder(), [endless.as_bytes()]);
    assert!(
        read.ends_with("more items than an answer can have\n"),
        "{}",
        &read[read.len() - 100..]
    );
}

/// What tools of the server did is shown with what came of it.
#[test]
fn every_tool_of_the_server_is_shown() {
    let done = |index: u64, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let answered = json!({"id": "1", "type": "mcp_call", "name": "echo", "arguments": "{\"a\":1}", "output": "one"});
    let failed = json!({"id": "2", "type": "mcp_call", "name": "echo", "arguments": "{}", "error": {"message": "no"}});
    let ran = json!({"id": "3", "type": "code_interpreter_call", "code": "print(1)", "status": "completed",
        "outputs": [{"type": "logs", "logs": "1"}, {"type": "image", "url": "https://a.example/"}]});
    let stream = stream_of(&[done(0, answered), done(1, failed), done(2, ran)]);
    let read = decode(super::decoder(), [stream.as_bytes()]);
    expect![[r#"
        ServerCall { id: "1", name: "echo", input: "{\"a\":1}" }
        ServerResult { id: "1", text: "one", success: true }
        ServerCall { id: "2", name: "echo", input: "{}" }
        ServerResult { id: "2", text: "no", success: false }
        ServerCall { id: "3", name: "code_interpreter", input: "print(1)" }
        ServerResult { id: "3", text: "1", success: true }
        Interrupted: the answer of the model server broke off
    "#]]
    .assert_eq(&read);
}

/// What is said again is not done again, and there is an end to it.
#[test]
fn what_is_done_twice_counts_once() {
    let done = |item: &serde_json::Value| {
        let event = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
        format!("data: {event}\n\n")
    };
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed"});
    let cited = json!({"type": "response.output_text.annotation.added", "output_index": 1,
        "annotation": {"url": "https://a.example", "title": "A"}});
    let mut stream = done(&search).repeat(50);
    stream.push_str(&format!("data: {cited}\n\n").repeat(50));
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    stream.push_str(&format!("data: {end}\n\n"));
    let expected = expect![[r#"
        ServerCall { id: "ws_1", name: "web_search", input: "" }
        ServerResult { id: "ws_1", text: "", success: true }
        Text(" ([A](https://a.example))")
        item {"id":"ws_1","type":"web_search_call","status":"completed"}
        Stopped(End)
    "#]];
    expected.assert_eq(&decode(super::decoder(), [stream.as_bytes()]));
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(
        recorded in proptest::sample::select(RECORDED),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        size in 1_usize..64,
    ) {
        let (whole, pieces) = decode_damaged(super::decoder, recorded, &damage, size);
        prop_assert_eq!(pieces, whole);
    }
}
