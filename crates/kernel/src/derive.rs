//! What is derived from the channels that changed in a step, computed once at its end: what a session's catalogue says of its
//! chats, what the session waits for, its activity, its read flag, its summary. Actions come first, in the order of G-24, then
//! the notifications of the root.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ActionKind;
use wire::state::{ChatState, ResponsePart, SessionState};
use wire::{ChannelUri, Object};

use crate::channels::AnnotationCounts;
use crate::chats::chat_summary;
use crate::record::{ChannelId, Record};
use crate::state::Step;
use crate::{summary, terminal};

/// Brings everything derived in line with what changed.
pub(crate) fn derive(step: &mut Step) {
    let mut sessions = Vec::new();
    let mut note = |session: &ChannelUri| {
        if !sessions.contains(session) {
            sessions.push(session.clone());
        }
    };
    for uri in step.take_changed() {
        match step.find_chat(&uri).map(|chat| chat.session().clone()) {
            Some(session) => {
                sync_waiting_messages(step, &uri);
                sync_catalogue(step, &uri);
                sync_input_needed(step, &uri);
                note(&session);
            }
            None if step.find_plain(&uri).is_some() => {
                terminal::sync_list(step, &uri);
                if let Some(session) = sync_annotation_counts(step, &uri) {
                    note(&session);
                }
            }
            // A chat that was disposed of changed its session, too.
            None if step.find_session(&uri).is_some() => note(&uri),
            None => {}
        }
    }
    for session in step.take_unread() {
        // A session that was disposed of in this step is read by nobody.
        let Some(found) = step.find_session(&session) else { continue };
        if found.is_read() {
            step.act_as_host(&session, ActionKind::SessionIsReadChanged, json!({"isRead": false}));
        }
        note(&session);
    }
    for session in &sessions {
        remove_input_of_gone_chats(step, session);
        sync_activity(step, session);
    }
    for session in &sessions {
        debug_assert!(
            waits_for_own_chats(step.session(session).state()),
            "a session waits for nothing but its own chats"
        );
        summary::publish(step, session);
    }
    step.take_changed(); // what deriving changed is derived already
}

/// The session's entry in the list counts its annotations (H-291). The session, if these are its annotations.
fn sync_annotation_counts(step: &mut Step, uri: &ChannelUri) -> Option<ChannelUri> {
    let plain = step.find_plain(uri)?;
    let annotations = plain.state().annotations()?;
    let counts = AnnotationCounts {
        annotations: annotations.annotations.len(),
        entries: annotations.entry_count(),
    };
    let session = plain.session()?.clone();
    if step.session(&session).annotation_counts() != counts {
        step.session_mut(&session).set_annotation_counts(counts);
    }
    Some(session)
}

/// Messages that wait no more are forgotten, and the session knows whether the chat holds input: it is not empty then (G-28).
fn sync_waiting_messages(step: &mut Step, uri: &ChannelUri) {
    if step.chat(uri).knows_gone_messages() {
        for id in step.chat_mut(uri).forget_gone_messages() {
            step.record(Record::MessageGone { id });
        }
    }
    let chat = step.chat(uri);
    let (holds, session) = (chat.holds_input(), chat.session().clone());
    if step.session(&session).holds_input_of(uri) != holds {
        step.session_mut(&session).set_holds_input_of(uri, holds);
        summary::record(step, &session);
    }
}

/// The session's catalogue says what the chat says: status, activity, time, directories (H-148, G-24).
fn sync_catalogue(step: &mut Step, uri: &ChannelUri) {
    let chat = step.chat(uri);
    let (state, session) = (chat.shared_state(), chat.session().clone());
    let Some(entry) = step.session(&session).state().chat(uri.as_str()) else {
        return; // the session removed it in this step
    };
    let directories = state.working_directories.as_ref().map(|all| json!(all));
    let cleared = entry.activity.is_some() && state.activity.is_none();
    let activity_changed = entry.activity != state.activity;
    let moved = entry.extra.get("movable") != state.extra.get("movable");
    if cleared || moved || entry.extra.get("workingDirectories") != directories.as_ref() {
        // A partial entry cannot clear a field: the whole entry is sent again (H-149).
        let mut summary = chat_summary(&state);
        summary["title"] = json!(entry.title);
        step.act_as_host(&session, ActionKind::SessionChatAdded, json!({"summary": summary}));
    } else {
        let mut changes = Object::new();
        if entry.status != state.status {
            changes.insert("status".to_owned(), json!(state.status));
        }
        if activity_changed {
            changes.insert("activity".to_owned(), json!(state.activity));
        }
        if entry.modified_at != state.modified_at {
            changes.insert("modifiedAt".to_owned(), json!(state.modified_at));
        }
        if !changes.is_empty() {
            let fields = json!({"chat": uri.as_str(), "changes": changes});
            step.act_as_host(&session, ActionKind::SessionChatUpdated, fields);
        }
    }
    if activity_changed && let Some(activity) = &state.activity {
        // The session shows the activity of the chat that spoke of it last (G-05).
        let fields = json!({"activity": activity});
        step.act_as_host(&session, ActionKind::SessionActivityChanged, fields);
    }
}

