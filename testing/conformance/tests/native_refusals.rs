//! Servers that refuse what a message holds: the chat goes on, what is refused is described, and it is remembered (G-50).

use std::ffi::OsString;

use crate::refusing_servers::{AttachmentKind, SERVERS, Server};
use crate::spoken::{Said, WIRES, Wire};
use conformance::native::{NativeHarness, error_of, messages, texts_in};
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{Answer, CapturedRequest};

/// The last request.
fn last(harness: &NativeHarness) -> CapturedRequest {
    harness.model.requests().pop().expect("the model was asked")
}

fn holds(request: &CapturedRequest, kind: AttachmentKind) -> bool {
    String::from_utf8_lossy(&request.body).contains(&kind.data())
}

/// Ann sends something with an attachment; the turn once it is over.
async fn shows(harness: &mut NativeHarness, text: &str, kind: AttachmentKind) -> Value {
    let attachments = json!([kind.attachment()]);
    harness.ann.sends_with_attachments(text, attachments).await;
    harness.ann.turn_over().await
}

async fn says(harness: &mut NativeHarness, text: &str) -> Value {
    harness.ann.sends_message(text).await;
    harness.ann.turn_over().await
}

/// Notices about what the model did not take.
fn refusals_in(turn: &Value) -> Vec<String> {
    let notices = texts_in(turn, "systemNotification").into_iter();
    notices.filter(|text| text.contains("/retry-attachments")).collect()
}

/// What becomes of an attachment in a chat that goes on: three turns, a restart, a summary.
async fn fate_of(server: &'static Server, kind: AttachmentKind) -> &'static str {
    let configure = |model: &mut host::Model| server.configure(model);
    let mut harness = NativeHarness::start_with_settings(json!({}), configure, |host| {
        host.document_reader = document_reader();
    })
    .await;
    harness.model.behaves(|request| server.answer(request));
    let mut turns = vec![shows(&mut harness, "what is it?", kind).await];
    let sent = holds(&last(&harness), kind);
    let told = refusals_in(&turns[0]);
    assert_eq!(told.is_empty(), sent || !kind.is_tried_on(server), "{told:?}");
    let asked = harness.model.requests().len();
    assert!(asked <= 3, "{}: {asked} requests", server.name);
    turns.push(says(&mut harness, "sure?").await);
    harness.restart().await;
    turns.push(says(&mut harness, "really? @file:none.txt and @file:other.txt").await);
    turns.push(says(&mut harness, "/compact").await);
    turns.push(says(&mut harness, "and now?").await);
    if turns.iter().any(|turn| turn["state"] != "complete") {
        return "lost";
    }
    if sent {
        "native"
    } else {
        let request = &harness.model.requests()[asked - 1];
        let request = String::from_utf8_lossy(&request.body);
        match (request.contains(PDF_TEXT), request.contains("file_attachment")) {
            (true, _) => "its text",
            (false, true) => "described",
            (false, false) => "lost",
        }
    }
}

/// What a document says, whichever it is.
const PDF_TEXT: &str = "Words of the page";

/// A program that reads documents as the host asks for it.
fn document_reader() -> Vec<OsString> {
    let read = json!({"pages": 1, "text": PDF_TEXT, "text_pages": 1});
    let script = format!("cat >/dev/null; echo 'greenroom-document {read}'");
    ["sh", "-c", &script].map(OsString::from).to_vec()
}

/// Each has hosts of its own.
const SERVERS_AT_ONCE: usize = 6;

/// The table in docs/models.md. No attachment ends a chat, whatever a server says to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attachment_ends_a_chat() {
    let mut table = String::from("| server | image | PDF | audio |\n|---|---|---|---|\n");
    for servers in SERVERS.chunks(SERVERS_AT_ONCE) {
        let rows = servers.iter().map(|server| async {
            let fates = AttachmentKind::ALL.map(|kind| fate_of(server, kind));
            (server.name, join_all(fates).await)
        });
        for (name, fates) in join_all(rows).await {
            assert!(!fates.contains(&"lost"), "{name}: {fates:?}");
            table.push_str(&format!("| {name} | {} |\n", fates.join(" | ")));
        }
    }
    println!("{table}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md");
    let documented = std::fs::read_to_string(path).unwrap();
    assert!(documented.contains(&table), "docs/models.md must hold\n\n{table}");
}

