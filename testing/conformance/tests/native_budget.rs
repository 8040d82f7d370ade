//! What may be spent on models is limited: at a limit the turn asks before it asks a model once more (G-69).

use conformance::native::{NativeHarness, SESSION, ends, parts_of, texts_in};
use host::{BudgetLimits, BudgetSettings};
use serde_json::{Value, json};
use testkit::{Answer, Call};

const NONE: BudgetLimits = BudgetLimits { tokens: None, usd: None, calls: None, seconds: None };

async fn start(budget: BudgetSettings) -> NativeHarness {
    start_priced(budget, false).await
}

async fn start_priced(budget: BudgetSettings, has_prices: bool) -> NativeHarness {
    let config = json!({"approvals": "full-access"});
    let prices = r#"{"input": 1000.0, "output": 10000.0}"#;
    NativeHarness::start_with_budget(
        config,
        |model| {
            if has_prices {
                model.prices = Some(serde_json::from_str(prices).unwrap());
            }
        },
        budget,
    )
    .await
}

fn turn_calls(calls: u64) -> BudgetSettings {
    BudgetSettings {
        turn: BudgetLimits { calls: Some(calls), ..NONE },
        ..BudgetSettings::default()
    }
}

fn lists(id: &str) -> Answer {
    Answer::calls([Call::new(id, "list", &json!({}))])
}

fn options(request: &Value) -> Vec<&str> {
    let options = request["questions"][0]["options"].as_array().unwrap();
    let ids = options.iter().map(|option| option["id"].as_str().unwrap());
    ids.collect()
}

/// Answers the question that is open, and waits until that is seen; the question.
async fn answers(harness: &mut NativeHarness, option: &str) -> Value {
    let request = harness.ann.chooses(option).await;
    let id = request["id"].clone();
    harness
        .ann
        .until("it is answered", |chat| {
            let parts = parts_of(&chat["activeTurn"], "inputRequest");
            parts.iter().all(|part| part["request"]["id"] != id || !part["response"].is_null())
        })
        .await;
    request
}

fn message(request: &Value) -> &str {
    request["message"].as_str().unwrap()
}

#[tokio::test]
async fn at_a_limit_the_turn_waits_and_more_is_the_same_again() {
    let mut harness = start(turn_calls(1)).await;
    harness.model.answers([lists("a"), lists("b"), ends()]);
    harness.ann.sends_message("go").await;
    let request = harness.ann.questioned().await;
    assert_eq!(options(&request), ["more", "finish", "stop"]);
    assert!(
        message(&request).contains("this turn used 1 model call; the limit is 1 model call"),
        "{request:#}"
    );
    assert_eq!(harness.model.requests().len(), 1, "asked before the call");
    answers(&mut harness, "more").await;
    // The next call uses the new allowance up, and the turn asks again.
    let again = answers(&mut harness, "more").await;
    assert_ne!(again["id"], request["id"]);
    harness.ann.completed_turn().await;
    assert_eq!(harness.model.requests().len(), 3);
    // Another turn begins with an allowance of its own.
    let turn = harness.talk("and now?", [ends()]).await;
    assert_eq!(turn["state"], "complete");
}

#[tokio::test]
async fn finish_is_one_more_answer_without_tools() {
    let mut harness = start(turn_calls(1)).await;
    harness.model.answers([lists("a"), Answer::streams(["All is said."])]);
    harness.ann.sends_message("go").await;
    harness.ann.chooses("finish").await;
    let turn = harness.ann.completed_turn().await;
    assert_eq!(texts_in(&turn, "markdown"), ["All is said."]);
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 2);
    let last = requests[1].json();
    assert!(requests[0].json()["tools"].is_array());
    assert_eq!(last.get("tools"), None, "{last:#}");
    let told = last["messages"].as_array().unwrap().last().unwrap();
    assert!(told.to_string().contains("last answer"), "{told}");
}

#[tokio::test]
async fn a_model_that_calls_a_tool_in_its_last_answer_ends_there() {
    let mut harness = start(turn_calls(1)).await;
    harness.model.answers([lists("a"), lists("b")]);
    harness.ann.sends_message("go").await;
    harness.ann.chooses("finish").await;
    harness.ann.completed_turn().await;
    assert_eq!(harness.model.requests().len(), 2);
}

#[tokio::test]
async fn stop_and_no_answer_end_the_turn_with_words() {
    let mut harness = start(turn_calls(1)).await;
    for response in ["stop", "decline"] {
        harness.model.answers([lists("a")]);
        harness.ann.sends_message("go").await;
        match response {
            "stop" => drop(harness.ann.chooses("stop").await),
            response => {
                let request = harness.ann.questioned().await;
                let action = json!({
                    "type": "chat/inputCompleted", "requestId": request["id"], "response": response,
                });
                harness.ann.does(action).await;
            }
        }
        let turn = harness.ann.completed_turn().await;
        let told = texts_in(&turn, "systemNotification").join("\n");
        assert!(told.contains("Stopped at a limit: this turn used"), "{told}");
    }
    assert_eq!(harness.model.requests().len(), 2);
}

