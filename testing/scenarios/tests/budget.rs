//! Whose budget a turn spends, as the kernel says it (G-69).

use agent_api::Worker;
use testkit::{Scenario, Script};

fn worker(task: &str) -> Worker {
    Worker { title: "W".to_owned(), task: task.to_owned(), ..Worker::default() }
}

#[test]
fn workers_of_workers_spend_what_the_turn_of_the_user_has() {
    let (mut s, ann) = Scenario::with_chat();
    let inner = Script::new().streams(["deep"]);
    let outer = Script::new().spawns_worker(worker("inner"), inner);
    s.model().plays(|own| own.spawns_worker(worker("outer"), outer)).streams(["done"]);
    let turn = ann.sends_message("delegate");
    s.model().streams(["ok"]);
    let next = ann.sends_message("again");
    let runs = s.look().models.asked.clone();
    let texts: Vec<&str> = runs.iter().map(|run| run.message["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["delegate", "outer", "inner", "again"]);
    let chat = runs[0].history.chat;
    for run in &runs[..3] {
        assert_eq!(run.budget_turn, (chat, turn.clone()));
        assert_eq!(run.session_id, runs[0].session_id);
    }
    assert_eq!(runs[3].budget_turn, (chat, next));
    assert_ne!(runs[1].turn_id, turn, "it is a turn of its own");
}
