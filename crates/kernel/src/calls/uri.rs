//! URIs of channels in requests, and the errors that say what is wrong with them.

use wire::rpc::code;
use wire::{ChannelUri, RpcError};

use crate::chats::DEFAULT_CHATS;
use crate::sessions;
use crate::state::Kernel;

/// The error for a URI that names nothing (H-045, G-23).
pub(super) fn not_found(kernel: &Kernel, uri: &ChannelUri) -> RpcError {
    let missing = RpcError::new(code::NOT_FOUND, format!("there is no channel {uri}"));
    // What belongs to a session is missing itself only if the session is there (G-72).
    if let Some((session, _)) = uri.session_part() {
        return if kernel.find_session(&session).is_some() {
            missing
        } else {
            not_found(kernel, &session)
        };
    }
    let scheme = uri.scheme();
    let of_a_session = scheme == "ahp-session" || kernel.find_agent(scheme).is_some();
    if of_a_session {
        let message = format!("there is no session {uri}");
        return RpcError::new(code::SESSION_NOT_FOUND, message);
    }
    missing
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
    if belongs_to_session(uri) {
        Err(bad(format!("`channel`: {uri} names what belongs to another session")))
    } else {
        Ok(())
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
    if names_session || is_other || of_another || belongs_to_session(chat) {
        Err(bad(format!(
            "{chat} cannot name a chat of {session}: it means another channel; choose `ahp-chat:/<id>`"
        )))
    } else {
        Ok(())
    }
}

/// The error for a new terminal under a URI that means something else. Clients choose the scheme: ours is `ahp-terminal`.
pub(super) fn check_names_terminal(kernel: &Kernel, uri: &ChannelUri) -> Result<(), RpcError> {
    let scheme = uri.scheme();
    let mut others = SCHEMES_OF_OTHER_KINDS.iter();
    let is_other =
        others.any(|other| *other != "ahp-terminal" && scheme.eq_ignore_ascii_case(other));
    let names_session =
        scheme.eq_ignore_ascii_case("ahp-session") || kernel.find_agent(scheme).is_some();
    if is_other || names_session || belongs_to_session(uri) {
        Err(bad(format!(
            "`channel`: {uri} cannot name a terminal: it means another channel; choose `ahp-terminal:/<id>`"
        )))
    } else {
        Ok(())
    }
}

/// Whether a URI is that of a session's annotations or changesets.
fn belongs_to_session(uri: &ChannelUri) -> bool {
    uri.session_part().is_some()
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
