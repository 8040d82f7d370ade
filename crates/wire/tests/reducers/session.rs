//! Roots, sessions and their actions, small enough in ids that they hit each other.

use serde_json::{Value, json};

use crate::chat::{input_request, status, tool_call};
use crate::dice::{Dice, object};

const CHATS: [&str; 3] = ["ahp-chat:/1", "ahp-chat:/2", "ahp-chat:/3"];

fn config(d: &mut Dice) -> Value {
    object([
        ("a", d.maybe(|d| json!(d.below(3)))),
        ("b", d.maybe(|_| Value::Null)),
        ("c", d.maybe(Dice::text)),
    ])
}

fn config_state(d: &mut Dice) -> Value {
    json!({"schema": {"type": "object", "properties": {}}, "values": config(d), "x-test": 1})
}

fn config_action(d: &mut Dice, name: &str) -> Value {
    object([
        ("type", Some(json!(name))),
        ("config", Some(config(d))),
        ("replace", d.maybe_null(|d| json!(d.flip()))),
    ])
}

fn agent(d: &mut Dice) -> Value {
    json!({"provider": d.text(), "displayName": "n", "description": "d", "models": [], "x-test": 1})
}

fn terminal(d: &mut Dice) -> Value {
    json!({
        "resource": "ahp-terminal:/1",
        "title": d.text(),
        "claim": {"kind": "client", "clientId": "ann"},
        "lifecycle": {"status": "running"},
    })
}

pub fn start_root(d: &mut Dice) -> Value {
    object([
        ("agents", Some(d.list(2, agent))),
        ("activeSessions", d.maybe(|d| json!(d.below(3)))),
        ("terminals", d.maybe(|d| d.list(2, terminal))),
        ("config", d.maybe(config_state)),
        ("_meta", d.maybe(Dice::meta)),
    ])
}

pub fn root_action(d: &mut Dice) -> Value {
    match d.below(5) {
        0 => json!({"type": "root/agentsChanged", "agents": d.list(2, agent)}),
        1 => json!({"type": "root/activeSessionsChanged", "activeSessions": d.below(3)}),
        2 => json!({"type": "root/terminalsChanged", "terminals": d.list(2, terminal)}),
        _ => config_action(d, "root/configChanged"),
    }
}

fn summary(d: &mut Dice, chat: &str) -> Value {
    let mut summary = object([
        ("resource", Some(json!(chat))),
        ("title", Some(d.text())),
        ("status", Some(json!(status(d)))),
        ("modifiedAt", Some(d.text())),
    ]);
    if let (Value::Object(summary), Value::Object(more)) = (&mut summary, summary_fields(d)) {
        summary.extend(more);
    }
    summary
}

fn summary_fields(d: &mut Dice) -> Value {
    object([
        ("activity", d.maybe_null(Dice::text)),
        ("changes", d.maybe_null(|d| json!({"files": d.below(3)}))),
        ("origin", d.maybe_null(|d| d.pick(&[json!({"kind": "user"}), json!({"kind": "new"})]))),
        ("movable", d.maybe_null(|d| json!(d.flip()))),
        ("interactivity", d.maybe_null(|d| json!(d.pick(&["full", "read-only"])))),
        ("workingDirectories", d.maybe_null(|d| d.list(2, directory))),
    ])
}

fn directory(d: &mut Dice) -> Value {
    json!(d.pick(&["file:///a", "file:///b", "file:///c"]))
}

fn active_client(d: &mut Dice) -> Value {
    let plugin = |d: &mut Dice| json!({"type": "plugin", "id": d.text(), "uri": "u", "name": "n"});
    object([
        ("clientId", Some(json!(d.pick(&["ann", "bob"])))),
        ("displayName", d.maybe_null(Dice::text)),
        ("tools", Some(d.list(2, |d| json!({"name": d.text()})))),
        ("customizations", d.maybe_null(|d| d.list(1, plugin))),
        ("x-test", d.maybe(Dice::text)),
    ])
}

fn enablement(d: &mut Dice) -> Value {
    d.list(2, |d| {
        let enabled = d.flip();
        d.pick(&[
            json!({"kind": "session", "enabled": enabled}),
            json!({"kind": "workspace", "uri": "u", "enabled": enabled}),
            json!({"kind": "workspace", "enabled": enabled}),
            json!({"kind": "global", "enabled": enabled}),
            json!({"kind": "new-kind", "enabled": enabled}),
        ])
    })
}

