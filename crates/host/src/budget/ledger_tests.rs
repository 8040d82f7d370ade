//! What the sums promise, on a real file.

use super::super::settings::{BudgetLimits, BudgetSettings};
use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000_000);

fn by(turn: &str, session: &str, day: &str) -> SpendingKeys {
    SpendingKeys { turn: turn.to_owned(), session: session.to_owned(), day: day.to_owned() }
}

fn limits() -> TurnLimits {
    let host = BudgetSettings {
        turn: BudgetLimits { calls: Some(2), ..BudgetLimits::default() },
        session: BudgetLimits { tokens: Some(1_000), seconds: Some(60), ..BudgetLimits::default() },
        day: BudgetLimits { usd: Some(1.0), ..BudgetLimits::default() },
    };
    TurnLimits { host, session_usd: None }
}

fn call(tokens: f64, usd: f64) -> NewCall {
    let set_aside = Amounts { tokens, usd, calls: 1.0, seconds: 0.0 };
    NewCall { worked: 0.0, set_aside, kind: CallKind::Usual }
}

fn begin(ledger: &mut Ledger, by: &SpendingKeys, call: NewCall) -> Vec<String> {
    let reached = ledger.begin_call(by, &limits(), call, NOW);
    let names = reached.unwrap().into_iter();
    names.map(|reached| format!("{}.{}", reached.scope.name(), reached.unit.name())).collect()
}

fn shown(scope: BudgetScope, unit: BudgetUnit) -> ReachedLimit {
    ReachedLimit { scope, unit, allowance: 1.0, spent: 1.0, is_own: false }
}

#[test]
fn each_limit_is_reached_by_what_its_scope_spent() {
    let mut ledger = Ledger::in_memory().unwrap();
    let one = by("t1", "s1", "d1");
    assert_eq!(begin(&mut ledger, &one, call(10.0, 0.1)), [""; 0]);
    assert_eq!(begin(&mut ledger, &one, call(10.0, 0.1)), [""; 0]);
    assert_eq!(begin(&mut ledger, &one, call(10.0, 0.1)), ["turn.calls"]);
    let next_turn = by("t2", "s1", "d1");
    assert_eq!(begin(&mut ledger, &next_turn, call(980.0, 0.1)), [""; 0]);
    assert_eq!(begin(&mut ledger, &next_turn, call(1.0, 0.1)), ["session.tokens"]);
    let other = by("t3", "s2", "d1");
    assert_eq!(begin(&mut ledger, &other, call(0.0, 0.7)), [""; 0]);
    assert_eq!(begin(&mut ledger, &other, call(0.0, 0.1)), ["day.usd"]);
    let tomorrow = by("t4", "s2", "d2");
    assert_eq!(begin(&mut ledger, &tomorrow, call(0.0, 0.1)), [""; 0]);
    let slow = by("t5", "s3", "d2");
    let worked = NewCall { worked: 61.0, set_aside: Amounts::default(), kind: CallKind::Usual };
    assert_eq!(begin(&mut ledger, &slow, worked), ["session.seconds"]);
}

#[test]
fn what_a_call_really_used_takes_the_place_of_what_was_set_aside() {
    let mut ledger = Ledger::in_memory().unwrap();
    let one = by("t1", "s1", "d1");
    begin(&mut ledger, &one, call(900.0, 0.0));
    let less = Amounts { tokens: -800.0, ..Amounts::default() };
    ledger.add(&one, less, NOW).unwrap();
    let next = by("t2", "s1", "d1");
    assert_eq!(begin(&mut ledger, &next, call(899.0, 0.0)), [""; 0]);
    assert_eq!(begin(&mut ledger, &next, call(1.0, 0.0)), [""; 0]);
    let more = by("t3", "s1", "d1");
    assert_eq!(begin(&mut ledger, &more, call(1.0, 0.0)), ["session.tokens"]);
}

