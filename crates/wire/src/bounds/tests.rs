//! Each field and each bound of the table, at its largest and just over it.

use serde_json::{Value, json};

use super::*;
use crate::Action;

/// Every bound is its own small number, so that a mistaken one is seen.
fn limit(bound: Bound) -> usize {
    match bound {
        Bound::IdBytes => 10,
        Bound::UriBytes => 20,
        Bound::TitleBytes => 30,
        Bound::FieldBytes => 100,
        Bound::SelectionBytes => 150,
        Bound::AnswersBytes => 200,
        Bound::MessageBytes => 300,
        Bound::ActiveClientBytes => 400,
        Bound::ToolOutputBytes => 500,
        Bound::TransformSections => 2,
        Bound::Attachments => 3,
        Bound::ClientTools => 4,
        Bound::Answers => 5,
        Bound::Subscriptions => 6,
        Bound::WorkingDirectories => 7,
        Bound::ProtocolVersions => 8,
        Bound::ContentRefs => 2,
        Bound::Chats => 9,
        Bound::TurnBytes => 600,
        Bound::AnnotationEntries => 11,
        Bound::AnnotationBytes => 120,
        Bound::ReviewedFiles => 12,
    }
}

fn text(bytes: usize) -> Value {
    json!("x".repeat(bytes))
}

fn list(entries: usize) -> Value {
    json!(vec!["x"; entries])
}

fn action(kind: ActionKind, fields: Value) -> Result<(), String> {
    let Value::Object(fields) = fields else { panic!("an action has fields") };
    check_action(kind, &fields, limit).map_err(|over| over.to_string())
}

fn params(method: Method, params: Value) -> Result<(), String> {
    check_params(method, &params, limit).map_err(|over| over.to_string())
}

/// A value at a place in an object that is otherwise empty. `a.b[]` is the first entry of the list `b` in `a`.
fn at(path: &str, value: Value) -> Value {
    let mut whole = value;
    for step in path.rsplit('.') {
        match step.strip_suffix("[]") {
            Some(name) => whole = json!({name: [whole]}),
            None => whole = json!({step: whole}),
        }
    }
    whole
}

#[test]
fn every_text_that_is_too_long_is_named_with_its_bound() {
    use ActionKind as A;
    for (kind, path, bound) in [
        (A::SessionTitleChanged, "title", Bound::TitleBytes),
        (A::SessionTitleChanged, "strange", Bound::FieldBytes),
        (A::ChatTurnStarted, "turnId", Bound::IdBytes),
        (A::ChatTurnStarted, "message.text", Bound::MessageBytes),
        (A::ChatTurnStarted, "message.attachments[].label", Bound::MessageBytes),
        (A::ChatTurnStarted, "message.attachments[].uri", Bound::UriBytes),
        (A::ChatTurnStarted, "message.model", Bound::FieldBytes),
        (A::ChatTurnStarted, "_meta", Bound::FieldBytes),
        (A::ChatDraftChanged, "draft.text", Bound::MessageBytes),
        (A::ChatPendingMessageSet, "message.text", Bound::MessageBytes),
        (A::ChatToolCallConfirmed, "editedToolInput", Bound::MessageBytes),
        (A::ChatToolCallConfirmed, "userSuggestion.text", Bound::MessageBytes),
        (A::ChatToolCallConfirmed, "reasonMessage", Bound::FieldBytes),
        (A::ChatToolCallComplete, "result", Bound::ToolOutputBytes),
        (A::ChatToolCallContentChanged, "content", Bound::ToolOutputBytes),
        (A::ChatInputAnswerChanged, "answer", Bound::AnswersBytes),
        (A::ChatInputCompleted, "answers[]", Bound::AnswersBytes),
        (A::RootConfigChanged, "config", Bound::FieldBytes),
        (A::SessionConfigChanged, "config", Bound::FieldBytes),
        (A::SessionActiveClientSet, "activeClient.clientId", Bound::IdBytes),
        (A::SessionActiveClientSet, "activeClient.displayName", Bound::IdBytes),
        (A::SessionActiveClientSet, "activeClient.tools[]", Bound::ActiveClientBytes),
        (A::SessionActiveClientSet, "activeClient.customizations", Bound::ActiveClientBytes),
        (A::SystemMessageTransformSet, "sections[]", Bound::IdBytes),
        (A::ChatTruncated, "turnId", Bound::IdBytes),
        (A::Unknown, "strange", Bound::FieldBytes),
    ] {
        let over = limit(bound) + 1;
        let refused = action(kind, at(path, text(over))).unwrap_err();
        assert!(refused.contains(bound.name()), "{path}: {refused}");
        assert!(refused.contains(&limit(bound).to_string()), "{path}: {refused}");
        // Beside it stand its name, the names around it, and the type of the action.
        let within = limit(bound).saturating_sub(path.len() + 50);
        assert_eq!(action(kind, at(path, text(within))), Ok(()), "{path}");
    }
}

