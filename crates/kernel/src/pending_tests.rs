//! What may be put to wait, taken back and put into another order, and which of it begins a turn.

use serde_json::json;
use wire::ActionKind;

use super::*;
use crate::fixture_tests::{KernelFixture, action};

fn set(kind: &str, id: &str) -> Action {
    let message = json!({"text": id, "origin": {"kind": "user"}});
    let fields = json!({"kind": kind, "id": id, "message": message});
    action(ActionKind::ChatPendingMessageSet, fields)
}

fn with_waiting(waiting: &[(&str, &str)]) -> KernelFixture {
    let mut fixture = KernelFixture::with(|limits| limits.queued_messages_max = 3);
    fixture.start_turn("t1");
    for (kind, id) in waiting {
        let fields = serde_json::Value::Object(set(kind, id).body);
        fixture.act(ActionKind::ChatPendingMessageSet, fields);
    }
    fixture
}

#[test]
fn a_message_waits_under_one_id_and_within_bounds() {
    let fixture = with_waiting(&[("queued", "a"), ("queued", "b"), ("steering", "s")]);
    let refusal = |kind: &str, id: &str| {
        let chat = fixture.kernel.chat(&fixture.chat);
        let answers = HandlerAnswers::default();
        let checked = check_set(&fixture.kernel, chat, &mut set(kind, id), &answers);
        checked.err().map(|refusal| refusal.0)
    };
    assert_eq!(refusal("queued", "c"), None);
    assert_eq!(refusal("queued", "a"), None, "one that waits is replaced");
    assert_eq!(refusal("steering", "t"), None, "the newest steers");
    let other = Some("a message of the other kind waits under this id".to_owned());
    assert_eq!(refusal("queued", "s"), other);
    assert_eq!(refusal("steering", "a"), other);
    let id = Some("`id` must have 1 to 256 bytes".to_owned());
    assert_eq!(refusal("queued", ""), id);
    assert_eq!(refusal("queued", &"x".repeat(257)), id);
    let kind = Some("`kind` must be `steering` or `queued`".to_owned());
    assert_eq!(refusal("later", "x"), kind);
    let full = with_waiting(&[("queued", "a"), ("queued", "b"), ("queued", "c")]);
    let chat = full.kernel.chat(&full.chat);
    let answers = HandlerAnswers::default();
    let checked = check_set(&full.kernel, chat, &mut set("queued", "d"), &answers);
    let most = Some("at most 3 messages may wait in a chat".to_owned());
    assert_eq!(checked.err().map(|refusal| refusal.0), most);
}

#[test]
fn only_what_waits_can_be_taken_back() {
    let fixture = with_waiting(&[("queued", "a"), ("steering", "s")]);
    let state = fixture.kernel.chat(&fixture.chat).state();
    let may = |kind: &str, id: &str| {
        let fields = json!({"kind": kind, "id": id});
        check_removed(state, &action(ActionKind::ChatPendingMessageRemoved, fields)).is_ok()
    };
    assert!(may("queued", "a") && may("steering", "s"));
    assert!(!may("queued", "s") && !may("steering", "a") && !may("queued", "x"));
}

#[test]
fn an_order_names_all_that_wait_and_nothing_else() {
    let fixture = with_waiting(&[("queued", "a"), ("queued", "b"), ("queued", "c")]);
    let state = fixture.kernel.chat(&fixture.chat).state();
    let ordered = |order: serde_json::Value| {
        let fields = json!({"order": order});
        let mut reordered = action(ActionKind::ChatQueuedMessagesReordered, fields);
        check_reordered(state, &mut reordered).map(|()| reordered.body["order"].clone())
    };
    assert_eq!(ordered(json!(["c"])).ok(), Some(json!(["c", "a", "b"])));
    let doubled = ordered(json!(["b", "stranger", "b", 7]));
    assert_eq!(doubled.ok(), Some(json!(["b", "a", "c"])));
    assert!(ordered(json!("c")).is_err());
}

#[test]
fn steering_that_no_turn_took_begins_one_before_the_queue() {
    let mut fixture = with_waiting(&[("queued", "a"), ("steering", "s")]);
    let chat = fixture.chat.clone();
    fixture.step(|step| start_next(step, &chat));
    let waiting = |fixture: &KernelFixture| {
        let state = fixture.kernel.chat(&fixture.chat).state();
        let turn = state.active_turn.as_ref();
        let text = turn.map(|turn| turn.message["text"].clone());
        (text, state.queued_messages.len())
    };
    assert_eq!(waiting(&fixture), (Some(json!("hello")), 1), "a turn runs");
    fixture.complete_turn("t1");
    assert_eq!(waiting(&fixture), (Some(json!("s")), 1));
    let id = fixture.kernel.active_turn_id(&fixture.chat).unwrap();
    fixture.complete_turn(&id);
    assert_eq!(waiting(&fixture), (Some(json!("a")), 0));
}
