//! What users mean, and what the model gets of it: pictures, files, skills and commands, from a client's message to
//! the request that a model server gets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conformance::native::{NativeHarness, calls_of, messages, script_of, texts_in};
use expect_test::expect;
use serde_json::{Value, json};
use testkit::{Answer, Call};

const PICTURE: &str = "iVBORw0KGgo=";

fn picture() -> Value {
    json!([{"type": "embeddedResource", "label": "p.png", "contentType": "image/png", "data": PICTURE}])
}

fn put(harness: &NativeHarness, path: &str, text: &str) {
    let path = harness.work().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Ann says something with attachments, the model answers with these; the turn once it is over.
async fn shows(
    harness: &mut NativeHarness,
    text: &str,
    attachments: Value,
    answers: impl IntoIterator<Item = Answer>,
) -> Value {
    harness.model.answers(answers);
    harness.ann.sends_with_attachments(text, attachments).await;
    harness.ann.turn_over().await
}

/// The system's message of the last request.
fn system(harness: &NativeHarness) -> String {
    let body = harness.model.requests().last().unwrap().json();
    let all = body["messages"].as_array().unwrap();
    let system = all.iter().find(|message| message["role"] == "system");
    system.unwrap()["content"].as_str().unwrap().to_owned()
}

// C-037: native blocks are made when the request is built
#[tokio::test]
async fn a_picture_goes_as_a_picture_and_stays_one() {
    let mut harness = NativeHarness::start().await;
    let turn = shows(&mut harness, "what is it?", picture(), [Answer::streams(["A cat."])]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let expected = json!([
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PICTURE}")}},
    ]);
    assert_eq!(harness.last_messages()[0]["content"], expected);
    harness.restart().await;
    harness.talk("sure?", [Answer::streams(["Yes."])]).await;
    assert_eq!(harness.last_messages()[0]["content"], expected);
}

// C-021: frozen when it is first followed
#[tokio::test]
async fn a_file_is_sent_as_it_was_when_it_was_mentioned() {
    let mut harness = NativeHarness::start().await;
    harness.write("a.txt", "one\n");
    harness.talk("see @file:a.txt", [Answer::streams(["Seen."])]).await;
    let first = harness.last_messages()[0].clone();
    let text = first["content"].to_string();
    assert!(text.contains(r"a.txt\n```\none\n```"), "{text}");
    assert!(!text.contains("@file"), "{text}");
    harness.write("a.txt", "two\n");
    harness.talk("and now @file:a.txt", [Answer::streams(["Changed."])]).await;
    let messages = harness.last_messages();
    assert_eq!(messages[0], first);
    assert!(messages[2]["content"].to_string().contains("two"));
    std::fs::remove_file(harness.work().join("a.txt")).unwrap();
    harness.restart().await;
    harness.talk("thanks", [Answer::streams(["ok"])]).await;
    assert_eq!(harness.last_messages()[..3], messages[..3]);
}

// C-061: the hint is in the prompt, the body comes through the tool, the user's text has nothing of it
#[tokio::test]
async fn a_skill_is_hinted_at_in_the_prompt_and_read_by_its_tool() {
    let mut harness = NativeHarness::start().await;
    let skill = "---\nname: tables\ndescription: Draws tables.\n---\nUse three columns.\n";
    put(&harness, ".agents/skills/tables/SKILL.md", skill);
    let answers = [
        Answer::calls([Call::new("c1", "skill", &json!({"name": "tables"}))]),
        Answer::streams(["Done."]),
    ];
    let turn = harness.talk("draw @skill:tables please", answers).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let hint = "The user asked for skill \"tables\"; call skill with name \"tables\"";
    assert!(system(&harness).contains(hint), "{}", system(&harness));
    let results = harness.last_results();
    assert!(results[0].contains("Use three columns."), "{results:?}");
    let user = harness.last_messages()[0]["content"].clone();
    let blocks = json!([{"type": "text", "text": "draw "}, {"type": "text", "text": " please"}]);
    assert_eq!(user, blocks);
    harness.talk("again", [Answer::streams(["ok"])]).await;
    assert!(!system(&harness).contains(hint), "it held for one turn");
}

// C-041, C-044: the expansion, and never the literal
#[tokio::test]
async fn a_project_command_is_sent_expanded() {
    let mut harness = NativeHarness::start().await;
    put(&harness, ".greenroom/commands/greet.md", "Greet $1 warmly.\n");
    harness.talk("/greet Ann", [Answer::streams(["Hello, Ann!"])]).await;
    // The expansion of then counts.
    put(&harness, ".greenroom/commands/greet.md", "Ignore $1.\n");
    harness.talk("thanks", [Answer::streams(["ok"])]).await;
    expect![[r#"
        user: Greet Ann warmly.
        assistant: Hello, Ann!
        user: thanks
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
    let all = harness.model.requests();
    assert!(all.iter().all(|request| !request.json().to_string().contains("/greet")));
}

#[tokio::test]
async fn compacting_asks_for_a_summary_and_sends_it_instead_of_the_turns() {
    let mut harness = NativeHarness::start().await;
    harness.talk("first", [Answer::streams(["one"])]).await;
    harness.talk("second", [Answer::streams(["two"])]).await;
    let turn = harness.talk("/compact names matter", [Answer::streams(["We counted."])]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let notices = texts_in(&turn, "systemNotification");
    assert_eq!(notices, ["The 2 turns before are summarised for the model."]);
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 3, "one request summarises");
    let asked = script_of(&messages(&requests[2].json()));
    assert!(
        asked.starts_with(
            "user: first\nassistant: one\nuser: second\nassistant: two\nuser: Summarise"
        ),
        "{asked}"
    );
    assert!(asked.contains("names matter"), "{asked}");
    assert!(requests[2].json()["tools"].is_null());
    for said in ["third", "fourth"] {
        harness.talk(said, [Answer::streams(["ok"])]).await;
        harness.restart().await;
    }
    expect![[r#"
        user: What was said before, in short:
        We counted.
        assistant: I keep it in mind.
        user: third | (The host showed this to the user before this message:
        The 2 turns before are summarised for the model.)
        assistant: ok
        user: fourth
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
}

#[tokio::test]
async fn host_commands_are_not_sent_to_the_model() {
    let mut harness = NativeHarness::start().await;
    harness.talk("first", [Answer::streams(["one"])]).await;
    harness.talk("second", [Answer::streams(["two"])]).await;
    harness.talk("/rewind 1", []).await;
    harness.talk("/help", []).await;
    assert_eq!(harness.model.requests().len(), 2, "no model is asked");
    harness.talk("third", [Answer::streams(["three"])]).await;
    let sent = harness.last_messages();
    assert_eq!(script_of(&sent[..2]), "user: first\nassistant: one\n");
    // What the host said is known to the model, the commands are not (G-74).
    let third = sent[2]["content"].as_array().unwrap();
    assert_eq!((sent.len(), &third[0]["text"]), (3, &json!("third")));
    let told = third[1]["text"].as_str().unwrap();
    assert!(told.contains("One turn was taken back."), "{told}");
    assert!(told.contains("What can be typed here:"), "{told}");
    harness.talk("fourth", [Answer::streams(["four"])]).await;
    assert_eq!(harness.last_messages()[..3], sent, "it stays what it was");
}

/// The path that a descriptor names.
fn path_in(text: &str) -> String {
    let (_, after) = text.split_once("path=\"").expect(text);
    after.split('"').next().unwrap().to_owned()
}

// C-032: what cannot be sent can be read where it lies, and is not changed there
#[tokio::test]
async fn an_attachment_that_cannot_be_sent_can_be_read_by_tools_and_not_changed() {
    let mut harness = NativeHarness::start_with(json!({"approvals": "full-access"})).await;
    let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
    let attached = json!([{
        "type": "embeddedResource", "label": "long.log", "contentType": "text/plain",
        "data": STANDARD.encode(&long),
    }]);
    shows(&mut harness, "look", attached.clone(), [Answer::streams(["Where?"])]).await;
    let content = harness.last_messages()[0]["content"].clone();
    let text = content[1]["text"].as_str().unwrap_or_else(|| panic!("{content}"));
    assert!(text.starts_with("<file_attachment name=\"long.log\""), "{text}");
    let path = path_in(text);
    assert!(!std::path::Path::new(&path).starts_with(harness.work()));
    let answers = [
        Answer::calls([
            Call::new("c1", "read", &json!({"path": path, "offset": 12_346, "limit": 1})),
            Call::new("c2", "write", &json!({"path": path, "content": "changed"})),
        ]),
        Answer::streams(["Done."]),
    ];
    let turn = harness.talk("read it", answers).await;
    let results = harness.last_results();
    assert!(results[0].contains("line 12345"), "{results:?}");
    assert!(results[1].contains("can be read and not changed"), "{results:?}");
    assert_eq!(calls_of(&turn).len(), 2);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), long);
}

// C-077: what an editor says is in the user's message and not in the prompt
#[tokio::test]
async fn editor_context_stays_out_of_the_system_prompt() {
    let mut harness = NativeHarness::start().await;
    let context = json!({"type": "editor-context", "kind": "selection", "payload": {"node": "n-4711"}, "emitted_at": 1});
    let chip = json!([{"type": "simple", "label": "selection", "displayKind": "selection",
        "modelRepresentation": "", "_meta": {"compositor/part": context}}]);
    let turn = shows(&mut harness, "make it red", chip, [Answer::streams(["Done."])]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let text = harness.last_messages()[0]["content"].to_string();
    assert!(text.contains("<editor_context kind=") && text.contains("n-4711"), "{text}");
    assert!(!system(&harness).contains("n-4711"));
}
