//! Titles: the default chat's follows the session's (G-13).

use agent_api::SuggestedTitle;
use serde_json::json;
use wire::ActionKind;
use wire::ChannelUri;

use crate::io::Effect;
use crate::state::Step;

/// The session's title changed: the catalogue says the same of the default chat, and so does that chat's own state, without an
/// action, for there is none (H-150).
fn follow_title(step: &mut Step, session: &ChannelUri) {
    step.touch_modified(session);
    let state = step.session(session).state();
    let title = state.title.clone();
    let Some(chat) = state.default_chat.clone() else {
        return; // a session that is being made has none yet
    };
    let fields = json!({"chat": chat, "changes": {"title": title}});
    step.act_as_host(session, ActionKind::SessionChatUpdated, fields);
    let entry = step.session(session).state().chat(&chat);
    debug_assert!(
        entry.is_some_and(|entry| entry.title == title),
        "the default chat is in the catalogue, under the session's title"
    );
    let chat = ChannelUri::parse(&chat).ok();
    // A chat that is not in memory reads its title from the catalogue when it is loaded.
    if let Some(chat) = chat.filter(|chat| step.find_chat(chat).is_some()) {
        step.chat_mut(&chat).set_title(title);
    }
}

/// A client names the session: its title stays, whatever the agent would call it.
pub(crate) fn follow_title_of_client(step: &mut Step, session: &ChannelUri) {
    step.session_mut(session).set_titled_by_client();
    follow_title(step, session);
    let state = step.session(session).state();
    let chat = state.default_chat.as_deref();
    let Some(chat) = chat.and_then(|chat| ChannelUri::parse(chat).ok()) else {
        return; // a session that is being made has none yet
    };
    let (provider, title) = (state.provider.clone(), state.title.clone());
    step.effect(Effect::TitleChanged { chat, provider, title });
}

/// An agent names a session, unless a client has.
pub(crate) fn set_title_by_agent(step: &mut Step, session: &ChannelUri, title: &str) {
    if step.session(session).is_titled_by_client() {
        return; // its user knows better
    }
    let end = title.floor_char_boundary(step.limits().title_bytes_max);
    let fields = json!({"title": &title[..end]});
    if step.act_as_host(session, ActionKind::SessionTitleChanged, fields) {
        follow_title(step, session);
    }
}

/// An agent has a better title than the one it gave; one that a user gave meanwhile stays.
pub(crate) fn replace_title(step: &mut Step, chat: &ChannelUri, suggested: &SuggestedTitle) {
    let session = step.chat(chat).session().clone();
    if step.session(&session).state().title == suggested.replaces {
        set_title_by_agent(step, &session, &suggested.title);
    }
}
