//! A follower over chats made by actions.

use serde_json::json;
use wire::reduce::reduce_chat;
use wire::{Action, ActionKind};

use super::*;

struct Chat {
    state: ChatState,
    follower: TurnFollower,
}

impl Chat {
    fn new() -> Self {
        Self {
            state: ChatState::new("ahp-chat:/c", "", 1, String::new()),
            follower: TurnFollower::default(),
        }
    }

    fn act(&mut self, name: &str, fields: Value) -> &mut Self {
        reduce_chat(&mut self.state, &Action::host(ActionKind::from_name(name), fields));
        self
    }

    fn begin(&mut self, id: &str) -> &mut Self {
        self.act(
            "chat/turnStarted",
            json!({"turnId": id, "startedAt": "2026-11-15T08:00:00Z", "message": {"text": id}}),
        )
    }

    fn part(&mut self, id: &str, part: Value) -> &mut Self {
        self.act("chat/responsePart", json!({"turnId": id, "part": part}))
    }

    fn complete(&mut self, id: &str) -> &mut Self {
        self.act("chat/turnComplete", json!({"turnId": id, "duration": 1}))
    }

    fn events(&mut self) -> Vec<String> {
        let events: Vec<String> =
            self.follower.follow(&self.state, 2).iter().map(describe).collect();
        assert_eq!(self.follower.follow(&self.state, 2), [], "nothing is reported twice");
        events
    }
}

fn describe(event: &TurnEvent) -> String {
    match event {
        TurnEvent::Omitted { turns } => format!("omitted {turns}"),
        TurnEvent::Started { message, .. } => format!("began {}", message["text"]),
        TurnEvent::Resumed => "resumed".to_owned(),
        TurnEvent::Text { kind, position, text } => format!("{kind:?} {position:?} {text}"),
        TurnEvent::TextEnded => "text ended".to_owned(),
        TurnEvent::Part(part) => format!("part {}", part["kind"]),
        TurnEvent::Ended { outcome, .. } => format!("ended {}", outcome.wire_name()),
        TurnEvent::Rewound => "rewound".to_owned(),
    }
    .replace('"', "")
}

#[test]
fn text_is_reported_as_it_grows_and_ends_with_the_next_part() {
    let mut chat = Chat::new();
    assert_eq!(chat.events(), [""; 0]);
    chat.begin("t1").part("t1", json!({"kind": "reasoning", "id": "p1", "content": ""}));
    assert_eq!(chat.events(), ["began t1", "Reasoning Start "]);
    let delta = json!({"turnId": "t1", "partId": "p1", "content": "hm"});
    chat.act("chat/reasoning", delta);
    assert_eq!(chat.events(), ["Reasoning Continuation hm"]);
    chat.part("t1", json!({"kind": "markdown", "id": "p2", "content": "a"}));
    assert_eq!(chat.events(), ["text ended", "Markdown Start a"]);
    chat.complete("t1");
    assert_eq!(chat.events(), ["text ended", "ended complete"]);
    chat.begin("t2").complete("t2").begin("t3");
    assert_eq!(chat.events(), ["began t2", "ended complete", "began t3"]);
}

#[test]
fn an_unfinished_part_holds_back_the_next() {
    let mut chat = Chat::new();
    chat.begin("t");
    let call = json!({"turnId": "t", "toolCallId": "c", "toolName": "x", "displayName": "X"});
    chat.act("chat/toolCallStart", call)
        .part("t", json!({"kind": "markdown", "id": "p", "content": "a"}));
    assert_eq!(chat.events(), ["began t"]);
    assert_eq!(chat.follower.open_parts(&chat.state).len(), 2);
    let ready = json!({"turnId": "t", "toolCallId": "c", "invocationMessage": "", "confirmed": "not-needed"});
    let result = json!({"success": true, "pastTenseMessage": "did"});
    chat.act("chat/toolCallReady", ready)
        .act("chat/toolCallComplete", json!({"turnId": "t", "toolCallId": "c", "result": result}));
    assert_eq!(chat.events(), ["part toolCall", "Markdown Start a"]);
    assert_eq!(chat.follower.open_parts(&chat.state).len(), 1);
}