#[tokio::test]
async fn a_session_and_a_day_keep_what_they_spent_over_a_restart() {
    let budget = BudgetSettings {
        session: BudgetLimits { tokens: Some(1_000), ..NONE },
        day: BudgetLimits { tokens: Some(3_000), ..NONE },
        ..BudgetSettings::default()
    };
    let mut harness = start(budget).await;
    let uses = |input, output| Answer::streams(["ok"]).with_usage(input, output);
    harness.talk("one", [uses(900, 99)]).await;
    harness.talk("two", [uses(10, 5)]).await;
    harness.restart().await;
    harness.ann.sends_message("three").await;
    let request = harness.ann.questioned().await;
    assert!(
        message(&request).contains("this session used 1014 tokens; the limit is 1000 tokens"),
        "{request:#}"
    );
    harness.model.answers([uses(2_000, 0)]);
    harness.ann.chooses("more").await;
    assert_eq!(harness.ann.turn_over().await["state"], "complete");
    harness.restart().await;
    harness.ann.sends_message("four").await;
    let request = harness.ann.chooses("stop").await;
    // What was allowed once more counts from what was spent by then.
    assert!(message(&request).contains("this session used 2000 tokens"), "{request:#}");
    assert!(message(&request).contains("all sessions of today used 3014 tokens"), "{request:#}");
    harness.ann.turn_over().await;
    let work = harness.work();
    harness.ann.creates_session("native:/other", &work, json!({})).await;
    harness.ann.sends_message("five").await;
    let request = harness.ann.chooses("stop").await;
    assert!(!message(&request).contains("this session"), "{request:#}");
    assert!(message(&request).contains("budget.day.tokens"), "{request:#}");
    harness.ann.turn_over().await;
    assert_eq!(harness.model.requests().len(), 3);
}

#[tokio::test]
async fn money_is_counted_by_the_prices_of_the_model() {
    let budget = BudgetSettings {
        session: BudgetLimits { usd: Some(0.5), ..NONE },
        ..BudgetSettings::default()
    };
    let mut harness = start_priced(budget, true).await;
    // 0.3 dollars each.
    let uses = || Answer::streams(["ok"]).with_usage(100, 20);
    for text in ["one", "two"] {
        let turn = harness.talk(text, [uses()]).await;
        assert_eq!(texts_in(&turn, "systemNotification"), [""; 0]);
    }
    harness.ann.sends_message("three").await;
    let request = harness.ann.chooses("stop").await;
    assert!(
        message(&request).contains("this session used $0.60; the limit is $0.50"),
        "{request:#}"
    );
    harness.ann.turn_over().await;

    let mut harness = start_priced(budget, false).await;
    let turn = harness.talk("one", [lists("a"), uses()]).await;
    let told = texts_in(&turn, "systemNotification");
    assert_eq!(told.len(), 1, "once a turn: {told:?}");
    assert!(told[0].contains("`echo`") && told[0].contains("prices"), "{told:?}");
}

#[tokio::test]
async fn compaction_is_a_call_of_a_model_too() {
    let budget = BudgetSettings {
        session: BudgetLimits { calls: Some(1), ..NONE },
        ..BudgetSettings::default()
    };
    let mut harness = start(budget).await;
    harness.talk("one", [ends()]).await;
    harness.ann.sends_message("/compact").await;
    harness.ann.chooses("stop").await;
    harness.ann.completed_turn().await;
    assert_eq!(harness.model.requests().len(), 1);
    harness.model.answers([Answer::streams(["in short"])]);
    harness.ann.sends_message("/compact").await;
    harness.ann.chooses("more").await;
    let turn = harness.ann.turn_over().await;
    let told = texts_in(&turn, "systemNotification").join("\n");
    assert!(told.contains("summarised for the model"), "{told}");
}

/// One that was answered in part costs something, whoever broke it off; one that was never answered does not.
#[tokio::test]
async fn a_call_that_broke_off_stays_spent() {
    let budget = |tokens| BudgetSettings {
        session: BudgetLimits { tokens: Some(tokens), ..NONE },
        ..BudgetSettings::default()
    };
    let question = "word ".repeat(4_000);
    for (answer, is_spent) in
        [(Answer::streams(["begun"]).cuts(), true), (Answer::error(400, "no"), false)]
    {
        let mut harness = start(budget(4_000)).await;
        harness.model.answers([answer]);
        harness.ann.sends_message(&question).await;
        assert_eq!(harness.ann.turn_over().await["state"], "error");
        harness.model.answers([ends()]);
        harness.ann.sends_message("and now?").await;
        if is_spent {
            let request = harness.ann.chooses("stop").await;
            assert!(message(&request).contains("this session used"), "{request:#}");
            harness.ann.turn_over().await;
        } else {
            assert_eq!(harness.ann.turn_over().await["state"], "complete")
        }
    }
}

