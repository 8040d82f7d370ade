//! What clients and the host of the model do: actions that have something to do with the state they meet.

use serde_json::{Value, json};
use wire::state::{ChatState, Outcome};

use crate::dice::Dice;

pub const ROOT: &str = "ahp-root://";
pub const SESSION: &str = "x:/session";
pub const CHATS: [&str; 2] = ["ahp-chat:/one", "ahp-chat:/two"];

const STARTED: &str = "2026-01-01T00:00:00Z";
const WAITING: [&str; 3] = ["q1", "q2", "q3"];

fn message(d: &mut Dice) -> Value {
    json!({"text": d.pick(&["a", "b", "c"]), "origin": {"kind": "user"}})
}

fn active_id(chat: Option<&ChatState>) -> Option<String> {
    Some(chat?.active_turn.as_ref()?.id.clone())
}

fn last_id(chat: Option<&ChatState>) -> Option<String> {
    Some(chat?.turns.last()?.id.clone())
}

/// A call of the active turn that waits to be confirmed.
pub fn unconfirmed(chat: &ChatState) -> Option<String> {
    let mut parts = chat.active_turn.as_ref()?.parts.iter();
    parts.find_map(|part| {
        let call = part.0.get("toolCall")?;
        let id = (call["status"] == "pending-confirmation").then_some(&call["toolCallId"])?;
        Some(id.as_str()?.to_owned())
    })
}

/// A client's action on a chat, made for the state it sees (or for none). `fresh` is an unused id.
pub fn of_a_person(d: &mut Dice, chat: Option<&ChatState>, fresh: &str) -> Value {
    let active = active_id(chat).unwrap_or_else(|| "t-nobody".to_owned());
    let last = last_id(chat).unwrap_or_else(|| "t-nobody".to_owned());
    match d.below(13) {
        0 => {
            json!({"type": "chat/draftChanged", "draft": message(d)})
        }
        1 | 2 => {
            let id = if d.one_in(8) { &last } else { fresh };
            json!({"type": "chat/turnStarted", "turnId": id, "startedAt": STARTED, "message": message(d)})
        }
        3 | 4 => json!({
            "type": "chat/pendingMessageSet", "kind": d.pick(&["queued", "steering"]),
            "id": d.pick(&WAITING), "message": message(d),
        }),
        5 => json!({
            "type": "chat/pendingMessageRemoved", "kind": d.pick(&["queued", "steering"]), "id": d.pick(&WAITING),
        }),
        6 => {
            let order: Vec<&str> = (0..3).map(|_| d.pick(&WAITING)).collect();
            json!({"type": "chat/queuedMessagesReordered", "order": order})
        }
        7 => {
            let mut action = json!({"type": "chat/truncated"});
            if !d.one_in(4) {
                action["turnId"] = json!(last);
            }
            action
        }
        8 => json!({"type": "chat/turnCancelled", "turnId": active, "duration": 5}),
        9 => json!({"type": "chat/turnResume", "turnId": last}),
        10 | 11 => {
            let call = chat.and_then(unconfirmed).unwrap_or_else(|| "c-nobody".to_owned());
            let (id, turn) = (call, active);
            if d.one_in(3) {
                json!({
                    "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": id,
                    "approved": false, "reason": "denied",
                })
            } else {
                json!({
                    "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": id,
                    "approved": true, "confirmed": "user-action",
                })
            }
        }
        _ => json!({"type": "chat/isReadChanged", "isRead": d.one_in(2)}),
    }
}

/// A client's action on the session, the root, or, as some clients do, on a chat though it means the session.
pub fn elsewhere(d: &mut Dice) -> (String, Value) {
    let title = d.pick(&["x", "y", "z"]);
    match d.below(6) {
        0 | 1 => (SESSION.to_owned(), json!({"type": "session/titleChanged", "title": title})),
        2 => (
            SESSION.to_owned(),
            json!({"type": "session/isArchivedChanged", "isArchived": d.one_in(2)}),
        ),
        3 => (d.pick(&CHATS).to_owned(), json!({"type": "session/titleChanged", "title": title})),
        _ => (
            ROOT.to_owned(),
            json!({"type": "root/configChanged", "config": {"known": title, "unknown": 1}}),
        ),
    }
}

/// What the host does in a chat by itself. `fresh` is an unused id.
pub fn of_the_host(d: &mut Dice, chat: &ChatState, fresh: &str) -> (&'static str, Value) {
    let Some(turn) = &chat.active_turn else {
        return match chat.queued_messages.first() {
            Some(next) if d.below(3) < 2 => (
                "chat/turnStarted",
                json!({
                    "turnId": fresh, "startedAt": STARTED, "message": next.message, "queuedMessageId": next.id,
                }),
            ),
            _ => ("chat/activityChanged", json!({"activity": d.pick(&["reading", "writing"])})),
        };
    };
    let id = &turn.id;
    let open = turn.parts.iter().rev().find_map(|part| {
        let call = part.0.get("toolCall")?;
        let is_open = matches!(call["status"].as_str(), Some("streaming" | "running"));
        is_open.then(|| call["toolCallId"].clone())
    });
    let text = turn.parts.iter().rev().find(|part| part.kind() == "markdown");
    match (d.below(10), open, text.and_then(|part| part.address())) {
        (0..=2, _, Some(part)) => {
            ("chat/delta", json!({"turnId": id, "partId": part, "content": d.pick(&["lo", "rem"])}))
        }
        (0..=3, _, _) => (
            "chat/responsePart",
            json!({"turnId": id, "part": {"kind": "markdown", "id": fresh, "content": ""}}),
        ),
        (4..=6, Some(call), _) => (
            "chat/toolCallReady",
            json!({"turnId": id, "toolCallId": call, "invocationMessage": d.pick(&["may I?", "and now?"])}),
        ),
        (4..=6, None, _) => (
            "chat/toolCallStart",
            json!({"turnId": id, "toolCallId": fresh, "toolName": "shell", "displayName": "Shell"}),
        ),
        (7, _, _) => (
            "chat/error",
            json!({
                "turnId": id, "duration": 3,
                "part": {"kind": "error", "id": fresh, "message": "no", "resumable": d.below(3) < 2},
            }),
        ),
        _ => ("chat/turnComplete", json!({"turnId": id, "duration": 4})),
    }
}

/// Whether the host's rules allow a client's action on a chat in this state.
pub fn is_allowed(action: &wire::Action, chat: &ChatState, used: impl Fn(&str) -> bool) -> bool {
    let turn = action.text("turnId");
    let active = chat.active_turn.as_ref().map(|turn| turn.id.as_str());
    let id = action.text("id");
    match action.name() {
        "chat/turnStarted" => active.is_none() && turn.is_some_and(|id| !used(id)),
        "chat/turnCancelled" => turn.is_some() && turn == active,
        "chat/turnResume" => {
            let last = chat.turns.last();
            active.is_none()
                && last.is_some_and(|last| {
                    Some(last.id.as_str()) == turn
                        && last.outcome == Outcome::Error { resumable: true }
                })
        }
        "chat/truncated" => turn.is_none_or(|id| chat.turns.position(id).is_some()),
        "chat/toolCallConfirmed" => {
            turn == active && unconfirmed(chat).as_deref() == action.text("toolCallId")
        }
        "chat/pendingMessageRemoved" => {
            let steering = chat.steering_message.iter();
            let mut waiting = steering.chain(&chat.queued_messages);
            waiting.any(|message| Some(message.id.as_str()) == id)
        }
        _ => true,
    }
}
