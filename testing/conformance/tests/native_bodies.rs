//! Whole requests over each wire format: attachments, a rewritten system prompt, tools of the agent and of a client, pictures in
//! results, what the server added to answers, and the marks of the cache; in later rounds, in later turns, after a restart.

use std::sync::Arc;

use crate::spoken::{SIGNATURE, Said, WIRES, Wire};
use conformance::native::{NativeHarness, SESSION};
use host::journal::Archive;
use host::sent_request::outline;
use serde_json::{Value, json};
use testkit::{Answer, CapturedRequest};

const PICTURE: &str = "iVBORw0KGgo=";

/// The sections that are rewritten; `safety` may not be.
const REWRITTEN: [&str; 3] = ["tone", "environment_context", "last_instructions"];

async fn start(wire: Wire) -> NativeHarness {
    NativeHarness::start_with_model(json!({"approvals": "full-access"}), |model| {
        model.api = wire.api();
        model.output_tokens = Some(4_096);
        let settings = json!({"temperature": {"type": "number", "title": "Temperature"}});
        model.settings = Some(settings);
    })
    .await
}

/// Ann is active with a tool, and rewrites sections: each becomes its own name.
async fn activate(harness: &mut NativeHarness) {
    let rewritten = REWRITTEN.map(|id| (id.to_owned(), json!({"content": format!("My {id}.")})));
    let answer: Value = rewritten.into_iter().collect();
    harness.ann.connection.answer_with(Arc::new(move |_| {
        let answer = json!({"sections": answer});
        Box::pin(async { Ok(answer) })
    }));
    let tools =
        json!([{"name": "screenshot", "description": "Takes a picture.", "inputSchema": schema()}]);
    let entry = json!({"clientId": "ann", "tools": tools, "systemMessageTransform": {"sections": REWRITTEN}});
    let action = json!({"type": "session/activeClientSet", "activeClient": entry});
    harness.ann.does_in(SESSION, action).await;
    harness
        .ann
        .until_session(SESSION, |state| {
            state["activeClients"][0]["systemMessageTransform"].is_object()
        })
        .await;
}

fn schema() -> Value {
    json!({"type": "object", "properties": {}})
}

/// A turn with a picture and a call, another one after a restart; the requests.
async fn converse(wire: Wire) -> (NativeHarness, Vec<Value>) {
    let mut harness = start(wire).await;
    activate(&mut harness).await;
    let said = [call(), Said::text("A cat.")];
    let answers = said.iter().map(|said| Answer::raw(wire.stream(said)));
    harness.model.answers(answers);
    let attached = json!([{"type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": PICTURE}]);
    let message = json!({
        "text": "what is it?", "origin": {"kind": "user"}, "attachments": attached,
        "model": {"id": "echo", "config": {"temperature": 0.5}},
    });
    harness.ann.sends_whole(message).await;
    let content = json!([
        {"type": "text", "text": "taken"},
        {"type": "embeddedResource", "data": PICTURE, "contentType": "image/png"},
    ]);
    let result = json!({"success": true, "pastTenseMessage": "Took a picture", "content": content});
    harness.ann.completes_tool(result).await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
    harness.restart().await;
    activate(&mut harness).await;
    let answer = Answer::raw(wire.stream(&Said::text("Yes.")));
    let turn = harness.talk("sure?", [answer]).await;
    assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
    let requests = harness.model.requests();
    let bodies = requests.iter().map(CapturedRequest::json).collect();
    (harness, bodies)
}

fn call() -> Said {
    Said::calling(&[("c_1", "screenshot", json!({}))])
}

/// The sections of the prompt as the model reads them, from what the host recorded of a call.
fn sections_of(harness: &NativeHarness, call: usize) -> Vec<(String, String)> {
    let archive = Archive::open(&harness.data().join("data")).unwrap();
    let session = wire::ChannelUri::parse(SESSION).unwrap();
    let session = archive.session(&session).unwrap().unwrap();
    let calls = archive.calls(&session.chats[0]).unwrap();
    let request = archive.read_request(&calls[call]).unwrap();
    let details: Value = serde_json::from_slice(&outline(&request.details)).unwrap();
    let sections = details["sections"].as_array().unwrap().iter().map(|section| {
        let text = |name: &str| section[name].as_str().unwrap().to_owned();
        (text("id"), text("after").trim_end().to_owned())
    });
    sections.filter(|(_, text)| !text.is_empty()).collect()
}

