//! What loads as a step, and the errors of the rest.

use serde_json::json;

use super::*;

#[test]
fn every_step_of_this_version_loads() {
    for step in [
        json!({"say": ["a", "b"]}),
        json!({"think": []}),
        json!({"stream": {"chunks": 3, "size": "10", "every_ms": "$1"}}),
        json!({"stream": {"chunks": "$1"}}),
        json!({"parts": 3}),
        json!({"wait_ms": "$1"}),
        json!({"usage": {"inputTokens": 1, "model": "m", "_meta": {"x": [1]}}}),
        json!({"title": "t"}),
        json!({"activity": "a"}),
        json!({"activity": null}),
        json!({"notify": "n"}),
        json!({"fail": {}}),
        json!({"fail": {"type": "t", "message": "m", "resumable": true}}),
        json!({"hang": true}),
        json!({"crash": true}),
        json!({"tool": {"name": "a"}}),
        json!({"tool": {"name": "a", "display": "A", "input": {"x": 1}, "confirm": "ask", "title": "t",
            "options": [{"id": "y", "label": "Y", "kind": "approve"}], "editable": true,
            "edits": {"items": [{"after": {"uri": "file:///a", "content": {"uri": "file:///b"}}}]},
            "reconfirm": {"markdown": "m"}, "updates": [[{"type": "text", "text": "t"}], []],
            "result": {"success": false, "error": {"message": "m", "code": "c"}}, "confirm_result": true}}),
        json!({"tool": {"name": "a", "input_chunks": ["a"], "confirm": "auto", "edits": [], "result": {}}}),
        json!({"client_tool": {"name": "a", "input": {}, "timeout_ms": "$1"}}),
        json!({"ask": {"message": "m"}}),
        json!({"ask": {"url": "https://example.org", "questions": []}}),
        json!({"spawn": {"steps": []}}),
        json!({"spawn": {"title": "t", "interactivity": "full", "agent": "a",
            "steps": [{"spawn": {"steps": [{"hang": true}]}}]}}),
        json!({"steer": true}),
        json!({"content_ref": {"text": "t"}}),
        json!({"content_ref": {"text": "t", "type": "text/html"}}),
    ] {
        assert!(ScriptStep::parse(&step, "here").is_ok(), "{step}");
    }
}