fn mcp_state(d: &mut Dice) -> Value {
    d.pick(&[
        json!({"kind": "starting"}),
        json!({"kind": "starting", "blocking": true}),
        json!({"kind": "starting", "blocking": true}),
        json!({"kind": "starting", "blocking": true}),
        json!({"kind": "starting", "blocking": false}),
        json!({"kind": "ready"}),
        json!({"kind": "stopped"}),
        json!({"kind": "new-kind", "blocking": true}),
        json!({"kind": "error", "error": {"errorType": "e", "message": "m"}}),
    ])
}

fn mcp_server(d: &mut Dice) -> Value {
    object([
        ("type", Some(json!("mcpServer"))),
        ("id", Some(json!(d.pick(&IDS)))),
        ("uri", Some(json!("u"))),
        ("name", Some(json!("n"))),
        ("state", Some(mcp_state(d))),
        ("channel", d.maybe(Dice::text)),
        ("enablement", d.maybe(enablement)),
    ])
}

const IDS: [&str; 4] = ["x1", "x2", "x3", "x4"];

fn child(d: &mut Dice) -> Value {
    let kind = d.pick(&["agent", "skill", "prompt", "rule", "hook", "mcpServer", "plugin", "new"]);
    if kind == "mcpServer" {
        return mcp_server(d);
    }
    object([
        ("type", Some(json!(kind))),
        ("id", Some(json!(d.pick(&IDS)))),
        ("uri", Some(json!("u"))),
        ("name", Some(json!("n"))),
        ("enabled", d.maybe(|d| json!(d.flip()))),
    ])
}

fn customization(d: &mut Dice) -> Value {
    let kind = d.pick(&["plugin", "directory", "mcpServer", "new"]);
    if kind == "mcpServer" {
        return mcp_server(d);
    }
    let mut container = object([
        ("type", Some(json!(kind))),
        ("id", Some(json!(d.pick(&IDS)))),
        ("uri", Some(json!("u"))),
        ("name", Some(json!("n"))),
        ("children", d.maybe(|d| d.list(3, child))),
        ("x-test", d.maybe(Dice::text)),
    ]);
    if kind == "directory" {
        container["enabled"] = json!(d.flip());
        container["contents"] = json!("skill");
        container["writable"] = json!(false);
    }
    container
}

fn input_needed(d: &mut Dice) -> Value {
    let id = d.pick(&["n1", "n2", "n3"]);
    let chat = d.pick(&CHATS);
    match d.below(6) {
        0 => json!({"kind": "chatInput", "id": id, "chat": chat, "request": input_request(d)}),
        1 => json!({
            "kind": "toolConfirmation", "id": id, "chat": chat, "turnId": "t1",
            "toolCall": tool_call(d, "pending-confirmation"),
        }),
        2 | 3 => json!({
            "kind": "toolClientExecution", "id": id, "chat": chat, "turnId": "t1",
            "clientId": "ann", "toolCall": tool_call(d, "running"),
        }),
        4 => json!({"kind": "new-kind", "id": id}),
        _ => json!({"kind": "new-kind"}),
    }
}

pub fn start(d: &mut Dice) -> Value {
    let (first, second) = (summary(d, CHATS[0]), summary(d, CHATS[1]));
    object([
        ("provider", Some(json!("scripted"))),
        ("title", Some(d.text())),
        ("status", Some(json!(status(d)))),
        ("lifecycle", Some(json!(d.pick(&["creating", "ready", "failed", "new"])))),
        ("activity", d.maybe(Dice::text)),
        ("workingDirectories", d.maybe(|d| d.list(3, directory))),
        ("activeClients", Some(d.list(1, active_client))),
        ("chats", Some(json!([first, second]))),
        ("defaultChat", d.maybe(|d| json!(d.pick(&CHATS)))),
        ("config", d.maybe(config_state)),
        ("customizations", d.maybe(|d| d.list(3, customization))),
        ("inputNeeded", d.maybe(|d| json!([input_needed(d)]))),
        ("_meta", d.maybe(Dice::meta)),
    ])
}

pub fn action(d: &mut Dice) -> Value {
    match d.below(4) {
        0 => chat_list_action(d),
        1 => customization_action(d),
        2 => field_action(d),
        _ => member_action(d),
    }
}