#[test]
fn every_field_of_a_request_has_a_bound() {
    use Method as M;
    for (method, path, bound) in [
        (M::Initialize, "locale", Bound::IdBytes),
        (M::Initialize, "clientInfo", Bound::FieldBytes),
        (M::Initialize, "capabilities", Bound::FieldBytes),
        (M::Initialize, "_meta.other", Bound::FieldBytes),
        (M::Initialize, "initialSubscriptions[]", Bound::UriBytes),
        (M::Initialize, "protocolVersions[]", Bound::IdBytes),
        (M::Reconnect, "subscriptions[]", Bound::UriBytes),
        (M::Reconnect, "clientId", Bound::IdBytes),
        (M::CreateSession, "config", Bound::FieldBytes),
        (M::CreateSession, "workingDirectories[]", Bound::UriBytes),
        (M::CreateSession, "activeClient.tools[]", Bound::ActiveClientBytes),
        (M::CreateSession, "progressToken", Bound::IdBytes),
        (M::CreateChat, "initialMessage.text", Bound::MessageBytes),
        (M::CreateChat, "source.selection", Bound::SelectionBytes),
        (M::Completions, "text", Bound::MessageBytes),
        (M::ListSessions, "cursor", Bound::IdBytes),
        (M::ResourceRead, "uri", Bound::UriBytes),
        (M::Subscribe, "view", Bound::FieldBytes),
    ] {
        let over = limit(bound) + 1;
        let refused = params(method, at(path, text(over))).unwrap_err();
        assert!(refused.contains(bound.name()), "{path}: {refused}");
        let within = limit(bound).saturating_sub(path.len());
        assert_eq!(params(method, at(path, text(within))), Ok(()), "{path}");
    }
}

#[test]
fn what_is_imported_is_bounded_like_what_clients_send() {
    let session = |session: Value| {
        let session = session.as_object().unwrap().clone();
        check_imported_session(&session, limit).map_err(|over| over.to_string())
    };
    let turn = |turn: Value| {
        let turn = turn.as_object().unwrap().clone();
        check_imported_turn(&turn, limit).map_err(|over| over.to_string())
    };
    for (path, bound) in [
        ("title", Bound::TitleBytes),
        ("workingDirectories[]", Bound::UriBytes),
        ("chats[].title", Bound::TitleBytes),
        ("chats[].workingDirectories[]", Bound::UriBytes),
        ("chats[].origin", Bound::SelectionBytes),
        ("chats[].strange", Bound::FieldBytes),
        ("strange", Bound::FieldBytes),
    ] {
        let refused = session(at(path, text(limit(bound) + 1))).unwrap_err();
        assert!(refused.contains(bound.name()), "{path}: {refused}");
        let within = limit(bound).saturating_sub(path.len());
        assert_eq!(session(at(path, text(within))), Ok(()), "{path}");
    }
    for (path, bound) in
        [("workingDirectories", Bound::WorkingDirectories), ("chats", Bound::Chats)]
    {
        let refused = session(at(path, list(limit(bound) + 1))).unwrap_err();
        assert!(refused.contains(bound.name()), "{path}: {refused}");
    }
    for (path, bound) in [
        ("id", Bound::IdBytes),
        ("message.text", Bound::MessageBytes),
        ("usage", Bound::FieldBytes),
        ("responseParts[].content", Bound::TurnBytes),
    ] {
        let refused = turn(at(path, text(limit(bound) + 1))).unwrap_err();
        assert!(refused.contains(bound.name()), "{path}: {refused}");
    }
}

