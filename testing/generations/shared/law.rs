//! What this version's own types and reducers make of what they are sent is what they are told; and their closed enums are those
//! that the host thinks they are.

use laws::wire::compat::closed_enums::CLOSED_ENUMS;
use laws::wire::compat::{self, SnapshotOf};
use laws::wire::methods::HostNotification;
use laws::{Judge, generation_of};
use serde_json::{Value, json};

use super::super::VERSION;
use super::super::ahp::reducers::{
    apply_action_to_annotations, apply_action_to_changeset, apply_action_to_chat,
    apply_action_to_root, apply_action_to_session, apply_action_to_terminal,
};
use super::super::ahp_types::actions::StateAction;
use super::super::ahp_types::commands::SubscribeResult;
use super::super::ahp_types::state::{
    AnnotationsState, ChangesetOperationStatus, ChangesetState, ChangesetStatus, ChatState,
    ConfirmationOptionKind, McpAuthRequiredReason, MessageKind, RootState, SessionLifecycle,
    SessionState, TerminalState, ToolCallConfirmationReason, ToolCallState,
};
use super::judge::judge;

/// What is sent leads to what a newcomer is told, by this version's types and reducers.
macro_rules! laws {
    ($($test:ident: $holds:ident, $state:ident, $apply:ident;)+) => {
        $(
            #[test]
            fn $test() {
                laws::$holds(&Judge::<$state, StateAction> {
                    version: VERSION,
                    apply: |state, action| {
                        $apply(state, action);
                    },
                    is_unknown: |action| matches!(action, StateAction::Unknown(_)),
                });
            }
        )+
    };
}

laws! {
    the_law_holds_for_roots: holds_for_root, RootState, apply_action_to_root;
    the_law_holds_for_sessions: holds_for_session, SessionState, apply_action_to_session;
    the_law_holds_for_chats: holds_for_chat, ChatState, apply_action_to_chat;
    the_law_holds_for_changesets: holds_for_changeset, ChangesetState, apply_action_to_changeset;
    the_law_holds_for_annotations: holds_for_annotations, AnnotationsState, apply_action_to_annotations;
    the_law_holds_for_terminals: holds_for_terminal, TerminalState, apply_action_to_terminal;
}

/// A session in the list, with all that 1.0 says of one.
fn summary() -> Value {
    json!({"resource": "s:/1", "provider": "p", "title": "T", "status": 1, "activity": "busy",
        "createdAt": "2026-01-01T00:00:00.000Z", "modifiedAt": "2026-01-01T00:00:01.000Z",
        "project": {"uri": "file:///p", "displayName": "P"}, "workingDirectories": ["file:///a", "file:///b"],
        "changes": {"additions": 1, "deletions": 2, "files": 3}, "annotations": {"resource": "s:/1/annotations", "annotationCount": 1, "entryCount": 2},
        "chats": [{"resource": "ahp-chat:/1", "title": "C", "status": 1, "modifiedAt": "2026-01-01T00:00:00.000Z"}], "defaultChat": "ahp-chat:/1",
        "_meta": {"x-selection": {"model": {"id": "m", "config": {"n": 3}}, "agent": {"uri": "file:///agent.md"}}}})
}

