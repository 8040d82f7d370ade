//! Chats and chat actions, small enough in ids that they hit each other.

use serde_json::{Value, json};

use crate::dice::{Dice, object};

pub const TURNS: [&str; 3] = ["t1", "t2", "t3"];
pub const PARTS: [&str; 3] = ["p1", "p2", "c1"];
pub const CALLS: [&str; 3] = ["c1", "c2", "p1"];
pub const MOMENTS: [&str; 4] = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T10:00:00.5+02:00",
    "2026-01-01T00:00:00.25Z",
    "not a moment",
];

pub fn message(d: &mut Dice) -> Value {
    object([
        ("text", Some(d.text())),
        ("origin", Some(json!({"kind": d.pick(&["user", "agent", "new-kind"])}))),
        ("model", d.maybe(|_| json!({"id": "m1"}))),
        ("_meta", d.maybe(Dice::meta)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

pub fn contributor(d: &mut Dice) -> Value {
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

pub fn tool_input(d: &mut Dice) -> Value {
    d.pick(&[json!("ls"), json!("pwd"), json!({"uri": "file:///in"})])
}

pub fn options(d: &mut Dice) -> Value {
    d.list(2, |d| {
        json!({"id": d.pick(&["o1", "o2"]), "label": d.text(), "kind": d.pick(&["approve", "deny"])})
    })
}

pub fn risk(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"status": "loading", "kind": "model"}),
        json!({"status": "complete", "kind": "model", "reason": "r", "safety": 0.5}),
    ])
}

pub fn content(d: &mut Dice) -> Value {
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
    set("selectedOption", d.maybe(|_| json!({"id": "o1", "label": "l", "kind": "approve"})));
    if status == "cancelled" {
        set("reason", Some(json!(d.pick(&["denied", "skipped", "result-denied"]))));
        set("userSuggestion", d.maybe(message));
        return call;
    }
    set("confirmed", Some(json!(d.pick(&["not-needed", "user-action", "new-reason"]))));
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

pub fn answer(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"state": "draft", "value": {"kind": "text", "value": "a"}}),
        json!({"state": "submitted", "value": {"kind": "boolean", "value": true}}),
        json!({"state": "skipped"}),
    ])
}

pub fn answers(d: &mut Dice) -> Value {
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

pub fn error_part(d: &mut Dice) -> Value {
    object([
        ("kind", d.maybe(|_| json!("error"))),
        ("error", Some(json!({"errorType": "e", "message": "m"}))),
        ("resumable", d.maybe_null(|d| json!(d.below(4) > 0))),
    ])
}

pub fn part(d: &mut Dice) -> Value {
    match d.below(9) {
        0 | 1 => json!({"kind": "markdown", "id": d.pick(&PARTS), "content": d.text()}),
        2 => json!({"kind": "reasoning", "id": d.pick(&PARTS), "content": d.text()}),
        3 | 4 => json!({"kind": "toolCall", "x-test": 1, "toolCall": any_tool_call(d)}),
        5 => json!({"kind": "systemNotification", "content": "n", "id": d.pick(&PARTS)}),
        6 => object([
            ("kind", Some(json!("inputRequest"))),
            ("request", Some(input_request(d))),
            ("response", d.maybe(|d| json!(d.pick(&["accept", "cancel"])))),
        ]),
        7 => json!({"kind": "new-kind", "id": d.pick(&PARTS)}),
        _ => json!({"kind": "error", "error": {"errorType": "e", "message": "m"}}),
    }
}

pub fn turn(d: &mut Dice) -> Value {
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

pub fn work(d: &mut Dice) -> Value {
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

pub fn directory(d: &mut Dice) -> Value {
    json!(d.pick(&["file:///a", "file:///b", "file:///c"]))
}

pub fn changesets(d: &mut Dice) -> Value {
    d.list(2, |d| json!({"label": d.text(), "uriTemplate": "u", "changeKind": "k"}))
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
        ("queuedMessages", d.maybe(|d| json!([pending(d, "q1"), pending(d, "q2")]))),
        ("draft", d.maybe(message)),
        ("workingDirectories", d.maybe(|d| d.list(2, directory))),
        ("backgroundWork", d.maybe(|d| d.list(2, work))),
        ("movable", d.maybe(|d| json!(d.flip()))),
        ("_meta", d.maybe(Dice::meta)),
    ])
}
