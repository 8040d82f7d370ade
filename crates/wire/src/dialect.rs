//! What real clients send beside the letter of the protocol, and this host takes because it can mean one thing only. All of it is
//! here, each with its test; what could mean two things, or would do something that nobody asked for, is refused
//! (docs/protocol.md, "Dialects").
//!
//! What needs no code of its own, because nothing in the host minds it (a `clientSeq` of 0 again and again, notifications and fields
//! nobody knows, settings no schema has, a turn while its session is `creating`, an active client before `subscribe`), is in
//! `testing/conformance/tests/vscode_dialect.rs`: a whole dialogue, frame by frame.
//!
//! Not here: what a whole version says differently (`compat`), and defects of the published types (`quirks`).
//! Must not know: which client it is. A dialect is taken from everyone.

use ahp_types::common::ROOT_RESOURCE_URI;
use serde_json::{Value, json};

use crate::Object;
use crate::action::SessionAction;
use crate::rpc::{RpcError, code};

/// Params of a command to the root: without a channel they mean it (VS Code's `reconnect`, G-21), with another they are wrong
/// (H-008).
pub(crate) fn on_root(params: Value) -> Result<Value, RpcError> {
    let invalid = |message: String| RpcError::new(code::INVALID_PARAMS, message);
    let mut params = match params {
        Value::Object(params) => params,
        Value::Null => Object::new(),
        _ => return Err(invalid("params must be an object".to_owned())),
    };
    match params.get("channel") {
        None | Some(Value::Null) => {
            params.insert("channel".to_owned(), ROOT_RESOURCE_URI.into());
        }
        Some(Value::String(channel)) if channel == ROOT_RESOURCE_URI => {}
        Some(_) => return Err(invalid(format!("`channel` must be `{ROOT_RESOURCE_URI}`"))),
    }
    Ok(Value::Object(params))
}

/// Params of a command whose channel only says on whose behalf: without one it is the root's (G-21).
pub(crate) fn or_root(mut params: Value) -> Value {
    if let Value::Object(params) = &mut params
        && params.get("channel").is_none_or(Value::is_null)
    {
        params.insert("channel".to_owned(), ROOT_RESOURCE_URI.into());
    }
    params
}

/// Params of `completions` and `createSession`: what names no channel may name a session, as guides to the protocol still do.
pub(crate) fn or_session(mut params: Value) -> Value {
    if let Value::Object(params) = &mut params
        && params.get("channel").is_none_or(Value::is_null)
        && let Some(session) = params.shift_remove("session")
    {
        params.insert("channel".to_owned(), session);
    }
    params
}

/// Whether an action on a session may be sent to one of its chats: a rename may (VS Code, G-13), for a chat has no title that a
/// client could change.
pub fn acts_on_session_of_chat(verb: SessionAction) -> bool {
    verb == SessionAction::TitleChanged
}

/// A text as the answer that a question of this kind asks for (VS Code answers questions for numbers with texts), or what it is
/// not; `None` if the question takes no such answer.
pub fn answer_from_text(asked: &str, text: &str) -> Option<Result<Value, &'static str>> {
    let text = text.trim();
    let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    let integer = || text.parse::<i64>().ok().map(|integer| json!(integer));
    let value = match asked {
        "integer" => integer().ok_or("a whole number"),
        // As an integer if it is one: a fraction is not added to what was written.
        "number" => integer().or_else(|| number().map(|number| json!(number))).ok_or("a number"),
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(json!(true)),
            "false" => Ok(json!(false)),
            _ => Err("`true` or `false`"),
        },
        _ => return None,
    };
    let kind = if asked == "boolean" { asked } else { "number" };
    Some(value.map(|value| json!({"kind": kind, "value": value})))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::{Call, ResourceCall, decode_call};

    fn refusal(method: &str, params: Value) -> (i32, String) {
        let error = decode_call(method, params).unwrap_err();
        (error.code, error.message)
    }

    #[test]
    fn a_root_command_without_a_channel_means_the_root() {
        let params = json!({"clientId": "c", "lastSeenServerSeq": 7, "subscriptions": []});
        let Ok(Call::Reconnect(params)) = decode_call("reconnect", params) else {
            panic!("a reconnect")
        };
        assert_eq!((params.channel.as_str(), params.last_seen_server_seq), ("ahp-root://", 7));
        assert!(matches!(decode_call("listSessions", Value::Null), Ok(Call::ListSessions(_))));
        let elsewhere = refusal("listSessions", json!({"channel": "ahp-session:/1"}));
        assert_eq!(elsewhere, (-32602, "`channel` must be `ahp-root://`".to_owned()));
    }

    #[test]
    fn a_command_on_somebodys_behalf_is_on_the_roots() {
        let read = decode_call("resourceRead", json!({"uri": "ahp-content:/sha256/00"}));
        let Ok(Call::Resource(read)) = read else { panic!("a read: {read:?}") };
        let ResourceCall::Read(read) = &*read else { panic!("a read: {read:?}") };
        assert_eq!(read.channel, "ahp-root://");
    }

    #[test]
    fn completions_may_name_a_session_instead_of_a_channel() {
        let asked = |channel: Value| {
            let mut params = json!({"kind": "userMessage", "text": "/", "offset": 1});
            params.as_object_mut().unwrap().extend(channel.as_object().unwrap().clone());
            match decode_call("completions", params) {
                Ok(Call::Completions(params)) => Ok(params.channel),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error.message),
            }
        };
        assert_eq!(asked(json!({"channel": "ahp-chat:/1"})), Ok("ahp-chat:/1".to_owned()));
        assert_eq!(asked(json!({"session": "x:/1"})), Ok("x:/1".to_owned()));
        let both = json!({"channel": "ahp-chat:/1", "session": "x:/1"});
        assert_eq!(asked(both), Ok("ahp-chat:/1".to_owned()));
        assert_eq!(asked(json!({})), Err("missing field `channel`".to_owned()));
    }

    #[test]
    fn a_session_may_be_created_by_its_name() {
        let created = decode_call("createSession", json!({"session": "x:/1"}));
        let Ok(Call::CreateSession(typed, raw)) = created else {
            panic!("a createSession: {created:?}")
        };
        assert_eq!((typed.channel.as_str(), raw), ("x:/1", json!({"channel": "x:/1"})));
    }

    #[test]
    fn a_rename_and_nothing_else_may_be_sent_to_a_chat() {
        assert!(acts_on_session_of_chat(SessionAction::TitleChanged));
        for other in [
            SessionAction::IsReadChanged,
            SessionAction::IsArchivedChanged,
            SessionAction::ConfigChanged,
            SessionAction::ActiveClientSet,
        ] {
            assert!(!acts_on_session_of_chat(other), "{other:?}");
        }
    }

    #[test]
    fn a_text_is_the_answer_that_was_asked_for() {
        for (asked, text, answer) in [
            ("integer", " 3 ", Some(Ok(json!({"kind": "number", "value": 3})))),
            ("integer", "3.5", Some(Err("a whole number"))),
            ("number", "3", Some(Ok(json!({"kind": "number", "value": 3})))),
            ("number", "2.5", Some(Ok(json!({"kind": "number", "value": 2.5})))),
            ("number", "NaN", Some(Err("a number"))),
            ("boolean", "True", Some(Ok(json!({"kind": "boolean", "value": true})))),
            ("boolean", "yes", Some(Err("`true` or `false`"))),
            ("text", "3", None),
            ("single-select", "3", None),
        ] {
            assert_eq!(answer_from_text(asked, text), answer, "{asked} {text}");
        }
    }
}
