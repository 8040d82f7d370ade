//! Requests compared whole, and streams as the server sends them.

use expect_test::expect;
use serde_json::{Value, json};

use super::super::stream_tests::{
    check, check_prefixes, decode, long_request, recorded, shortened, stream_of,
};
use super::super::{Api, ModelEndpoint, ModelMessage, ModelRequest};
use super::encode;
use crate::provider;

fn body(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode(request)).unwrap()
}

fn request() -> ModelRequest {
    let blocks = json!([
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, "title": "a.pdf"},
        {"type": "text", "text": " "},
    ]);
    let items = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
        {"type": "text", "text": "Reading."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
        {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b"}},
    ]);
    let settings = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "stream": false, "messages": []});
    long_request(blocks, items, settings)
}

#[test]
fn a_request_with_everything() {
    let cache = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "m-1",
        "max_tokens": 4096,
        "system": [
            {"type": "text", "text": "You are one.", "cache_control": cache},
            {"type": "text", "text": "\n\nIt is Monday."},
            {"type": "text", "text": "\n\nBe brief.", "cache_control": cache},
        ],
        "tools": [{
            "name": "read", "description": "Reads a file.",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        }],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "first"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Told."},
                {"type": "tool_use", "id": "old", "name": "list", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "old", "content": "a.rs"},
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}, "title": "a.pdf"},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "read", "input": {"path": "b"}, "cache_control": cache},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "A"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "B"},
                {"type": "text", "text": "and hurry", "cache_control": cache},
            ]},
        ],
        "stream": true,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    });
    assert_eq!(body(&request()), expected);
}

/// Claude on Vertex: the model stands in the address, the version in the body, and settings change neither.
#[test]
fn a_request_for_vertex_is_the_same_but_for_model_and_version() {
    let base = "https://europe-west1-aiplatform.googleapis.com/v1/projects/mine/locations/europe-west1/publishers/anthropic";
    let endpoint = |base: &str| ModelEndpoint::new(base).unwrap().with_api(Api::Anthropic);
    let mut wanted = request();
    wanted.model = "claude-sonnet-4-5@20250929".to_owned();
    let settings = &mut wanted.settings;
    settings.insert("anthropic_version".to_owned(), json!("mine"));
    let usual = body(&wanted);
    assert_eq!(usual.get("anthropic_version"), None);
    let mut expected = usual.clone();
    expected.as_object_mut().unwrap().remove("model");
    expected["anthropic_version"] = json!("vertex-2023-10-16");
    for base in [base.to_owned(), format!("{base}/")] {
        let encoded = provider::encode(&endpoint(&base), &wanted);
        let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
        assert_eq!(sent, expected);
        let (address, _) = encoded.describe_head(&endpoint(&base));
        let base = base.trim_end_matches('/');
        let path = "models/claude-sonnet-4-5@20250929:streamRawPredict";
        assert_eq!(address, format!("{base}/{path}"));
    }
    // Others that serve Messages, Bedrock among them, are asked as Anthropic is.
    for base in [
        "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1",
        "https://proxy.example/publishers/anthropic/v1",
        "https://proxy.example/anthropic",
    ] {
        let encoded = provider::encode(&endpoint(base), &wanted);
        let sent: Value = serde_json::from_slice(&encoded.body).unwrap();
        assert_eq!(sent, usual);
        let (address, _) = encoded.describe_head(&endpoint(base));
        assert_eq!(address, format!("{base}/messages"));
    }
    let gemini = ModelEndpoint::new(base).unwrap().with_api(Api::Gemini);
    let (address, _) = provider::encode(&gemini, &wanted).describe_head(&gemini);
    assert!(address.contains(":streamGenerateContent"), "{address}");
}