#[test]
fn what_is_counted_is_taken_up_to_its_bound() {
    for (bound, check) in [
        (
            Bound::Attachments,
            (|entries| {
                let attachments = vec![json!({"type": "simple"}); entries];
                let message = json!({"text": "t", "attachments": attachments});
                action(ActionKind::ChatTurnStarted, json!({"message": message}))
            }) as fn(usize) -> Result<(), String>,
        ),
        (Bound::ClientTools, |entries| {
            let client = json!({"activeClient": {"tools": list(entries)}});
            action(ActionKind::SessionActiveClientSet, client)
        }),
        (Bound::TransformSections, |entries| {
            let meta = json!({"x-systemMessageTransform": {"sections": list(entries)}});
            params(Method::Initialize, json!({"_meta": meta}))
        }),
        (Bound::Answers, |entries| {
            let answers: Object = (0..entries).map(|index| (index.to_string(), json!(1))).collect();
            action(ActionKind::ChatInputCompleted, json!({"answers": answers}))
        }),
        (Bound::Subscriptions, |entries| {
            params(Method::Reconnect, json!({"subscriptions": list(entries)}))
        }),
        (Bound::WorkingDirectories, |entries| {
            params(Method::CreateSession, json!({"workingDirectories": list(entries)}))
        }),
        (Bound::ProtocolVersions, |entries| {
            params(Method::Initialize, json!({"protocolVersions": list(entries)}))
        }),
        (Bound::ContentRefs, |entries| {
            let message = json!({"text": "ahp-content:/sha256/ ".repeat(entries)});
            action(ActionKind::ChatTurnStarted, json!({"message": message}))
        }),
    ] {
        let most = limit(bound);
        assert_eq!(check(most), Ok(()), "{bound:?}");
        let refused = check(most + 1).unwrap_err();
        assert!(refused.contains(bound.name()), "{refused}");
    }
}

#[test]
fn fields_that_nobody_knows_share_one_bound() {
    let many: Object = (0..20).map(|n| (format!("x{n}"), text(10))).collect();
    let refused = action(ActionKind::ChatIsReadChanged, Value::Object(many)).unwrap_err();
    assert_eq!(refused, "its other fields have at most 100 bytes (field_bytes_max)");
}

#[test]
fn bodies_count_nothing_but_only_where_bodies_are() {
    let with_data = |field: &str, data: Value| {
        let message = json!({"text": "t", "attachments": [{field: data}]});
        action(ActionKind::ChatTurnStarted, json!({"message": message}))
    };
    assert_eq!(with_data("data", text(10_000)), Ok(()));
    assert!(with_data("label", text(10_000)).is_err());
    let refused = with_data("data", json!([text(10_000)])).unwrap_err();
    assert!(refused.contains("message.attachments[0].data"), "{refused}");
}

#[test]
fn an_abridged_action_is_small_and_recognisable() {
    let tools: Vec<Value> = (0..1_000)
        .map(|n| json!({"name": format!("t{n}"), "description": "é".repeat(10_000)}))
        .collect();
    let fields = json!({"activeClient": {"clientId": "ann", "tools": tools}, "x".repeat(9_999): 1});
    let action = Action::host(ActionKind::SessionActiveClientSet, fields);
    let abridged = abridge(&action.body);
    assert_eq!(abridged["type"], action.name());
    assert_eq!(abridged["activeClient"]["clientId"], "ann");
    assert!(Value::Object(abridged).to_string().len() < 2 * ABRIDGED_BYTES);
}
