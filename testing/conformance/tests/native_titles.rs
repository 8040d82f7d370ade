//! Titles of sessions by a small model: after the first turn, without delaying it, and never over a title that a user gave.

use conformance::native::{NativeHarness, SESSION, texts_in};
use host::{BudgetLimits, BudgetSettings};
use serde_json::json;
use testkit::{Answer, Gate};

/// Words of the request for a title.
const ASKED: &str = "a title of three to six words";

async fn start() -> NativeHarness {
    start_with_budget(BudgetSettings::default()).await
}

async fn start_with_budget(budget: BudgetSettings) -> NativeHarness {
    NativeHarness::start_with_settings(
        json!({}),
        |_| {},
        move |host| {
            host.budget = budget;
            let mut small = host.models[0].clone();
            small.id = "small".to_owned();
            host.models.push(small);
            host.title_model = Some("small".to_owned());
        },
    )
    .await
}

async fn title_is(harness: &mut NativeHarness, title: &str) {
    let title = title.to_owned();
    let named =
        harness.ann.until_session(SESSION, move |session| session["title"] == title.as_str());
    named.await;
}

#[tokio::test]
async fn a_small_model_names_the_session_after_its_first_turn() {
    let mut harness = start().await;
    harness.model.answers_to(ASKED, [Answer::streams(["\"Counting ", "sheep.\"\n"])]);
    let turn = harness.talk("please count all my sheep", [Answer::streams(["Three."])]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    title_is(&mut harness, "Counting sheep").await;
    let asked = harness.model.requests().pop().unwrap().json();
    assert_eq!(asked["model"], "small");
    assert!(asked["tools"].is_null());
    assert!(asked.to_string().contains("count all my sheep"));
    harness.talk("again", [Answer::streams(["Three."])]).await;
    assert_eq!(harness.model.requests().len(), 3, "it is asked once");
    harness.restart().await;
    assert_eq!(harness.ann.sees_session(SESSION)["title"], "Counting sheep");
}

#[tokio::test]
async fn a_title_of_the_user_stays() {
    let mut harness = start().await;
    let gate = Gate::new();
    let late = Answer::streams(["Counting sheep"]).begins_after(&gate);
    harness.model.answers_to(ASKED, [late]);
    // The turn does not wait for its title.
    harness.talk("count my sheep", [Answer::streams(["Three."])]).await;
    title_is(&mut harness, "count my sheep").await;
    gate.reached().await;
    let named = json!({"type": "session/titleChanged", "title": "Mine"});
    harness.ann.does_in(SESSION, named).await;
    title_is(&mut harness, "Mine").await;
    gate.open();
    harness.talk("again", [Answer::streams(["Three."])]).await;
    harness.talk("and again", [Answer::streams(["Three."])]).await;
    assert_eq!(harness.ann.sees_session(SESSION)["title"], "Mine");
}

#[tokio::test]
async fn a_title_model_that_fails_is_not_heard_of() {
    let mut harness = start().await;
    harness.model.answers_to(ASKED, [Answer::error(400, "no such model")]);
    let turn = harness.talk("count my sheep", [Answer::streams(["Three."])]).await;
    harness.model.asked(2).await;
    let next = harness.talk("again", [Answer::streams(["Three."])]).await;
    for turn in [turn, next] {
        assert_eq!(turn["state"], "complete", "{turn:#}");
        assert!(texts_in(&turn, "systemNotification").is_empty(), "{turn:#}");
    }
    assert_eq!(harness.ann.sees_session(SESSION)["title"], "count my sheep");
}

/// What `inspect` shows of the session.
fn recorded_calls(harness: &NativeHarness) -> Vec<String> {
    let archive = host::journal::Archive::open(&harness.data().join("data")).unwrap();
    let uri = wire::ChannelUri::parse(SESSION).unwrap();
    let session = archive.session(&uri).unwrap().expect("a session");
    let calls = archive.calls(&session.chats[0]).unwrap().into_iter();
    calls.map(|call| format!("{} of {}", call.purpose, call.model)).collect()
}

fn session_calls(calls: u64) -> BudgetSettings {
    BudgetSettings {
        session: BudgetLimits { calls: Some(calls), ..BudgetLimits::default() },
        ..BudgetSettings::default()
    }
}

#[tokio::test]
async fn a_title_is_a_call_of_the_budget() {
    let mut harness = start_with_budget(session_calls(2)).await;
    harness.model.answers_to(ASKED, [Answer::streams(["Counting sheep"])]);
    harness.talk("count my sheep", [Answer::streams(["Three."])]).await;
    title_is(&mut harness, "Counting sheep").await;
    assert_eq!(recorded_calls(&harness), ["answer of echo", "title of small"]);
    harness.ann.sends_message("again").await;
    let question = harness.ann.chooses("stop").await;
    let words = question["message"].as_str().unwrap();
    assert!(words.contains("this session used 2 model calls"), "{words}");
    harness.ann.turn_over().await;

    // At a limit no title is asked for, and nobody is bothered for one.
    let mut harness = start_with_budget(session_calls(1)).await;
    harness.talk("count my sheep", [Answer::streams(["Three."])]).await;
    harness.ann.sends_message("again").await;
    harness.ann.chooses("stop").await;
    harness.ann.turn_over().await;
    assert_eq!(harness.model.requests().len(), 1);
    assert_eq!(harness.ann.sees_session(SESSION)["title"], "count my sheep");
}

#[tokio::test]
async fn a_turn_that_asked_no_model_asks_none_for_a_title() {
    let mut harness = start().await;
    harness.talk("/compact", []).await;
    harness.model.answers_to(ASKED, [Answer::streams(["Counting sheep"])]);
    harness.talk("count my sheep", [Answer::streams(["Three."])]).await;
    harness.model.asked(1).await;
    let first = harness.model.requests().remove(0).json();
    assert!(!first.to_string().contains(ASKED), "{first:#}");
}
