//! The largest turn: at `turn_bytes_max` it ends in an error that names the bound, and what it said until then can be opened.

use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient, Script, Tool};

const BYTES_MAX: usize = 65_536;

fn bounded() -> Scenario {
    Scenario::with(|limits| limits.turn_bytes_max = BYTES_MAX)
}

fn piece(bytes: usize) -> String {
    "0123456789".repeat(bytes / 10)
}

/// The error that the latest turn ended in.
fn error_of(client: &ScenarioClient) -> Value {
    let turn = client.latest_turn();
    assert_eq!(turn["state"], "error", "{turn}");
    let parts = turn["responseParts"].as_array().unwrap();
    let error = parts.last().unwrap().clone();
    assert_eq!(error["kind"], "error");
    error
}

fn assert_too_large(client: &ScenarioClient) {
    let error = error_of(client);
    assert_eq!(error["error"]["errorType"], "turnTooLarge");
    let words = error["error"]["message"].as_str().unwrap();
    assert!(words.contains("65536 bytes"), "{words}");
    assert!(words.contains("turn_bytes_max"), "{words}");
    assert!(error.get("resumable").is_none(), "it could not go on");
}

#[test]
fn a_turn_ends_at_its_largest_size_and_the_chat_goes_on() {
    let (mut s, ann) = bounded().and_chat();
    let bob = s.client("bob").opens_chat();
    s.model().streams(["a"]).waits_ms(10).streams(["b"]).hangs();
    bob.sends_message("another session");
    let piece = piece(1_000);
    s.model().streams([piece.as_str(); 100]).hangs();
    ann.sends_message("go");
    assert_too_large(&ann);
    let said = ann.reads().len();
    assert!((60_000..BYTES_MAX).contains(&said), "{said}");
    assert_eq!(s.look().models.stopped.len(), 1, "its agent was stopped");
    assert!(bob.sees(&bob.chat())["activeTurn"].is_object());
    s.model().streams(["short"]);
    ann.sends_message("go on");
    assert_eq!(ann.latest_turn()["state"], "complete");
    s.all_agree();
    s.host_restarts_for([&ann]);
    let eve = s.client("eve").joins(&ann);
    assert_eq!(eve.sees(&ann.chat())["turns"].as_array().unwrap().len(), 2);
}

#[test]
fn a_turn_just_below_it_completes() {
    let (mut s, ann) = bounded().and_chat();
    // What is escaped counts as it travels.
    let quotes = "\"".repeat(30_000);
    s.model().streams([quotes.as_str()]);
    ann.sends_message("go");
    assert_eq!(ann.latest_turn()["state"], "complete");
    let controls = "\u{1}".repeat(12_000);
    s.model().streams([controls.as_str()]).hangs();
    ann.sends_message("go");
    assert_too_large(&ann);
    assert_eq!(ann.reads(), "", "a piece is taken whole or not at all");
}

#[test]
fn one_piece_that_is_too_large_by_itself_is_never_recorded() {
    let (mut s, ann) = bounded().and_chat();
    let huge = piece(10_000_000);
    s.model().streams(["before", huge.as_str(), "after"]).hangs();
    ann.sends_message("go");
    assert_too_large(&ann);
    assert_eq!(ann.reads(), "before");
    let input = json!({"toolInput": huge, "invocationMessage": "Run", "confirmed": "not-needed"});
    s.model().announces(1, "write").readies(1, input).hangs();
    ann.sends_message("again");
    assert_too_large(&ann);
    assert_eq!(s.look().models.stopped.len(), 2);
}

#[test]
fn reasoning_and_results_count_and_what_is_replaced_does_not() {
    let (mut s, ann) = bounded().and_chat();
    let (text, result) = (piece(10_000), piece(20_000));
    let result = json!({
        "success": true, "pastTenseMessage": "Ran",
        "content": [{"type": "text", "text": result}],
    });
    // Each output takes the place of the one before it.
    let mut busy = Tool::running("run", "x");
    for _ in 0..20 {
        busy = busy.shows(&text);
    }
    s.model().calls(busy);
    ann.sends_message("replaced");
    assert_eq!(ann.latest_turn()["state"], "complete");
    let tool = || Tool::running("run", "x").results_in(result.clone());
    s.model().thinks([text.as_str()]).calls(tool()).calls(tool()).calls(tool()).hangs();
    ann.sends_message("added");
    assert_too_large(&ann);
}

#[test]
fn a_turn_that_is_resumed_goes_on_counting() {
    let (mut s, ann) = bounded().and_chat();
    let text = piece(40_000);
    s.model().streams([text.as_str()]).fails_resumably();
    let turn = ann.sends_message("go");
    assert_eq!(error_of(&ann)["resumable"], true);
    s.host_restarts_for([&ann]);
    s.model().streams([text.as_str()]).hangs();
    ann.resumes(&turn).unwrap();
    s.settles();
    assert_too_large(&ann);
    assert_eq!(ann.reads().len(), 40_000);
}

#[test]
fn a_worker_s_turn_is_bounded_and_the_call_that_waits_for_it_fails() {
    let (mut s, ann) = bounded().and_chat();
    let text = piece(40_000);
    let worker = Script::new().streams([text.as_str(); 2]).hangs();
    s.model().spawns("Reader", worker).streams(["done"]);
    ann.sends_message("delegate");
    assert_eq!(ann.latest_turn()["state"], "complete");
    assert_eq!(ann.reads(), "done");
    let call = ann.calls().last().cloned().unwrap();
    assert_eq!(call["success"], false);
    let uri = call["content"][0]["resource"].as_str().unwrap();
    ann.watches(uri);
    assert_too_large(&ann.in_chat(uri));
}