/// At a limit near the window, the one request that is left is the answer, not a summary for later ones.
#[tokio::test]
async fn finish_makes_no_summary_of_the_conversation_first() {
    let budget = BudgetSettings {
        session: BudgetLimits { calls: Some(2), ..NONE },
        ..BudgetSettings::default()
    };
    let change = |model: &mut host::Model| model.context_tokens = Some(100_000);
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_budget(config, change, budget).await;
    harness.talk("one", [ends()]).await;
    let long = Answer::streams(["long"]).with_usage(95_000, 10);
    harness.talk("two", [long]).await;
    harness.model.answers([Answer::streams(["All is said."])]);
    harness.ann.sends_message("three").await;
    harness.ann.chooses("finish").await;
    let turn = harness.ann.completed_turn().await;
    assert_eq!(texts_in(&turn, "markdown"), ["All is said."]);
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 3);
    let last = requests[2].json();
    assert!(last.to_string().contains("last answer"), "{last:#}");
    assert_eq!(last.get("tools"), None, "{last:#}");
}

/// A turn that waited at a limit summarises a long conversation as any other does.
#[tokio::test]
async fn after_a_pause_the_conversation_is_summarised_and_goes_on() {
    let budget = BudgetSettings {
        session: BudgetLimits { calls: Some(4), ..NONE },
        ..BudgetSettings::default()
    };
    let change = |model: &mut host::Model| model.context_tokens = Some(100_000);
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_budget(config, change, budget).await;
    for text in ["one", "two", "three"] {
        harness.talk(text, [ends()]).await;
    }
    let long = Answer::streams(["long"]).with_usage(95_000, 10);
    harness.talk("four", [long]).await;
    harness.model.answers([
        Answer::streams(["We counted to four."]).with_usage(95_000, 10),
        Answer::streams(["Five."]).with_usage(900, 10),
    ]);
    harness.ann.sends_message("five").await;
    harness.ann.questioned().await;
    assert_eq!(harness.model.requests().len(), 4, "it waits first");
    harness.ann.chooses("more").await;
    let turn = harness.ann.completed_turn().await;
    assert_eq!(texts_in(&turn, "markdown"), ["Five."]);
    let requests = harness.model.requests();
    assert_eq!(requests.len(), 6);
    let is_for_summary = |body: &Value| {
        let text = body.to_string();
        text.contains("Summarise the conversation so far") && text.contains("one")
    };
    assert!(is_for_summary(&requests[4].json()));
    let last = requests[5].json().to_string();
    assert!(last.contains("We counted to four.") && last.contains("five"), "{last}");
    assert!(!is_for_summary(&requests[5].json()));
}

#[tokio::test]
async fn a_session_has_a_budget_of_its_own() {
    let mut harness = start_priced(BudgetSettings::default(), true).await;
    let schema = &harness.ann.sees_session(SESSION)["config"]["schema"];
    assert_eq!(schema["properties"]["budget"]["type"], "number", "{schema:#}");
    let set = |usd: f64| json!({"type": "session/configChanged", "config": {"budget": usd}});
    harness.ann.does_in(SESSION, set(0.5)).await;
    // 0.3 dollars each.
    let uses = || Answer::streams(["ok"]).with_usage(100, 20);
    harness.talk("one", [uses()]).await;
    harness.restart().await;
    harness.talk("two", [uses()]).await;
    harness.ann.sends_message("three").await;
    let request = harness.ann.chooses("stop").await;
    assert!(
        message(&request)
            .contains("this session used $0.60; the limit is $0.50 (`budget` of this session)"),
        "{request:#}"
    );
    harness.ann.turn_over().await;
    harness.ann.does_in(SESSION, set(0.8)).await;
    let turn = harness.talk("four", [uses()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    // Another session has none.
    let work = harness.work();
    let other = harness.ann.creates_session("native:/other", &work, json!({"budget": 0}));
    other.await;
    let turn = harness.talk("five", [uses()]).await;
    assert_eq!(turn["state"], "complete", "{turn:#}");
    harness.ann.does_in("native:/other", set(-1.0)).await;
    let reason = harness.ann.refused().await;
    assert!(reason.contains("must be at least 0"), "{reason}");
}