/// A request without the marks of the cache, which move along.
fn unmarked(request: &ModelRequest) -> String {
    let text = String::from_utf8(encode(request)).unwrap();
    text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
    let encode = |request: &ModelRequest| unmarked(request).into_bytes();
    check_prefixes(&request(), encode, r#"]}],"stream""#);
}

#[test]
fn no_more_is_marked_than_the_server_takes() {
    for messages in 0..=8 {
        let text = String::from_utf8(encode(&shortened(&request(), messages))).unwrap();
        let marks = text.matches("cache_control").count();
        assert!((2..=4).contains(&marks), "{messages}: {marks}");
    }
}

#[test]
fn bodies_of_results_go_with_them() {
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}});
    let mut request = request();
    request.messages.truncate(6);
    if let Some(ModelMessage::ToolResult { blocks, .. }) = request.messages.last_mut() {
        blocks.push(picture.clone());
    }
    let body = body(&request);
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"][0]["content"], json!([{"type": "text", "text": "A"}, picture]));
}

recorded! {
    super::decoder;
    broken_off: "broken_off.sse" => expect![[r#"
        Text("Hel")
        Usage(Usage { input_tokens: Some(2125), output_tokens: Some(1), cache_read_tokens: Some(2000), cache_write_tokens: Some(100) })
        Interrupted: the answer of the model server broke off
    "#]];
    document: "document.json" => expect![[r#"
        Text("Hi")
        CallStarted { index: 0, id: "t1", name: "list" }
        CallInput { index: 0, text: "{\"path\":\".\"}" }
        item {"type":"text","text":"Hi"}
        item {"type":"tool_use","id":"t1","name":"list","input":{"path":"."}}
        Usage(Usage { input_tokens: Some(5), output_tokens: Some(6), cache_read_tokens: None, cache_write_tokens: None })
        Stopped(ToolCalls)
    "#]];
    overloaded: "overloaded.sse" => expect![[r#"
        Unavailable: the model server reports an error: Overloaded
    "#]];
    pauses: "pauses.sse" => expect![[r#"
        Text("Looking")
        item {"type":"text","text":"Looking"}
        Usage(Usage { input_tokens: Some(2125), output_tokens: Some(4), cache_read_tokens: Some(2000), cache_write_tokens: Some(100) })
        Stopped(Paused)
    "#]];
    refuses: "refuses.sse" => expect![[r#"
        Text("I cannot")
        item {"type":"text","text":"I cannot"}
        Usage(Usage { input_tokens: Some(2125), output_tokens: Some(4), cache_read_tokens: Some(2000), cache_write_tokens: Some(100) })
        Stopped(Refusal)
    "#]];
    searches: "searches.sse" => expect![[r#"
        ServerCall { id: "srvtoolu_01", name: "web_search", input: "{\"query\":\"rust\"}" }
        ServerResult { id: "srvtoolu_01", text: "- ([Rust](https://www.rust-lang.org/))", success: true }
        Text("Rust is a language")
        Text(" ([Rust](https://www.rust-lang.org/))")
        item {"type":"server_tool_use","id":"srvtoolu_01","name":"web_search","input":{"query":"rust"}}
        item {"type":"web_search_tool_result","tool_use_id":"srvtoolu_01","content":[{"type":"web_search_result","title":"Rust","url":"https://www.rust-lang.org/","encrypted_content":"EqgfCioIARgBIiQ3YTAw","page_age":"1 day"}]}
        item {"type":"text","text":"Rust is a language","citations":[{"type":"web_search_result_location","cited_text":"A language","url":"https://www.rust-lang.org/","title":"Rust","encrypted_index":"Eo8BCioIAhgB"},{"type":"web_search_result_location","cited_text":"empowering","url":"https://www.rust-lang.org/","title":"Rust","encrypted_index":"Eo8BCioIAhgC"}]}
        Usage(Usage { input_tokens: Some(2125), output_tokens: Some(30), cache_read_tokens: Some(2000), cache_write_tokens: Some(100) })
        Stopped(End)
    "#]];
    thinks_and_calls: "thinks_and_calls.sse" => expect![[r#"
        Reasoning("Let me ")
        Reasoning("see.")
        Text("Grüße, ")
        Text("世界.")
        CallStarted { index: 0, id: "toolu_01A", name: "read" }
        CallInput { index: 0, text: "{\"path\": \"a" }
        CallInput { index: 0, text: ".rs\"}" }
        CallStarted { index: 1, id: "toolu_01B", name: "list" }
        item {"type":"thinking","thinking":"Let me see.","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}
        item {"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4a"}
        item {"type":"text","text":"Grüße, 世界."}
        item {"type":"tool_use","id":"toolu_01A","name":"read","input":{"path":"a.rs"}}
        item {"type":"tool_use","id":"toolu_01B","name":"list","input":{}}
        Usage(Usage { input_tokens: Some(2125), output_tokens: Some(89), cache_read_tokens: Some(2000), cache_write_tokens: Some(100) })
        Stopped(ToolCalls)
    "#]];
    too_long: "too_long.sse" => expect![[r#"
        Text("Once")
        item {"type":"text","text":"Once"}
        Usage(Usage { input_tokens: Some(2125), output_tokens: Some(4096), cache_read_tokens: Some(2000), cache_write_tokens: Some(100) })
        Stopped(Length)
    "#]];
}

/// Events, blocks and pieces of blocks that are not known here end no answer, and blocks go back as they came.
#[test]
fn what_is_new_ends_nothing() {
    let block = json!({"type": "hologram", "data": "AAAA"});
    let new = json!({"type": "hologram_delta", "data": "BBBB"});
    let text = json!({"type": "text_delta", "text": "Hi"});
    let stream = stream_of(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 3, "new_tokens": {"a": 1}}}}),
        json!({"type": "weather", "message": 7}),
        json!(null),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": new}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": new}),
        json!({"type": "content_block_delta", "index": 1, "delta": text}),
        json!({"type": "message_delta", "delta": {"stop_reason": "novelty", "stop_details": null}}),
    ]);
    let expected = expect![[r#"
        Text("Hi")
        item {"type":"hologram","data":"AAAA"}
        item {"type":"text","text":"Hi"}
        Usage(Usage { input_tokens: Some(3), output_tokens: None, cache_read_tokens: None, cache_write_tokens: None })
        Stopped(Other("novelty"))
    "#]];
    // As gateways end a stream.
    check(super::decoder, &format!("{stream}data: [DONE]\n\n"), &expected);
    let end = stream_of(&[json!({"type": "message_stop"})]);
    check(super::decoder, &format!("{stream}{end}"), &expected);
}

/// Tools of MCP servers that Anthropic asks, a page that it fetched, code that it ran.
#[test]
fn every_tool_of_the_server_is_shown() {
    let begins = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let called = json!({"type": "mcp_tool_use", "id": "m1", "name": "echo", "server_name": "s", "input": {}});
    let input = json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"});
    let failed = json!({"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": true,
        "content": [{"type": "text", "text": "no such file"}, {"type": "text", "text": "try again"}]});
    let fetched = json!({"type": "web_fetch_tool_result", "tool_use_id": "f1",
        "content": {"type": "web_fetch_result", "url": "https://a.example/", "content": {"type": "document", "title": "A"}}});
    let ran = json!({"type": "bash_code_execution_tool_result", "tool_use_id": "b1",
        "content": {"type": "bash_code_execution_result", "stdout": "1\n", "stderr": "warned", "return_code": 0}});
    let refused = json!({"type": "web_search_tool_result", "tool_use_id": "w1",
        "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}});
    let stream = stream_of(&[
        begins(0, called),
        json!({"type": "content_block_delta", "index": 0, "delta": input}),
        json!({"type": "content_block_stop", "index": 0}),
        begins(1, failed),
        begins(2, fetched),
        begins(3, ran),
        begins(4, refused),
    ]);
    let read = decode(super::decoder(), [stream.as_bytes()]);
    let shown: String = read
        .lines()
        .filter(|line| line.starts_with("Server"))
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        ServerCall { id: "m1", name: "echo", input: "{\"a\":1}" }
        ServerResult { id: "m1", text: "no such file\ntry again", success: false }
        ServerResult { id: "f1", text: "- ([https://a.example/](https://a.example/))", success: true }
        ServerResult { id: "b1", text: "1\n\nwarned", success: true }
        ServerResult { id: "w1", text: "max_uses_exceeded", success: false }
    "#]]
    .assert_eq(&shown);
}

/// A refusal may say why, after something of the answer or before it.
#[test]
fn why_the_model_refuses_is_said() {
    let refused = json!({"type": "message_delta", "delta": {"stop_reason": "refusal",
        "stop_details": {"type": "refusal", "category": "cyber", "explanation": "It looks like an attack."}}});
    let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Well"}});
    let end = json!({"type": "message_stop"});
    check(
        super::decoder,
        &stream_of(&[refused.clone(), end.clone()]),
        &expect![[r#"
            Refusal("It looks like an attack.")
            Stopped(Refusal)
        "#]],
    );
    check(
        super::decoder,
        &stream_of(&[text, refused.clone(), refused, end]),
        &expect![[r#"
            Text("Well")
            Refusal("\n\nIt looks like an attack.")
            item {"type":"text","text":"Well"}
            Stopped(Refusal)
        "#]],
    );
}

/// A server that cites without end fills neither the chat nor what goes back.
#[test]
fn there_is_an_end_to_citations() {
    let event = |value: serde_json::Value| format!("data: {value}\n\n");
    let cite = |number: usize| {
        let url = format!("https://a.example/{number}");
        let citation = json!({"type": "web_search_result_location", "url": url});
        event(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": citation}}),
        )
    };
    let text = json!({"type": "text", "text": "x"});
    let mut stream =
        event(json!({"type": "content_block_start", "index": 0, "content_block": text}));
    for number in 0..2_000 {
        stream.push_str(&cite(number / 2));
    }
    let stop = json!({"stop_reason": "end_turn"});
    stream.push_str(&event(json!({"type": "message_delta", "delta": stop})));
    stream.push_str(&event(json!({"type": "message_stop"})));
    let read = decode(super::decoder(), [stream.as_bytes()]);
    assert_eq!(read.matches("Text(\" ([").count(), 256);
    assert_eq!(read.matches("\"url\":").count(), 256);
}

/// Gateways that leave thoughts out do not always number the rest anew.
#[test]
fn blocks_are_found_by_their_numbers() {
    let event = |value: serde_json::Value| format!("data: {value}\n\n");
    let text = |index: u64, text: &str| {
        let delta = json!({"type": "text_delta", "text": text});
        event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let begins = |index: u64, block: Value| {
        event(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let call = json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}});
    let input = json!({"type": "input_json_delta", "partial_json": "{\"path\":\"a\"}"});
    let stream = [
        begins(1, json!({"type": "text", "text": ""})),
        text(1, "Hi"),
        text(0, "nobody's"),
        begins(3, call),
        event(json!({"type": "content_block_delta", "index": 3, "delta": input})),
        event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})),
        event(json!({"type": "message_stop"})),
    ];
    expect![[r#"
        Text("Hi")
        CallStarted { index: 0, id: "t1", name: "read" }
        CallInput { index: 0, text: "{\"path\":\"a\"}" }
        item {"type":"text","text":"Hi"}
        item {"type":"tool_use","id":"t1","name":"read","input":{"path":"a"}}
        Stopped(ToolCalls)
    "#]]
    .assert_eq(&decode(super::decoder(), [stream.concat().as_bytes()]));
}

/// Models write such texts before a call, and their server refuses them when they come back.
#[test]
fn texts_that_say_nothing_do_not_go_back() {
    let mut request = request();
    let call = json!({"type": "tool_use", "id": "c1", "name": "read", "input": {}});
    let blank = json!({"type": "text", "text": "\n\n"});
    for message in &mut request.messages {
        if let ModelMessage::Assistant { items: Some(items), .. } = message {
            *items = std::sync::Arc::new(vec![blank.clone(), call.clone()]);
        }
    }
    let sent = body(&request);
    let content = sent["messages"][3]["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{content:?}");
    assert_eq!(content[0]["type"], "tool_use");
}