/// The tools in no wire format: name, description, schema; from how Chat Completions has them.
fn tools_of(body: &Value) -> Vec<Value> {
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"].clone()).collect()
}

fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

fn expected_tools(wire: Wire, tools: &[Value]) -> Value {
    let tool = |tool: &Value| {
        let (name, description, schema) =
            (&tool["name"], &tool["description"], &tool["parameters"]);
        match wire {
            Wire::Chat => json!({"type": "function", "function": tool}),
            Wire::Anthropic => {
                json!({"name": name, "description": description, "input_schema": schema})
            }
            Wire::Responses => json!({
                "type": "function", "name": name, "description": description, "parameters": schema, "strict": false,
            }),
            Wire::Gemini => {
                json!({"name": name, "description": description, "parametersJsonSchema": schema})
            }
        }
    };
    let tools: Value = tools.iter().map(tool).collect();
    match wire {
        Wire::Gemini => json!([{"functionDeclarations": tools}]),
        Wire::Chat | Wire::Anthropic | Wire::Responses => tools,
    }
}

/// The conversation as it stands in the request of this number, cache marks included.
#[expect(clippy::too_many_lines, reason = "a table")]
fn expected_conversation(wire: Wire, number: usize) -> Vec<Value> {
    let picture = wire.picture(PICTURE);
    let mut all: Vec<Vec<Value>> = match wire {
        Wire::Chat => {
            let function = json!({"name": "screenshot", "arguments": "{}"});
            let calls = json!([{"id": "c_1", "type": "function", "function": function}]);
            let came = json!({"type": "text", "text": "(What came with the result of call c_1:)"});
            vec![
                vec![
                    json!({"role": "user", "content": [{"type": "text", "text": "what is it?"}, picture]}),
                ],
                vec![
                    json!({"role": "assistant", "content": "Looking.", "tool_calls": calls}),
                    json!({"role": "tool", "tool_call_id": "c_1", "content": "taken"}),
                    json!({"role": "user", "content": [came, picture]}),
                ],
                vec![
                    json!({"role": "assistant", "content": "A cat."}),
                    json!({"role": "user", "content": "sure?"}),
                ],
            ]
        }
        Wire::Anthropic => {
            let text = |text: &str| json!({"type": "text", "text": text});
            let thought = json!({"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE});
            let called =
                json!({"type": "tool_use", "id": "c_1", "name": "screenshot", "input": {}});
            let content = json!([text("taken"), picture]);
            let mut result =
                json!({"type": "tool_result", "tool_use_id": "c_1", "content": content});
            let mut asked = picture.clone();
            let (mut said, mut sure) = (text("A cat."), text("sure?"));
            // The end of the request, and the end of what will not change any more.
            match number {
                0 => asked = marked(asked),
                1 => result = marked(result),
                _ => (said, sure) = (marked(said), marked(sure)),
            }
            vec![
                vec![json!({"role": "user", "content": [text("what is it?"), asked]})],
                vec![
                    json!({"role": "assistant", "content": [thought, text("Looking."), called]}),
                    json!({"role": "user", "content": [result]}),
                ],
                vec![
                    json!({"role": "assistant", "content": [said]}),
                    json!({"role": "user", "content": [sure]}),
                ],
            ]
        }
        Wire::Responses => {
            let text = |text: &str| json!({"type": "input_text", "text": text});
            let user =
                |content: Value| json!({"type": "message", "role": "user", "content": content});
            let said = |text: &str| {
                let part = json!({"type": "output_text", "text": text, "annotations": []});
                json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [part]})
            };
            let summary = json!([{"type": "summary_text", "text": "Hm."}]);
            let thought = json!({"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": SIGNATURE});
            let called = json!({
                "id": "fc_c_1", "type": "function_call", "status": "completed", "call_id": "c_1", "name": "screenshot",
                "arguments": "{}",
            });
            let output = json!([text("taken"), picture]);
            vec![
                vec![user(json!([text("what is it?"), picture]))],
                vec![
                    thought,
                    said("Looking."),
                    called,
                    json!({"type": "function_call_output", "call_id": "c_1", "output": output}),
                ],
                vec![said("A cat."), user(json!([text("sure?")]))],
            ]
        }
        Wire::Gemini => {
            let text = |text: &str| json!({"text": text});
            let called = json!({
                "functionCall": {"id": "c_1", "name": "screenshot", "args": {}}, "thoughtSignature": SIGNATURE,
            });
            let response =
                json!({"name": "screenshot", "response": {"output": "taken"}, "id": "c_1"});
            let result = json!({"functionResponse": response});
            vec![
                vec![json!({"role": "user", "parts": [text("what is it?"), picture]})],
                vec![
                    json!({"role": "model", "parts": [text("Looking."), called]}),
                    json!({"role": "user", "parts": [result, picture]}),
                ],
                vec![
                    json!({"role": "model", "parts": [text("A cat.")]}),
                    json!({"role": "user", "parts": [text("sure?")]}),
                ],
            ]
        }
    };
    all.truncate(number + 1);
    all.into_iter().flatten().collect()
}

