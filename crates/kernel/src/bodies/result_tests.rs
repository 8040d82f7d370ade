//! Results of tools, from a line to many megabytes.

use proptest::prelude::*;

use super::*;

const MAX: usize = 65_536;

fn text(length: usize) -> Value {
    text_block(&"x".repeat(length))
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

fn result_of(content: Value) -> Object {
    object(json!({"success": true, "pastTenseMessage": "Ran it", "content": content}))
}

/// What is in state afterwards, large texts told by their length.
fn shape(content: &Value) -> Vec<String> {
    let blocks = content.as_array().unwrap().iter();
    let told = |block: &Value| match block["type"].as_str().unwrap() {
        "text" => format!("text {}", block["text"].as_str().unwrap().len()),
        "resource" => format!("{} {}", block["contentType"], block["sizeHint"]),
        other => other.to_owned(),
    };
    blocks.map(told).collect()
}

fn bytes_of(body: &UnstoredBody) -> Vec<u8> {
    match &body.data {
        BodyData::Bytes(bytes) => bytes.to_vec(),
        BodyData::Base64(data) => STANDARD.decode(&**data).unwrap(),
    }
}

// G-32
#[test]
fn a_result_stays_up_to_the_bound_and_goes_above_it() {
    let mut result = result_of(json!([text(MAX)]));
    let before = result.clone();
    assert_eq!(detach_result(&mut result, MAX), []);
    assert_eq!(result, before);
    let mut result = result_of(json!([text(MAX + 1)]));
    let bodies = detach_result(&mut result, MAX);
    assert_eq!(shape(&result["content"]), ["text 4096", "\"text/plain\" 65537"]);
    assert_eq!(bodies[0].pointer, "/content/1");
    assert_eq!(bytes_of(&bodies[0]), vec![b'x'; MAX + 1]);
    assert_eq!((&result["success"], &result["pastTenseMessage"]), (&json!(true), &json!("Ran it")));
}

#[test]
fn a_preview_ends_with_a_whole_character() {
    let mut result = result_of(json!([text_block(&format!("a{}", "é".repeat(MAX)))]));
    detach_result(&mut result, MAX);
    assert_eq!(shape(&result["content"])[0], "text 4095");
}

#[test]
fn texts_go_together_and_embedded_ones_by_themselves() {
    let image = STANDARD.encode(vec![0; 50_000]);
    let page = STANDARD.encode("é".repeat(9_000));
    let mut result = result_of(json!([
        text(40_000),
        {"type": "embeddedResource", "data": image, "contentType": "image/png"},
        text(30_000),
        {"type": "embeddedResource", "data": page, "contentType": "text/html"},
        {"type": "embeddedResource", "data": "AAAA", "contentType": "image/gif"},
        {"type": "resource", "uri": "file:///x"},
    ]));
    let bodies = detach_result(&mut result, MAX);
    assert_eq!(
        shape(&result["content"]),
        [
            "text 4096",
            "\"text/plain\" 70001",
            "\"image/png\" 50000",
            "text 4096",
            "\"text/html\" 18000",
            "embeddedResource",
            "null null",
        ]
    );
    let places: Vec<&str> = bodies.iter().map(|body| body.pointer.as_str()).collect();
    assert_eq!(places, ["/content/1", "/content/2", "/content/4"]);
    let lengths: Vec<usize> = bodies.iter().map(|body| bytes_of(body).len()).collect();
    assert_eq!(lengths, [70_001, 50_000, 18_000]);
}

#[test]
fn short_texts_stay_beside_what_goes() {
    let image = STANDARD.encode(vec![0; 100_000]);
    let image = json!({"type": "embeddedResource", "data": image, "contentType": "image/png"});
    let mut result = result_of(json!([text(100), image, text(200)]));
    detach_result(&mut result, MAX);
    let expected = ["text 100", "\"image/png\" 100000", "text 200"];
    assert_eq!(shape(&result["content"]), expected);
}

#[test]
fn what_stands_beside_the_content_goes_too() {
    let mut result = object(json!({
        "success": false,
        "pastTenseMessage": {"markdown": "m".repeat(10_000)},
        "structuredContent": {"rows": "r".repeat(100_000)},
        "error": {"message": "e".repeat(10_000), "code": "x"},
    }));
    let bodies = detach_result(&mut result, MAX);
    assert_eq!(
        shape(&result["content"]),
        ["\"application/json\" 100011", "\"application/json\" 10025"]
    );
    assert!(!result.contains_key("structuredContent"));
    assert_eq!(result["error"], json!({"message": "e".repeat(4_096), "code": "x"}));
    assert_eq!(result["pastTenseMessage"]["markdown"].as_str().unwrap().len(), 4_099);
    let whole: Value = serde_json::from_slice(&bytes_of(&bodies[0])).unwrap();
    assert_eq!(whole["rows"].as_str().unwrap().len(), 100_000);
}

#[test]
fn many_small_pieces_become_one() {
    let piece = json!({"type": "embeddedResource", "data": "A".repeat(400), "contentType": "x/y"});
    let mut pieces = vec![text(3_000), text(0)];
    pieces.extend(std::iter::repeat_n(piece, 1_000));
    let whole = Value::Array(pieces);
    let mut result = result_of(whole.clone());
    let bodies = detach_result(&mut result, MAX);
    assert_eq!(result["content"].as_array().unwrap().len(), 2);
    assert_eq!(shape(&result["content"])[0], "text 3001");
    let kept: Value = serde_json::from_slice(&bytes_of(&bodies[0])).unwrap();
    assert_eq!(kept, whole);
    // Even if they hold nothing at all.
    let mut result = result_of(Value::Array(vec![text(0); 10_000]));
    detach_result(&mut result, MAX);
    assert!(rpc::to_json(&Value::Object(result)).len() < MAX);
}

/// Anything an agent might hand over as a block.
fn block() -> impl Strategy<Value = Value> {
    let length = prop_oneof![0..200_usize, 3_000..5_000_usize, 20_000..90_000_usize];
    let types = prop_oneof![Just("text/x"), Just("image/x"), Just("x")];
    (0..7_u8, length, types).prop_map(|(kind, length, content_type)| {
        let text = "é\"".repeat(length / 3);
        let data = STANDARD.encode(&text);
        match kind {
            0 | 1 => json!({"type": "text", "text": text}),
            2 => json!({"type": "embeddedResource", "data": data, "contentType": content_type}),
            3 => json!({"type": "text", "text": "t", "x-own": text}),
            4 => json!({"type": "embeddedResource", "data": "AAAA", "contentType": text}),
            5 => json!({"type": "song", "notes": [text]}),
            _ => json!(text),
        }
    })
}

fn any_result() -> impl Strategy<Value = Object> {
    let text = (0..3_usize, 0..60_000_usize).prop_map(|(one, n)| "x".repeat(n / (one + 1)));
    let blocks = prop_oneof![
        proptest::collection::vec(block(), 0..8),
        (block(), 1..600_usize).prop_map(|(block, many)| {
            let many = if block.to_string().len() > 9_000 { many / 20 } else { many };
            vec![block; many]
        }),
    ];
    (blocks, text.clone(), text.clone(), text).prop_map(|(content, one, two, three)| {
        object(json!({
            "success": true, "pastTenseMessage": {"markdown": one}, "content": content,
            "structuredContent": {"rows": two}, "error": three, "x-own": one,
        }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn whatever_a_tool_says_little_of_it_is_in_state(mut result in any_result()) {
        let before = result.clone();
        let bodies = detach_result(&mut result, MAX);
        let after = Value::Object(result);
        // In JSON a quotation mark takes two bytes, and a small block more than it holds.
        let bytes = rpc::to_json(&after).len();
        prop_assert!(bytes <= 4 * MAX, "{bytes} bytes");
        for body in &bodies {
            prop_assert_eq!(&after.pointer(&body.pointer).unwrap()["uri"], "");
        }
        if bodies.is_empty() {
            prop_assert_eq!(after, Value::Object(before.clone()));
        }
        let mut content = match before.get("content") {
            Some(Value::Array(content)) => content.clone(),
            _ => Vec::new(),
        };
        clip_content(&mut content, MAX);
        let bytes = rpc::to_json(&content).len();
        prop_assert!(bytes <= 4 * MAX, "{bytes} bytes while it runs");
    }
}

#[test]
fn running_output_shows_how_it_began_and_where_it_is() {
    let mut content = vec![text(MAX)];
    let before = content.clone();
    clip_content(&mut content, MAX);
    assert_eq!(content, before);
    let long = format!("begin{}end", "é".repeat(MAX));
    let image =
        json!({"type": "embeddedResource", "data": "A".repeat(9_000), "contentType": "x/y"});
    let terminal = json!({"type": "terminal", "resource": "t:/1", "title": "t"});
    let mut content = vec![text_block(&long), image, terminal.clone()];
    clip_content(&mut content, MAX);
    assert_eq!(content.len(), 3);
    assert!(content[0]["text"].as_str().unwrap().starts_with("beginé"));
    let end = content[1]["text"].as_str().unwrap();
    assert!(end.starts_with("[... 122") && end.ends_with("éend"), "{}", &end[..60]);
    assert_eq!(content[2], terminal);
}

#[test]
fn names_are_filled_in_where_bodies_were() {
    let mut result = result_of(json!([text(MAX + 1)]));
    let bodies = detach_result(&mut result, MAX);
    let digest = wire::Digest::new([1; 32]);
    let names = bodies.into_iter().map(|body| (body.pointer, digest));
    let mut result = Value::Object(result);
    super::super::fill_names(&mut result, names);
    assert_eq!(result["content"][1]["uri"], digest.uri());
}
