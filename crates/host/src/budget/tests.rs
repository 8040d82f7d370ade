//! What a turn spends, by what its agent reports.

use std::time::Duration;

use kernel::{ChannelId, HistoryAt, RunId};
use serde_json::json;

use super::*;

const ESTIMATE: CallEstimate = CallEstimate { tokens: 400, usd: Some(0.4) };

fn budget(toml: &str) -> Arc<Budget> {
    let mut config = Config::default_for("".into());
    config.journal = JournalChoice::Memory;
    config.budget = toml::from_str(toml).unwrap();
    Budget::open(&config, Clock::start()).unwrap()
}

fn turn(budget: &Arc<Budget>, chat: u64, turn_id: &str, usage: Option<Value>) -> TurnBudget {
    turn_with(budget, chat, turn_id, json!({}), usage)
}

fn turn_with(
    budget: &Arc<Budget>,
    chat: u64,
    turn_id: &str,
    config: Value,
    usage: Option<Value>,
) -> TurnBudget {
    let uri = wire::ChannelUri::parse("ahp-chat:/c").unwrap();
    let run = TurnRun {
        switched_off: Default::default(),
        run: RunId(1),
        composed: None,
        provider: String::new(),
        session: uri.clone(),
        chat: uri,
        session_id: ChannelId(7),
        message: Value::Null.into(),
        custom_agent: None,
        author: None,
        principal: None,
        config: config.as_object().cloned().unwrap(),
        working_directories: Vec::new(),
        resume: None,
        brief: None,
        history: HistoryAt::default(),
        said: Vec::new(),
        usage,
        untitled: false,
        chat_notes: None,
        last_turn_id: None,
        refusals: None,
        turn_id: turn_id.to_owned(),
        budget_turn: (ChannelId(chat), turn_id.to_owned()),
        compact: None,
        reaches_model: true,
        restore: None,
    };
    TurnBudget::new(budget, &run)
}

fn sums(input: u64, output: u64, usd: f64) -> Value {
    json!({"inputTokens": 1, "_meta": {
        "turn": {"inputTokens": input, "outputTokens": output},
        "cost": {"amount": usd, "currency": "USD"},
    }})
}

async fn report(turn: &TurnBudget, usage: Value) {
    let usage: UsageInfo = serde_json::from_value(usage).unwrap();
    turn.record_usage(&usage).await.unwrap();
}

async fn begin(turn: &TurnBudget) -> Vec<String> {
    match turn.begin_call(ESTIMATE, CallKind::Usual).await.unwrap() {
        CallPermit::Granted { .. } => Vec::new(),
        CallPermit::Reached(reached) => reached.iter().map(ToString::to_string).collect(),
    }
}

#[tokio::test]
async fn reported_sums_take_the_place_of_estimates() {
    let budget = budget("[session]\ntokens = 1000\n");
    let first = turn(&budget, 1, "t1", None);
    assert!(begin(&first).await.is_empty());
    report(&first, sums(100, 10, 0.1)).await;
    assert!(begin(&first).await.is_empty());
    report(&first, sums(600, 30, 0.2)).await;
    // What a server does not count stays estimated.
    assert!(begin(&first).await.is_empty());
    let second = turn(&budget, 1, "t2", None);
    let reached = begin(&second).await;
    assert!(reached[0].contains("1030 tokens"), "{reached:?}");
}

#[tokio::test]
async fn a_resumed_turn_goes_on_from_what_it_had_reported() {
    let budget = budget("[turn]\ntokens = 1000\n");
    let first = turn(&budget, 1, "t1", None);
    begin(&first).await;
    report(&first, sums(900, 0, 0.0)).await;
    drop(first);
    let resumed = turn(&budget, 1, "t1", Some(sums(900, 0, 0.0)));
    assert!(begin(&resumed).await.is_empty());
    report(&resumed, sums(950, 0, 0.0)).await;
    assert!(begin(&resumed).await.is_empty());
    report(&resumed, sums(1_000, 0, 0.0)).await;
    assert_eq!(begin(&resumed).await.len(), 1);
    let other = turn(&budget, 1, "t2", None);
    assert!(begin(&other).await.is_empty(), "each turn has its own");
}

#[tokio::test]
async fn a_worker_spends_what_its_parent_has() {
    let budget = budget("[turn]\ncalls = 2\n");
    let (parent, worker) = (turn(&budget, 1, "t1", None), turn(&budget, 1, "t1", None));
    assert!(begin(&parent).await.is_empty());
    assert!(begin(&worker).await.is_empty());
    assert_eq!(begin(&parent).await.len(), 1);
    worker.extend().await.unwrap();
    assert_eq!(begin(&parent).await.len(), 1, "the worker's user was not asked");
    parent.extend().await.unwrap();
    assert!(begin(&parent).await.is_empty());
}

#[tokio::test]
async fn a_call_that_failed_used_nothing_and_money_needs_prices() {
    let budget = budget("[day]\nusd = 0.5\n");
    let turn = turn(&budget, 1, "t1", None);
    for _ in 0..3 {
        assert!(begin(&turn).await.is_empty());
        turn.release_call().await.unwrap();
    }
    let unpriced = CallEstimate { usd: None, ..ESTIMATE };
    let permit = turn.begin_call(unpriced, CallKind::Usual).await.unwrap();
    assert_eq!(permit, CallPermit::Granted { unpriced: true });
}

#[tokio::test(start_paused = true)]
async fn time_counts_while_the_turn_works() {
    let budget = budget("[session]\nseconds = 60\n");
    let first = turn(&budget, 1, "t1", None);
    first.pause_work();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    first.resume_work();
    assert!(begin(&first).await.is_empty(), "somebody was asked");
    tokio::time::advance(Duration::from_secs(61)).await;
    let reached = begin(&first).await;
    assert!(reached[0].contains("61 s"), "{reached:?}");
}

#[tokio::test]
async fn a_session_may_have_a_limit_of_its_own() {
    let budget = budget("");
    let own = |usd: f64| wire::Object::from_iter([("budget".to_owned(), json!(usd))]);
    let first = turn_with(&budget, 1, "t1", json!({"budget": 1.0}), None);
    assert!(begin(&first).await.is_empty());
    report(&first, sums(100, 10, 1.2)).await;
    let reached = begin(&first).await;
    assert_eq!(reached, ["this session used $1.20; the limit is $1.00 (`budget` of this session)"]);
    // It is raised while the turn works, and taken away.
    first.read_settings(&own(1.5));
    assert!(begin(&first).await.is_empty());
    report(&first, sums(200, 20, 1.6)).await;
    assert_eq!(begin(&first).await.len(), 1);
    first.read_settings(&own(0.0));
    assert!(begin(&first).await.is_empty());
}

#[tokio::test]
async fn of_two_limits_the_smaller_one_holds() {
    let budget = budget("[session]\nusd = 0.5\n");
    let turn = turn_with(&budget, 1, "t1", json!({"budget": 1.0}), None);
    begin(&turn).await;
    report(&turn, sums(100, 10, 0.6)).await;
    let reached = begin(&turn).await;
    assert!(reached[0].contains("(budget.session.usd)"), "{reached:?}");
}
