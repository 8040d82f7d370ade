//! The session list: summaries kept true, and sent to everyone who watches the root (H-098 to H-102, H-123), from the first
//! turn, draft or queued message of a session on (G-28).

use serde_json::{Value, json};
use wire::methods::HostNotification;
use wire::state::{ChatSummary, SessionState, status};
use wire::{ChannelUri, Object, compat, rpc};

use crate::channels::{AnnotationCounts, Session};
use crate::record::{ChannelId, Record, SummaryRecord};
use crate::sessions::count_sessions;
use crate::state::Step;

/// Records the session's summary if it changed, and sends what changed.
pub(crate) fn publish(step: &mut Step, uri: &ChannelUri) {
    let session = step.session(uri);
    if !session.is_announced() && session.is_empty() {
        return record(step, uri); // in no list yet; its row is what the sweep finds it by (G-28)
    }
    let summary = summary_of(uri, session);
    if *session.published() == summary {
        return; // nothing that the list shows changed
    }
    let before = step.session_mut(uri).set_published(summary.clone());
    record(step, uri);
    if before.is_empty() {
        return announce(step, &summary);
    }
    let root = ChannelUri::root();
    let changes = changes_between(&before, &summary);
    let params = json!({"channel": root.as_str(), "session": uri.as_str(), "changes": changes});
    step.notify_root(HostNotification::SessionSummaryChanged, &params);
}

/// Announces a session that is not in memory: it is written as it is, and loaded when somebody wants it.
pub(crate) fn announce_stored(
    step: &mut Step,
    uri: &ChannelUri,
    id: ChannelId,
    session: &mut Session,
) {
    let summary = summary_of(uri, session);
    session.set_published(summary.clone());
    step.record(Record::Summary(row_of(uri, id, session)));
    announce(step, &summary);
}

fn announce(step: &mut Step, summary: &Object) {
    count_sessions(step, 1);
    let root = ChannelUri::root();
    let params = json!({"channel": root.as_str(), "summary": summary});
    step.notify_root(HostNotification::SessionAdded, &params);
}

/// Records the session's row in the list.
pub(crate) fn record(step: &mut Step, uri: &ChannelUri) {
    let row = row_of(uri, step.id_of(uri), step.session(uri));
    step.record(Record::Summary(row));
    step.mark_head(uri);
}

fn row_of(uri: &ChannelUri, id: ChannelId, session: &Session) -> SummaryRecord {
    let json = if session.is_announced() { rpc::to_json(session.published()) } else { Vec::new() };
    SummaryRecord {
        session: id,
        uri: uri.clone(),
        modified: session.modified(),
        created: session.created(),
        empty: session.is_empty(),
        creator: session.creator().map(str::to_owned),
        json: json.into(),
    }
}

/// The summary of a session as it is now.
fn summary_of(uri: &ChannelUri, session: &Session) -> Object {
    let state = session.state();
    let mut summary = Object::new();
    let mut put = |key: &str, value: Value| summary.insert(key.to_owned(), value);
    put("resource", json!(uri.as_str()));
    put("provider", json!(state.provider));
    put("title", json!(state.title));
    put("status", json!(aggregate_status(state)));
    if let Some(activity) = &state.activity {
        put("activity", json!(activity));
    }
    put("createdAt", json!(session.created().to_rfc3339()));
    put("modifiedAt", json!(session.modified().to_rfc3339()));
    if let Some(directories) = &state.working_directories {
        put("workingDirectories", json!(directories));
    }
    if let Some(changes) = session.changes() {
        put("changes", changes.clone());
    }
    let chats = state.chats.iter().map(list_entry).collect();
    put("chats", Value::Array(chats));
    if let Some(chat) = &state.default_chat {
        put("defaultChat", json!(chat));
    }
    let counts = session.annotation_counts();
    if counts != AnnotationCounts::default() || session.published().contains_key("annotations") {
        put(
            "annotations",
            json!({
                "resource": format!("{uri}/annotations"),
                "annotationCount": counts.annotations,
                "entryCount": counts.entries,
            }),
        );
    }
    if let Some(selection) = compat::selection_of(&state.extra) {
        put("_meta", json!({compat::SELECTION_META: selection}));
    }
    summary
}
/// Activity from the default chat (else the latest), InputNeeded and Error from any, flags of the session itself.
fn aggregate_status(state: &SessionState) -> u32 {
    let activity = |chat: &ChatSummary| chat.status & status::ACTIVITY_MASK;
    let default = state.default_chat.as_deref().and_then(|chat| state.chat(chat));
    let leading =
        default.or_else(|| state.chats.iter().max_by(|a, b| a.modified_at.cmp(&b.modified_at)));
    let promoted = [status::INPUT_NEEDED, status::ERROR]
        .into_iter()
        .find(|wanted| state.chats.iter().any(|chat| activity(chat) == *wanted));
    let bits = promoted.or(leading.map(activity)).unwrap_or(status::IDLE);
    status::with_activity(state.status, bits)
}

fn list_entry(chat: &ChatSummary) -> Value {
    let mut entry = json!({"resource": chat.resource, "title": chat.title, "status": chat.status});
    for key in ["origin", "interactivity", "changes"] {
        if let Some(value) = chat.extra.get(key) {
            entry[key] = value.clone();
        }
    }
    // The text a side chat is about stays in the session: a list need not carry it.
    if let Some(origin) = entry.get_mut("origin").and_then(Value::as_object_mut) {
        origin.shift_remove("selection");
    }
    entry
}

/// Only what changed, never what identifies; a removed field is sent as an empty text (H-099, H-102).
fn changes_between(before: &Object, after: &Object) -> Object {
    let identity = ["resource", "provider", "createdAt"];
    debug_assert!(
        identity.iter().all(|key| before.get(*key) == after.get(*key)),
        "what identifies a session never changes"
    );
    let mut changes: Object = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if before.contains_key("activity") && !after.contains_key("activity") {
        changes.insert("activity".to_owned(), json!(""));
    }
    for key in identity {
        changes.shift_remove(key);
    }
    changes
}
