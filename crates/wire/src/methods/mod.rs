//! Methods: the typed params of those this host serves. `names.rs` lists every name in both directions.
//!
//! Errors name the field that is wrong and never repeat what was in it.

mod names;

pub use names::{ClientNotification, HostNotification, HostRequest, Method};

use ahp_types::commands::{
    AuthenticateParams, CompletionsParams, CreateChatParams, CreateSessionParams,
    DisposeChatParams, DisposeSessionParams, FetchTurnsParams, InitializeParams,
    ListSessionsParams, ReconnectParams, ResolveSessionConfigParams, ResourceReadParams,
    SessionConfigCompletionsParams, SubscribeParams,
};
use ahp_types::common::ROOT_RESOURCE_URI;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ext::compose::ComposeParams;
use crate::ext::import_session::ImportSessionParams;
use crate::ext::models::AddModelParams;
use crate::rpc::{RpcError, code};
use crate::{ChannelUri, Object};

/// A request of a client that this host serves.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    Initialize(Box<InitializeParams>),
    Ping,
    Reconnect(ReconnectParams),
    Subscribe(SubscribeParams),
    /// With the params as received: an active client in them has fields that the typed ones drop.
    CreateSession(Box<CreateSessionParams>, Value),
    DisposeSession(DisposeSessionParams),
    /// With the params as received, likewise: a message, and where the chat comes from.
    CreateChat(Box<CreateChatParams>, Value),
    DisposeChat(DisposeChatParams),
    ListSessions(ListSessionsParams),
    /// With the number of turns wanted at most, which clients up to 0.5.0 say.
    FetchTurns(FetchTurnsParams, Option<usize>),
    ResourceRead(ResourceReadParams),
    ResolveSessionConfig(ResolveSessionConfigParams),
    SessionConfigCompletions(SessionConfigCompletionsParams),
    Authenticate(AuthenticateParams),
    Completions(CompletionsParams),
    /// `x-addModel`: the model as the configuration would have it.
    AddModel(Object),
    /// `x-reloadModels`
    ReloadModels,
    ImportSession(Box<ImportSessionParams>),
    /// `x-compose`
    Compose(Box<ComposeParams>),
}

/// Reads a request. Unknown or not served: -32601 (G-23); params that do not fit: -32602.
pub fn decode_call(method: &str, params: Value) -> Result<Call, RpcError> {
    let Some(known) = Method::from_name(method) else {
        let name: String = method.chars().take(METHOD_CHARS_MAX).collect();
        return Err(RpcError::new(
            code::METHOD_NOT_FOUND,
            format!("unknown method `{name}`"),
        ));
    };
    match known {
        Method::Ping => Ok(Call::Ping), // H-010: at any time, whatever it carries
        Method::Initialize => typed(on_root(params)?).map(|p| Call::Initialize(Box::new(p))),
        Method::Reconnect => typed(on_root(params)?).map(Call::Reconnect),
        Method::ListSessions => typed(on_root(params)?).map(Call::ListSessions),
        Method::ResolveSessionConfig => typed(on_root(params)?).map(Call::ResolveSessionConfig),
        Method::SessionConfigCompletions => {
            typed(or_root(params)).map(Call::SessionConfigCompletions)
        }
        Method::Authenticate => typed(on_root(params)?).map(Call::Authenticate),
        Method::Subscribe => typed(params).map(Call::Subscribe),
        Method::CreateSession => {
            let typed = typed_from(&params)?;
            Ok(Call::CreateSession(Box::new(typed), params))
        }
        Method::DisposeSession => typed(params).map(Call::DisposeSession),
        Method::CreateChat => {
            let typed = typed_from(&params)?;
            Ok(Call::CreateChat(Box::new(typed), params))
        }
        Method::DisposeChat => typed(params).map(Call::DisposeChat),
        Method::FetchTurns => {
            let limit = params.get("limit").and_then(Value::as_u64);
            let limit = limit.and_then(|limit| usize::try_from(limit).ok());
            typed(params).map(|params| Call::FetchTurns(params, limit))
        }
        Method::ResourceRead => typed(or_root(params)).map(Call::ResourceRead),
        Method::Completions => typed(or_session(params)).map(Call::Completions),
        Method::ImportSession => {
            typed(on_root(params)?).map(|params| Call::ImportSession(Box::new(params)))
        }
        Method::Compose => typed(params).map(|params| Call::Compose(Box::new(params))),
        Method::AddModel => {
            typed(on_root(params)?).map(|params: AddModelParams| Call::AddModel(params.model))
        }
        Method::ReloadModels => on_root(params).map(|_| Call::ReloadModels),
        Method::MoveChat
        | Method::CreateTerminal
        | Method::DisposeTerminal
        | Method::CreateResourceWatch
        | Method::ResourceWrite
        | Method::ResourceList
        | Method::ResourceCopy
        | Method::ResourceDelete
        | Method::ResourceMove
        | Method::ResourceResolve
        | Method::ResourceMkdir
        | Method::ResourceRequest
        | Method::InvokeChangesetOperation
        | Method::ListAutomationTriggerDefinitions
        | Method::RunAutomation
        | Method::FetchAutomationRuns => {
            let message = format!("`{method}` is not served by this host");
            Err(RpcError::new(code::METHOD_NOT_FOUND, message))
        }
    }
}

