//! Answering the host's `systemMessageTransform`: whoever rewrites sections of the system prompt implements one trait.
//!
//! ```no_run
//! use std::sync::Arc;
//! use client::transform::{self, Rewrite, TransformHandler};
//! use wire::ext::system_message_transform::{
//!     SystemMessageTransformParams as Params, SystemMessageTransformResult as Rewritten,
//! };
//!
//! struct Polite;
//!
//! impl TransformHandler for Polite {
//!     fn sections(&self) -> Vec<String> {
//!         vec!["tone".to_owned()]
//!     }
//!
//!     fn transform(&self, mut params: Params) -> Rewrite {
//!         for section in params.sections.values_mut() {
//!             section.content.push_str("\nSay please.");
//!         }
//!         Box::pin(async { Ok(Rewritten { sections: params.sections }) })
//!     }
//! }
//!
//! # fn demo(live: client::Live, session: wire::ChannelUri) -> Result<(), client::ClientError> {
//! live.answer_with(transform::handler(Arc::new(Polite)));
//! transform::activate(&live, &session, "Polite", &Polite)?;
//! # Ok(())
//! # }
//! ```
//!
//! Promises: a request that is none of its own is answered with -32601, so that the host does not wait.
//! Must not know: what the sections say.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use wire::ext::system_message_transform::{
    FIELD, METHOD, SystemMessageTransformOptIn, SystemMessageTransformParams,
    SystemMessageTransformResult, X_METHOD,
};
use wire::rpc::code;
use wire::{ChannelUri, RpcError};

use crate::connection::{Handler, HostRequest};
use crate::{ClientError, Live};

/// What becomes of the sections of one render.
pub type Rewrite = BoxFuture<'static, Result<SystemMessageTransformResult, RpcError>>;

/// Rewrites sections of the system prompt, on every render.
pub trait TransformHandler: Send + Sync + 'static {
    /// The sections it wants: what the client opts in to.
    fn sections(&self) -> Vec<String>;

    /// Takes the sections of one render and gives back those it rewrote; what it leaves out stays as it was. Has about
    /// five seconds.
    fn transform(&self, params: SystemMessageTransformParams) -> Rewrite;
}

/// Answers the host by a handler; anything else it asks is not known.
pub fn handler(transform: Arc<dyn TransformHandler>) -> Handler {
    Arc::new(move |request| answer(&transform, request))
}

fn answer(
    transform: &Arc<dyn TransformHandler>,
    request: HostRequest,
) -> BoxFuture<'static, Result<Value, RpcError>> {
    let HostRequest { method, params } = request;
    if method != METHOD && method != X_METHOD {
        let error = RpcError::new(code::METHOD_NOT_FOUND, "this client does not answer that");
        return Box::pin(async { Err(error) });
    }
    match serde_json::from_value(params) {
        Ok(params) => {
            let rewriting = transform.transform(params);
            Box::pin(async move { Ok(wire::action::to_value(&rewriting.await?)) })
        }
        Err(_) => {
            let error = RpcError::new(code::INVALID_PARAMS, "no sections of a system prompt");
            Box::pin(async { Err(error) })
        }
    }
}

/// Makes a client active in a session, for the sections it wants.
pub fn activate(
    live: &Live,
    session: &ChannelUri,
    display_name: &str,
    transform: &dyn TransformHandler,
) -> Result<(), ClientError> {
    let action = active_client(&live.client_id(), display_name, transform);
    live.dispatch(session, action).map(drop)
}

/// Takes a client out of the active ones of a session.
pub fn deactivate(live: &Live, session: &ChannelUri) -> Result<(), ClientError> {
    let action = json!({"type": "session/activeClientRemoved", "clientId": live.client_id()});
    live.dispatch(session, action).map(drop)
}

/// Whether the client is active in a session; `true` while nothing is known about it.
pub fn is_active(live: &Live, session: &ChannelUri) -> bool {
    let client_id = live.client_id();
    live.session(session).is_none_or(|state| {
        let mut entries = state.active_clients.iter();
        entries.any(|entry| entry["clientId"] == client_id.as_str())
    })
}

/// The action that makes a client active in a session and opts it in.
pub fn active_client(
    client_id: &str,
    display_name: &str,
    transform: &dyn TransformHandler,
) -> Value {
    let sections = transform.sections();
    let entry = json!({
        "clientId": client_id,
        "displayName": display_name,
        "tools": [],
        FIELD: SystemMessageTransformOptIn { sections },
    });
    json!({"type": "session/activeClientSet", "activeClient": entry})
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shouts;

    impl TransformHandler for Shouts {
        fn sections(&self) -> Vec<String> {
            vec!["tone".to_owned()]
        }

        fn transform(&self, mut params: SystemMessageTransformParams) -> Rewrite {
            for section in params.sections.values_mut() {
                section.content = section.content.to_uppercase();
            }
            let sections = params.sections;
            Box::pin(async { Ok(SystemMessageTransformResult { sections }) })
        }
    }

    async fn asked(method: &str, params: Value) -> Result<Value, i32> {
        let handler = handler(Arc::new(Shouts));
        let method = method.to_owned();
        handler(HostRequest { method, params }).await.map_err(|error| error.code)
    }

    #[tokio::test]
    async fn both_names_are_answered_and_nothing_else() {
        let params = json!({"channel": "s:/1", "sections": {"tone": {"content": "hi"}}});
        let loud = json!({"sections": {"tone": {"content": "HI"}}});
        assert_eq!(asked(METHOD, params.clone()).await, Ok(loud.clone()));
        assert_eq!(asked(X_METHOD, params.clone()).await, Ok(loud));
        assert_eq!(asked("resourceRead", params).await, Err(code::METHOD_NOT_FOUND));
        assert_eq!(asked(METHOD, json!({})).await, Err(code::INVALID_PARAMS));
    }

    #[test]
    fn a_client_becomes_active_with_its_opt_in() {
        let action = active_client("me", "Me", &Shouts);
        assert_eq!(action["activeClient"][FIELD], json!({"sections": ["tone"]}));
        assert!(wire::Action::decode(action).is_ok());
    }
}
