//! The native agent over each wire format: what is asked, where and with which key; what comes back in later turns and after
//! a restart; what the chat shows.

use crate::spoken;

use crate::spoken::{Said, WIRES, Wire};
use conformance::native::{NativeHarness, calls_of, error_of, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, CapturedRequest};

const KEY: &str = "sk-of-the-wires-0123456789";
const PICTURE: &str = "iVBORw0KGgo=";

async fn start(wire: Wire) -> NativeHarness {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), KEY).unwrap();
    let path = file.into_temp_path().keep().unwrap();
    NativeHarness::start_with_model(json!({"approvals": "full-access"}), |model| {
        model.api = wire.api();
        model.key_file = Some(path);
        model.headers.insert("x-team".to_owned(), "blue".to_owned());
        model.query.insert("version".to_owned(), "7".to_owned());
    })
    .await
}

/// Requests answered in turn.
async fn talk(harness: &mut NativeHarness, wire: Wire, text: &str, said: &[Said]) -> Value {
    let answers = said.iter().map(|said| Answer::raw(wire.stream(said)));
    harness.talk(text, answers).await
}

fn bodies(harness: &NativeHarness) -> Vec<Value> {
    let requests = harness.model.requests();
    requests.iter().map(CapturedRequest::json).collect()
}

#[tokio::test]
async fn questions_go_where_they_belong_with_the_key_where_it_belongs() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        let turn = talk(&mut harness, wire, "hello", &[Said::text("Hi.")]).await;
        assert_eq!(turn["state"], "complete", "{turn:#}");
        assert_eq!(texts_in(&turn, "markdown"), ["Hi."]);
        let request = harness.model.requests().remove(0);
        assert_eq!(request.path, wire.path(), "{wire:?}");
        let (header, value) = wire.key(KEY);
        assert_eq!(request.header(header), Some(value.as_str()), "{wire:?}");
        assert_eq!(request.header("x-team"), Some("blue"));
        let version = request.header("anthropic-version");
        assert_eq!(version.is_some(), wire == Wire::Anthropic);
    }
}

/// Claude on Vertex, by its address alone: the model stands in the path, the version in the body, the token where Google wants it.
#[tokio::test]
async fn claude_on_vertex_is_asked_as_vertex_wants_it() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), KEY).unwrap();
    let path = file.into_temp_path().keep().unwrap();
    let base = "v1/projects/p/locations/l/publishers/anthropic";
    let mut harness = NativeHarness::start_with_model(json!({}), |model| {
        let server = model.base_url.trim_end_matches("/v1").to_owned();
        model.base_url = format!("{server}/{base}");
        model.api = Wire::Anthropic.api();
        model.model = Some("claude-sonnet-4-5@20250929".to_owned());
        model.key_file = Some(path);
        model.key_header = Some("authorization".to_owned());
    })
    .await;
    let wire = Wire::Anthropic;
    let turn = talk(&mut harness, wire, "hello", &[Said::text("Hi.")]).await;
    assert_eq!(texts_in(&turn, "markdown"), ["Hi."]);
    let request = harness.model.requests().remove(0);
    let asked = "models/claude-sonnet-4-5@20250929:streamRawPredict";
    assert_eq!(request.path, format!("/{base}/{asked}"));
    let bearer = format!("Bearer {KEY}");
    assert_eq!(request.header("authorization"), Some(bearer.as_str()));
    let body = request.json();
    assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
    assert_eq!((body.get("model"), &body["stream"]), (None, &json!(true)));
}

/// What the server added to an answer goes back as it came: in the next round, in the next turn, after a restart. The chat's
/// state has nothing of it.
#[tokio::test]
async fn what_the_server_added_goes_back_and_is_seen_by_nobody() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        harness.write("a.txt", "one\n");
        let first = Said::calling(&[
            ("call-made-by-the-model_1", "read", json!({"path": "a.txt"})),
            ("call-made-by-the-model_2", "list", json!({"path": "."})),
        ]);
        let turn = talk(&mut harness, wire, "look", &[first.clone(), Said::text("Two.")]).await;
        assert_eq!(turn["state"], "complete", "{wire:?} {turn:#}");
        assert_eq!(calls_of(&turn).len(), 2, "{turn:#}");
        if wire.has_thoughts() {
            assert_eq!(texts_in(&turn, "reasoning"), ["Hm."], "{wire:?}");
        }
        harness.restart().await;
        talk(&mut harness, wire, "and?", &[Said::text("Three.")]).await;
        let bodies = bodies(&harness);
        let items = wire.items(&first);
        for (number, body) in bodies.iter().enumerate().skip(1) {
            let sent = wire.conversation(body);
            for item in items.as_array().unwrap() {
                assert!(holds(&sent, item), "{wire:?} {number}: {item} in {sent:#}");
            }
        }
        assert_eq!(bodies.len(), 3);
        let results = bodies[2].to_string();
        for id in ["call-made-by-the-model_1", "call-made-by-the-model_2"] {
            let answered = results.matches(id).count();
            assert!(answered >= 2, "{wire:?}: {id} in {results}");
        }
        let seen = harness.ann.sees().to_string();
        assert!(!seen.contains(spoken::SIGNATURE), "{wire:?}: {seen}");
    }
}

