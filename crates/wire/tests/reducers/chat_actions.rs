//! Generated chat actions, most of which hit something in the chat they are applied to.

use serde_json::{Value, json};
use wire::state::{ChatState, ResponsePart};

use crate::chat::{
    CALLS, MOMENTS, PARTS, TURNS, answer, answers, changesets, content, contributor, directory,
    error_part, input_request, message, options, part, risk, tool_input, turn, work,
};
use crate::dice::{Dice, object};

/// What an action has to know of the chat to hit something in it.
pub struct Hints {
    /// All that is queued: a reorder names it whole, since the published reducer sorts what an order leaves out (H-234).
    pub queue: Vec<String>,
    /// The turn that runs, or the last one.
    pub turn: String,
    /// The first call that is not over: its id and its status.
    pub call: Option<(String, String)>,
}

impl Hints {
    /// What of a chat an action can hit.
    pub fn of(chat: &ChatState) -> Self {
        let running = chat.active_turn.as_ref().map(|turn| turn.id.clone());
        let open = |part: &ResponsePart| {
            let call = part.0.get("toolCall")?;
            let text = |field: &str| Some(call[field].as_str()?.to_owned());
            Some((text("toolCallId")?, text("status")?))
                .filter(|(_, status)| status != "completed" && status != "cancelled")
        };
        let call = chat.active_turn.as_ref().and_then(|turn| turn.parts.iter().find_map(open));
        let last = || chat.turns.last().map(|turn| turn.id.clone());
        Self {
            queue: chat.queued_messages.iter().map(|message| message.id.clone()).collect(),
            turn: running.or_else(last).unwrap_or_else(|| "t1".to_owned()),
            call,
        }
    }
}

/// Which of the tool actions lead on from a status.
fn leads_on(status: &str) -> &'static [usize] {
    match status {
        "streaming" => &[1, 2],
        "pending-confirmation" => &[2, 4],
        "running" => &[5, 7, 8, 8],
        "auth-required" => &[5, 9],
        _ => &[6],
    }
}

/// A chat action.
pub fn action(d: &mut Dice, hints: &Hints) -> Value {
    let other = d.pick(&TURNS);
    let turn_id = Some(json!(if d.below(8) == 7 { other } else { hints.turn.as_str() }));
    match d.below(16) {
        0 | 1 => turn_action(d, turn_id),
        2..=8 => tool_action(d, turn_id, hints),
        9..=11 => text_action(d, turn_id),
        12 | 13 => waiting_action(d, &hints.queue),
        _ => field_action(d),
    }
}

fn turn_action(d: &mut Dice, turn_id: Option<Value>) -> Value {
    let duration = Some(json!(d.pick(&[0, 1_500, -5, i64::MAX])));
    let meta = d.maybe_null(Dice::meta);
    match d.below(9) {
        0 | 1 => object([
            ("type", Some(json!("chat/turnStarted"))),
            ("turnId", turn_id),
            ("startedAt", Some(json!(d.pick(&MOMENTS)))),
            ("message", Some(message(d))),
            ("queuedMessageId", d.maybe_null(|d| json!(d.pick(&["q1", "q2", "q9"])))),
            ("_meta", meta),
        ]),
        2 | 3 => object([
            ("type", Some(json!(d.pick(&["chat/turnComplete", "chat/turnCancelled"])))),
            ("turnId", turn_id),
            ("duration", duration),
            ("_meta", meta),
        ]),
        4 => object([
            ("type", Some(json!("chat/error"))),
            ("turnId", turn_id),
            ("duration", duration),
            ("part", Some(error_part(d))),
        ]),
        5 | 6 => object([("type", Some(json!("chat/turnResume"))), ("turnId", turn_id)]),
        7 => object([
            ("type", Some(json!("chat/truncated"))),
            ("turnId", d.maybe_null(|_| json!("t2"))),
        ]),
        _ => object([
            ("type", Some(json!("chat/turnsLoaded"))),
            ("turns", Some(d.list(2, turn))),
            ("turnsNextCursor", d.maybe_null(Dice::text)),
        ]),
    }
}

/// What an action about a tool call is called, after `chat/toolCall`, and its fields.
fn tool_fields(d: &mut Dice, which: usize) -> (&'static str, Value) {
    match which {
        0 => (
            "Start",
            object([
                ("toolName", Some(json!("shell"))),
                ("displayName", Some(d.text())),
                ("intention", d.maybe_null(Dice::text)),
                ("contributor", d.maybe_null(contributor)),
            ]),
        ),
        1 => (
            "Delta",
            object([
                ("content", d.maybe_null(Dice::text)),
                ("invocationMessage", d.maybe_null(Dice::markdown)),
            ]),
        ),
        2 | 3 => ("Ready", ready_fields(d)),
        4 => (
            "Confirmed",
            object([
                ("approved", Some(json!(d.flip()))),
                ("confirmed", d.maybe_null(|_| json!("user-action"))),
                ("reason", d.maybe_null(|d| json!(d.pick(&["denied", "skipped"])))),
                ("editedToolInput", d.maybe_null(|_| json!("rm"))),
                ("userSuggestion", d.maybe_null(message)),
                ("reasonMessage", d.maybe_null(Dice::markdown)),
                ("selectedOptionId", d.maybe_null(|d| json!(d.pick(&["o1", "o2", "o9"])))),
            ]),
        ),
        5 => {
            let result = object([
                ("success", Some(json!(d.flip()))),
                ("pastTenseMessage", Some(d.markdown())),
                ("content", d.maybe_null(content)),
                ("structuredContent", d.maybe_null(Dice::meta)),
                ("error", d.maybe_null(|_| json!({"message": "e"}))),
            ]);
            let review = d.maybe_null(|d| json!(d.flip()));
            ("Complete", object([("result", Some(result)), ("requiresResultConfirmation", review)]))
        }
        6 => ("ResultConfirmed", object([("approved", Some(json!(d.flip())))])),
        7 => ("ContentChanged", object([("content", Some(content(d)))])),
        8 => {
            let auth = json!({"reason": "expired", "resource": {"resource": "https://r"}});
            ("AuthRequired", object([("auth", Some(auth))]))
        }
        _ => ("AuthResolved", object([])),
    }
}