#[test]
fn more_is_the_same_allowance_again_from_what_was_spent() {
    let mut ledger = Ledger::in_memory().unwrap();
    let one = by("t1", "s1", "d1");
    begin(&mut ledger, &one, call(5_000.0, 0.0));
    let next = by("t2", "s1", "d1");
    assert_eq!(begin(&mut ledger, &next, call(1.0, 0.0)), ["session.tokens"]);
    let tokens = shown(BudgetScope::Session, BudgetUnit::Tokens);
    ledger.extend(&next, &limits(), &[tokens]).unwrap();
    assert_eq!(begin(&mut ledger, &next, call(999.0, 0.0)), [""; 0]);
    assert_eq!(begin(&mut ledger, &next, call(1.0, 0.0)), [""; 0]);
    assert_eq!(begin(&mut ledger, &next, call(1.0, 0.0)), ["turn.calls", "session.tokens"]);
    let last = ledger.begin_call(
        &next,
        &limits(),
        NewCall { kind: CallKind::Last, ..call(1.0, 0.0) },
        NOW,
    );
    assert_eq!(last.unwrap().len(), 2, "it goes on in any case");
    // Only what was shown is allowed once more.
    ledger.extend(&next, &limits(), &[tokens]).unwrap();
    assert_eq!(begin(&mut ledger, &next, call(1.0, 0.0)), ["turn.calls"]);
    let calls = shown(BudgetScope::Turn, BudgetUnit::Calls);
    ledger.extend(&next, &limits(), &[calls]).unwrap();
    assert_eq!(begin(&mut ledger, &next, call(1.0, 0.0)), [""; 0]);
}

#[test]
fn what_is_allowed_once_more_on_one_day_is_not_on_the_next() {
    let mut ledger = Ledger::in_memory().unwrap();
    let day = shown(BudgetScope::Day, BudgetUnit::Usd);
    let (today, tomorrow) = (by("t1", "s1", "d1"), by("t2", "s2", "d2"));
    begin(&mut ledger, &today, call(0.0, 2.0));
    begin(&mut ledger, &tomorrow, call(0.0, 2.0));
    ledger.extend(&today, &limits(), &[day]).unwrap();
    assert_eq!(begin(&mut ledger, &today, call(0.0, 0.1)), [""; 0]);
    assert_eq!(begin(&mut ledger, &tomorrow, call(0.0, 0.1)), ["day.usd"]);
    // What is not reached any more needs no more.
    let other = by("t3", "s3", "d1");
    begin(&mut ledger, &other, call(0.0, 0.5));
    ledger.extend(&other, &limits(), &[day]).unwrap();
    begin(&mut ledger, &other, call(0.0, 0.5));
    assert_eq!(begin(&mut ledger, &by("t4", "s4", "d1"), call(0.0, 0.1)), ["day.usd"]);
}

#[test]
fn old_sums_go_while_the_host_runs() {
    let mut ledger = Ledger::in_memory().unwrap();
    begin(&mut ledger, &by("t1", "s1", "d1"), call(1.0, 0.0));
    let later = NOW.plus_ms(400 * 24 * 3_600 * 1_000);
    let begun = ledger.begin_call(&by("t2", "s2", "d2"), &limits(), call(1.0, 0.0), later);
    assert_eq!(begun.unwrap(), []);
    let rows: i64 =
        ledger.conn.query_row("SELECT count(*) FROM spent", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 3, "those of the call alone");
}

#[test]
fn sums_are_there_after_the_process_is_gone_and_old_ones_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let one = by("t1", "s1", "d1");
    let mut ledger = Ledger::open(dir.path(), NOW).unwrap();
    begin(&mut ledger, &one, call(1_000.0, 0.0));
    // As a killed process leaves it: nothing is closed.
    std::mem::forget(ledger);
    let mut ledger = Ledger::open(dir.path(), NOW).unwrap();
    assert_eq!(begin(&mut ledger, &one, call(1.0, 0.0)), ["session.tokens"]);
    drop(ledger);
    let mode =
        std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(dir.path().join(FILE)).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let later = NOW.plus_ms(400 * 24 * 3_600 * 1_000);
    let ledger = Ledger::open(dir.path(), later).unwrap();
    let rows: i64 =
        ledger.conn.query_row("SELECT count(*) FROM spent", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}
