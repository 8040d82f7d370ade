//! Methods: the typed params of those this host serves. `names.rs` lists every name in both directions.
//!
//! Errors name the field that is wrong and never repeat what was in it.

mod names;
mod resources;

pub use names::{ClientNotification, HostNotification, HostRequest, Method};
pub use resources::ResourceCall;

use std::sync::Arc;

use ahp_types::commands::{
    AuthenticateParams, CompletionsParams, CreateChatParams, CreateResourceWatchParams,
    CreateSessionParams, CreateTerminalParams, DisposeChatParams, DisposeSessionParams,
    DisposeTerminalParams, FetchTurnsParams, InitializeParams, InvokeChangesetOperationParams,
    ListSessionsParams, MoveChatParams, ReconnectParams, ResolveSessionConfigParams,
    SessionConfigCompletionsParams, SubscribeParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::compat::PAGE_LIMIT;
use crate::dialect::{on_root, or_root, or_session};
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
    CreateTerminal(Box<CreateTerminalParams>),
    DisposeTerminal(DisposeTerminalParams),
    MoveChat(MoveChatParams),
    ListSessions(ListSessionsParams),
    /// With the number of turns wanted at most, which clients up to 0.5.0 say.
    FetchTurns(FetchTurnsParams, Option<usize>),
    CreateResourceWatch(Box<CreateResourceWatchParams>),
    /// Shared: what it writes may be large.
    Resource(Arc<ResourceCall>),
    ResolveSessionConfig(ResolveSessionConfigParams),
    SessionConfigCompletions(SessionConfigCompletionsParams),
    Authenticate(AuthenticateParams),
    InvokeChangesetOperation(Box<InvokeChangesetOperationParams>),
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
    let known = Method::from_name(method).ok_or_else(|| unknown_method(method))?;
    match known {
        Method::Ping => Ok(Call::Ping), // H-010: at any time, whatever it carries
        Method::Initialize => {
            decode_params(on_root(params)?).map(|p| Call::Initialize(Box::new(p)))
        }
        Method::Reconnect => decode_params(on_root(params)?).map(Call::Reconnect),
        Method::ListSessions => decode_params(on_root(params)?).map(Call::ListSessions),
        Method::ResolveSessionConfig => {
            decode_params(on_root(params)?).map(Call::ResolveSessionConfig)
        }
        Method::SessionConfigCompletions => {
            decode_params(or_root(params)).map(Call::SessionConfigCompletions)
        }
        Method::InvokeChangesetOperation => {
            decode_params(params).map(|params| Call::InvokeChangesetOperation(Box::new(params)))
        }
        Method::Authenticate => decode_params(on_root(params)?).map(Call::Authenticate),
        Method::Subscribe => decode_params(params).map(Call::Subscribe),
        Method::CreateSession => {
            let params = or_session(params);
            let typed = decode_borrowed_params(&params)?;
            Ok(Call::CreateSession(Box::new(typed), params))
        }
        Method::DisposeSession => decode_params(params).map(Call::DisposeSession),
        Method::CreateChat => {
            let typed = decode_borrowed_params(&params)?;
            Ok(Call::CreateChat(Box::new(typed), params))
        }
        Method::DisposeChat => decode_params(params).map(Call::DisposeChat),
        Method::MoveChat => decode_params(params).map(Call::MoveChat),
        Method::FetchTurns => {
            let limit = page_limit(&params)?;
            decode_params(params).map(|params| Call::FetchTurns(params, limit))
        }
        Method::CreateResourceWatch => {
            decode_params(or_root(params)).map(|params| Call::CreateResourceWatch(Box::new(params)))
        }
        Method::ResourceRead => resources::decode(params, ResourceCall::Read),
        Method::ResourceWrite => resources::decode(params, ResourceCall::Write),
        Method::ResourceList => resources::decode(params, ResourceCall::List),
        Method::ResourceResolve => resources::decode(params, ResourceCall::Resolve),
        Method::ResourceCopy => resources::decode(params, ResourceCall::Copy),
        Method::ResourceMove => resources::decode(params, ResourceCall::Move),
        Method::ResourceDelete => resources::decode(params, ResourceCall::Delete),
        Method::ResourceMkdir => resources::decode(params, ResourceCall::MakeDirectory),
        Method::ResourceRequest => resources::decode(params, ResourceCall::Request),
        Method::Completions => decode_params(or_session(params)).map(Call::Completions),
        Method::ImportSession => {
            decode_params(on_root(params)?).map(|params| Call::ImportSession(Box::new(params)))
        }
        Method::Compose => decode_params(params).map(|params| Call::Compose(Box::new(params))),
        Method::AddModel => decode_params(on_root(params)?)
            .map(|params: AddModelParams| Call::AddModel(params.model)),
        Method::ReloadModels => on_root(params).map(|_| Call::ReloadModels),
        Method::CreateTerminal => {
            decode_params(params).map(|params| Call::CreateTerminal(Box::new(params)))
        }
        Method::DisposeTerminal => decode_params(params).map(Call::DisposeTerminal),
        Method::ListAutomationTriggerDefinitions
        | Method::RunAutomation
        | Method::FetchAutomationRuns => {
            let message = format!("`{method}` is not served by this host");
            Err(RpcError::new(code::METHOD_NOT_FOUND, message))
        }
    }
}