fn ready_fields(d: &mut Dice) -> Value {
    object([
        ("invocationMessage", Some(d.markdown())),
        ("contributor", d.maybe_null(contributor)),
        ("intention", d.maybe_null(Dice::text)),
        ("toolInput", d.maybe_null(tool_input)),
        ("confirmationTitle", d.maybe_null(Dice::markdown)),
        ("riskAssessment", d.maybe_null(risk)),
        ("edits", d.maybe_null(|_| json!({"items": []}))),
        ("editable", d.maybe_null(|d| json!(d.flip()))),
        ("confirmed", d.maybe_null(|d| json!(d.pick(&["not-needed", "new-reason"])))),
        ("options", d.maybe_null(options)),
    ])
}

fn tool_action(d: &mut Dice, turn_id: Option<Value>, hints: &Hints) -> Value {
    let (which, id) = match &hints.call {
        Some((id, status)) if d.flip() => (d.pick(leads_on(status)), id.clone()),
        _ => (d.below(10), d.pick(&CALLS).to_owned()),
    };
    let (name, fields) = tool_fields(d, which);
    let mut action = object([
        ("type", Some(json!(format!("chat/toolCall{name}")))),
        ("turnId", turn_id),
        ("toolCallId", Some(json!(id))),
        ("_meta", d.maybe_null(Dice::meta)),
    ]);
    if let (Value::Object(action), Value::Object(fields)) = (&mut action, fields) {
        action.extend(fields);
    }
    action
}

fn text_action(d: &mut Dice, turn_id: Option<Value>) -> Value {
    match d.below(7) {
        0..=2 => object([
            ("type", Some(json!("chat/responsePart"))),
            ("turnId", turn_id),
            ("part", Some(part(d))),
        ]),
        3..=5 => object([
            ("type", Some(json!(d.pick(&["chat/delta", "chat/reasoning"])))),
            ("turnId", turn_id),
            ("partId", Some(json!(d.pick(&PARTS)))),
            ("content", Some(d.text())),
        ]),
        _ => object([
            ("type", Some(json!("chat/usage"))),
            ("turnId", turn_id),
            ("usage", Some(json!({"inputTokens": d.below(3)}))),
        ]),
    }
}

fn waiting_action(d: &mut Dice, queue: &[String]) -> Value {
    let request_id = Some(json!(d.pick(&["r1", "r2", "r9"])));
    let kind = Some(json!(d.pick(&["queued", "steering"])));
    let id = Some(json!(d.pick(&["q1", "q2", "q3"])));
    match d.below(8) {
        0 | 1 => json!({"type": "chat/inputRequested", "request": input_request(d)}),
        2 => object([
            ("type", Some(json!("chat/inputAnswerChanged"))),
            ("requestId", request_id),
            ("questionId", Some(json!(d.pick(&["q1", "q2"])))),
            ("answer", d.maybe_null(answer)),
        ]),
        3 => object([
            ("type", Some(json!("chat/inputCompleted"))),
            ("requestId", request_id),
            ("response", Some(json!(d.pick(&["accept", "decline", "cancel"])))),
            ("answers", d.maybe_null(answers)),
        ]),
        4 | 5 => object([
            ("type", Some(json!("chat/pendingMessageSet"))),
            ("kind", kind),
            ("id", id),
            ("message", Some(message(d))),
        ]),
        6 => object([
            ("type", Some(json!("chat/pendingMessageRemoved"))),
            ("kind", kind),
            ("id", id),
        ]),
        _ => {
            let mut order = queue.to_vec();
            order.rotate_left(d.below(queue.len().max(1)));
            order.insert(0, "q9".to_owned());
            order.extend(queue.first().cloned());
            json!({"type": "chat/queuedMessagesReordered", "order": order})
        }
    }
}

fn field_action(d: &mut Dice) -> Value {
    let work_id = Some(json!(d.pick(&["w1", "w2"])));
    let (name, field) = match d.below(11) {
        0 => ("draftChanged", ("draft", d.maybe_null(message))),
        1 => ("isReadChanged", ("isRead", Some(json!(d.flip())))),
        2 => ("isArchivedChanged", ("isArchived", Some(json!(d.flip())))),
        3 => ("activityChanged", ("activity", d.maybe_null(Dice::text))),
        4 => ("backgroundWorkSet", ("work", Some(work(d)))),
        5 => ("backgroundWorkRemoved", ("id", work_id)),
        6 => ("movableChanged", ("movable", Some(json!(d.flip())))),
        7 => ("changesetsChanged", ("changesets", d.maybe_null(changesets))),
        8 => {
            let canvas = |d: &mut Dice| d.list(1, |_| json!({"resource": "ahp-canvas:/1"}));
            ("canvasesChanged", ("canvases", d.maybe_null(canvas)))
        }
        9 => ("workingDirectorySet", ("directory", Some(directory(d)))),
        _ => ("workingDirectoryRemoved", ("directory", Some(directory(d)))),
    };
    object([("type", Some(json!(format!("chat/{name}")))), field])
}