/// Each notification in the form of this version is read by this version's own types; 0.4 has one less.
#[test]
fn notifications_are_read() {
    let resource = json!({"resource": "https://api.example", "resource_name": "A", "required": true, "scopes_supported": ["s"],
        "authorization_servers": ["https://login.example"], "bearer_methods_supported": ["header"]});
    let samples = [
        (HostNotification::SessionAdded, json!({"summary": summary()})),
        (HostNotification::SessionRemoved, json!({"session": "s:/1"})),
        (HostNotification::SessionSummaryChanged, json!({"session": "s:/1", "changes": summary()})),
        (
            HostNotification::Progress,
            json!({"progressToken": "t", "progress": 1, "total": 2, "message": "m"}),
        ),
        (HostNotification::AuthRequired, json!({"resource": resource, "reason": "expired"})),
        (
            HostNotification::AuthRequired,
            json!({"resource": {"resource": "https://api.example"}, "reason": "required"}),
        ),
        (HostNotification::ExportLogs, json!({"payload": {"resourceLogs": []}})),
        (HostNotification::ExportTraces, json!({"payload": {"resourceSpans": []}})),
        (HostNotification::ExportMetrics, json!({"payload": {"resourceMetrics": []}})),
    ];
    for notification in HostNotification::ALL {
        let mut known = samples.iter().map(|(sample, _)| sample);
        // Actions are judged by the laws above.
        assert!(*notification == HostNotification::Action || known.any(|it| it == notification));
    }
    for (notification, mut params) in samples {
        params["channel"] = json!("ahp-root://");
        match compat::down_notification(generation_of(VERSION), notification, params) {
            Some(told) => {
                let read = judge(notification.name(), &told);
                assert_eq!(read, Ok(()), "{VERSION} {told}");
            }
            None => assert_eq!((VERSION, notification), ("0.4.0", HostNotification::Progress)),
        }
    }
}

/// Whether a type reads a value.
type Reads = fn(Value) -> bool;

/// The published enums that the host's table names, by their names.
macro_rules! published {
    ($($name:ident),+ $(,)?) => {
        [$((stringify!($name), (|value| serde_json::from_value::<$name>(value).is_ok()) as Reads)),+]
    };
}

#[test]
fn closed_enums_are_what_the_host_takes_them_for() {
    let published = published![
        MessageKind,
        SessionLifecycle,
        ToolCallConfirmationReason,
        ConfirmationOptionKind,
        McpAuthRequiredReason,
        ChangesetStatus,
        ChangesetOperationStatus,
    ];
    assert_eq!(published.len(), CLOSED_ENUMS.len());
    for (name, reads) in published {
        let row = CLOSED_ENUMS.iter().find(|row| row.name == name);
        let row = row.expect("a row for it");
        let is_closed = VERSION < "0.9";
        assert_eq!(reads(json!("x-made-up")), !is_closed, "{name}");
        if is_closed {
            for known in row.known {
                assert!(reads(json!(known)) && row.fit(known) == *known, "{name} {known}");
            }
            assert!(reads(json!(row.fit("x-made-up"))), "{name}");
            for (newer, _) in row.renamed {
                assert!(!reads(json!(newer)) && reads(json!(row.fit(newer))), "{name} {newer}");
            }
        }
    }
}

/// A snapshot with values that somebody made up is read, and its tool call is one.
#[test]
fn values_that_somebody_made_up_break_no_snapshot() {
    let message = json!({"text": "", "origin": {"kind": "x-made-up"}});
    let call = json!({"status": "completed", "toolCallId": "c", "toolName": "n", "displayName": "d", "invocationMessage": "i",
        "confirmed": "x-made-up", "success": true, "pastTenseMessage": "p",
        "selectedOption": {"id": "o", "label": "l", "kind": "x-made-up"}});
    let turn = json!({"id": "t", "state": "complete", "message": message, "responseParts": [{"kind": "toolCall", "toolCall": call}]});
    let mut chat = json!({"resource": "ahp-chat:/1", "title": "", "status": 1, "modifiedAt": "2026-01-01T00:00:00.000Z",
        "turns": [turn], "draft": message, "queuedMessages": [{"id": "q", "message": message}]});
    let Value::Object(state) = &mut chat else { unreachable!("an object") };
    compat::down_state(generation_of(VERSION), SnapshotOf::Chat, state);
    let call = chat["turns"][0]["responseParts"][0]["toolCall"].clone();
    let result = json!({"snapshot": {"resource": "ahp-chat:/1", "fromSeq": 1, "state": chat}});
    let read: Result<SubscribeResult, _> = serde_json::from_value(result);
    assert!(read.is_ok(), "{:?}", read.err());
    let call: ToolCallState = serde_json::from_value(call).expect("a call");
    assert!(matches!(call, ToolCallState::Completed(_)), "{call:?}");
}