fn unknown_method(method: &str) -> RpcError {
    let name: String = method.chars().take(METHOD_CHARS_MAX).collect();
    RpcError::new(code::METHOD_NOT_FOUND, format!("unknown method `{name}`"))
}

/// How much of an unknown method's name an error repeats.
const METHOD_CHARS_MAX: usize = 64;

fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message)
}

/// The most turns that a client up to 0.5.0 wants.
fn page_limit(params: &Value) -> Result<Option<usize>, RpcError> {
    let Some(limit) = params.get(PAGE_LIMIT).filter(|limit| !limit.is_null()) else {
        return Ok(None);
    };
    let limit = limit.as_u64().and_then(|limit| usize::try_from(limit).ok());
    match limit {
        Some(limit @ 1..) => Ok(Some(limit)),
        _ => Err(invalid("`limit` must be a whole number of at least 1")),
    }
}

fn decode_params<T: DeserializeOwned>(params: Value) -> Result<T, RpcError> {
    if !params.is_object() {
        return Err(invalid("params must be an object"));
    }
    serde_json::from_value(params).map_err(|error| invalid(without_content(&error.to_string())))
}

/// The same for params that are needed afterwards: they are read, not copied first.
fn decode_borrowed_params<T: DeserializeOwned>(params: &Value) -> Result<T, RpcError> {
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
    let Value::Object(mut params) = params else { return Err(invalid("params must be an object")) };
    let channel = params.get("channel").and_then(Value::as_str);
    let channel = channel.ok_or_else(|| invalid("missing field `channel`"))?;
    let channel = ChannelUri::parse(channel).map_err(|error| invalid(error.to_string()))?;
    let client_seq = params
        .get("clientSeq")
        .and_then(Value::as_i64)
        .ok_or_else(|| invalid("`clientSeq` must be an integer"))?;
    let action = params.remove("action").ok_or_else(|| invalid("missing field `action`"))?;
    Ok(Dispatch { channel, client_seq, action })
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
    fn a_ping_may_carry_anything() {
        for params in [Value::Null, json!({}), json!([1]), json!({"channel": "x:/y"})] {
            assert_eq!(decode_call("ping", params), Ok(Call::Ping));
        }
    }

    #[test]
    fn a_model_is_an_object() {
        let model = json!({"id": "m"});
        let added = decode_call("x-addModel", json!({"model": model}));
        assert_eq!(added, Ok(Call::AddModel(model.as_object().unwrap().clone())));
        for bad in [json!({}), json!({"model": "m"}), json!([]), Value::Null] {
            assert_eq!(refusal("x-addModel", bad).0, -32602);
        }
        assert_eq!(decode_call("x-reloadModels", Value::Null), Ok(Call::ReloadModels));
    }

    #[test]
    fn methods_that_are_not_served_are_named() {
        assert_eq!(refusal("nope", json!({})), (-32601, "unknown method `nope`".to_owned()));
        let run = "`runAutomation` is not served by this host".to_owned();
        assert_eq!(refusal("runAutomation", json!({})), (-32601, run));
    }

    #[test]
    fn bad_params_are_reported_without_their_content() {
        for (method, params, message) in [
            ("subscribe", json!({}), "missing field `channel`"),
            ("disposeSession", Value::Null, "params must be an object"),
            ("initialize", json!({"clientId": "c"}), "missing field `protocolVersions`"),
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
        assert_eq!((dispatch.channel.as_str(), dispatch.client_seq), ("ahp-chat:/1", -3));
        assert_eq!(dispatch.action, json!({"type": 5}));
        for bad in [
            json!([]),
            json!({"clientSeq": 1, "action": {}}),
            json!({"channel": "no uri", "clientSeq": 1, "action": {}}),
            json!({"channel": "a:/b", "clientSeq": 1.5, "action": {}}),
            json!({"channel": "a:/b", "clientSeq": 1}),
        ] {
            assert_eq!(decode_dispatch(bad.clone()).unwrap_err().code, -32602, "{bad}");
        }
    }
}