/// How much of an unknown method's name an error repeats.
const METHOD_CHARS_MAX: usize = 64;

fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// Params of a command to the root: without a channel they mean it (G-21), with another they are wrong (H-008).
fn on_root(params: Value) -> Result<Value, RpcError> {
    let mut params = match params {
        Value::Object(params) => params,
        Value::Null => Object::new(),
        _ => return Err(invalid("params must be an object")),
    };
    match params.get("channel") {
        None | Some(Value::Null) => {
            params.insert(
                "channel".to_owned(),
                Value::String(ROOT_RESOURCE_URI.to_owned()),
            );
        }
        Some(Value::String(channel)) if channel == ROOT_RESOURCE_URI => {}
        Some(_) => return Err(invalid(format!("`channel` must be `{ROOT_RESOURCE_URI}`"))),
    }
    Ok(Value::Object(params))
}

/// Params of a command whose channel only says on whose behalf: without one it is the root's (G-21).
fn or_root(mut params: Value) -> Value {
    if let Value::Object(params) = &mut params
        && params.get("channel").is_none_or(Value::is_null)
    {
        params.insert("channel".to_owned(), ROOT_RESOURCE_URI.into());
    }
    params
}

/// Params of `completions`: what names no channel may name a session, as it did in earlier versions.
fn or_session(mut params: Value) -> Value {
    if let Value::Object(params) = &mut params
        && params.get("channel").is_none_or(Value::is_null)
        && let Some(session) = params.remove("session")
    {
        params.insert("channel".to_owned(), session);
    }
    params
}

fn typed<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    if !params.is_object() {
        return Err(invalid("params must be an object"));
    }
    serde_json::from_value(params).map_err(|error| invalid(without_content(&error.to_string())))
}

/// The same for params that are needed afterwards: they are read, not copied first.
fn typed_from<T: DeserializeOwned>(params: &Value) -> Result<T, RpcError> {
    if !params.is_object() {
        return Err(invalid("params must be an object"));
    }
    T::deserialize(params).map_err(|error| invalid(without_content(&error.to_string())))
}

/// What the decoder says is wrong, without the value it found: `missing field `x`` repeats only our own names, but
/// `invalid type: string "secret", expected ..` holds the peer's.
fn without_content(problem: &str) -> String {
    match problem.strip_prefix("missing field ") {
        Some(field) => format!("missing field {field}"),
        None => match problem.rsplit_once(", expected ") {
            Some((_, expected)) if !expected.contains('"') => {
                format!("a field has the wrong type, expected {expected}")
            }
            _ => "a field has the wrong type".to_owned(),
        },
    }
}

/// A client's `dispatchAction`, its action not yet decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    pub channel: ChannelUri,
    pub client_seq: i64,
    pub action: Value,
}