#[test]
fn history_is_limited_to_its_last_turns() {
    let mut chat = Chat::new();
    for id in ["t1", "t2", "t3"] {
        chat.begin(id).complete(id);
    }
    chat.begin("t4");
    assert_eq!(
        chat.events(),
        ["omitted 1", "began t2", "ended complete", "began t3", "ended complete", "began t4",]
    );
}

#[test]
fn a_failed_turn_that_is_resumed_goes_on_where_it_stopped() {
    let mut chat = Chat::new();
    let error = json!({"error": {"errorType": "e", "message": "m"}, "resumable": true});
    chat.begin("t")
        .part("t", json!({"kind": "markdown", "id": "p", "content": "a"}))
        .act("chat/error", json!({"turnId": "t", "duration": 1, "part": error}));
    let expected = ["began t", "Markdown Start a", "text ended", "part error", "ended error"];
    assert_eq!(chat.events(), expected);
    chat.act("chat/turnResume", json!({"turnId": "t"}))
        .part("t", json!({"kind": "markdown", "id": "q", "content": "b"}));
    assert_eq!(chat.events(), ["resumed", "Markdown Start b"]);
    chat.complete("t");
    assert_eq!(chat.events(), ["text ended", "ended complete"]);
}

#[test]
fn a_turn_resumed_and_ended_between_two_updates_is_reported() {
    let mut chat = Chat::new();
    let error = json!({"error": {"errorType": "e", "message": "m"}, "resumable": true});
    let error = json!({"turnId": "t", "duration": 1, "part": error});
    chat.begin("t").act("chat/error", error.clone());
    chat.events();
    assert_eq!(chat.events(), [""; 0]);
    chat.act("chat/turnResume", json!({"turnId": "t"})).act("chat/error", error);
    assert_eq!(chat.events(), ["resumed", "part error", "ended error"]);
    chat.act("chat/turnResume", json!({"turnId": "t"}))
        .part("t", json!({"kind": "markdown", "id": "q", "content": "b"}))
        .complete("t");
    let rest = ["resumed", "Markdown Start b", "text ended", "ended complete"];
    assert_eq!(chat.events(), rest);
    assert_eq!(chat.events(), [""; 0]);
}

#[test]
fn removed_turns_are_reported() {
    let mut chat = Chat::new();
    chat.begin("t1").complete("t1").begin("t2");
    chat.part("t2", json!({"kind": "markdown", "id": "p", "content": "a"}));
    chat.events();
    chat.act("chat/truncated", json!({"turnId": "t1"}));
    assert_eq!(chat.events(), ["text ended", "rewound"]);
    chat.begin("t3");
    assert_eq!(chat.events(), ["began t3"]);
    chat.act("chat/truncated", json!({}));
    assert_eq!(chat.events(), ["rewound"]);
}

#[test]
fn missed_turns_that_were_not_sent_are_reported_as_left_out() {
    let mut chat = Chat::new();
    chat.begin("t1").complete("t1");
    chat.events();
    let mut later = Chat::new();
    later.begin("t8").complete("t8");
    later.state.turns_next_cursor = Some("before:t8".to_owned());
    chat.state = later.state;
    assert_eq!(chat.events(), ["omitted 0", "began t8", "ended complete"]);
}

#[test]
fn many_turns_missed_at_once_are_all_reported() {
    let mut chat = Chat::new();
    chat.begin("t1").complete("t1");
    chat.events();
    for id in ["t2", "t3", "t4"] {
        chat.begin(id).complete(id);
    }
    assert_eq!(chat.events().len(), 6);
}

#[test]
fn without_waiting_for_calls_text_after_them_is_reported_at_once() {
    let mut chat = Chat::new();
    chat.follower = TurnFollower::without_waiting_for_calls();
    chat.begin("t");
    let call = json!({"turnId": "t", "toolCallId": "c", "toolName": "x", "displayName": "X"});
    chat.act("chat/toolCallStart", call)
        .part("t", json!({"kind": "markdown", "id": "p", "content": "a"}));
    assert_eq!(chat.events(), ["began t", "part toolCall", "Markdown Start a"]);
}
