//! Requests in the words of this version: its own types write the params and read the results.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::VERSION;
use super::super::ahp_types::commands::{
    AuthenticateParams, AuthenticateResult, CompletionsParams, CompletionsResult, CreateChatParams,
    CreateResourceWatchParams, CreateResourceWatchResult, CreateSessionParams,
    CreateTerminalParams, DisposeChatParams, DisposeSessionParams, DisposeTerminalParams,
    FetchTurnsParams, FetchTurnsResult, InvokeChangesetOperationParams,
    InvokeChangesetOperationResult, ListSessionsParams, ListSessionsResult, ReconnectParams,
    ReconnectResult, ResolveSessionConfigParams, ResolveSessionConfigResult, ResourceCopyParams,
    ResourceCopyResult, ResourceDeleteParams, ResourceDeleteResult, ResourceListParams,
    ResourceListResult, ResourceMkdirParams, ResourceMkdirResult, ResourceMoveParams,
    ResourceMoveResult, ResourceReadParams, ResourceReadResult, ResourceRequestParams,
    ResourceRequestResult, ResourceResolveParams, ResourceResolveResult, ResourceWriteParams,
    ResourceWriteResult, SessionConfigCompletionsParams, SessionConfigCompletionsResult,
    SubscribeParams, SubscribeResult,
};
use super::judge::{known, read};

/// The methods that every version has, each with the types of its params and its result.
macro_rules! methods {
    ($($name:literal: $params:ty => $result:ty;)+) => {
        /// Params as the version's own type writes them: what it cannot express is not sent.
        pub fn write_params(method: &str, params: Value) -> Value {
            match method {
                $($name => through::<$params>(method, params),)+
                _ => params,
            }
        }

        /// Whether the version's own type reads the params that the host sends.
        pub fn judge_params(method: &str, params: &Value) -> Result<(), String> {
            match method {
                $($name => read::<$params>(params).and_then(|read| known(method, &read)),)+
                _ => Err("an unknown method".to_owned()),
            }
        }

        /// Whether the version's own type reads a result, down to its innermost part.
        pub fn judge_result(method: &str, result: &Value) -> Result<(), String> {
            match method {
                $($name => read::<$result>(result).and_then(|read| known(method, &read)),)+
                _ => Ok(()),
            }
        }
    };
}

methods! {
    "authenticate": AuthenticateParams => AuthenticateResult;
    "completions": CompletionsParams => CompletionsResult;
    "createChat": CreateChatParams => ();
    "createResourceWatch": CreateResourceWatchParams => CreateResourceWatchResult;
    "createSession": CreateSessionParams => ();
    "createTerminal": CreateTerminalParams => ();
    "disposeChat": DisposeChatParams => ();
    "disposeSession": DisposeSessionParams => ();
    "disposeTerminal": DisposeTerminalParams => ();
    "fetchTurns": FetchTurnsParams => FetchTurnsResult;
    "invokeChangesetOperation": InvokeChangesetOperationParams => InvokeChangesetOperationResult;
    "listSessions": ListSessionsParams => ListSessionsResult;
    "reconnect": ReconnectParams => ReconnectResult;
    "resolveSessionConfig": ResolveSessionConfigParams => ResolveSessionConfigResult;
    "resourceCopy": ResourceCopyParams => ResourceCopyResult;
    "resourceDelete": ResourceDeleteParams => ResourceDeleteResult;
    "resourceList": ResourceListParams => ResourceListResult;
    "resourceMkdir": ResourceMkdirParams => ResourceMkdirResult;
    "resourceMove": ResourceMoveParams => ResourceMoveResult;
    "resourceRead": ResourceReadParams => ResourceReadResult;
    "resourceRequest": ResourceRequestParams => ResourceRequestResult;
    "resourceResolve": ResourceResolveParams => ResourceResolveResult;
    "resourceWrite": ResourceWriteParams => ResourceWriteResult;
    "sessionConfigCompletions": SessionConfigCompletionsParams => SessionConfigCompletionsResult;
    "subscribe": SubscribeParams => SubscribeResult;
}

fn through<T: DeserializeOwned + Serialize>(method: &str, params: Value) -> Value {
    let typed: T = read(&params)
        .unwrap_or_else(|why| panic!("{VERSION} cannot write {method} {params}: {why}"));
    serde_json::to_value(typed).expect("JSON")
}
