//! Titles: the default chat's follows the session's (G-13).

use agent_api::SuggestedTitle;
use serde_json::json;
use wire::ActionKind;
use wire::ChannelUri;

use crate::state::Step;

/// The session's title changed: the catalogue says the same of the default chat, and so does that chat's own state, without an
/// action, for there is none (H-150).
pub(crate) fn follow_title(step: &mut Step, session: &ChannelUri) {
    step.touch_modified(session);
    let state = step.session(session).state();
    let title = state.title.clone();
    let Some(chat) = state.default_chat.clone() else {
        return; // a session that is being made has none yet
    };
    let fields = json!({"chat": chat, "changes": {"title": title}});
    step.act_as_host(session, ActionKind::SessionChatUpdated, fields);
    let chat = ChannelUri::parse(&chat).ok();
    // A chat that is not in memory reads its title from the catalogue when it is loaded.
    if let Some(chat) = chat.filter(|chat| step.find_chat(chat).is_some()) {
        step.chat_mut(&chat).set_title(title);
    }
}

/// An agent names the session of a chat.
pub(crate) fn set_title_by_agent(step: &mut Step, chat: &ChannelUri, title: &str) {
    let session = step.chat(chat).session().clone();
    let end = title.floor_char_boundary(step.limits().title_bytes_max);
    let fields = json!({"title": &title[..end]});
    if step.act_as_host(&session, ActionKind::SessionTitleChanged, fields) {
        follow_title(step, &session);
    }
}

/// An agent has a better title than the one it gave; one that a user gave meanwhile stays.
pub(crate) fn replace_title(step: &mut Step, chat: &ChannelUri, suggested: &SuggestedTitle) {
    if step.session_of(chat).state().title == suggested.replaces {
        set_title_by_agent(step, chat, &suggested.title);
    }
}
