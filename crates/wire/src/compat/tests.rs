//! Each step alone, on the shapes that it changes.

use serde_json::json;

use super::*;
use crate::state::ChatState;

pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

fn action(value: Value) -> Action {
    Action::from_record(value).expect("an action")
}

pub(super) fn down(generation: Generation, value: Value, after: AfterAction) -> Vec<Value> {
    let sent = action(value);
    match down_action(generation, &sent, after) {
        OlderForm::Same => vec![Value::Object(sent.body)],
        OlderForm::Instead(actions) => actions.into_iter().map(Value::Object).collect(),
    }
}

fn up(generation: Generation, mut value: Value, chat: Option<&ChatState>) -> Value {
    let receiving = Receiving {
        client_id: "c",
        now: Timestamp(5_000),
        session: None,
        chat,
        owner: Some("x:/s"),
        default_chat: Some("x:/c"),
    };
    up_action(generation, &mut value, &receiving);
    value
}

fn session(value: Value) -> SessionState {
    let mut whole = json!({"provider": "p", "title": "T", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": []});
    object_into(&mut whole, value);
    SessionState::from_value(whole).expect("a session")
}

fn object_into(whole: &mut Value, more: Value) {
    for (field, value) in object(more) {
        whole[field] = value;
    }
}

#[test]
fn steps_go_from_the_newest_version_to_the_oldest() {
    let versions: Vec<Generation> = STEPS.iter().map(|step| step.to).collect();
    let expected: Vec<Generation> = Generation::ALL.into_iter().rev().skip(1).collect();
    assert_eq!(versions, expected);
    assert_eq!(steps(Generation::V1_0).count(), 0);
    assert_eq!(steps(Generation::V0_7).count(), 3);
}

#[test]
fn the_stream_of_a_turn_is_the_same_for_everyone() {
    for generation in Generation::ALL {
        for kind in [
            ActionKind::ChatDelta,
            ActionKind::ChatReasoning,
            ActionKind::ChatResponsePart,
            ActionKind::ChatToolCallStart,
            ActionKind::ChatTurnComplete,
        ] {
            assert!(is_same(generation, kind), "{generation:?} {kind:?}");
        }
    }
    assert!(!is_same(Generation::V0_8, ActionKind::ChatError));
    assert!(is_same(Generation::V0_9, ActionKind::ChatError));
    assert!(!is_same(Generation::V0_9, ActionKind::ChatIsReadChanged));
}

#[test]
fn what_a_version_has_no_word_for_is_not_sent() {
    let read = json!({"type": "chat/isReadChanged", "isRead": true});
    assert_eq!(down(Generation::V0_9, read, AfterAction::Root), Vec::<Value>::new());
    let sign_in = json!({"type": "session/inputNeededSet", "request": {"kind": "toolAuthentication", "id": "i"}});
    // It may have been something else before, under the same id.
    let gone = json!({"type": "session/inputNeededRemoved", "id": "i"});
    assert_eq!(down(Generation::V0_5_2, sign_in.clone(), AfterAction::Root), vec![gone]);
    assert_eq!(down(Generation::V0_6, sign_in.clone(), AfterAction::Root), vec![sign_in]);
    let chosen =
        json!({"type": "x-session/selectionSet", "model": {"id": "m", "config": {"n": 3}}});
    assert_eq!(down(Generation::V0_5_0, chosen.clone(), AfterAction::Root), Vec::<Value>::new());
    let told = json!({"type": "session/modelChanged", "model": {"id": "m", "config": {"n": "3"}}});
    assert_eq!(down(Generation::V0_4, chosen, AfterAction::Root), vec![told]);
}

#[test]
fn an_error_stands_beside_the_parts_of_its_turn() {
    let error = json!({"errorType": "e", "message": "m"});
    let sent = json!({"type": "chat/error", "turnId": "t", "duration": 1, "part": {"kind": "error", "error": error, "resumable": true}});
    assert_eq!(
        down(Generation::V0_8, sent, AfterAction::Root),
        vec![json!({"type": "chat/error", "turnId": "t", "duration": 1, "error": error})]
    );
    let turn = json!({"id": "t", "state": "error", "message": {}, "responseParts": [
        {"kind": "markdown", "id": "p", "content": "x"}, {"kind": "error", "error": error}]});
    let older = down_turn(Generation::V0_8, turn);
    assert_eq!(older["error"], error);
    assert_eq!(older["responseParts"].as_array().map(Vec::len), Some(1));
    // A turn that was resumed and completed has forgotten its error.
    let resumed = json!({"id": "t", "state": "complete", "message": {}, "responseParts": [{"kind": "error", "error": error}]});
    let older = down_turn(Generation::V0_8, resumed);
    assert_eq!((older.get("error"), &older["responseParts"]), (None, &json!([])));
}

#[test]
fn a_resumed_turn_is_taken_back_and_told_again() {
    let chat = json!({"resource": "c", "title": "", "status": 1, "modifiedAt": "",
        "turns": [{"id": "a", "state": "complete", "message": {}, "responseParts": []}],
        "activeTurn": {"id": "t", "startedAt": "2026-01-01T00:00:00.000Z", "message": {"text": "go"}, "usage": {"inputTokens": 1},
            "responseParts": [{"kind": "markdown", "id": "p", "content": "x"}, {"kind": "error", "error": {}},
                {"kind": "inputRequest", "request": {"id": "q"}}]}});
    let chat = ChatState::from_value(chat).expect("a chat");
    let after = AfterAction::Chat(&chat);
    let names = |generation| -> Vec<String> {
        let sent = json!({"type": "chat/turnResume", "turnId": "t"});
        let actions = down(generation, sent, after);
        actions.iter().map(|action| action["type"].as_str().unwrap_or("").to_owned()).collect()
    };
    let told = [
        "chat/truncated",
        "chat/turnStarted",
        "chat/responsePart",
        "chat/inputRequested",
        "chat/usage",
    ];
    assert_eq!(names(Generation::V0_8), told);
    assert_eq!(names(Generation::V0_5_2), told);
    assert_eq!(names(Generation::V0_9), ["chat/turnResume"]);
}

#[test]
fn open_questions_stand_beside_the_turn() {
    let state = json!({"turns": [{"id": "a", "responseParts": [{"kind": "inputRequest", "request": {"id": "old"}}]}],
        "activeTurn": {"id": "t", "responseParts": [
            {"kind": "inputRequest", "request": {"id": "open"}},
            {"kind": "inputRequest", "request": {"id": "done"}, "response": "accept"}]}});
    let older = |generation| {
        let mut state = object(state.clone());
        down_state(generation, SnapshotOf::Chat, &mut state);
        Value::Object(state)
    };
    assert_eq!(older(Generation::V0_6), state);
    let then = older(Generation::V0_5_2);
    assert_eq!(then["inputRequests"], json!([{"id": "open"}]));
    assert_eq!(then["turns"][0]["responseParts"], json!([]));
    assert_eq!(then["activeTurn"]["responseParts"][0]["request"]["id"], "done");
    assert_eq!(older(Generation::V0_5_1)["activeTurn"]["responseParts"], json!([]));
}

#[test]
fn customizations_had_one_flag() {
    let decisions =
        json!([{"kind": "session", "enabled": false}, {"kind": "global", "enabled": true}]);
    let entry = json!({"type": "plugin", "id": "p", "enablement": decisions, "children": [{"type": "mcpServer", "id": "m"}, {"type": "skill", "id": "s", "enabled": false}]});
    let sent = json!({"type": "session/customizationsChanged", "customizations": [entry]});
    let older = down(Generation::V0_7, sent, AfterAction::Root);
    assert_eq!(
        older[0]["customizations"][0],
        json!({"type": "plugin", "id": "p", "enabled": false, "children": [
            {"type": "mcpServer", "id": "m", "enabled": true}, {"type": "skill", "id": "s", "enabled": false}]})
    );
    let toggled =
        json!({"type": "session/customizationToggled", "id": "p", "enablement": decisions});
    assert_eq!(
        down(Generation::V0_7, toggled, AfterAction::Root),
        vec![json!({"type": "session/customizationToggled", "id": "p", "enabled": false})]
    );
    // Upwards it is a decision for the session; those of a wider scope are the kernel's to keep.
    let toggled = json!({"type": "session/customizationToggled", "id": "p", "enabled": true});
    assert_eq!(
        up(Generation::V0_7, toggled, None),
        json!({"type": "session/customizationToggled", "id": "p",
            "enablement": [{"kind": "session", "enabled": true}], "x-sessionOnly": true})
    );
}

#[test]
fn a_replaced_directory_keeps_its_place() {
    let state = session(json!({"workingDirectories": ["a", "new", "c"]}));
    let sent = json!({"type": "session/workingDirectoryReplaced", "directory": "old", "replacement": "new"});
    let older = down(Generation::V0_7, sent.clone(), AfterAction::Session(&state));
    let told: Vec<String> = older
        .iter()
        .map(|action| {
            format!(
                "{} {}",
                action["type"]
                    .as_str()
                    .unwrap_or("")
                    .trim_start_matches("session/workingDirectory"),
                action["directory"].as_str().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(told, ["Removed old", "Removed new", "Removed c", "Set new", "Set c"]);
    assert_eq!(down(Generation::V0_6, sent, AfterAction::Session(&state)), Vec::<Value>::new());
}

#[test]
fn a_session_of_0_4_holds_its_summary() {
    let mut state = object(
        json!({"provider": "p", "title": "T", "status": 24, "lifecycle": "failed", "workingDirectories": ["file:///a", "file:///b"],
        "activeClients": [{"clientId": "x", "tools": []}, {"clientId": "y", "tools": []}], "inputNeeded": [{"id": "i"}],
        "chats": [{"resource": "r", "workingDirectories": ["file:///a"]}], "config": {"schema": {"properties": {"n": {"enum": [1, "two"]}}}, "values": {}},
        "_meta": {"x-selection": {"model": {"id": "m"}}}}),
    );
    let summary = object(
        json!({"createdAt": "1970-01-01T00:00:01.000Z", "modifiedAt": "1970-01-01T00:00:02.500Z"}),
    );
    let of = SnapshotOf::Session { resource: "s:/1", summary: &summary };
    down_state(Generation::V0_4, of, &mut state);
    let state = Value::Object(state);
    assert_eq!(
        state["summary"],
        json!({"resource": "s:/1", "provider": "p", "title": "T", "status": 1, "workingDirectory": "file:///a",
        "createdAt": 1000, "modifiedAt": 2500, "model": {"id": "m"}})
    );
    assert_eq!(state["lifecycle"], "creationFailed");
    assert_eq!(state["activeClient"]["clientId"], "x");
    assert_eq!(state["chats"][0], json!({"resource": "r", "workingDirectory": "file:///a"}));
    assert_eq!(state["config"]["schema"]["properties"]["n"]["enum"], json!(["1", "two"]));
    for gone in ["inputNeeded", "activeClients", "title", "workingDirectories"] {
        assert!(state.get(gone).is_none(), "{gone}");
    }
}

#[test]
fn one_client_is_active_for_0_4() {
    let state = session(
        json!({"activeClients": [{"clientId": "x", "tools": []}, {"clientId": "y", "tools": []}]}),
    );
    let set = |client: &str| json!({"type": "session/activeClientSet", "activeClient": {"clientId": client, "tools": []}});
    let after = AfterAction::Session(&state);
    let shown = json!({"type": "session/activeClientChanged", "activeClient": {"clientId": "x", "tools": []}});
    assert_eq!(down(Generation::V0_4, set("x"), after), vec![shown.clone()]);
    assert_eq!(down(Generation::V0_4, set("y"), after), Vec::<Value>::new());
    let left = json!({"type": "session/activeClientRemoved", "clientId": "z"});
    assert_eq!(down(Generation::V0_4, left, after), vec![shown]);
    assert_eq!(
        up(Generation::V0_4, json!({"type": "session/activeClientChanged"}), None),
        json!({"type": "session/activeClientRemoved", "clientId": "c"})
    );
    assert_eq!(
        up(
            Generation::V0_4,
            json!({"type": "session/activeClientToolsChanged", "tools": [1]}),
            None
        ),
        json!({"type": "session/activeClientSet", "activeClient": {"clientId": "c", "tools": [1]}})
    );
}

#[test]
fn older_actions_get_the_fields_they_lack() {
    let started = up(Generation::V0_5_2, json!({"type": "chat/turnStarted", "turnId": "t"}), None);
    assert_eq!(started["startedAt"], "1970-01-01T00:00:05.000Z");
    let chat = json!({"resource": "c", "title": "", "status": 1, "modifiedAt": "",
        "activeTurn": {"id": "t", "startedAt": "1970-01-01T00:00:01.000Z", "message": {}}});
    let chat = ChatState::from_value(chat).expect("a chat");
    let cancelled = json!({"type": "chat/turnCancelled", "turnId": "t"});
    assert_eq!(up(Generation::V0_5_2, cancelled.clone(), Some(&chat))["duration"], 4_000);
    assert_eq!(up(Generation::V0_6, cancelled.clone(), Some(&chat)), cancelled);
    let plugin = json!({"type": "session/activeClientSet", "activeClient": {"clientId": "c", "customizations": [{"id": "p", "enabled": false}]}});
    let now = up(Generation::V0_7, plugin, None);
    assert_eq!(
        now["activeClient"]["customizations"][0],
        json!({"id": "p", "enablement": [{"kind": "global", "enabled": false}], "type": "plugin"})
    );
}

#[test]
fn older_requests_say_the_same_with_newer_words() {
    let up = |generation, method, params: Value| {
        let mut params = params;
        up_params(generation, method, &mut params);
        params
    };
    assert_eq!(
        up(
            Generation::V0_4,
            Method::CreateSession,
            json!({"workingDirectory": "file:///a", "fork": {"session": "s", "turnId": "t"}, "model": {"id": "m"}})
        ),
        json!({"workingDirectories": ["file:///a"], "x-fork": {"session": "s", "turnId": "t"}, "x-selection": {"model": {"id": "m"}}})
    );
    assert_eq!(
        up(Generation::V0_6, Method::CreateChat, json!({"source": {"chat": "c", "turnId": "t"}})),
        json!({"source": {"chat": "c", "turnId": "t", "kind": "fork"}})
    );
    assert_eq!(
        up(Generation::V0_5_0, Method::FetchTurns, json!({"before": "t", "limit": 3})),
        json!({"cursor": "before:t", "x-limit": 3})
    );
    // What is of a wrong type is left to be refused, never read as if it were not there.
    assert_eq!(
        up(Generation::V0_5_0, Method::FetchTurns, json!({"before": 7})),
        json!({"cursor": 7})
    );
    assert_eq!(
        up(Generation::V0_6, Method::CreateSession, json!({"workingDirectory": 7})),
        json!({"workingDirectories": [7]})
    );
    let resolve = json!({"workingDirectory": "file:///a"});
    assert_eq!(up(Generation::V0_4, Method::ResolveSessionConfig, resolve.clone()), resolve);
    let params = json!({"cursor": "before:t"});
    assert_eq!(up(Generation::V0_5_1, Method::FetchTurns, params.clone()), params);
    assert_eq!(up(Generation::V1_0, Method::CreateSession, json!({"fork": 1})), json!({"fork": 1}));
}

#[test]
fn tool_calls_had_texts_and_blocks_of_their_own() {
    let ready = json!({"type": "chat/toolCallReady", "turnId": "t", "toolCallId": "c", "toolInput": {"uri": "u"}});
    let older = down(Generation::V0_6, ready, AfterAction::Root);
    assert_eq!(older[0]["toolInput"], "u");
    let delta = json!({"type": "chat/toolCallDelta", "turnId": "t", "toolCallId": "c"});
    assert_eq!(down(Generation::V0_6, delta, AfterAction::Root)[0]["content"], "");
    let complete = json!({"type": "chat/toolCallComplete", "turnId": "t", "toolCallId": "c", "result": {"success": true,
        "content": [{"type": "terminal", "resource": "r", "title": "T", "result": {"exitCode": 3, "preview": "p"}}]}});
    let blocks = |generation| {
        down(generation, complete.clone(), AfterAction::Root)[0]["result"]["content"].clone()
    };
    let terminal = json!({"type": "terminal", "resource": "r", "title": "T"});
    assert_eq!(
        blocks(Generation::V0_6),
        json!([terminal, {"type": "terminalComplete", "resource": "r", "exitCode": 3, "preview": "p"}])
    );
    assert_eq!(blocks(Generation::V0_5_1), json!([terminal]));
}

#[test]
fn annotations_named_a_turn_and_terminals_an_exit_code_in_0_8() {
    let origin = json!({"session": "x:/s", "turnId": "t1"});
    let annotation = json!({"id": "a", "origin": origin, "resource": "file:///f", "resolved": false, "entries": []});
    let set = json!({"type": "annotations/set", "annotation": annotation});
    let older = down(Generation::V0_8, set.clone(), AfterAction::Root);
    assert_eq!(older[0]["annotation"]["turnId"], "t1");
    assert!(older[0]["annotation"].get("origin").is_none());
    assert_eq!(down(Generation::V0_9, set.clone(), AfterAction::Root), [set]);
    assert_eq!(up(Generation::V0_8, older[0].clone(), None)["annotation"]["origin"], origin);
    let updated = json!({"type": "annotations/updated", "annotationId": "a", "resolved": true});
    assert_eq!(down(Generation::V0_8, updated.clone(), AfterAction::Root), vec![updated.clone()]);
    assert_eq!(up(Generation::V0_8, updated.clone(), None), updated);
    let mut whole_file =
        object(json!({"annotations": [{"id": "a", "origin": {"session": "x:/s"}}]}));
    down_state(Generation::V0_4, SnapshotOf::Plain(ChannelKind::Annotations), &mut whole_file);
    assert_eq!(whole_file["annotations"], json!([{"id": "a", "turnId": ""}]));
    let mut terminal = object(json!({"lifecycle": {"status": "exited", "exitCode": 3}}));
    down_state(Generation::V0_8, SnapshotOf::Plain(ChannelKind::Terminal), &mut terminal);
    assert_eq!(Value::Object(terminal), json!({"exitCode": 3}));
    let listed = json!({"type": "root/terminalsChanged", "terminals": [{"lifecycle": {"status": "running"}}]});
    assert_eq!(down(Generation::V0_7, listed, AfterAction::Root)[0]["terminals"], json!([{}]));
    let claim =
        json!({"type": "terminal/claimed", "claim": {"kind": "session", "session": "x:/s"}});
    assert_eq!(up(Generation::V0_8, claim, None)["claim"]["chat"], "x:/c");
    let status = json!({"type": "changeset/statusChanged", "status": "recomputing"});
    for generation in [Generation::V0_8, Generation::V0_9] {
        let older = down(generation, status.clone(), AfterAction::Root);
        assert_eq!(older[0]["status"], "computing", "{generation:?}");
        let mut state = object(json!({"status": "recomputing"}));
        let of = SnapshotOf::Plain(ChannelKind::Changeset);
        down_state(generation, of, &mut state);
        assert_eq!(state["status"], "computing", "{generation:?}");
    }
}
