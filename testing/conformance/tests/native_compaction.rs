//! Conversations that come near their model's context window: they are summarised by themselves, between turns and between
//! the rounds of one, and go on.

use crate::spoken::{Said, WIRES, Wire};
use conformance::native::{NativeHarness, error_of, messages, script_of, texts_in};
use serde_json::{Value, json};
use testkit::{Answer, Call, CapturedRequest};

/// A window so large that nothing but reported figures fills it.
const WINDOW: u64 = 100_000;

async fn start() -> NativeHarness {
    start_with(|_| {}).await
}

async fn start_with(settings: impl Fn(&mut host::Config) + Send + Sync + 'static) -> NativeHarness {
    let full_access = json!({"approvals": "full-access"});
    let change = |model: &mut host::Model| {
        model.context_tokens = Some(WINDOW);
        model.output_tokens = Some(10_000);
    };
    NativeHarness::start_with_settings(full_access, change, settings).await
}

/// An answer whose server counts so many tokens.
fn counted(text: &str, tokens: u64) -> Answer {
    Answer::streams([text]).with_usage(tokens, 1)
}

fn reads(id: &str, path: &str, tokens: u64) -> Answer {
    Answer::calls([Call::new(id, "read", &json!({"path": path}))]).with_usage(tokens, 1)
}

fn notices(turn: &Value) -> Vec<String> {
    texts_in(turn, "systemNotification")
}

fn bodies(harness: &NativeHarness) -> Vec<Value> {
    let requests = harness.model.requests();
    requests.iter().map(CapturedRequest::json).collect()
}

fn is_for_summary(body: &Value) -> bool {
    body.to_string().contains("Summarise the conversation so far")
}

