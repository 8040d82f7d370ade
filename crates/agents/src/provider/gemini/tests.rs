//! Requests compared whole, and streams as the server sends them.

use expect_test::expect;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::answer_stream::AnswerStream;
use super::super::stream_tests::{
    check, check_prefixes, decode_damaged, long_request, recorded, stream_of,
};
use super::super::{Decode, ModelMessage, ModelRequest, RefusalCause};
use super::decode::GeminiReader;
use super::{encode, path};

fn made() -> AnswerStream<GeminiReader> {
    AnswerStream::new(GeminiReader::naming_calls("gr_made"))
}

fn body(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode(request)).unwrap()
}

fn request() -> ModelRequest {
    let blocks = json!([
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
    ]);
    let items = json!([
        {"text": "Reading."},
        {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "CpQB"},
        {"functionCall": {"id": "c2", "name": "read", "args": {"path": "b"}}},
    ]);
    let settings = json!({
        "temperature": 0.2, "thinkingConfig": {"includeThoughts": true}, "safetySettings": [], "contents": [],
    });
    let mut request = long_request(blocks, items, settings);
    // The server named the second call alone.
    for message in &mut request.messages {
        match message {
            ModelMessage::Assistant { calls, .. } => {
                let unnamed = calls.iter_mut().filter(|call| call.id == "c1");
                unnamed.for_each(|call| call.id = "gr_made_0".to_owned());
            }
            ModelMessage::ToolResult { id, .. } if id == "c1" => *id = "gr_made_0".to_owned(),
            ModelMessage::ToolResult { .. } | ModelMessage::User(_) => {}
        }
    }
    request
}

#[test]
fn a_request_with_everything() {
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "You are one."}, {"text": "It is Monday."}, {"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{
            "name": "read", "description": "Reads a file.",
            "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        }]}],
        "contents": [
            {"role": "user", "parts": [{"text": "first"}]},
            {"role": "model", "parts": [
                {"text": "Told."},
                {"functionCall": {"name": "list", "args": {}, "id": "old"}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "list", "response": {"output": "a.rs"}, "id": "old"}},
                {"text": "see"},
                {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}},
            ]},
            {"role": "model", "parts": [
                {"text": "Reading."},
                {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "CpQB"},
                {"functionCall": {"id": "c2", "name": "read", "args": {"path": "b"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"name": "read", "response": {"output": "B"}, "id": "c2"}},
                {"text": "and hurry"},
            ]},
        ],
        "generationConfig": {
            "maxOutputTokens": 4096, "temperature": 0.2, "thinkingConfig": {"includeThoughts": true},
        },
        "safetySettings": [],
    });
    assert_eq!(body(&request()), expected);
    assert_eq!(path("models/m-1"), "m-1:streamGenerateContent");
}

#[test]
fn a_longer_conversation_begins_with_the_bytes_of_a_shorter_one() {
    check_prefixes(&request(), encode, r#"]}],"generationConfig""#);
}

#[test]
fn bodies_of_results_go_with_them() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "iVBO"}});
    let mut request = request();
    request.messages.truncate(6);
    if let Some(ModelMessage::ToolResult { blocks, .. }) = request.messages.last_mut() {
        blocks.push(picture.clone());
    }
    let body = body(&request);
    let last = body["contents"].as_array().unwrap().last().unwrap();
    assert_eq!(last["parts"][1], picture);
}

