//! Requests: one file per method, named as on the wire.

mod completions;
mod create_chat;
pub(crate) use create_chat::page_in_memory;
mod create_session;
mod dispose_chat;
mod dispose_session;
mod fetch_turns;
mod initialize;
mod list_sessions;
mod reconnect;
mod resolve_session_config;
mod resource_read;
mod subscribe;

pub(crate) use create_session::NEW_TITLE;
pub(crate) use reconnect::CachedReplay;
pub(crate) use subscribe::{FROM_THE_BEGINNING, Serving};

use wire::rpc::code;
use wire::{ChannelUri, RpcError};

use crate::Kernel;

impl Kernel {
    /// The error for a URI that names nothing (H-045, G-23).
    pub(crate) fn not_found(&self, uri: &ChannelUri) -> RpcError {
        let scheme = uri.scheme();
        let of_a_session = scheme == "ahp-session"
            || self
                .facts
                .agents
                .iter()
                .any(|agent| agent.provider == scheme);
        // A session's annotations are a channel of their own kind.
        let of_a_session = of_a_session && !uri.as_str().ends_with("/annotations");
        if of_a_session {
            RpcError::new(
                code::SESSION_NOT_FOUND,
                format!("there is no session {uri}"),
            )
        } else {
            RpcError::new(code::NOT_FOUND, format!("there is no channel {uri}"))
        }
    }

    /// A channel URI from a request, or the error that says what is wrong with it.
    pub(crate) fn parse_channel(&self, text: &str) -> Result<ChannelUri, RpcError> {
        ChannelUri::parse(text)
            .map_err(|error| RpcError::new(code::INVALID_PARAMS, format!("`channel`: {error}")))
    }
}