/// When the chat whose activity a session shows falls silent or is gone, it shows that of another (G-05, H-123).
fn sync_activity(step: &mut Step, session: &ChannelUri) {
    let state = step.session(session).state();
    let mut activities = state.chats.iter().filter_map(|chat| chat.activity.as_ref());
    let shown = state.activity.as_ref();
    if shown.is_none() || activities.any(|activity| Some(activity) == shown) {
        return; // nothing is shown, or what is shown is what some chat is at
    }
    let another = state.chats.iter().find_map(|chat| chat.activity.clone());
    let fields = json!({"activity": another});
    step.act_as_host(session, ActionKind::SessionActivityChanged, fields);
}

/// The session's `inputNeeded` says what the chat's active turn waits for (H-196, H-220, H-221).
fn sync_input_needed(step: &mut Step, uri: &ChannelUri) {
    let (chat, id) = (step.chat(uri), step.id_of(uri));
    let session = chat.session().clone();
    let published: Vec<Value> = step
        .session(&session)
        .state()
        .input_needed
        .iter()
        .filter(|entry| entry["chat"] == uri.as_str())
        .cloned()
        .collect();
    if published.is_empty() && chat.state().active_turn.is_none() {
        return; // nothing was waited for, and nothing is
    }
    let state: Arc<ChatState> = chat.shared_state();
    let wanted = input_needed_by(&state, id);
    for entry in &published {
        if !wanted.iter().any(|other| other["id"] == entry["id"]) {
            let fields = json!({"id": entry["id"]});
            step.act_as_host(&session, ActionKind::SessionInputNeededRemoved, fields);
        }
    }
    for entry in wanted {
        if !published.contains(&entry) {
            let fields = json!({"request": entry});
            step.act_as_host(&session, ActionKind::SessionInputNeededSet, fields);
        }
    }
}

fn waits_for_own_chats(session: &SessionState) -> bool {
    let mut needed = session.input_needed.iter();
    needed.all(|entry| is_of_own_chat(session, entry))
}

/// Whether what a session waits for is of a chat that it has.
fn is_of_own_chat(session: &SessionState, entry: &Value) -> bool {
    let chat = entry["chat"].as_str().unwrap_or("");
    session.chat(chat).is_some()
}

/// What a chat that is gone waited for is not waited for any more.
fn remove_input_of_gone_chats(step: &mut Step, session: &ChannelUri) {
    let state = step.session(session).state();
    let needed = state.input_needed.iter();
    let gone: Vec<Value> = needed
        .filter(|entry| !is_of_own_chat(state, entry))
        .map(|entry| entry["id"].clone())
        .collect();
    for id in gone {
        step.act_as_host(session, ActionKind::SessionInputNeededRemoved, json!({"id": id}));
    }
}

/// What a chat waits for, in the order it stands in its turn. Call and request ids are never reused in a chat, and the chat's
/// number never in the host: so these ids are unique.
fn input_needed_by(state: &ChatState, id: ChannelId) -> Vec<Value> {
    let Some(turn) = &state.active_turn else {
        return Vec::new(); // only a turn that runs waits for somebody
    };
    let entry = |part: &ResponsePart| match part.kind() {
        "inputRequest" if part.0.get("response").is_none_or(Value::is_null) => {
            let request = part.0.get("request")?;
            let name = request["id"].as_str()?;
            Some(json!({
                "kind": "chatInput",
                "id": format!("n{}-{name}", id.0),
                "chat": state.resource,
                "request": request,
            }))
        }
        "toolCall" => {
            let call = part.0.get("toolCall")?;
            let name = call["toolCallId"].as_str()?;
            let kind = match call["status"].as_str()? {
                "pending-confirmation" | "pending-result-confirmation" => "toolConfirmation",
                "auth-required" => "toolAuthentication",
                "running" if call["contributor"]["kind"] == "client" => "toolClientExecution",
                _ => return None,
            };
            let mut entry = json!({
                "kind": kind,
                "id": format!("n{}-{name}", id.0),
                "chat": state.resource,
                "turnId": turn.id,
            });
            if kind == "toolClientExecution" {
                entry["clientId"] = call["contributor"]["clientId"].clone();
            }
            entry["toolCall"] = call.clone();
            Some(entry)
        }
        _ => None,
    };
    turn.parts.iter().filter_map(entry).collect()
}