recorded! {
    made;
    blocked: "blocked.sse" => expect![[r#"
        Usage(Usage { input_tokens: Some(4), output_tokens: None, cache_read_tokens: None, cache_write_tokens: None })
        Stopped(Refusal)
    "#]];
    broken_off: "broken_off.sse" => expect![[r#"
        Text("Hel")
        Usage(Usage { input_tokens: Some(40), output_tokens: Some(27), cache_read_tokens: Some(16), cache_write_tokens: None })
        Interrupted: the answer of the model server broke off
    "#]];
    error: "error.sse" => expect![[r#"
        Unavailable: the model server reports an error: The model is overloaded.
    "#]];
    list: "list.json" => expect![[r#"
        Text("Hi")
        Text("!")
        item {"text":"Hi!"}
        Usage(Usage { input_tokens: Some(40), output_tokens: Some(27), cache_read_tokens: Some(16), cache_write_tokens: None })
        Stopped(End)
    "#]];
    malformed: "malformed.sse" => expect![[r#"
        Usage(Usage { input_tokens: Some(40), output_tokens: Some(27), cache_read_tokens: Some(16), cache_write_tokens: None })
        Interrupted: the model server gave up in mid-answer (MALFORMED_FUNCTION_CALL)
    "#]];
    runs_code: "runs_code.sse" => expect![[r#"
        ServerCall { id: "gr_made_code_1", name: "code_execution", input: "{\"code\":\"print(1)\"}" }
        ServerResult { id: "gr_made_code_1", text: "1\n", success: true }
        Text("It is 1.")
        Text(" ([a](https://a.example/))")
        item {"executableCode":{"language":"PYTHON","code":"print(1)"}}
        item {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}
        item {"text":"It is 1."}
        Usage(Usage { input_tokens: Some(9), output_tokens: Some(7), cache_read_tokens: None, cache_write_tokens: None })
        Stopped(End)
    "#]];
    thinks_and_calls: "thinks_and_calls.sse" => expect![[r#"
        Reasoning("**Looking** around")
        Text("Grü")
        Text("ße.")
        CallStarted { index: 0, id: "gr_made_0", name: "read" }
        CallInput { index: 0, text: "{\"path\":\"a.rs\"}" }
        CallStarted { index: 1, id: "fc-2", name: "list" }
        CallInput { index: 1, text: "{}" }
        item {"text":"Grüße."}
        item {"functionCall":{"name":"read","args":{"path":"a.rs"}},"thoughtSignature":"CpQBAcu98PA="}
        item {"functionCall":{"id":"fc-2","name":"list","args":{}}}
        item {"text":"","thoughtSignature":"Cg0="}
        Usage(Usage { input_tokens: Some(40), output_tokens: Some(27), cache_read_tokens: Some(16), cache_write_tokens: None })
        Stopped(ToolCalls)
    "#]];
    too_long: "too_long.sse" => expect![[r#"
        Text("Once")
        item {"text":"Once"}
        Usage(Usage { input_tokens: Some(40), output_tokens: Some(27), cache_read_tokens: Some(16), cache_write_tokens: None })
        Stopped(Length)
    "#]];
    filtered: "unsafe.sse" => expect![[r#"
        Text("Once")
        item {"text":"Once"}
        Usage(Usage { input_tokens: Some(40), output_tokens: Some(27), cache_read_tokens: Some(16), cache_write_tokens: None })
        Stopped(ContentFilter)
    "#]];
}

/// Pieces, parts and reasons that are not known here end no answer, and parts go back as they came.
#[test]
fn what_is_new_ends_nothing() {
    let parts = json!([{"hologram": {"data": "AAAA"}}, {"text": "Hi", "hologram": 7}]);
    let stream = stream_of(&[
        json!({"weather": 7}),
        json!(null),
        json!([]),
        json!({"candidates": [{"content": {"parts": parts}}], "usageMetadata": {"promptTokenCount": 3, "new": [1]}}),
        json!({"candidates": [{"content": {"parts": "none"}, "finishReason": "NOVELTY"}]}),
    ]);
    let expected = expect![[r#"
        Text("Hi")
        item {"hologram":{"data":"AAAA"}}
        item {"text":"Hi","hologram":7}
        Usage(Usage { input_tokens: Some(3), output_tokens: None, cache_read_tokens: None, cache_write_tokens: None })
        Stopped(Other("NOVELTY"))
    "#]];
    check(made, &stream, &expected);
    // As gateways end a stream.
    check(made, &format!("{stream}data: [DONE]\n\n"), &expected);
}

/// Tools of the server beside ours, as it tells of them, and a search of which it tells only what it searched for.
#[test]
fn every_tool_of_the_server_is_shown() {
    let call = json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["rust"]}, "id": "s1"}, "thoughtSignature": "AA=="});
    let response = json!({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"search_suggestions": "<x>"}, "id": "s1"}});
    let grounds = json!({"webSearchQueries": ["rust"], "groundingChunks": [{"web": {"uri": "https://a.example/", "title": "a"}}]});
    let told = stream_of(&[
        json!({"candidates": [{"content": {"parts": [call, response, {"text": "A"}]}, "finishReason": "STOP",
        "groundingMetadata": grounds}]}),
    ]);
    check(
        made,
        &told,
        &expect![[r#"
            ServerCall { id: "s1", name: "google_search_web", input: "{\"queries\":[\"rust\"]}" }
            ServerResult { id: "s1", text: "", success: true }
            Text("A")
            Text(" ([a](https://a.example/))")
            item {"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["rust"]},"id":"s1"},"thoughtSignature":"AA=="}
            item {"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"search_suggestions":"<x>"},"id":"s1"}}
            item {"text":"A"}
            Stopped(End)
        "#]],
    );
    let piece = json!({"candidates": [{"content": {"parts": [{"text": "A"}]}, "groundingMetadata": grounds}]});
    let end = json!({"candidates": [{"finishReason": "STOP", "groundingMetadata": grounds}]});
    check(
        made,
        &stream_of(&[piece, end]),
        &expect![[r#"
            Text("A")
            ServerCall { id: "gr_made_search", name: "google_search", input: "{\"queries\":[\"rust\"]}" }
            ServerResult { id: "gr_made_search", text: "", success: true }
            Text(" ([a](https://a.example/))")
            item {"text":"A"}
            Stopped(End)
        "#]],
    );
}

/// Calls of another model have no signature. They get one that says so as soon as the server misses it, and not before.
#[test]
fn calls_of_another_model_are_signed_where_the_server_wants_it() {
    let signatures = |request: &ModelRequest| -> Vec<Value> {
        let body = body(request);
        let contents = body["contents"].as_array().unwrap().clone();
        let parts =
            contents.iter().flat_map(|content| content["parts"].as_array().unwrap().clone());
        let calls = parts.filter(|part| part["functionCall"].is_object());
        calls.map(|part| part["thoughtSignature"].clone()).collect()
    };
    let mut request = request();
    let before = signatures(&request);
    assert!(before.iter().any(Value::is_null) && before.iter().any(Value::is_string), "{before:?}");
    request.blank_reasoning = true;
    let after = signatures(&request);
    let kept = before.iter().zip(&after).all(|(before, after)| before.is_null() || before == after);
    assert!(kept && after.contains(&json!("skip_thought_signature_validator")), "{after:?}");
    let stop = json!({"candidates": [{"finishReason": "MISSING_THOUGHT_SIGNATURE"}]});
    let mut decoder = made();
    decoder.read(stream_of(&[stop]).as_bytes(), &mut Vec::new()).unwrap();
    let error = decoder.end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.blame, Some(RefusalCause::ReasoningMissing));
}

/// The server takes its own tools beside ours only if it may tell of them.
#[test]
fn tools_of_the_server_go_beside_ours() {
    let mut request = request();
    let search = json!({"google_search": {}});
    request.server_tools = vec![search.clone()];
    let sent = body(&request);
    assert_eq!(sent["tools"][1], search);
    assert_eq!(sent["toolConfig"], json!({"includeServerSideToolInvocations": true}));
    request.forbids_calls = true;
    let mode = json!({"functionCallingConfig": {"mode": "NONE"}, "includeServerSideToolInvocations": true});
    assert_eq!(body(&request)["toolConfig"], mode);
    request.tools.clear();
    request.forbids_calls = false;
    assert_eq!(body(&request)["toolConfig"], Value::Null);
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(
        recorded in proptest::sample::select(RECORDED),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        size in 1_usize..64,
    ) {
        let (whole, pieces) = decode_damaged(made, recorded, &damage, size);
        prop_assert_eq!(pieces, whole);
    }
}
