//! URIs of channels in requests, and the errors that say what is wrong with them.

use wire::rpc::code;
use wire::{ChannelUri, RpcError};

use crate::sessions::{self, DEFAULT_CHATS};
use crate::state::Kernel;

/// The error for a URI that names nothing (H-045, G-23).
pub(super) fn not_found(kernel: &Kernel, uri: &ChannelUri) -> RpcError {
    let scheme = uri.scheme();
    let of_a_session = scheme == "ahp-session" || kernel.find_agent(scheme).is_some();
    // A session's annotations are a channel of their own kind.
    if of_a_session && !uri.as_str().ends_with("/annotations") {
        let message = format!("there is no session {uri}");
        return RpcError::new(code::SESSION_NOT_FOUND, message);
    }
    RpcError::new(code::NOT_FOUND, format!("there is no channel {uri}"))
}

/// A channel URI from a request, or the error that says what is wrong with it.
pub(super) fn parse(field: &str, text: &str) -> Result<ChannelUri, RpcError> {
    ChannelUri::parse(text).map_err(|error| bad(format!("`{field}`: {error}")))
}

/// Schemes of channels that are no sessions: what is found under one must be of its kind.
const SCHEMES_OF_OTHER_KINDS: [&str; 12] = [
    "ahp-root",
    "ahp-chat",
    "ahp-terminal",
    "ahp-changeset",
    "ahp-resource-watch",
    "ahp-canvas",
    "ahp-automations",
    "ahp-automation",
    "ahp-automation-run",
    "ahp-otlp",
    "ahp-content",
    "mcp",
];

/// The error for a new session under a URI that means something else (G-23a).
pub(super) fn check_names_session(uri: &ChannelUri) -> Result<(), RpcError> {
    let scheme = uri.scheme();
    let mut others = SCHEMES_OF_OTHER_KINDS.iter();
    if let Some(other) = others.find(|other| scheme.eq_ignore_ascii_case(other)) {
        return Err(bad(format!(
            "`channel`: `{other}:` names no session; choose `ahp-session:/<id>` or `<provider>:/<id>`"
        )));
    }
    match belongs_to_session(uri) {
        true => Err(bad(format!(
            "`channel`: {uri} names what belongs to another session"
        ))),
        false => Ok(()),
    }
}

/// The error for a new chat under a URI that means something else: a channel of another kind, a session, what belongs to one, or what
/// another session's first chat is called (G-23, G-26).
pub(super) fn check_names_chat(
    kernel: &Kernel,
    session: &ChannelUri,
    chat: &ChannelUri,
) -> Result<(), RpcError> {
    let scheme = chat.scheme();
    let is_chat = scheme.eq_ignore_ascii_case("ahp-chat");
    let names_session = chat == session
        || scheme.eq_ignore_ascii_case("ahp-session")
        || kernel.find_agent(scheme).is_some();
    let mut others = SCHEMES_OF_OTHER_KINDS.iter();
    let is_other = !is_chat && others.any(|other| scheme.eq_ignore_ascii_case(other));
    let of_another = chat.as_str().starts_with(DEFAULT_CHATS)
        && chat.as_str() != sessions::default_chat_of(session);
    match names_session || is_other || of_another || belongs_to_session(chat) {
        true => Err(bad(format!(
            "{chat} is no name for a chat of {session}: it means another channel; choose `ahp-chat:/<id>`"
        ))),
        false => Ok(()),
    }
}

/// Whether a URI is that of a session's annotations or changesets.
fn belongs_to_session(uri: &ChannelUri) -> bool {
    let text = uri.as_str();
    text.ends_with("/annotations") || text.contains("/changeset/")
}

pub(super) fn bad(message: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, message.into())
}

/// The error for what must be written while nothing can be.
pub(super) fn check_writable(kernel: &Kernel) -> Result<(), RpcError> {
    match kernel.unwritable() {
        Some(reason) => Err(RpcError::new(code::INTERNAL_ERROR, reason)),
        None => Ok(()),
    }
}

/// Well-formed URIs, each once; too many are refused (G-21).
pub(super) fn wanted_channels(
    kernel: &Kernel,
    texts: &[String],
) -> Result<Vec<ChannelUri>, RpcError> {
    let most = kernel.limits().subscriptions_max;
    if texts.len() > most {
        return Err(bad(format!("at most {most} subscriptions per connection")));
    }
    let mut seen = std::collections::BTreeSet::new();
    let uris = texts.iter().filter_map(|text| ChannelUri::parse(text).ok());
    Ok(uris.filter(|uri| seen.insert(uri.clone())).collect())
}