#[tokio::test]
async fn turns_are_summarised_before_they_fill_the_window() {
    let mut harness = start().await;
    for number in 1..=4 {
        let text = format!("question {number}");
        let turn = harness.talk(&text, [counted("ok", 1_000)]).await;
        assert!(notices(&turn).is_empty());
    }
    harness.talk("the long one", [counted("so long", 80_000)]).await;
    // 85 % of what is left of the window beside the room for an answer is passed.
    let turn = harness
        .talk("and now?", [counted("We counted to four.", 81_000), counted("Five.", 900)])
        .await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    assert_eq!(texts_in(&turn, "markdown"), ["Five."]);
    let told = notices(&turn);
    assert_eq!(told.len(), 1, "{told:?}");
    for words in [
        "80k of the 100k tokens",
        "summarised 3 turns before",
        "Kept word for word: the 2 turns before this one",
    ] {
        assert!(told[0].contains(words), "{words}: {told:?}");
    }
    expect_test::expect![[r#"
        user: What was said before, in short:
        We counted to four.
        assistant: I keep it in mind.
        user: question 4
        assistant: ok
        user: the long one
        assistant: so long
        user: and now?
    "#]]
    .assert_eq(&script_of(&harness.last_messages()));
    // It is not done again, and the conversation begins the same from now on, also after a restart.
    let prefix = harness.last_messages();
    harness.restart().await;
    let turn = harness.talk("more", [counted("Six.", 1_000)]).await;
    assert_eq!(notices(&turn), Vec::<String>::new());
    assert_eq!(harness.last_messages()[..prefix.len()], prefix);
    assert_eq!(bodies(&harness).iter().filter(|body| is_for_summary(body)).count(), 1);
}

/// Between rounds of one turn, over every wire format: the request after it begins with the same bytes in the next turn and
/// after a restart, and what the turn did is not told twice.
#[tokio::test]
async fn a_turn_is_summarised_between_its_rounds() {
    for wire in WIRES {
        let change = move |model: &mut host::Model| {
            model.api = wire.api();
            // One result is far from filling it, as estimated, and four do, whatever prompt and tools take.
            model.context_tokens = Some(60_000);
        };
        let full_access = json!({"approvals": "full-access"});
        let mut harness = NativeHarness::start_with_model(full_access, change).await;
        harness.write("a.txt", &"one line of text\n".repeat(2_500));
        let stream = |said: &Said| Answer::raw(without_figures(wire, &wire.stream(said)));
        let read = |ids: &[&'static str]| {
            let call = |id: &&'static str| (*id, "read", json!({"path": "a.txt"}));
            Said::calling(&ids.iter().map(call).collect::<Vec<_>>())
        };
        let answers = [
            stream(&read(&["c_1"])),
            stream(&read(&["c_2", "c_3", "c_4"])),
            stream(&Said::text("Read it twice.")),
            stream(&Said::text("Done.")),
        ];
        let turn = harness.talk("read it twice", answers).await;
        assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        let told = notices(&turn);
        assert_eq!(told.len(), 1, "{wire:?}: {told:?}");
        assert!(told[0].contains("`a.txt`"), "{told:?}");
        let requests = harness.model.requests();
        assert_eq!(requests.len(), 4, "{wire:?}");
        let summary = requests[2].json();
        assert!(is_for_summary(&summary), "{wire:?}");
        assert!(summary["tools"].is_array(), "{wire:?}: calls need their tools");
        let forbids = ["tool_choice", "toolConfig"].map(|name| summary[name].to_string());
        assert!(forbids.concat().to_lowercase().contains("none"), "{wire:?}: {forbids:?}");
        let after = wire.conversation(&requests[3].json()).to_string();
        assert!(after.contains("Read it twice."), "{wire:?}: {after}");
        assert!(after.contains("read it twice"), "{wire:?}: the message stays");
        assert!(!after.contains("c_1"), "{wire:?}: {after}");
        harness.restart().await;
        let turn = harness.talk("and?", [stream(&Said::text("That is all."))]).await;
        assert_eq!(turn["state"], "complete", "{wire:?}: {turn:#}");
        let requests = harness.model.requests();
        assert_eq!(requests.len(), 5, "{wire:?}");
        let texts: Vec<String> =
            requests[3..].iter().map(|request| wire.prefix(&request.body)).collect();
        assert!(texts[1].starts_with(&texts[0]), "{wire:?}:\n{}\n{}", texts[0], texts[1]);
    }
}

/// A stream of a server that counts nothing.
fn without_figures(wire: Wire, stream: &str) -> String {
    let names: &[&str] = match wire {
        Wire::Chat => &["\"prompt_tokens\""],
        Wire::Anthropic => &["\"input_tokens\""],
        Wire::Responses => &["\"input_tokens\""],
        Wire::Gemini => &["\"promptTokenCount\""],
    };
    let hide = |text: String, name: &&str| text.replace(*name, "\"uncounted\"");
    names.iter().fold(stream.to_owned(), hide)
}

#[tokio::test]
async fn a_turn_that_dies_after_its_summary_goes_on_with_it() {
    let mut harness = start().await;
    harness.write("a.txt", "one\n");
    let answers = [
        reads("c_1", "a.txt", 70_000),
        reads("c_2", "a.txt", 80_000),
        counted("Read twice.", 80_100),
        Answer::streams(["Half"]).cuts(),
    ];
    let turn = harness.talk("look", answers).await;
    assert_eq!(error_of(&turn)["error"]["errorType"], "modelInterrupted", "{turn:#}");
    let sent = harness.last_messages();
    assert!(script_of(&sent).contains("Read twice."), "{}", script_of(&sent));
    harness.restart().await;
    harness.model.answers([counted("Whole.", 1_000)]);
    harness.ann.resumes(&turn).await;
    let turn = harness.ann.until("the turn ends", |chat| chat["turns"][0]["state"] == "complete");
    turn.await;
    let resumed = harness.last_messages();
    assert_eq!(resumed[..sent.len()], sent, "{}", script_of(&resumed));
}

#[tokio::test]
async fn a_server_that_finds_it_too_long_gets_a_summary_once() {
    let too_long = || Answer::error(400, "This model's maximum context length is 8192 tokens.");
    let mut harness = start().await;
    harness.talk("first", [counted("one", 100)]).await;
    let answers = [too_long(), counted("We began.", 100), counted("two", 100)];
    let turn = harness.talk("second", answers).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    let told = notices(&turn);
    assert!(told[0].contains("longer than what the model can keep in mind"), "{told:?}");
    assert_eq!(
        script_of(&harness.last_messages()),
        "user: What was said before, in short:\nWe began.\nassistant: I keep it in mind.\nuser: second\n"
    );
    // Once: what is too long even so ends the turn, with the server's words.
    let answers = [too_long(), counted("Again.", 100), too_long()];
    let turn = harness.talk("third", answers).await;
    let error = error_of(&turn)["error"].clone();
    assert_eq!(error["errorType"], "modelRejected", "{error:#}");
    assert!(error["message"].as_str().unwrap().contains("maximum context length"));
    assert_eq!(harness.model.answers_left(), 0);
}

/// What is no summary is not taken for one: by itself or by command, nothing is forgotten, and the reason is said.
#[tokio::test]
async fn a_summary_that_fails_loses_nothing() {
    for wire in WIRES {
        let full_access = json!({"approvals": "full-access"});
        let change = move |model: &mut host::Model| model.api = wire.api();
        let mut harness = NativeHarness::start_with_model(full_access, change).await;
        let said = |said: &Said| Answer::raw(wire.stream(said));
        harness.talk("first", [said(&Said::text("one"))]).await;
        for (answer, words) in [
            (Said::refusal(), "refused to summarise"),
            (Said::text(""), "said nothing"),
            (Said::only_calling(&[("c_1", "list", json!({"path": "."}))]), "called a tool"),
        ] {
            let turn = harness.talk("/compact", [said(&answer)]).await;
            let error = error_of(&turn)["error"].clone();
            let message = error["message"].as_str().unwrap_or_default();
            assert!(
                error["errorType"] == "notCompacted" && message.contains(words),
                "{wire:?}: {error:#}"
            );
        }
        harness.talk("second", [said(&Said::text("two"))]).await;
        let sent = wire.conversation(&bodies(&harness).pop().unwrap()).to_string();
        assert!(sent.contains("first") && sent.contains("one"), "{wire:?}: {sent}");
    }
}

#[tokio::test]
async fn a_turn_whose_summary_fails_can_be_resumed() {
    let mut harness = start().await;
    harness.talk("first", [counted("one", 90_000)]).await;
    let turn = harness.talk("second", [Answer::refuses("no")]).await;
    let error = error_of(&turn)["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("Nothing is lost") && message.contains("refused"), "{message}");
    harness.model.answers([counted("We began.", 90_000), counted("two", 100)]);
    harness.ann.resumes(&turn).await;
    harness.ann.until("the turn ends", |chat| chat["turns"][1]["state"] == "complete").await;
    assert!(script_of(&harness.last_messages()).contains("We began."));
}

#[tokio::test]
async fn it_can_be_turned_off_and_done_earlier() {
    let mut off = start_with(|host| host.auto_compact = false).await;
    off.talk("first", [counted("one", 99_000)]).await;
    let turn = off.talk("second", [counted("two", 99_500)]).await;
    assert!(notices(&turn).is_empty(), "{turn:#}");
    let mut early = start_with(|host| host.auto_compact_at = 0.2).await;
    early.talk("first", [counted("one", 20_000)]).await;
    let answers = [counted("Short.", 100), counted("two", 100)];
    let turn = early.talk("second", answers).await;
    assert!(notices(&turn)[0].contains("20k of the 100k"), "{turn:#}");
}

/// After a truncate, and in a branch, of a turn whose rounds were summarised, nothing of that turn is told.
#[tokio::test]
async fn a_summary_of_a_turn_that_is_taken_back_is_forgotten() {
    let mut harness = start().await;
    // So much that it is not kept whole.
    harness.write("a.txt", &"one line of text\n".repeat(2_500));
    harness.talk("first", [counted("one", 100)]).await;
    let kept = harness.ann.sees()["turns"][0]["id"].clone();
    let read = |id: &str| Call::new(id, "read", &json!({"path": "a.txt"}));
    let answers = [
        Answer::calls([read("c_1"), read("c_2"), read("c_3")]).with_usage(60_000, 1),
        counted("We read a secret.", 80_000),
        counted("Done.", 100),
    ];
    let turn = harness.talk("look", answers).await;
    let told = notices(&turn);
    assert!(told[0].contains("the first step of this turn"), "{told:?}");
    let action = json!({"type": "chat/truncated", "turnId": kept});
    harness.ann.does(action).await;
    harness.ann.until("it is truncated", |chat| chat["turns"].as_array().unwrap().len() == 1).await;
    harness.talk("again", [counted("ok", 100)]).await;
    assert_eq!(
        script_of(&messages(&bodies(&harness).pop().unwrap())),
        "user: first\nassistant: one\nuser: again\n"
    );
}