fn refuses_images(request: &CapturedRequest) -> Answer {
    if holds(request, AttachmentKind::Image) {
        Answer::error(400, "this model does not support image input")
    } else {
        Answer::streams(["ok"])
    }
}

#[tokio::test]
async fn what_is_refused_is_said_once_and_never_sent_again() {
    let mut harness = NativeHarness::start().await;
    harness.model.behaves(refuses_images);
    let turn = shows(&mut harness, "what is it?", AttachmentKind::Image).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let words = "This model does not take images; it got a description. `/retry-attachments` sends them again.";
    assert_eq!(refusals_in(&turn), [words]);
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 2);
    let described = messages(&requests[1].json())[0]["content"].to_string();
    assert!(described.contains("<file_attachment name="), "{described}");
    // Another one of the kind is not tried, also after a restart; the chat's state knows nothing of it.
    harness.restart().await;
    let turn = shows(&mut harness, "and this?", AttachmentKind::Image).await;
    assert_eq!((turn["state"].as_str(), refusals_in(&turn).len()), (Some("complete"), 0));
    assert_eq!(harness.model.requests().len(), 3);
    assert!(!harness.ann.sees().to_string().contains("\"kinds\""));
    says(&mut harness, "/compact").await;
    assert!(!holds(&last(&harness), AttachmentKind::Image));
    // A branch of the chat knows it, too.
    let turn = harness.ann.sees()["turns"][0]["id"].clone();
    let chat = harness.ann.sees()["resource"].clone();
    let source = json!({"kind": "fork", "chat": chat, "turnId": turn});
    harness.ann.opens_chat("ahp-chat:/fork", source).await;
    let asked = harness.model.requests().len();
    says(&mut harness, "hello").await;
    assert_eq!(harness.model.requests().len(), asked + 1);
    assert!(!holds(&last(&harness), AttachmentKind::Image));
}

#[tokio::test]
async fn attachments_are_sent_again_when_the_user_wants_it() {
    let mut harness = NativeHarness::start().await;
    harness.model.behaves(refuses_images);
    let none = says(&mut harness, "/retry-attachments").await;
    let notices = texts_in(&none, "systemNotification");
    assert_eq!(notices, ["The model has refused no attachment in this chat."]);
    shows(&mut harness, "what is it?", AttachmentKind::Image).await;
    harness.model.behaves(|_| Answer::streams(["A cat."]));
    let cleared = says(&mut harness, "/retry-attachments").await;
    assert_eq!(cleared["state"], "complete");
    says(&mut harness, "look again").await;
    assert!(holds(&last(&harness), AttachmentKind::Image));
}

#[tokio::test]
async fn nothing_is_learned_from_a_refusal_for_another_reason() {
    let mut harness = NativeHarness::start().await;
    harness.model.behaves(|_| Answer::error(400, "no such parameter"));
    let turn = shows(&mut harness, "what is it?", AttachmentKind::Image).await;
    assert_eq!(error_of(&turn)["error"]["errorType"], "modelRejected", "{turn:#}");
    assert!(refusals_in(&turn).is_empty());
    // As meant, without the picture; that is a plain text, so there is no third way to say it.
    let requests = harness.model.requests();
    let pictures: Vec<bool> =
        requests.iter().map(|request| holds(request, AttachmentKind::Image)).collect();
    assert_eq!(pictures, [true, false, false]);
    let contents: Vec<Value> =
        requests.iter().map(|request| messages(&request.json())[0]["content"].clone()).collect();
    assert!(contents[1].is_array() && contents[2].is_string(), "{contents:#?}");
    harness.model.behaves(|_| Answer::streams(["A cat."]));
    says(&mut harness, "again").await;
    assert!(holds(&last(&harness), AttachmentKind::Image));
}

