//! Streams as servers send them, read whole and in all pieces.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::super::Decode;
use super::super::answer_stream::AnswerStream;
use super::super::stream_tests::{self, decode, recorded};
use super::ChatReader;

fn made() -> AnswerStream<ChatReader> {
    AnswerStream::new(ChatReader::naming_calls("made"))
}

fn check(stream: &str, expected: Expect) {
    stream_tests::check(made, stream, &expected);
}

recorded! {
    made;
    google_signs_calls: "google_signed_calls.sse" => expect![[r#"
        CallStarted { index: 0, id: "function-call-1", name: "read" }
        CallInput { index: 0, text: "{\"path\":\"a.rs\"}" }
        CallStarted { index: 1, id: "function-call-2", name: "read" }
        CallInput { index: 1, text: "{\"path\":\"b.rs\"}" }
        Usage(Usage { input_tokens: Some(70), output_tokens: Some(20), cache_read_tokens: None, cache_write_tokens: None })
        item {"role":"assistant","content":null,"tool_calls":[{"id":"function-call-1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.rs\"}"},"extra_content":{"google":{"thought_signature":"CvQBAXLI2nw="}}},{"id":"function-call-2","type":"function","function":{"name":"read","arguments":"{\"path\":\"b.rs\"}"}}]}
        Stopped(ToolCalls)
    "#]];
    openrouter_hands_on_details: "openrouter_details.sse" => expect![[r#"
        Reasoning("Let me ")
        Reasoning("see.")
        Text("Reading.")
        CallStarted { index: 0, id: "toolu_01", name: "read" }
        CallInput { index: 0, text: "{\"path\":\"a.rs\"}" }
        Usage(Usage { input_tokens: Some(900), output_tokens: Some(40), cache_read_tokens: Some(800), cache_write_tokens: Some(64) })
        item {"role":"assistant","content":"Reading.","tool_calls":[{"id":"toolu_01","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.rs\"}"}}],"reasoning_details":[{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"text":"Let me see.","signature":"EqQBCgIYAhIM"}]}
        Stopped(ToolCalls)
    "#]];
    openai_text: "openai.sse" => expect![[r#"
        Text("Grüße")
        Text(", 世界 😀\n")
        Text("\"quoted\"")
        Usage(Usage { input_tokens: Some(19), output_tokens: Some(9), cache_read_tokens: Some(16), cache_write_tokens: None })
        Stopped(End)
    "#]];
    openai_calls_in_parallel: "openai_parallel_calls.sse" => expect![[r#"
        CallStarted { index: 0, id: "call_A", name: "read" }
        CallInput { index: 0, text: "{\"path\":" }
        CallInput { index: 0, text: "\"a.rs\"}" }
        CallStarted { index: 1, id: "call_B", name: "grep" }
        CallInput { index: 1, text: "{\"pattern\":\"ä" }
        CallInput { index: 0, text: " " }
        CallInput { index: 1, text: "\"}" }
        Usage(Usage { input_tokens: Some(80), output_tokens: Some(40), cache_read_tokens: None, cache_write_tokens: None })
        Stopped(ToolCalls)
    "#]];
    openai_refuses: "openai_refusal.sse" => expect![[r#"
        Refusal("I can't ")
        Refusal("help with that.")
        Stopped(Refusal)
    "#]];
    azure_cuts_off: "azure_filter.sse" => expect![[r#"
        Text("Once")
        Stopped(ContentFilter)
    "#]];
    llama_cpp_thinks_and_calls: "llama_cpp.sse" => expect![[r#"
        Reasoning("The user")
        Reasoning(" wants")
        CallStarted { index: 0, id: "Kb9", name: "list" }
        CallInput { index: 0, text: "{" }
        CallInput { index: 0, text: "\"path\":\".\"" }
        CallInput { index: 0, text: "}" }
        Usage(Usage { input_tokens: Some(140), output_tokens: Some(31), cache_read_tokens: None, cache_write_tokens: None })
        item {"role":"assistant","content":null,"tool_calls":[{"id":"Kb9","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}}],"reasoning_content":"The user wants"}
        Stopped(ToolCalls)
    "#]];
    llama_cpp_complains_in_a_field_of_its_own: "llama_cpp_error_field.sse" => expect![[r#"
        Rejected: the model server reports an error: the request exceeds the available context size
    "#]];
    ollama_gives_all_calls_the_same_index: "ollama.sse" => expect![[r#"
        Reasoning("Two files.")
        CallStarted { index: 0, id: "call_9x", name: "write" }
        CallInput { index: 0, text: "{\"path\":\"a\"}" }
        CallStarted { index: 1, id: "call_7q", name: "write" }
        CallInput { index: 1, text: "{\"path\":\"b\"}" }
        Usage(Usage { input_tokens: Some(5), output_tokens: Some(6), cache_read_tokens: None, cache_write_tokens: None })
        Stopped(ToolCalls)
    "#]];
    old_ollama_gives_calls_neither_index_nor_id: "old_ollama_no_index_no_id.sse" => expect![[r#"
        CallStarted { index: 0, id: "call_made_0", name: "list" }
        CallInput { index: 0, text: "{\"path\":\"x\"}" }
        CallStarted { index: 1, id: "call_made_1", name: "list" }
        CallInput { index: 1, text: "{\"path\":\"y\"}" }
        Stopped(ToolCalls)
    "#]];
    vllm_counts_with_every_piece: "vllm_crlf.sse" => expect![[r#"
        Reasoning("Hm")
        Text("Yes")
        Text(".")
        Usage(Usage { input_tokens: Some(7), output_tokens: Some(3), cache_read_tokens: None, cache_write_tokens: None })
        item {"role":"assistant","content":"Yes.","reasoning_content":"Hm"}
        Stopped(Length)
    "#]];
    deepseek_keeps_the_line_open: "deepseek.sse" => expect![[r#"
        Reasoning("Hm.")
        Text("42")
        Usage(Usage { input_tokens: Some(9), output_tokens: Some(5), cache_read_tokens: Some(4), cache_write_tokens: None })
        item {"role":"assistant","content":"42","reasoning_content":"Hm."}
        Stopped(End)
    "#]];
    mistral_thinks_in_parts: "mistral_thinking.sse" => expect![[r#"
        Reasoning("Let me")
        Text("So")
        Text(".")
        Usage(Usage { input_tokens: Some(1), output_tokens: Some(2), cache_read_tokens: None, cache_write_tokens: None })
        Stopped(End)
    "#]];
    openrouter_complains_in_mid_answer: "openrouter_error.sse" => expect![[r#"
        Text("Well")
        Unavailable: the model server reports an error: Provider disconnected unexpectedly
    "#]];
    a_function_call_of_old: "old_function_call.sse" => expect![[r#"
        CallStarted { index: 0, id: "call_made_0", name: "read" }
        CallInput { index: 0, text: "{\"path\"" }
        CallInput { index: 0, text: ":\"a\"}" }
        Stopped(ToolCalls)
    "#]];
    a_call_that_is_sent_once_more_as_a_whole: "calls_repeated_whole.sse" => expect![[r#"
        CallStarted { index: 0, id: "c1", name: "read" }
        CallInput { index: 0, text: "{\"a\":" }
        CallInput { index: 0, text: "1}" }
        Stopped(ToolCalls)
    "#]];
    calls_that_share_an_id: "calls_same_id.sse" => expect![[r#"
        CallStarted { index: 0, id: "x", name: "read" }
        CallInput { index: 0, text: "{}" }
        CallStarted { index: 1, id: "call_made_1", name: "read" }
        CallInput { index: 1, text: "{}" }
        Stopped(ToolCalls)
    "#]];
    calls_distinguished_by_id_only: "calls_by_id_only.sse" => expect![[r#"
        CallStarted { index: 0, id: "x", name: "read" }
        CallStarted { index: 1, id: "y", name: "grep" }
        CallInput { index: 0, text: "{\"a\":1}" }
        CallInput { index: 1, text: "{" }
        CallInput { index: 1, text: "}" }
        Stopped(ToolCalls)
    "#]];
    a_name_that_comes_late_or_never: "call_named_late.sse" => expect![[r#"
        CallStarted { index: 0, id: "x", name: "read" }
        CallInput { index: 0, text: "{\"a\":1}" }
        CallStarted { index: 1, id: "call_made_1", name: "" }
        CallInput { index: 1, text: "{}" }
        Stopped(ToolCalls)
    "#]];
    ids_that_change_within_a_call: "new_id_with_every_piece.sse" => expect![[r#"
        CallStarted { index: 0, id: "x1", name: "read" }
        CallInput { index: 0, text: "{" }
        CallInput { index: 0, text: "}" }
        Stopped(ToolCalls)
    "#]];
    only_the_first_of_several_choices: "several_choices.sse" => expect![[r#"
        Text("a")
        Text("c")
        Usage(Usage { input_tokens: Some(3), output_tokens: Some(1), cache_read_tokens: Some(2), cache_write_tokens: None })
        Stopped(End)
    "#]];
    text_after_the_reason_to_stop: "text_after_finish.sse" => expect![[r#"
        Text("a")
        Text("b")
        Stopped(End)
    "#]];
    a_document_instead_of_a_stream: "document.json" => expect![[r#"
        Reasoning("Hm")
        Text("Both.")
        CallStarted { index: 0, id: "c1", name: "list" }
        CallInput { index: 0, text: "{\"path\":\".\"}" }
        CallStarted { index: 1, id: "c2", name: "read" }
        CallInput { index: 1, text: "{}" }
        Usage(Usage { input_tokens: Some(2), output_tokens: Some(3), cache_read_tokens: None, cache_write_tokens: None })
        item {"role":"assistant","content":"Both.","tool_calls":[{"id":"c1","type":"function","function":{"name":"list","arguments":"{\"path\":\".\"}"}},{"id":"c2","type":"function","function":{"name":"read","arguments":"{}"}}],"reasoning_content":"Hm"}
        Stopped(ToolCalls)
    "#]];
}

#[test]
fn an_answer_without_a_reason_to_stop_broke_off() {
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        expect![[r#"
            Text("a")
            Interrupted: the answer of the model server broke off
        "#]],
    );
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n",
        expect![[r#"
            Text("a")
            Usage(Usage { input_tokens: None, output_tokens: Some(1), cache_read_tokens: None, cache_write_tokens: None })
            Interrupted: the answer of the model server broke off
        "#]],
    );
    check(
        "data: {\"choices\":[{\"delta\":{\"con",
        expect![[r#"
        Interrupted: the answer of the model server broke off
    "#]],
    );
    check(
        "{\"choices\":[{\"message\":{\"con",
        expect![[r#"
        Interrupted: the answer of the model server broke off
    "#]],
    );
    check(
        "{\"choices\":[{\"message\":{\"content\":\"a\"}}]}",
        expect![[r#"
            Text("a")
            Interrupted: the answer of the model server broke off
        "#]],
    );
    check(
        ": keep-alive\n\n",
        expect![[r#"
        Interrupted: the answer of the model server broke off
    "#]],
    );
    check(
        "",
        expect![[r#"
        Interrupted: the answer of the model server broke off
    "#]],
    );
}

#[test]
fn a_server_may_give_up_by_its_reason_to_stop() {
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"insufficient_system_resource\"}]}\n\n",
        expect![[r#"
            Text("a")
            Interrupted: the model server gave up in mid-answer (insufficient_system_resource)
        "#]],
    );
    check(
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"novelty\"}]}\n\n",
        expect![[r#"
            Stopped(Other("novelty"))
        "#]],
    );
}

#[test]
fn errors_instead_of_an_answer() {
    check(
        "data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n",
        expect![[r#"
            Unavailable: the model server reports an error: Overloaded
        "#]],
    );
    check(
        "event: error\ndata: {\"message\":\"no\",\"code\":401}\n\n",
        expect![[r#"
            Unauthorized: the model server reports an error: no
        "#]],
    );
    check(
        "data: {\"error\":\"model not loaded\"}\n\n",
        expect![[r#"
        Unavailable: the model server reports an error: model not loaded
    "#]],
    );
    check(
        "{\"object\":\"error\",\"message\":\"no such model\",\"code\":404}",
        expect![[r#"
            Rejected: the model server reports an error: no such model
        "#]],
    );
    check(
        "[{\"error\":{\"code\":400,\"message\":\"bad argument\"}}]",
        expect![[r#"
            Rejected: the model server reports an error: bad argument
        "#]],
    );
    check(
        "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\n",
        expect![[r#"
            Text("fine")
            Stopped(End)
        "#]],
    );
}

#[test]
fn responses_that_are_no_answer() {
    check(
        "<!doctype html><p>Welcome",
        expect![[r#"
        Unreadable: the model server answers with a web page; is the base URL right?
    "#]],
    );
    check(
        "data: hello\n\n",
        expect![[r#"
        Unreadable: the model server sent an invalid response: hello
    "#]],
    );
    check(
        "data: [1,2]\n\n",
        expect![[r#"
        Unreadable: the model server sent an invalid response: [1,2]
    "#]],
    );
    check(
        "[1]",
        expect![[r#"
        Unreadable: the model server sent an invalid response: [1]
    "#]],
    );
    check(
        "{\"choices\":7}",
        expect![[r#"
        Unreadable: the model server sent an invalid response: {"choices":7}
    "#]],
    );
    check(
        "SSH-2.0-OpenSSH_9.2\r\n",
        expect![[r#"
        Unreadable: the model server answers with some other text; is the base URL right?
    "#]],
    );
    check(
        "data: {\"choices\":[{\"delta\":{\"content\":{\"x\":1},\"tool_calls\":null},\"finish_reason\":7}]}\n\n",
        expect![[r#"
            Interrupted: the answer of the model server broke off
        "#]],
    );
}

/// Pieces, parts and fields that are not known here end no answer.
#[test]
fn what_is_new_ends_nothing() {
    let pieces = [
        r#"{"type":"weather","data":{}}"#,
        r#"{"choices":"none","object":"chat.completion.progress"}"#,
        "null",
        r#"{"choices":[{"delta":{"content":[{"type":"hologram","data":"AA"},{"type":"text","text":"H"}],"hologram":7}}]}"#,
        r#"{"choices":[{"delta":{"content":"i","tool_calls":[null]},"new_reason":{"a":1}}],"usage":"none"}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    let stream = pieces.map(|piece| format!("data: {piece}\n\n")).concat();
    check(
        &stream,
        expect![[r#"
            Text("H")
            Text("i")
            Stopped(End)
        "#]],
    );
}

#[test]
fn the_number_of_calls_is_bounded() {
    let call = |index: usize| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"name\":\"f\"}}}}]}}}}]}}\n\n"
        )
    };
    let stream: String = (0..200).map(call).collect();
    let lines = decode(made(), [stream.as_bytes()]);
    assert_eq!(lines.lines().count(), 129);
    assert!(lines.ends_with("more than 128 calls at once\n"), "{lines}");
}

#[test]
fn a_document_has_a_bound() {
    let mut decoder = made();
    let piece = vec![b'['; 1 << 20];
    let read = (0..17).try_for_each(|_| decoder.read(&piece, &mut Vec::new()).map(|_| ()));
    assert!(read.unwrap_err().message.contains("too large"));
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        recorded in proptest::sample::select(RECORDED),
        offsets in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        broken_off in any::<proptest::sample::Index>(),
    ) {
        let stream = &recorded.as_bytes()[..=broken_off.index(recorded.len())];
        let mut offsets: Vec<usize> = offsets.iter().map(|offset| offset.index(stream.len())).collect();
        offsets.extend([0, stream.len()]);
        offsets.sort_unstable();
        let pieces: Vec<&[u8]> = offsets.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
        prop_assert_eq!(decode(made(), pieces), decode(made(), [stream]));
    }
}
