//! Which chats may be moved: those that people made, but for the one that is their session's default (G-57, H-159).

use serde_json::{Value, json};
use wire::state::{ChatSummary, SessionState};
use wire::{ActionKind, ChannelUri};

use crate::background_task::BackgroundTask;
use crate::state::Step;

/// How the URIs of chats begin that come with a session (G-26).
pub(crate) const DEFAULT_CHATS: &str = "ahp-chat://default/";

/// Whether somebody made it: it neither came with its session nor works for a call.
pub(super) fn is_made_by_people(uri: &str, origin: Option<&Value>) -> bool {
    let is_worker = origin.is_some_and(|origin| origin["kind"] == "tool");
    !is_worker && !uri.starts_with(DEFAULT_CHATS)
}

/// Whether a chat of a session may be moved.
fn is_movable(session: &SessionState, chat: &ChatSummary) -> bool {
    let is_default = session.default_chat.as_deref() == Some(chat.resource.as_str());
    !is_default && is_made_by_people(&chat.resource, chat.extra.get("origin"))
}

fn says_movable(chat: &ChatSummary) -> bool {
    chat.extra.get("movable") == Some(&Value::Bool(true))
}

/// Another chat of a session is its default now: those that may be moved, or may not any more, say so. Not derived at the end of the step, since
/// chats that are not in memory have to be loaded for it.
pub(crate) fn update_movable_chats(step: &mut Step, session: &ChannelUri) {
    let state = step.session(session).state();
    let changed: Vec<ChannelUri> = state
        .chats
        .iter()
        .filter(|chat| says_movable(chat) != is_movable(state, chat))
        .filter_map(|chat| ChannelUri::parse(&chat.resource).ok())
        .collect();
    for chat in changed {
        step.start_task(BackgroundTask::SetMovable(chat));
    }
}

/// A chat says whether it may be moved.
pub(crate) fn set_movable(step: &mut Step, chat: &ChannelUri) {
    let session = step.session_of(chat).state();
    let Some(entry) = session.chat(chat.as_str()) else {
        return; // it left the catalogue meanwhile
    };
    let movable = is_movable(session, entry);
    let fields = json!({"movable": movable});
    step.act_as_host(chat, ActionKind::ChatMovableChanged, fields);
    let says = step.chat(chat).state().extra.get("movable");
    debug_assert_eq!(says == Some(&Value::Bool(true)), movable, "{chat}");
}
