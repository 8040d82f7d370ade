//! How many workers there may be, and what a call is told of one that ended.

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::fixture_tests::{KernelFixture, uri};

fn worker(title: &str) -> Worker {
    Worker {
        title: title.to_owned(),
        interactivity: None,
        agent_name: None,
        task: "work".to_owned(),
        model: None,
        brief: Bytes::new(),
    }
}

fn at_work(fixture: &KernelFixture) -> RunId {
    let running = fixture.kernel.running().into_iter();
    let mut own = running.filter(|(_, chat)| *chat == fixture.chat);
    own.next().map(|(run, _)| run).unwrap()
}

fn create(fixture: &mut KernelFixture, chat: &str, call: u64) {
    let run = at_work(fixture);
    fixture.step(|step| create_worker(step, &uri(chat), run, call, worker(chat)));
}

fn status_of_call(fixture: &KernelFixture, index: usize) -> (Value, Value) {
    let turn = fixture.kernel.chat(&fixture.chat).state().active_turn.as_ref();
    let part = turn.unwrap().parts.iter().nth(index).unwrap();
    let call = &part.0["toolCall"];
    (call["status"].clone(), call["success"].clone())
}

#[test]
fn a_worker_is_a_chat_with_a_turn_and_a_call_that_waits_for_it() {
    let mut fixture = KernelFixture::new();
    fixture.start_turn("t1");
    create(&mut fixture, "ahp-chat:/w1", 1);
    let chat = fixture.kernel.chat(&uri("ahp-chat:/w1"));
    assert!(chat.run().is_some() && chat.state().active_turn.is_some());
    assert_eq!(chat.parent(), Some(fixture.chat.clone()));
    assert_eq!(chat.private().depth, 1);
    assert_eq!(status_of_call(&fixture, 0), (json!("running"), Value::Null));
}

#[test]
fn how_many_and_how_deep_is_bounded() {
    let mut fixture = KernelFixture::with(|limits| {
        limits.workers_max = 1;
        limits.worker_depth_max = 1;
    });
    fixture.start_turn("t1");
    create(&mut fixture, "ahp-chat:/w1", 1);
    create(&mut fixture, "ahp-chat:/w2", 2);
    assert!(fixture.kernel.find_chat(&uri("ahp-chat:/w2")).is_none());
    assert_eq!(status_of_call(&fixture, 1), (json!("completed"), json!(false)));
    let why = too_many_workers(&fixture.kernel, &uri("ahp-chat:/w1"), &worker("deep"));
    assert_eq!(why.as_deref(), Some("workers may start workers at most 1 deep"));
    let large = Worker {
        brief: Bytes::from(vec![b'x'; fixture.kernel.limits().checkpoint_bytes_max + 1]),
        ..worker("large")
    };
    let why = too_many_workers(&fixture.kernel, &fixture.chat, &large).unwrap();
    assert!(why.starts_with("a worker's brief has at most"), "{why}");
}

#[test]
fn workers_end_with_the_turn_they_work_for() {
    let mut fixture = KernelFixture::new();
    fixture.start_turn("t1");
    create(&mut fixture, "ahp-chat:/w1", 1);
    let chat = fixture.chat.clone();
    fixture.step(|step| stop_run(step, &chat));
    let worker = fixture.kernel.chat(&uri("ahp-chat:/w1"));
    assert!(worker.run().is_none() && worker.state().active_turn.is_none());
}

#[test]
fn the_last_text_of_a_worker_is_its_result_cut_to_a_bound() {
    let turn = |parts: Value| json!({"responseParts": parts});
    let text = |content: &str| json!({"kind": "markdown", "content": content});
    let parts = json!([text("first"), text("last"), {"kind": "toolCall"}]);
    assert_eq!(last_words(&turn(parts)).as_deref(), Some("last"));
    assert_eq!(last_words(&turn(json!([text("")]))), None);
    assert_eq!(last_words(&turn(json!([]))), None);
    let long = last_words(&turn(json!([text(&"é".repeat(LAST_WORDS_BYTES))]))).unwrap();
    assert_eq!(long.len(), LAST_WORDS_BYTES);
}
