//! Chats and chat actions, small enough in ids that they hit each other.

use serde_json::{Value, json};

use crate::dice::{Dice, object};

const TURNS: [&str; 3] = ["t1", "t2", "t3"];
const PARTS: [&str; 3] = ["p1", "p2", "c1"];
const CALLS: [&str; 3] = ["c1", "c2", "p1"];
const MOMENTS: [&str; 4] = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T10:00:00.5+02:00",
    "2026-01-01T00:00:00.25Z",
    "not a moment",
];

pub fn message(d: &mut Dice) -> Value {
    object([
        ("text", Some(d.text())),
        (
            "origin",
            Some(json!({"kind": d.pick(&["user", "agent", "new-kind"])})),
        ),
        ("model", d.maybe(|_| json!({"id": "m1"}))),
        ("_meta", d.maybe(Dice::meta)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

fn contributor(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"kind": "mcp", "customizationId": "m1"}),
        json!({"kind": "mcp", "customizationId": "m1"}),
        json!({"kind": "mcp", "customizationId": "m1"}),
        json!({"kind": "mcp", "customizationId": "m2"}),
        json!({"kind": "client", "clientId": "ann"}),
        json!({"kind": "client", "clientId": "bob"}),
        json!({"kind": "new-kind"}),
        json!({"kind": "client"}),
    ])
}

fn tool_input(d: &mut Dice) -> Value {
    d.pick(&[json!("ls"), json!("pwd"), json!({"uri": "file:///in"})])
}

fn options(d: &mut Dice) -> Value {
    d.list(2, |d| {
        json!({"id": d.pick(&["o1", "o2"]), "label": d.text(), "kind": d.pick(&["approve", "deny"])})
    })
}

fn risk(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"status": "loading", "kind": "model"}),
        json!({"status": "complete", "kind": "model", "reason": "r", "safety": 0.5}),
    ])
}

fn content(d: &mut Dice) -> Value {
    d.list(2, |d| json!({"type": "text", "text": d.text()}))
}

/// A call in any state but `auth-required`, which the published types cannot read (H-204).
pub fn tool_call(d: &mut Dice, status: &str) -> Value {
    let mut call = object([
        ("status", Some(json!(status))),
        ("toolCallId", Some(json!(d.pick(&CALLS)))),
        ("toolName", Some(json!("shell"))),
        ("displayName", Some(d.text())),
        ("intention", d.maybe(Dice::text)),
        ("contributor", d.maybe(contributor)),
        ("_meta", d.maybe(Dice::meta)),
        ("x-test", d.maybe(Dice::text)),
    ]);
    let mut set = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            call[field] = value;
        }
    };
    if status == "streaming" {
        set("partialInput", d.maybe(Dice::text));
        set("invocationMessage", d.maybe(Dice::markdown));
        return call;
    }
    set("invocationMessage", Some(d.markdown()));
    set("toolInput", d.maybe(tool_input));
    if status == "pending-confirmation" {
        set("confirmationTitle", d.maybe(Dice::markdown));
        set("riskAssessment", d.maybe(risk));
        set("editable", d.maybe(|d| json!(d.flip())));
        set("options", d.maybe(options));
        return call;
    }
    set(
        "selectedOption",
        d.maybe(|_| json!({"id": "o1", "label": "l", "kind": "approve"})),
    );
    if status == "cancelled" {
        set(
            "reason",
            Some(json!(d.pick(&["denied", "skipped", "result-denied"]))),
        );
        set("userSuggestion", d.maybe(message));
        return call;
    }
    set(
        "confirmed",
        Some(json!(d.pick(&["not-needed", "user-action", "new-reason"]))),
    );
    set("content", d.maybe(content));
    if matches!(status, "completed" | "pending-result-confirmation") {
        set("success", Some(json!(d.flip())));
        set("pastTenseMessage", Some(d.markdown()));
        set("structuredContent", d.maybe(Dice::meta));
        set("error", d.maybe(|_| json!({"message": "e"})));
    }
    call
}

fn any_tool_call(d: &mut Dice) -> Value {
    let status = d.pick(&[
        "streaming",
        "running",
        "pending-confirmation",
        "pending-result-confirmation",
        "completed",
        "cancelled",
    ]);
    tool_call(d, status)
}

fn answer(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"state": "draft", "value": {"kind": "text", "value": "a"}}),
        json!({"state": "submitted", "value": {"kind": "boolean", "value": true}}),
        json!({"state": "skipped"}),
    ])
}