/// Reads the params of `dispatchAction`; the action in them is for [`crate::Action::decode`].
pub fn decode_dispatch(params: Value) -> Result<Dispatch, RpcError> {
    let Value::Object(mut params) = params else {
        return Err(invalid("params must be an object"));
    };
    let channel = params.get("channel").and_then(Value::as_str);
    let channel = channel.ok_or_else(|| invalid("missing field `channel`"))?;
    let channel = ChannelUri::parse(channel).map_err(|error| invalid(error.to_string()))?;
    let client_seq = params.get("clientSeq").and_then(Value::as_i64);
    let client_seq = client_seq.ok_or_else(|| invalid("`clientSeq` must be an integer"))?;
    let action = params
        .remove("action")
        .ok_or_else(|| invalid("missing field `action`"))?;
    Ok(Dispatch {
        channel,
        client_seq,
        action,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(
            (params.channel.as_str(), params.last_seen_server_seq),
            ("ahp-root://", 7)
        );
        assert!(matches!(
            decode_call("listSessions", Value::Null),
            Ok(Call::ListSessions(_))
        ));
        let elsewhere = refusal("listSessions", json!({"channel": "ahp-session:/1"}));
        assert_eq!(
            elsewhere,
            (-32602, "`channel` must be `ahp-root://`".to_owned())
        );
    }

    #[test]
    fn completions_may_name_a_session_instead_of_a_channel() {
        let asked = |channel: Value| {
            let mut params = json!({"kind": "userMessage", "text": "/", "offset": 1});
            params
                .as_object_mut()
                .unwrap()
                .extend(channel.as_object().unwrap().clone());
            match decode_call("completions", params) {
                Ok(Call::Completions(params)) => Ok(params.channel),
                Ok(other) => panic!("{other:?}"),
                Err(error) => Err(error.message),
            }
        };
        assert_eq!(
            asked(json!({"channel": "ahp-chat:/1"})),
            Ok("ahp-chat:/1".to_owned())
        );
        assert_eq!(asked(json!({"session": "x:/1"})), Ok("x:/1".to_owned()));
        let both = json!({"channel": "ahp-chat:/1", "session": "x:/1"});
        assert_eq!(asked(both), Ok("ahp-chat:/1".to_owned()));
        assert_eq!(asked(json!({})), Err("missing field `channel`".to_owned()));
    }

    #[test]
    fn a_ping_may_carry_anything() {
        for params in [
            Value::Null,
            json!({}),
            json!([1]),
            json!({"channel": "x:/y"}),
        ] {
            assert_eq!(decode_call("ping", params), Ok(Call::Ping));
        }
    }

    #[test]
    fn a_model_is_an_object() {
        let model = json!({"id": "m"});
        let added = decode_call("x-addModel", json!({"model": model}));
        assert_eq!(
            added,
            Ok(Call::AddModel(model.as_object().unwrap().clone()))
        );
        for bad in [json!({}), json!({"model": "m"}), json!([]), Value::Null] {
            assert_eq!(refusal("x-addModel", bad).0, -32602);
        }
        assert_eq!(
            decode_call("x-reloadModels", Value::Null),
            Ok(Call::ReloadModels)
        );
    }

    #[test]
    fn methods_that_are_not_served_are_named() {
        assert_eq!(
            refusal("nope", json!({})),
            (-32601, "unknown method `nope`".to_owned())
        );
        let move_chat = (-32601, "`moveChat` is not served by this host".to_owned());
        assert_eq!(refusal("moveChat", json!({})), move_chat);
    }

    #[test]
    fn bad_params_are_reported_without_their_content() {
        for (method, params, message) in [
            ("subscribe", json!({}), "missing field `channel`"),
            ("disposeSession", Value::Null, "params must be an object"),
            (
                "initialize",
                json!({"clientId": "c"}),
                "missing field `protocolVersions`",
            ),
            (
                "initialize",
                json!({"clientId": {"secret": 1}, "protocolVersions": []}),
                "a field has the wrong type, expected a string",
            ),
            (
                "listSessions",
                json!({"limit": "secret, expected \"x\""}),
                "a field has the wrong type, expected i64",
            ),
        ] {
            assert_eq!(refusal(method, params), (-32602, message.to_owned()));
        }
    }

    #[test]
    fn unknown_fields_of_a_created_session_are_preserved() {
        let params = json!({
            "channel": "scripted:/1",
            "activeClient": {"clientId": "c", "tools": [], "systemMessageTransform": {"sections": []}},
        });
        let Ok(Call::CreateSession(typed, raw)) = decode_call("createSession", params.clone())
        else {
            panic!("a createSession")
        };
        assert_eq!((typed.channel.as_str(), raw), ("scripted:/1", params));
    }

    #[test]
    fn a_dispatch_is_taken_apart_but_its_action_is_not_read() {
        let params = json!({"channel": "ahp-chat:/1", "clientSeq": -3, "action": {"type": 5}});
        let dispatch = decode_dispatch(params).unwrap();
        assert_eq!(
            (dispatch.channel.as_str(), dispatch.client_seq),
            ("ahp-chat:/1", -3)
        );
        assert_eq!(dispatch.action, json!({"type": 5}));
        for bad in [
            json!([]),
            json!({"clientSeq": 1, "action": {}}),
            json!({"channel": "no uri", "clientSeq": 1, "action": {}}),
            json!({"channel": "a:/b", "clientSeq": 1.5, "action": {}}),
            json!({"channel": "a:/b", "clientSeq": 1}),
        ] {
            assert_eq!(
                decode_dispatch(bad.clone()).unwrap_err().code,
                -32602,
                "{bad}"
            );
        }
    }
}