fn holds(value: &Value, wanted: &Value) -> bool {
    let mut value = value.clone();
    // The cache's marks move along.
    if let Some(fields) = value.as_object_mut() {
        fields.remove("cache_control");
    }
    value == *wanted
        || match &value {
            Value::Array(values) => values.iter().any(|value| holds(value, wanted)),
            Value::Object(fields) => fields.values().any(|value| holds(value, wanted)),
            _ => false,
        }
}

/// Each request begins with the bytes of the one before it, over rounds, turns and a restart: only then is a prompt cached.
#[tokio::test]
async fn every_request_begins_with_the_one_before_it() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        harness.write("a.txt", "one\n");
        let look = Said::calling(&[("c_1", "read", json!({"path": "a.txt"}))]);
        let twice = [look.clone(), look, Said::text("Read.")];
        talk(&mut harness, wire, "look twice @file:a.txt", &twice).await;
        let change = json!({"path": "a.txt", "content": "two\n"});
        let change = Said::calling(&[("c_2", "write", change)]);
        talk(&mut harness, wire, "change it", &[change, Said::text("Done.")]).await;
        harness.restart().await;
        talk(&mut harness, wire, "thanks", &[Said::text("Bye.")]).await;
        let requests = harness.model.requests();
        assert_eq!(requests.len(), 6);
        let texts: Vec<String> =
            requests.iter().map(|request| wire.prefix(&request.body)).collect();
        for (number, pair) in texts.windows(2).enumerate() {
            let same = pair[0].bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
            let at = pair[0].floor_char_boundary(same);
            let (expected, found) = (&pair[0][at..], &pair[1][at..]);
            assert!(
                expected.is_empty(),
                "{wire:?}: request {} differs from the one before at {expected:.200} | {found:.200}",
                number + 1
            );
        }
    }
}

#[tokio::test]
async fn usage_counts_the_cache() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        let turn = talk(&mut harness, wire, "hello", &[Said::text("Hi.")]).await;
        let usage = &turn["usage"];
        let counts =
            ["inputTokens", "outputTokens", "cacheReadTokens"].map(|name| usage[name].as_u64());
        assert_eq!(counts, [Some(120), Some(30), Some(80)], "{wire:?}: {usage:#}");
        let written = usage["_meta"]["cacheWriteTokens"].as_u64();
        let expected = (wire == Wire::Anthropic).then_some(15);
        assert_eq!(written, expected, "{wire:?}");
    }
}

#[tokio::test]
async fn a_refusal_ends_the_turn_and_an_answer_that_is_too_long_does_not() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        let turn = talk(&mut harness, wire, "do evil", &[Said::refusal()]).await;
        let error = error_of(&turn)["error"].clone();
        assert_eq!(error["errorType"], "refusal", "{wire:?}: {error:#}");
        let turn = talk(&mut harness, wire, "write a book", &[Said::cut_off("Once")]).await;
        assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        let notices = texts_in(&turn, "systemNotification");
        assert!(notices[0].contains("output limit"), "{wire:?}: {notices:?}");
    }
}

/// From now on the server refuses pictures: the chat goes on, and they are described. `stream` is what it answers otherwise.
async fn check_goes_on_without_pictures(harness: &mut NativeHarness, wire: Wire, stream: String) {
    let (status, words) = wire.refuses_pictures();
    harness.model.behaves(move |request| {
        if String::from_utf8_lossy(&request.body).contains(PICTURE) {
            Answer::status(status, words)
        } else {
            Answer::raw(stream.clone())
        }
    });
    harness.ann.sends_message("and now?").await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
    let last = bodies(harness).pop().unwrap().to_string();
    assert!(last.contains("file_attachment"), "{wire:?}: {last}");
}