#[tokio::test]
async fn a_busy_server_teaches_nothing() {
    let mut harness = NativeHarness::start().await;
    harness.model.answers([
        Answer::error(503, "image servers are busy").with_header("retry-after", "0"),
        Answer::streams(["A cat."]),
    ]);
    let turn = shows(&mut harness, "what is it?", AttachmentKind::Image).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert!(refusals_in(&turn).is_empty());
    assert!(holds(&last(&harness), AttachmentKind::Image));
}

#[tokio::test]
async fn one_body_that_is_too_large_leaves_the_others() {
    let mut harness = NativeHarness::start().await;
    harness.model.behaves(|_| Answer::streams(["A cat."]));
    shows(&mut harness, "this is fine", AttachmentKind::Image).await;
    harness.model.behaves(|request| {
        if holds(request, AttachmentKind::Document) {
            Answer::status(413, "<html>413 Request Entity Too Large</html>")
        } else {
            Answer::streams(["I see."])
        }
    });
    let turn = shows(&mut harness, "and this?", AttachmentKind::Document).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let words =
        "The model's server did not take a.pdf; the model got a description, or the text of a PDF.";
    let told = refusals_in(&turn);
    assert!(told.len() == 1 && told[0].starts_with(words), "{told:?}");
    assert!(holds(&last(&harness), AttachmentKind::Image));
    says(&mut harness, "go on").await;
    let request = last(&harness);
    assert!(holds(&request, AttachmentKind::Image) && !holds(&request, AttachmentKind::Document));
}

/// A server that refuses a conversation for what is in it would refuse all that comes after: what it refused is told to others alone.
#[tokio::test]
async fn what_a_server_refused_does_not_end_the_chat() {
    for wire in WIRES {
        let add_other = |models: &mut Vec<host::Model>| {
            models[0].api = wire.api();
            let mut other = models[0].clone();
            other.id = "other".to_owned();
            models.push(other);
        };
        let mut harness = NativeHarness::start_with_models(json!({}), add_other).await;
        let answers = |text: &str| Answer::raw(wire.stream(&Said::text(text)));
        harness.talk("hello", [answers("Hi.")]).await;
        let files = json!([{"type": "embeddedResource", "label": "v.txt", "contentType": "text/plain",
            "data": "WDVPLWV2aWw="}]);
        let refused = Answer::raw(wire.stream(&Said::refusal()));
        harness.model.answers([refused]);
        harness.ann.sends_with_attachments("see v.txt", files).await;
        let turn = harness.ann.turn_over().await;
        let error = error_of(&turn)["error"].clone();
        assert_eq!(error["errorType"], "refusal", "{wire:?}: {error:#}");
        let is_left_out = matches!(wire, Wire::Anthropic | Wire::Gemini);
        let told = error["message"].as_str().unwrap().contains("not told of this message");
        assert_eq!(told, is_left_out, "{wire:?}: {error:#}");
        harness.talk("go on", [answers("Fine.")]).await;
        let sent = last(&harness).json().to_string();
        assert_eq!(sent.contains("see v.txt"), !is_left_out, "{wire:?}: {sent}");
        assert_eq!(sent.contains("you did not answer"), is_left_out, "{wire:?}: {sent}");
        assert!(sent.contains("hello") && sent.contains("go on"), "{wire:?}: {sent}");
        harness.model.answers([answers("I do.")]);
        harness.ann.sends_to_model("and you?", json!({"id": "other"})).await;
        harness.ann.turn_over().await;
        let sent = last(&harness).json().to_string();
        assert!(sent.contains("see v.txt"), "{wire:?}: {sent}");
    }
}
