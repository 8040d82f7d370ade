//! A chat ends: its turn, its entry in the catalogue, its subscriptions. Its rows stay for a while (G-28).

use serde_json::json;
use wire::ActionKind;
use wire::ChannelUri;
use wire::state::{ChatSummary, SessionState};

use super::movable::update_movable_chats;
use crate::record::Record;
use crate::state::Step;
use crate::turn::end::stop_run;
use crate::worker;

/// Ends a chat that is in memory and not the only one of its session.
pub(crate) fn dispose_chat(step: &mut Step, uri: &ChannelUri) {
    let (id, session) = (step.id_of(uri), step.chat(uri).session().clone());
    assert!(
        step.session(&session).state().chats.len() > 1,
        "the only chat of a session is not disposed of"
    );
    stop_run(step, uri);
    worker::fail_call_of(step, uri, "the worker's chat was disposed of");
    step.session_mut(&session).set_holds_input_of(uri, false);
    if let Some(next) = next_default(step.session(&session).state(), uri) {
        let fields = json!({"defaultChat": next});
        step.act_as_host(&session, ActionKind::SessionDefaultChatChanged, fields);
        update_movable_chats(step, &session);
    }
    let fields = json!({"chat": uri.as_str()});
    step.act_as_host(&session, ActionKind::SessionChatRemoved, fields);
    step.dispose_channel(uri);
    let at = step.now();
    step.record(Record::Dispose { channel: id, at });
    step.touch_modified(&session);
}

/// The chat that becomes the default if this one, which goes, was it: the first that takes messages, for that is what a default
/// chat is for (H-155, G-13).
fn next_default(session: &SessionState, gone: &ChannelUri) -> Option<String> {
    if session.default_chat.as_deref() != Some(gone.as_str()) {
        return None;
    }
    let others = || session.chats.iter().filter(|chat| chat.resource != gone.as_str());
    let takes_messages = |chat: &&ChatSummary| {
        let mode = chat.extra.get("interactivity");
        mode.is_none_or(|mode| mode == "full")
    };
    let next = others().find(takes_messages).or_else(|| others().next());
    next.map(|chat| chat.resource.clone())
}