fn chat_list_action(d: &mut Dice) -> Value {
    let chat = d.pick(&CHATS);
    match d.below(6) {
        0 | 1 => json!({"type": "session/chatAdded", "summary": summary(d, chat)}),
        2 => json!({"type": "session/chatRemoved", "chat": chat}),
        3 => {
            let mut changes = summary_fields(d);
            if d.flip() {
                changes["title"] = d.text();
                changes["status"] = json!(status(d));
            }
            json!({"type": "session/chatUpdated", "chat": chat, "changes": changes})
        }
        4 => {
            let orders = [
                json!(CHATS),
                json!([CHATS[2], CHATS[0], CHATS[1]]),
                json!([CHATS[1], CHATS[0]]),
                json!([CHATS[0], CHATS[0]]),
                json!([CHATS[1], CHATS[2]]),
            ];
            json!({"type": "session/chatsReordered", "chats": d.pick(&orders)})
        }
        _ => object([
            ("type", Some(json!("session/defaultChatChanged"))),
            ("defaultChat", d.maybe_null(|_| json!(chat))),
        ]),
    }
}

fn customization_action(d: &mut Dice) -> Value {
    let id = Some(json!(d.pick(&IDS)));
    let (name, fields) = match d.below(9) {
        0 => {
            let list = d.list(3, customization);
            return json!({"type": "session/customizationsChanged", "customizations": list});
        }
        1 => {
            let customization = customization(d);
            return json!({"type": "session/customizationUpdated", "customization": customization});
        }
        2 | 3 => ("customizationToggled", [("enablement", Some(enablement(d))), ("", None)]),
        4 => ("customizationRemoved", [("", None), ("", None)]),
        5 => {
            let state = mcp_state(d);
            let channel = d.maybe_null(Dice::text);
            ("mcpServerStateChanged", [("state", Some(state)), ("channel", channel)])
        }
        6 => ("mcpServerStartRequested", [("", None), ("", None)]),
        7 => ("mcpServerStopRequested", [("", None), ("", None)]),
        _ => ("mcpServerBackgroundRequested", [("", None), ("", None)]),
    };
    let [first, second] = fields;
    object([("type", Some(json!(format!("session/{name}")))), ("id", id), first, second])
}

fn field_action(d: &mut Dice) -> Value {
    let error = json!({"errorType": "e", "message": d.text(), "x-test": 1});
    let (name, field) = match d.below(10) {
        0 => ("ready", ("", None)),
        1 => ("creationFailed", ("error", Some(error))),
        2 => ("titleChanged", ("title", Some(d.text()))),
        3 => ("isReadChanged", ("isRead", Some(json!(d.flip())))),
        4 => ("isArchivedChanged", ("isArchived", Some(json!(d.flip())))),
        5 => ("activityChanged", ("activity", d.maybe_null(Dice::text))),
        6 => {
            let changeset = |d: &mut Dice| {
                d.list(1, |d| json!({"label": d.text(), "uriTemplate": "u", "changeKind": "k"}))
            };
            ("changesetsChanged", ("changesets", d.maybe_null(changeset)))
        }
        7 => return config_action(d, "session/configChanged"),
        8 => ("metaChanged", ("_meta", d.maybe_null(Dice::meta))),
        _ => {
            let tools = d.list(2, |d| json!({"name": d.text(), "x-test": 1}));
            ("serverToolsChanged", ("tools", Some(tools)))
        }
    };
    object([("type", Some(json!(format!("session/{name}")))), field])
}

fn member_action(d: &mut Dice) -> Value {
    match d.below(8) {
        0 | 1 => json!({"type": "session/activeClientSet", "activeClient": active_client(d)}),
        2 => json!({"type": "session/activeClientRemoved", "clientId": d.pick(&["ann", "bob"])}),
        3 => json!({"type": "session/workingDirectorySet", "directory": directory(d)}),
        4 => json!({"type": "session/workingDirectoryRemoved", "directory": directory(d)}),
        5 => json!({
            "type": "session/workingDirectoryReplaced",
            "directory": directory(d),
            "replacement": directory(d),
        }),
        6 => json!({"type": "session/inputNeededSet", "request": input_needed(d)}),
        _ => json!({"type": "session/inputNeededRemoved", "id": d.pick(&["n1", "n2", "n3"])}),
    }
}