/// A picture has the shape of its wire format, and is described when the server refuses it.
#[tokio::test]
async fn attachments_go_in_the_shapes_of_the_wire_format() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        let stream = wire.stream(&Said::text("A cat."));
        harness.model.answers([Answer::raw(stream.clone())]);
        let attached = json!([{"type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": PICTURE}]);
        harness.ann.sends_with_attachments("what is it?", attached).await;
        harness.ann.turn_over().await;
        let sent = wire.conversation(&bodies(&harness)[0]);
        assert!(holds(&sent, &wire.picture(PICTURE)), "{wire:?}: {sent:#}");
        check_goes_on_without_pictures(&mut harness, wire, stream).await;
    }
}

/// Reasoning that the server cannot read any more does not end a chat either.
#[tokio::test]
async fn signatures_that_are_refused_are_left_out() {
    for wire in WIRES.into_iter().filter(|wire| wire.signs()) {
        let mut harness = start(wire).await;
        let call = Said::calling(&[("c_1", "list", json!({"path": "."}))]);
        talk(&mut harness, wire, "look", &[call, Said::text("Seen.")]).await;
        let stream = wire.stream(&Said::text("Fine."));
        let body = json!({"error": {"type": "invalid_request_error", "code": 400, "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}}).to_string();
        harness.model.behaves(move |request| {
            if String::from_utf8_lossy(&request.body).contains(spoken::SIGNATURE) {
                Answer::status(400, &body)
            } else {
                Answer::raw(stream.clone())
            }
        });
        for text in ["go on", "and on"] {
            harness.ann.sends_message(text).await;
            let turn = harness.ann.turn_over().await;
            assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        }
        let requests = harness.model.requests();
        assert_eq!(requests.len(), 5, "{wire:?}: it is refused once");
    }
}

/// Once they are refused they stay out of the turn: what the server adds to its next answer is not sent either.
#[tokio::test]
async fn signatures_that_are_refused_in_mid_turn_stay_out() {
    for wire in WIRES.into_iter().filter(|wire| wire.signs()) {
        let mut harness = start(wire).await;
        let list = |id: &str| Said::calling(&[(id, "list", json!({"path": "."}))]);
        let (again, last) = (wire.stream(&list("c_2")), wire.stream(&Said::text("Fine.")));
        let first = wire.stream(&list("c_1"));
        let words = json!({"error": {"type": "invalid_request_error", "code": 400, "message": "Invalid `signature` in `thinking` block"}}).to_string();
        harness.model.behaves(move |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            match (body.contains(spoken::SIGNATURE), body.contains("c_1"), body.contains("c_2")) {
                (true, _, _) => Answer::status(400, &words),
                (false, false, _) => Answer::raw(first.clone()),
                (false, true, false) => Answer::raw(again.clone()),
                (false, true, true) => Answer::raw(last.clone()),
            }
        });
        harness.ann.sends_message("look").await;
        let turn = harness.ann.turn_over().await;
        assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        assert_eq!(texts_in(&turn, "systemNotification").len(), 1, "{wire:?}");
        let signed = harness
            .model
            .requests()
            .iter()
            .filter(|request| String::from_utf8_lossy(&request.body).contains(spoken::SIGNATURE))
            .count();
        assert_eq!(signed, 1, "{wire:?}: it is refused once");
    }
}

/// A refusal that says nothing of it may be about them all the same: that is tried once, and learned only if it helps.
#[tokio::test]
async fn an_unexplained_refusal_is_tried_without_signatures() {
    for wire in WIRES.into_iter().filter(|wire| wire.signs()) {
        let mut harness = start(wire).await;
        let call = Said::calling(&[("c_1", "list", json!({"path": "."}))]);
        talk(&mut harness, wire, "look", &[call, Said::text("Seen.")]).await;
        let words =
            r#"{"error": {"code": 400, "message": "Request contains an invalid argument."}}"#;
        harness.model.behaves(move |_| Answer::status(400, words));
        harness.ann.sends_message("go on").await;
        let turn = harness.ann.turn_over().await;
        assert_eq!(error_of(&turn)["error"]["errorType"], "modelRejected", "{wire:?}");
        let signed = |request: &CapturedRequest| {
            String::from_utf8_lossy(&request.body).contains(spoken::SIGNATURE)
        };
        let tries: Vec<bool> = harness.model.requests()[2..].iter().map(signed).collect();
        assert_eq!(tries, [true, false], "{wire:?}");
        let stream = wire.stream(&Said::text("Fine."));
        harness.model.behaves(move |request| {
            if signed(request) { Answer::status(400, words) } else { Answer::raw(stream.clone()) }
        });
        for text in ["once more", "and on"] {
            harness.ann.sends_message(text).await;
            let turn = harness.ann.turn_over().await;
            assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        }
        let tries: Vec<bool> = harness.model.requests()[4..].iter().map(signed).collect();
        assert_eq!(tries, [true, false, false], "{wire:?}");
    }
}

/// What was taken in an earlier round is not blamed for what is refused in a later one.
#[tokio::test]
async fn what_came_last_is_blamed_for_a_refusal_in_a_later_round() {
    const ATTACHED: &str = "iVBORw0KGgo=";
    const TAKEN: &str = "iVBORw0KGgoAAAA=";
    let wire = Wire::Anthropic;
    let mut harness = start(wire).await;
    let schema = json!({"type": "object", "properties": {}});
    let tools =
        json!([{"name": "screenshot", "description": "Takes a picture.", "inputSchema": schema}]);
    harness.ann.offers_tools(tools).await;
    let call = wire.stream(&Said::calling(&[("c_1", "screenshot", json!({}))]));
    let last = wire.stream(&Said::text("A cat."));
    let (status, words) = wire.refuses_pictures();
    harness.model.behaves(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        match (body.contains(TAKEN), body.contains("c_1")) {
            (true, _) => Answer::status(status, words),
            (false, true) => Answer::raw(last.clone()),
            (false, false) => Answer::raw(call.clone()),
        }
    });
    let attached = json!([{"type": "embeddedResource", "label": "mine.png", "contentType": "image/png", "data": ATTACHED}]);
    harness.ann.sends_with_attachments("like this", attached).await;
    let content = json!([
        {"type": "embeddedResource", "data": TAKEN, "contentType": "image/png"},
    ]);
    let result = json!({"success": true, "pastTenseMessage": "Took a picture", "content": content});
    harness.ann.completes_tool(result).await;
    let turn = harness.ann.completed_turn().await;
    let told = texts_in(&turn, "systemNotification");
    assert!(told.len() == 1 && !told[0].contains("mine.png"), "{told:?}");
    let sent = bodies(&harness).pop().unwrap().to_string();
    assert!(sent.contains(ATTACHED) && !sent.contains(TAKEN), "{sent}");
}

/// A picture that a tool of a client gives goes with its result, or right after it where a result is a text; in later turns,
/// too.
#[tokio::test]
async fn pictures_of_results_are_seen_by_the_model() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        let schema = json!({"type": "object", "properties": {}});
        let tools = json!([{"name": "screenshot", "description": "Takes a picture.", "inputSchema": schema}]);
        harness.ann.offers_tools(tools).await;
        let call = Said::calling(&[("c_1", "screenshot", json!({}))]);
        let said = [call, Said::text("A cat.")];
        let answers = said.iter().map(|said| Answer::raw(wire.stream(said)));
        harness.model.answers(answers);
        harness.ann.sends_message("take a picture").await;
        let content = json!([
            {"type": "text", "text": "taken"},
            {"type": "embeddedResource", "data": PICTURE, "contentType": "image/png"},
        ]);
        let result =
            json!({"success": true, "pastTenseMessage": "Took a picture", "content": content});
        harness.ann.completes_tool(result).await;
        let turn = harness.ann.turn_over().await;
        assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        talk(&mut harness, wire, "sure?", &[Said::text("Yes.")]).await;
        for body in &bodies(&harness)[1..] {
            let sent = wire.conversation(body);
            assert!(holds(&sent, &wire.picture(PICTURE)), "{wire:?}: {sent:#}");
            assert!(sent.to_string().contains("taken"), "{wire:?}: {sent:#}");
        }
    }
}

/// A picture that the model reads is seen by it, and described once its server refuses it.
#[tokio::test]
async fn a_picture_file_is_seen_and_described_where_it_is_refused() {
    for wire in WIRES {
        let mut harness = start(wire).await;
        let bytes = b"\x89PNG\r\n\x1a\n";
        std::fs::write(harness.work().join("p.png"), bytes).unwrap();
        let look = Said::calling(&[
            ("c_1", "read", json!({"path": "p.png"})),
            ("c_2", "view_image", json!({"path": "p.png"})),
        ]);
        let turn = talk(&mut harness, wire, "look", &[look, Said::text("A cat.")]).await;
        assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        let blocks = calls_of(&turn)[0]["content"].clone();
        assert_eq!(blocks[1]["contentType"], "image/png", "{blocks:#}");
        let sent = wire.conversation(&bodies(&harness)[1]);
        assert!(holds(&sent, &wire.picture(PICTURE)), "{wire:?}: {sent:#}");

        let stream = wire.stream(&Said::text("Fine."));
        check_goes_on_without_pictures(&mut harness, wire, stream).await;
    }
}
