//! A chat is made: empty, with a task, or with turns of another one.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::ActionKind;
use wire::ChannelUri;
use wire::state::{ChatState, Turn, status};

use super::movable::is_made_by_people;
use crate::channels::{Channel, Chat, InitialChat};
use crate::io::Compacted;
use crate::journal_query::TurnPage;
use crate::record::{ChannelId, Record};
use crate::state::Step;

/// A chat to be made.
pub(crate) struct NewChat {
    pub uri: ChannelUri,
    pub title: String,
    /// `ChatOrigin`.
    pub origin: Value,
    pub interactivity: Option<String>,
    pub working_directories: Option<Vec<String>>,
    pub source: Option<ForkSource>,
    /// What a worker is given, and how deep it works.
    pub brief: Option<Bytes>,
    pub depth: usize,
    /// `_meta` of its state.
    pub meta: Option<Value>,
}

/// The turns of another chat that a new one begins with.
pub(crate) struct ForkSource {
    /// The chat and its last turn that counts; none if no turn was completed yet.
    pub through: Option<(ChannelId, u64)>,
    /// The newest of them. A side chat shows none of them: they are its context only (H-144).
    pub page: TurnPage,
    pub visible: bool,
    /// Of a side chat: the turn that was running, as it stood.
    pub partial: Option<Arc<Turn>>,
    /// Of a fork: what its last turn can be resumed with.
    pub checkpoint: Option<(String, Bytes)>,
    /// Ids among the turns that the host could come to make itself.
    pub host_like_turn_ids: BTreeSet<String>,
    /// How far back the agent remembers of them.
    pub compacted: Option<Compacted>,
    /// What the agent noted of what its model refused of them.
    pub refusals: Option<String>,
    /// Of a fork: what the agent noted about the source.
    pub agent_notes: Option<String>,
}

/// Makes a chat and enters it into its session's catalogue. Nothing can go wrong here: everything was checked before.
pub(crate) fn create_chat(step: &mut Step, session: &ChannelUri, new: NewChat) {
    let session_id = step.id_of(session);
    let as_of = step.seq();
    let id = ChannelId(step.next_seq().0);
    let uri = new.uri.clone();
    let mut state = ChatState::new(uri.as_str(), &new.title, status::IDLE, step.now().to_rfc3339());
    state.working_directories = new.working_directories;
    if is_made_by_people(uri.as_str(), Some(&new.origin)) {
        state.extra.insert("movable".to_owned(), true.into());
    }
    state.extra.insert("origin".to_owned(), new.origin);
    if let Some(meta) = new.meta {
        state.extra.insert("_meta".to_owned(), meta);
    }
    if let Some(mode) = new.interactivity {
        // The enum is closed: clients could not read the whole chat for a value they do not know (H-051).
        let known = matches!(mode.as_str(), "full" | "read-only" | "hidden");
        let mode = if known { mode } else { "read-only".to_owned() };
        let mode = Value::String(mode);
        state.extra.insert("interactivity".to_owned(), mode);
    }
    let mut beginning =
        InitialChat { brief: new.brief, depth: new.depth, ..InitialChat::default() };
    let source = new.source.map(|source| begin_with(&mut beginning, source));
    let checkpoint = beginning.checkpoint.clone();
    let chat = Chat::beginning_with(state, session.clone(), session_id, beginning);
    let channel = Channel::chat(id, step.now(), chat);
    step.insert_channel(uri.clone(), channel);
    step.write_head(&uri);
    if let Some(source) = source {
        record_source(step, id, as_of, source);
    }
    if let Some((turn_id, data)) = checkpoint {
        let data = Some(data);
        step.record(Record::Checkpoint { chat: id, turn_id, data });
    }
    let summary = chat_summary(step.chat(&uri).state());
    step.act_as_host(session, ActionKind::SessionChatAdded, json!({"summary": summary}));
    debug_assert!(
        step.session(session).state().chat(uri.as_str()).is_some(),
        "a chat is in the catalogue of its session"
    );
}

/// What the rows of a new chat say of where its turns come from.
struct SourceRows {
    through: Option<(ChannelId, u64)>,
    partial: Option<(u64, Arc<Turn>)>,
    visible: bool,
}

fn begin_with(beginning: &mut InitialChat, source: ForkSource) -> SourceRows {
    beginning.next_n = source.through.map_or(0, |(_, n)| n + 1);
    let compacted = source.compacted;
    beginning.compacted = compacted.filter(|compacted| compacted.is_before(beginning.next_n));
    beginning.refusals = source.refusals;
    beginning.agent_notes = source.agent_notes;
    if source.visible {
        beginning.turns = source.page;
    }
    beginning.host_like_turn_ids = source.host_like_turn_ids;
    beginning.checkpoint = source.checkpoint;
    let partial = source.partial.map(|turn| {
        beginning.next_n += 1;
        (beginning.next_n - 1, turn)
    });
    SourceRows { through: source.through, partial, visible: source.visible }
}

fn record_source(step: &mut Step, id: ChannelId, as_of: crate::record::Seq, rows: SourceRows) {
    let mut shown = true;
    if let Some((source, through_n)) = rows.through {
        step.record(Record::Fork { chat: id, source, through_n, as_of });
        shown = rows.visible;
    }
    if let Some((n, turn)) = rows.partial {
        step.record(Record::Turn { chat: id, n, turn });
        shown = false;
    }
    if !shown {
        // They stay reachable as its context, and are never shown.
        let at = step.seq();
        step.record(Record::HideTurns { chat: id, from_n: 0, at });
    }
}

/// `ChatSummary`: what the catalogue says of a chat (H-148).
pub(crate) fn chat_summary(state: &ChatState) -> Value {
    let mut summary = json!({
        "resource": state.resource,
        "title": state.title,
        "status": state.status,
        "modifiedAt": state.modified_at,
    });
    if let Some(activity) = &state.activity {
        summary["activity"] = json!(activity);
    }
    for key in ["origin", "interactivity", "movable"] {
        if let Some(value) = state.extra.get(key) {
            summary[key] = value.clone();
        }
    }
    if let Some(directories) = &state.working_directories {
        summary["workingDirectories"] = json!(directories);
    }
    summary
}