/// The body of a request, whole.
fn expected(wire: Wire, number: usize, sections: &[(String, String)], tools: &[Value]) -> Value {
    let texts: Vec<&str> = sections.iter().map(|(_, text)| text.as_str()).collect();
    let joined = texts.join("\n\n");
    let tools = expected_tools(wire, tools);
    let conversation = expected_conversation(wire, number);
    let mut body = match wire {
        Wire::Chat => {
            let system = json!({"role": "system", "content": joined});
            let messages: Value = std::iter::once(system).chain(conversation).collect();
            json!({
                "model": "echo", "messages": messages, "tools": tools, "stream": true,
                "stream_options": {"include_usage": true}, "max_tokens": 4_096,
            })
        }
        Wire::Anthropic => {
            let changes = sections.iter().position(|(id, _)| id == "environment_context");
            let (before, last) = (changes.unwrap() - 1, sections.len() - 1);
            let block = |(index, text): (usize, &&str)| {
                let gap = if index == 0 { "" } else { "\n\n" };
                let block = json!({"type": "text", "text": format!("{gap}{text}")});
                if index == before || index == last { marked(block) } else { block }
            };
            let system: Value = texts.iter().enumerate().map(block).collect();
            json!({
                "model": "echo", "max_tokens": 4_096, "system": system, "tools": tools, "messages": conversation,
                "stream": true,
            })
        }
        Wire::Responses => json!({
            "model": "echo", "instructions": joined, "tools": tools, "input": conversation, "stream": true, "store": false,
            "include": ["reasoning.encrypted_content"], "max_output_tokens": 4_096,
        }),
        Wire::Gemini => {
            let parts: Value = texts.iter().map(|text| json!({"text": text})).collect();
            json!({
                "systemInstruction": {"parts": parts}, "tools": tools, "contents": conversation,
                "generationConfig": {"maxOutputTokens": 4_096},
            })
        }
    };
    // Only the first turn's message has the setting.
    if number < 2 {
        match wire {
            Wire::Gemini => body["generationConfig"]["temperature"] = json!(0.5),
            _ => body["temperature"] = json!(0.5),
        }
    }
    body
}

#[tokio::test]
async fn whole_requests_have_the_shape_of_their_wire_format() {
    let mut tools: Option<Vec<Value>> = None;
    for wire in WIRES {
        let (harness, bodies) = converse(wire).await;
        assert_eq!(bodies.len(), 3, "{wire:?}");
        // What the tools are does not depend on the wire format; Chat Completions comes first.
        let tools = tools.get_or_insert_with(|| tools_of(&bodies[0]));
        let client_tool = json!({"name": "screenshot", "description": "Takes a picture.", "parameters": schema()});
        assert!(tools.contains(&client_tool), "{tools:#?}");
        assert!(tools.iter().any(|tool| tool["name"] == "read"), "{tools:#?}");
        for (number, body) in bodies.iter().enumerate() {
            let sections = sections_of(&harness, number);
            for id in REWRITTEN {
                let rewritten = (id.to_owned(), format!("My {id}."));
                assert!(sections.contains(&rewritten), "{wire:?}: {sections:#?}");
            }
            let expected = expected(wire, number, &sections, tools);
            assert!(
                *body == expected,
                "{wire:?}: request {number} is\n{body:#}\nand not\n{expected:#}"
            );
        }
    }
}

/// With a client that rewrites the prompt each request still begins with the one before it, also after a restart.
#[tokio::test]
async fn rewritten_prompts_keep_the_beginning_of_each_request() {
    for wire in WIRES {
        let (harness, _) = converse(wire).await;
        let requests = harness.model.requests();
        let texts: Vec<String> =
            requests.iter().map(|request| wire.prefix(&request.body)).collect();
        for pair in texts.windows(2) {
            assert!(pair[1].starts_with(&pair[0]), "{wire:?}:\n{}\n{}", pair[0], pair[1]);
        }
    }
}