fn answers(d: &mut Dice) -> Value {
    object([("q1", d.maybe(answer)), ("q2", d.maybe(answer))])
}

pub fn input_request(d: &mut Dice) -> Value {
    object([
        ("id", Some(json!(d.pick(&["r1", "r2"])))),
        ("message", d.maybe(Dice::text)),
        ("answers", d.maybe(answers)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

fn error_part(d: &mut Dice) -> Value {
    object([
        ("kind", d.maybe(|_| json!("error"))),
        ("error", Some(json!({"errorType": "e", "message": "m"}))),
        ("resumable", d.maybe_null(|d| json!(d.below(4) > 0))),
    ])
}

fn part(d: &mut Dice) -> Value {
    match d.below(9) {
        0 | 1 => json!({"kind": "markdown", "id": d.pick(&PARTS), "content": d.text()}),
        2 => json!({"kind": "reasoning", "id": d.pick(&PARTS), "content": d.text()}),
        3 | 4 => json!({"kind": "toolCall", "x-test": 1, "toolCall": any_tool_call(d)}),
        5 => json!({"kind": "systemNotification", "content": "n", "id": d.pick(&PARTS)}),
        6 => object([
            ("kind", Some(json!("inputRequest"))),
            ("request", Some(input_request(d))),
            (
                "response",
                d.maybe(|d| json!(d.pick(&["accept", "cancel"]))),
            ),
        ]),
        7 => json!({"kind": "new-kind", "id": d.pick(&PARTS)}),
        _ => json!({"kind": "error", "error": {"errorType": "e", "message": "m"}}),
    }
}

fn turn(d: &mut Dice) -> Value {
    let state = d.pick(&["error", "error", "complete", "cancelled"]);
    let mut turn = object([
        ("id", Some(json!(d.pick(&TURNS)))),
        ("startedAt", d.maybe_null(|d| json!(d.pick(&MOMENTS)))),
        ("duration", d.maybe(|_| json!(7))),
        ("message", Some(message(d))),
        ("responseParts", Some(d.list(3, part))),
        ("usage", d.maybe_null(|_| json!({"inputTokens": 3}))),
        ("state", Some(json!(state))),
    ]);
    if state == "error"
        && let Value::Array(parts) = &mut turn["responseParts"]
    {
        let mut last = error_part(d);
        last["kind"] = json!("error");
        parts.push(last);
    }
    turn
}

fn active_turn(d: &mut Dice) -> Value {
    object([
        ("id", Some(json!(d.pick(&TURNS)))),
        ("startedAt", Some(json!(d.pick(&MOMENTS)))),
        ("message", Some(message(d))),
        ("responseParts", Some(d.list(5, part))),
        ("usage", d.maybe(|_| json!({"inputTokens": 1}))),
    ])
}

pub fn status(d: &mut Dice) -> u32 {
    d.pick(&[1, 2, 8, 24]) | d.pick(&[0, 32, 64, 96, 1 << 10])
}

fn work(d: &mut Dice) -> Value {
    let id = d.pick(&["w1", "w2"]);
    d.pick(&[
        json!({"kind": "shell", "id": id, "label": "l", "startedAt": "s", "command": "c"}),
        json!({"kind": "subagent", "id": id, "label": "l", "startedAt": "s", "chat": "a:/b"}),
        json!({"kind": "new-kind", "id": id}),
        json!({"kind": "new-kind"}),
    ])
}

fn pending(d: &mut Dice, id: &str) -> Value {
    json!({"id": id, "message": message(d)})
}

fn directory(d: &mut Dice) -> Value {
    json!(d.pick(&["file:///a", "file:///b", "file:///c"]))
}

fn changesets(d: &mut Dice) -> Value {
    d.list(
        2,
        |d| json!({"label": d.text(), "uriTemplate": "u", "changeKind": "k"}),
    )
}

pub fn start(d: &mut Dice) -> Value {
    object([
        ("resource", Some(json!("ahp-chat:/1"))),
        ("title", Some(json!("t"))),
        ("status", Some(json!(status(d)))),
        ("modifiedAt", Some(json!("2025-12-31T00:00:00.000Z"))),
        ("activity", d.maybe(Dice::text)),
        ("activeTurn", d.maybe(active_turn)),
        ("turns", Some(d.list(2, turn))),
        ("turnsNextCursor", d.maybe(Dice::text)),
        ("steeringMessage", d.maybe(|d| pending(d, "q1"))),
        (
            "queuedMessages",
            d.maybe(|d| json!([pending(d, "q1"), pending(d, "q2")])),
        ),
        ("draft", d.maybe(message)),
        ("workingDirectories", d.maybe(|d| d.list(2, directory))),
        ("backgroundWork", d.maybe(|d| d.list(2, work))),
        ("movable", d.maybe(|d| json!(d.flip()))),
        ("_meta", d.maybe(Dice::meta)),
    ])
}

/// What an action has to know of the chat to hit something in it.
pub struct Hints {
    /// All that is queued: a reorder names it whole, since the published reducer sorts what an order leaves out (H-234).
    pub queue: Vec<String>,
    /// The turn that runs, or the last one.
    pub turn: String,
    /// The first call that is not over: its id and its status.
    pub call: Option<(String, String)>,
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
    let turn_id = Some(json!(if d.below(8) == 7 {
        other
    } else {
        hints.turn.as_str()
    }));
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
            (
                "queuedMessageId",
                d.maybe_null(|d| json!(d.pick(&["q1", "q2", "q9"]))),
            ),
            ("_meta", meta),
        ]),
        2 | 3 => object([
            (
                "type",
                Some(json!(d.pick(&["chat/turnComplete", "chat/turnCancelled"]))),
            ),
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
        5 | 6 => object([
            ("type", Some(json!("chat/turnResume"))),
            ("turnId", turn_id),
        ]),
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

fn tool_action(d: &mut Dice, turn_id: Option<Value>, hints: &Hints) -> Value {
    let (which, id) = match &hints.call {
        Some((id, status)) if d.flip() => (d.pick(leads_on(status)), id.clone()),
        _ => (d.below(10), d.pick(&CALLS).to_owned()),
    };
    let (name, fields) = match which {
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
        2 | 3 => (
            "Ready",
            object([
                ("invocationMessage", Some(d.markdown())),
                ("contributor", d.maybe_null(contributor)),
                ("intention", d.maybe_null(Dice::text)),
                ("toolInput", d.maybe_null(tool_input)),
                ("confirmationTitle", d.maybe_null(Dice::markdown)),
                ("riskAssessment", d.maybe_null(risk)),
                ("edits", d.maybe_null(|_| json!({"items": []}))),
                ("editable", d.maybe_null(|d| json!(d.flip()))),
                (
                    "confirmed",
                    d.maybe_null(|d| json!(d.pick(&["not-needed", "new-reason"]))),
                ),
                ("options", d.maybe_null(options)),
            ]),
        ),
        4 => (
            "Confirmed",
            object([
                ("approved", Some(json!(d.flip()))),
                ("confirmed", d.maybe_null(|_| json!("user-action"))),
                (
                    "reason",
                    d.maybe_null(|d| json!(d.pick(&["denied", "skipped"]))),
                ),
                ("editedToolInput", d.maybe_null(|_| json!("rm"))),
                ("userSuggestion", d.maybe_null(message)),
                ("reasonMessage", d.maybe_null(Dice::markdown)),
                (
                    "selectedOptionId",
                    d.maybe_null(|d| json!(d.pick(&["o1", "o2", "o9"]))),
                ),
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
            (
                "Complete",
                object([
                    ("result", Some(result)),
                    ("requiresResultConfirmation", review),
                ]),
            )
        }
        6 => (
            "ResultConfirmed",
            object([("approved", Some(json!(d.flip())))]),
        ),
        7 => ("ContentChanged", object([("content", Some(content(d)))])),
        8 => {
            let auth = json!({"reason": "expired", "resource": {"resource": "https://r"}});
            ("AuthRequired", object([("auth", Some(auth))]))
        }
        _ => ("AuthResolved", object([])),
    };
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
            (
                "type",
                Some(json!(d.pick(&["chat/delta", "chat/reasoning"]))),
            ),
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
            (
                "response",
                Some(json!(d.pick(&["accept", "decline", "cancel"]))),
            ),
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
        7 => (
            "changesetsChanged",
            ("changesets", d.maybe_null(changesets)),
        ),
        8 => {
            let canvas = |d: &mut Dice| d.list(1, |_| json!({"resource": "ahp-canvas:/1"}));
            ("canvasesChanged", ("canvases", d.maybe_null(canvas)))
        }
        9 => ("workingDirectorySet", ("directory", Some(directory(d)))),
        _ => ("workingDirectoryRemoved", ("directory", Some(directory(d)))),
    };
    object([("type", Some(json!(format!("chat/{name}")))), field])
}