#[test]
fn a_bad_step_is_reported_with_its_position() {
    let mut outcomes = String::new();
    for step in [
        json!(7),
        json!({}),
        json!({"say": ["a"], "title": "t"}),
        json!({"shout": ["a"]}),
        json!({"say": "a"}),
        json!({"say": ["a", 1]}),
        json!({"stream": 3}),
        json!({"stream": {"size": 3}}),
        json!({"stream": {"chunks": "many"}}),
        json!({"stream": {"chunks": 1, "sice": 3}}),
        json!({"wait_ms": -5}),
        json!({"usage": {"inputTokens": true}}),
        json!({"title": null}),
        json!({"fail": {"resumable": "yes"}}),
        json!({"fail": {"message": 3}}),
        json!({"hang": false}),
    ] {
        outcomes.push_str(&ScriptStep::parse(&step, "scenes[2].steps[0]").unwrap_err().to_string());
        outcomes.push('\n');
    }
    expect_test::expect![[r#"
        scenes[2].steps[0]: must be a JSON object
        scenes[2].steps[0]: a step has exactly one key; this one has 0
        scenes[2].steps[0]: a step has exactly one key; this one has 2
        scenes[2].steps[0]: unknown step `shout`; known here: say, think, stream, parts, wait_ms, tool, client_tool, ask, spawn, steer, show_prompt, notify, content_ref, usage, title, activity, show_lowered, fail, hang, crash
        scenes[2].steps[0].say: must be a list
        scenes[2].steps[0].say[1]: must be a string
        scenes[2].steps[0].stream: must be a JSON object
        scenes[2].steps[0].stream.chunks: is missing
        scenes[2].steps[0].stream.chunks: "many" is not a whole number of at least 0
        scenes[2].steps[0].stream: unknown key `sice`; known here: chunks, size, every_ms, first, end
        scenes[2].steps[0].wait_ms: -5 is not a whole number of at least 0
        scenes[2].steps[0].usage.inputTokens: true is not a whole number of at least 0
        scenes[2].steps[0].title: must be a string
        scenes[2].steps[0].fail.resumable: must be true or false
        scenes[2].steps[0].fail.message: must be a string
        scenes[2].steps[0].hang: must be true
    "#]]
    .assert_eq(&outcomes);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_bad_waiting_step_is_reported_with_its_position() {
    let mut outcomes = String::new();
    let question = json!({"kind": "text", "id": "q", "message": "?"});
    let choice = json!({"id": "y", "label": "Y", "kind": "approve"});
    for step in [
        json!({"tool": {}}),
        json!({"tool": {"name": ""}}),
        json!({"tool": {"name": "a", "imput": {}}}),
        json!({"tool": {"name": "a", "input": "x"}}),
        json!({"tool": {"name": "a", "input_chunks": [1]}}),
        json!({"tool": {"name": "a", "confirm": "maybe"}}),
        json!({"tool": {"name": "a", "title": 7}}),
        json!({"tool": {"name": "a", "options": []}}),
        json!({"tool": {"name": "a", "options": [choice, {"id": "n", "label": "N"}]}}),
        json!({"tool": {"name": "a", "options": [choice, choice]}}),
        json!({"tool": {"name": "a", "editable": "yes"}}),
        json!({"tool": {"name": "a", "edits": {"item": []}}}),
        json!({"tool": {"name": "a", "edits": [{}]}}),
        json!({"tool": {"name": "a", "updates": [{"type": "text", "text": "t"}]}}),
        json!({"tool": {"name": "a", "updates": [[{"type": "text"}]]}}),
        json!({"tool": {"name": "a", "result": {"sucess": true}}}),
        json!({"tool": {"name": "a", "result": {"content": "text"}}}),
        json!({"tool": {"name": "a", "result": {"structured": []}}}),
        json!({"tool": {"name": "a", "result": {"error": {}}}}),
        json!({"client_tool": {"name": "a", "timeout_ms": "soon"}}),
        json!({"client_tool": {"name": "a", "confirm": "ask"}}),
        json!({"ask": {}}),
        json!({"ask": {"question": "?"}}),
        json!({"ask": {"questions": [question, question]}}),
        json!({"ask": {"questions": [{"kind": "text", "id": "q"}]}}),
        json!({"spawn": {}}),
        json!({"spawn": {"steps": [], "interactivity": "none"}}),
        json!({"spawn": {"steps": [{"say": ["a"]}, {"spawn": {"steps": [{"shout": 1}]}}]}}),
        json!({"steer": 1}),
        json!({"content_ref": {"type": "text/plain"}}),
        json!({"content_ref": "text"}),
    ] {
        let error = ScriptStep::parse(&step, "here").unwrap_err();
        outcomes.push_str(&format!("{error}\n"));
    }
    expect_test::expect![[r#"
        here.tool.name: is missing
        here.tool.name: must not be empty
        here.tool: unknown key `imput`; known here: name, display, input, input_chunks, confirm, title, options, editable, edits, reconfirm, updates, result, confirm_result
        here.tool.input: must be a JSON object
        here.tool.input_chunks[0]: must be a string
        here.tool.confirm: must be one of "auto", "ask"
        here.tool.title: must be a string or {"markdown": "..."}
        here.tool.options: must not be empty
        here.tool.options[1]: missing field `kind`
        here.tool.options[1]: the id "y" occurs twice
        here.tool.editable: must be true or false
        here.tool.edits: unknown key `item`; known here: items
        here.tool.edits[0]: needs `before`, `after` or both
        here.tool.updates[0]: must be a list
        here.tool.updates[0][0]: missing field `text`
        here.tool.result: unknown key `sucess`; known here: success, message, content, structured, error
        here.tool.result.content: must be a list
        here.tool.result.structured: must be a JSON object
        here.tool.result.error: must be a string or {"message": "..."}
        here.client_tool.timeout_ms: "soon" is not a whole number of at least 0
        here.client_tool: unknown key `confirm`; known here: name, input, timeout_ms
        here.ask: asks nothing: needs message, questions or url
        here.ask: unknown key `question`; known here: message, questions, url
        here.ask.questions[1]: the id "q" occurs twice
        here.ask.questions[0]: missing field `message`
        here.spawn.steps: is missing
        here.spawn.interactivity: must be one of "full", "read-only", "hidden"
        here.spawn.steps[1].spawn.steps[0]: unknown step `shout`; known here: say, think, stream, parts, wait_ms, tool, client_tool, ask, spawn, steer, show_prompt, notify, content_ref, usage, title, activity, show_lowered, fail, hang, crash
        here.steer: must be true
        here.content_ref.text: is missing
        here.content_ref: must be a JSON object
    "#]].assert_eq(&outcomes);
}
