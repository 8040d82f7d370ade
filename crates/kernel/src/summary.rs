//! The session list: summaries kept true, and told to everyone who watches the root (H-098 to H-102, H-123).

use serde_json::{Value, json};
use wire::state::{ChatSummary, SessionState, status};
use wire::{ChannelUri, Object, compat, rpc};

use crate::Kernel;
use crate::record::{Record, SummaryRecord};

impl Kernel {
    /// Something people would call a change happened in the session: it moves up in the list.
    pub(crate) fn touch_modified(&mut self, session: &ChannelUri) {
        let now = self.now;
        if let Some(channel) = self.session_mut(session) {
            channel.modified = now;
        }
        self.dirty.insert(session.clone());
        self.undo.touch(session);
    }

    pub(crate) fn publish_session_of(&mut self, chat: &ChannelUri) {
        if let Some(session) = self.chat(chat).map(|chat| chat.session.clone()) {
            self.publish(&session);
        }
    }

    /// Something in the session changed: its summary is told at the end of the step, after all actions (G-24).
    pub(crate) fn publish(&mut self, uri: &ChannelUri) {
        self.unpublished.insert(uri.clone());
    }

    pub(crate) fn publish_changed(&mut self) {
        for session in std::mem::take(&mut self.unpublished) {
            self.publish_now(&session);
        }
    }

    /// Records the session's summary if it changed, and tells what changed.
    pub(crate) fn publish_now(&mut self, uri: &ChannelUri) {
        let Some(summary) = self.summary_of(uri) else {
            return;
        };
        let Some(session) = self.session_mut(uri) else {
            return;
        };
        if session.published == summary {
            return;
        }
        let before = std::mem::replace(&mut session.published, summary.clone());
        self.undo.touch(uri);
        self.record_summary(uri);
        if before.is_empty() {
            let params = |summary: &Object| json!({"channel": ChannelUri::root().as_str(), "summary": summary});
            let (now, older) = (params(&summary), params(&for_older(summary)));
            self.notify_root("root/sessionAdded", &now, Some(&older));
            return;
        }
        let changes = changes_between(&before, &summary);
        let params = |changes: &Object| json!({"channel": ChannelUri::root().as_str(), "session": uri.as_str(), "changes": changes});
        let older = for_older(changes.clone());
        let older = (!older.is_empty()).then(|| params(&older));
        self.notify_root(
            "root/sessionSummaryChanged",
            &params(&changes),
            older.as_ref(),
        );
    }

    pub(crate) fn record_summary(&mut self, uri: &ChannelUri) {
        let Some(id) = self.channels.get(uri).map(|channel| channel.id) else {
            return;
        };
        let Some(session) = self.session(uri) else {
            return;
        };
        let record = SummaryRecord {
            session: id,
            uri: uri.clone(),
            modified: session.modified,
            created: session.created,
            empty: !session.had_turn && session.waiting.is_empty(),
            creator: session.creator.clone(),
            json: rpc::to_json(&session.published).into(),
        };
        self.out.records.push(Record::Summary(record));
        self.dirty.insert(uri.clone());
    }

    /// The summary of a session that is in memory, as it is now.
    pub(crate) fn summary_of(&self, uri: &ChannelUri) -> Option<Object> {
        let session = self.session(uri)?;
        let state = &*session.state;
        let mut summary = Object::new();
        let mut put = |key: &str, value: Value| summary.insert(key.to_owned(), value);
        put("resource", json!(uri.as_str()));
        put("provider", json!(state.provider));
        put("title", json!(state.title));
        put("status", json!(aggregate_status(state)));
        if let Some(activity) = &state.activity {
            put("activity", json!(activity));
        }
        put("createdAt", json!(session.created.to_rfc3339()));
        put("modifiedAt", json!(session.modified.to_rfc3339()));
        if let Some(directories) = &state.working_directories {
            put("workingDirectories", json!(directories));
        }
        put(
            "chats",
            Value::Array(state.chats.iter().map(compact).collect()),
        );
        if let Some(chat) = &state.default_chat {
            put("defaultChat", json!(chat));
        }
        Some(summary)
    }
}

/// Activity from the default chat (else the latest), InputNeeded and Error from any, flags of the session itself.
fn aggregate_status(state: &SessionState) -> u32 {
    let activity = |chat: &ChatSummary| chat.status & status::ACTIVITY_MASK;
    let default = state
        .default_chat
        .as_deref()
        .and_then(|chat| state.chat(chat));
    let leading = default.or_else(|| {
        state
            .chats
            .iter()
            .max_by(|a, b| a.modified_at.cmp(&b.modified_at))
    });
    let promoted = [status::INPUT_NEEDED, status::ERROR]
        .into_iter()
        .find(|wanted| state.chats.iter().any(|chat| activity(chat) == *wanted));
    let bits = promoted.or(leading.map(activity)).unwrap_or(status::IDLE);
    status::with_activity(state.status, bits)
}

fn compact(chat: &ChatSummary) -> Value {
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

/// Only what changed, never what identifies; a field that went away is told as an empty text (H-099, H-102).
fn changes_between(before: &Object, after: &Object) -> Object {
    let mut changes: Object = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if before.contains_key("activity") && !after.contains_key("activity") {
        changes.insert("activity".to_owned(), json!(""));
    }
    for key in ["resource", "provider", "createdAt"] {
        changes.shift_remove(key);
    }
    changes
}

fn for_older(mut summary: Object) -> Object {
    compat::down_summary(wire::Generation::V0_9, &mut summary);
    summary
}
