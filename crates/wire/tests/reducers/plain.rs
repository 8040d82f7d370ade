//! Changesets, annotations, terminals, watches and their actions, small enough in ids that they hit each other.

use serde_json::{Value, json};

use crate::dice::{Dice, object};

fn id(d: &mut Dice) -> Value {
    json!(d.pick(&["a", "b", "c"]))
}

fn error(d: &mut Dice) -> Value {
    json!({"errorType": "e", "message": d.text()})
}

fn file(d: &mut Dice) -> Value {
    let side = json!({"uri": "file:///f", "content": {"uri": "ahp-content:/1"}});
    object([
        ("id", Some(id(d))),
        (
            "edit",
            Some(object([("before", d.maybe(|_| side.clone())), ("after", d.maybe(|_| side))])),
        ),
        ("reviewed", d.maybe_null(|d| json!(d.flip()))),
        ("_meta", d.maybe_null(Dice::meta)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

fn operation(d: &mut Dice) -> Value {
    object([
        ("id", Some(id(d))),
        ("label", Some(d.text())),
        ("scopes", Some(json!(["changeset", "new"]))),
        ("status", Some(operation_status(d))),
        ("error", d.maybe_null(error)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

fn operation_status(d: &mut Dice) -> Value {
    json!(d.pick(&["idle", "running", "error", "disabled", "new"]))
}

fn changeset_status(d: &mut Dice) -> Value {
    json!(d.pick(&["computing", "recomputing", "ready", "error", "new"]))
}

pub fn start_changeset(d: &mut Dice) -> Value {
    object([
        ("status", Some(changeset_status(d))),
        ("error", d.maybe(error)),
        ("files", Some(d.list(2, file))),
        ("operations", d.maybe(|d| d.list(2, operation))),
    ])
}

pub fn changeset_action(d: &mut Dice) -> Value {
    let name = |name: &str| Some(json!(format!("changeset/{name}")));
    match d.below(8) {
        0 => object([
            ("type", name("statusChanged")),
            ("status", Some(changeset_status(d))),
            ("error", d.maybe_null(error)),
        ]),
        1 => object([("type", name("fileSet")), ("file", Some(file(d)))]),
        2 => object([("type", name("fileRemoved")), ("fileId", Some(id(d)))]),
        3 => object([
            ("type", name("filesReviewChanged")),
            ("files", Some(d.list(3, id))),
            ("reviewed", Some(json!(d.flip()))),
        ]),
        4 => object([
            ("type", name("contentChanged")),
            ("files", Some(d.list(3, file))),
            ("operations", d.maybe_null(|d| d.list(2, operation))),
        ]),
        5 => object([
            ("type", name("operationsChanged")),
            ("operations", d.maybe_null(|d| d.list(2, operation))),
        ]),
        6 => object([
            ("type", name("operationStatusChanged")),
            ("operationId", Some(id(d))),
            ("status", Some(operation_status(d))),
            ("error", d.maybe_null(error)),
        ]),
        _ => object([("type", name("cleared"))]),
    }
}

fn origin(d: &mut Dice) -> Value {
    object([
        ("session", Some(json!("ahp-session:/1"))),
        ("chat", d.maybe_null(|_| json!("ahp-chat:/1"))),
        ("turnId", d.maybe_null(Dice::text)),
    ])
}

fn range(d: &mut Dice) -> Value {
    let at = |line: usize| json!({"line": line, "character": 0});
    json!({"start": at(d.below(3)), "end": at(3)})
}

fn entry(d: &mut Dice) -> Value {
    object([
        ("id", Some(id(d))),
        ("text", Some(d.markdown())),
        ("_meta", d.maybe_null(Dice::meta)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

fn annotation(d: &mut Dice) -> Value {
    object([
        ("id", Some(id(d))),
        ("origin", Some(origin(d))),
        ("resource", Some(json!("file:///f"))),
        ("range", d.maybe_null(range)),
        ("resolved", Some(json!(d.flip()))),
        ("entries", Some(d.list(2, entry))),
        ("_meta", d.maybe_null(Dice::meta)),
        ("x-test", d.maybe(Dice::text)),
    ])
}

pub fn start_annotations(d: &mut Dice) -> Value {
    json!({"annotations": d.list(2, annotation)})
}

pub fn annotations_action(d: &mut Dice) -> Value {
    let name = |name: &str| Some(json!(format!("annotations/{name}")));
    match d.below(6) {
        0 | 1 => object([("type", name("set")), ("annotation", Some(annotation(d)))]),
        2 => object([
            ("type", name("updated")),
            ("annotationId", Some(id(d))),
            ("origin", d.maybe_null(origin)),
            ("resource", d.maybe_null(|d| json!(d.pick(&["file:///f", "file:///g"])))),
            ("range", d.maybe_null(range)),
            ("resolved", d.maybe_null(|d| json!(d.flip()))),
        ]),
        3 => object([("type", name("removed")), ("annotationId", Some(id(d)))]),
        4 => object([
            ("type", name("entrySet")),
            ("annotationId", Some(id(d))),
            ("entry", Some(entry(d))),
        ]),
        _ => object([
            ("type", name("entryRemoved")),
            ("annotationId", Some(id(d))),
            ("entryId", Some(id(d))),
        ]),
    }
}

fn claim(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"kind": "client", "clientId": "ann"}),
        json!({"kind": "session", "session": "ahp-session:/1", "chat": "ahp-chat:/1", "turnId": "t"}),
    ])
}

fn part(d: &mut Dice) -> Value {
    let complete = d.flip();
    d.pick(&[
        json!({"type": "unclassified", "value": "before"}),
        json!({"type": "command", "commandId": "a", "commandLine": "ls", "output": "x", "timestamp": 1, "isComplete": complete}),
        json!({"type": "new-kind", "value": 1}),
    ])
}

pub fn start_terminal(d: &mut Dice) -> Value {
    object([
        ("title", Some(d.text())),
        ("cwd", d.maybe(|_| json!("file:///w"))),
        ("cols", d.maybe(|d| json!(d.below(200)))),
        ("rows", d.maybe(|d| json!(d.below(50)))),
        ("content", Some(d.list(3, part))),
        ("lifecycle", Some(json!({"status": "running"}))),
        ("claim", Some(claim(d))),
        ("supportsCommandDetection", d.maybe(|d| json!(d.flip()))),
        ("isPty", d.maybe(|d| json!(d.flip()))),
    ])
}

pub fn terminal_action(d: &mut Dice) -> Value {
    let name = |name: &str| Some(json!(format!("terminal/{name}")));
    match d.below(12) {
        0 | 1 => object([("type", name("data")), ("data", Some(d.text()))]),
        2 => object([("type", name("input")), ("data", Some(d.text()))]),
        3 => object([
            ("type", name("resized")),
            ("cols", Some(json!(d.below(3)))),
            ("rows", Some(json!(d.below(3)))),
        ]),
        4 => object([("type", name("claimed")), ("claim", Some(claim(d)))]),
        5 => object([("type", name("titleChanged")), ("title", Some(d.text()))]),
        6 => object([("type", name("cwdChanged")), ("cwd", Some(d.text()))]),
        7 => object([("type", name("exited")), ("exitCode", d.maybe_null(|d| json!(d.below(3))))]),
        8 => object([("type", name("cleared"))]),
        9 => object([("type", name("commandDetectionAvailable"))]),
        10 => object([
            ("type", name("commandExecuted")),
            ("commandId", Some(id(d))),
            ("commandLine", Some(d.text())),
            ("timestamp", Some(json!(d.below(3)))),
        ]),
        _ => object([
            ("type", name("commandFinished")),
            ("commandId", Some(id(d))),
            ("exitCode", d.maybe_null(|d| json!(d.below(3)))),
            ("durationMs", d.maybe_null(|d| json!(d.below(3)))),
        ]),
    }
}

pub fn start_watch(d: &mut Dice) -> Value {
    object([
        ("root", Some(json!("file:///w"))),
        ("recursive", Some(json!(d.flip()))),
        ("excludes", d.maybe(|_| json!({"items": ["target"]}))),
    ])
}

pub fn watch_action(d: &mut Dice) -> Value {
    let change = |d: &mut Dice| json!({"uri": "file:///w/f", "type": d.pick(&["added", "updated", "deleted"])});
    json!({"type": "resourceWatch/changed", "changes": {"items": d.list(2, change)}})
}
