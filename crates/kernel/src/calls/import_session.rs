//! `x-importSession`: a session of another host, or of an export, with all its turns (ADR 0050).
//!
//! Promises: all of it or nothing; what it may do is this host's default, whatever it says. It is written and not loaded: it is in
//! memory when somebody opens it, like any session at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use wire::ext::import_session::{ImportSessionParams, ImportedTurn};
use wire::rpc::code;
use wire::state::{ChatState, ChatSummary, ConfigState, SessionState, Turn, status};
use wire::{ChannelUri, Id, Object, RpcError, Timestamp, bounds, published, rpc};

use super::uri;
use crate::channels::{Channel, Chat, Session};
use crate::config;
use crate::io::PeerId;
use crate::load::need_channels;
use crate::pause::{HandlerAnswers, RequestStop};
use crate::record::{ChannelId, Record};
use crate::refusal::{CONTENT_DEPTH_MAX, depth_of};
use crate::state::{Kernel, Step};
use crate::summary;

/// Flags of a session that are people's, and stay.
const FLAGS: u32 = status::IS_READ | status::IS_ARCHIVED;

/// A session that can be imported.
pub(super) struct ImportedSession {
    uri: ChannelUri,
    state: SessionState,
    chats: Vec<(ChannelUri, ChatState, Vec<Arc<Turn>>)>,
    created: Timestamp,
    modified: Timestamp,
}

/// The session that is to be made: everything that can be wrong with it is checked.
pub(super) fn gather(
    kernel: &Kernel,
    params: &ImportSessionParams,
    answers: &HandlerAnswers,
) -> Result<ImportedSession, RequestStop> {
    check_values(kernel, "`session`", &params.session)?;
    let session: Value = serde_json::from_str(&params.session)
        .map_err(|error| uri::bad(format!("`session` is not JSON: {error}")))?;
    let uri = uri::parse("session.resource", session["resource"].as_str().unwrap_or(""))?;
    uri::check_names_session(&uri)?;
    let (created, modified) = times_of(kernel, &session);
    let state = read_state(kernel, session)?;
    let chats = chat_uris(kernel, &uri, &state)?;
    let wanted: Vec<(ChannelUri, u32)> =
        chats.iter().chain([&uri]).map(|uri| (uri.clone(), 1)).collect();
    let exist = need_channels(kernel, &wanted, answers)?;
    uri::check_writable(kernel)?;
    if let Some(((taken, _), _)) = wanted.iter().zip(exist).find(|(_, exists)| *exists) {
        let message = format!("{taken} exists already");
        return Err(RpcError::new(code::SESSION_ALREADY_EXISTS, message).into());
    }
    let mut turns = read_turns(kernel, &params.turns)?;
    let chats: Vec<_> = chats
        .into_iter()
        .zip(&state.chats)
        .map(|(uri, entry)| {
            let turns = turns.remove(uri.as_str()).unwrap_or_default();
            (uri, chat_state(&state, entry), turns)
        })
        .collect();
    if let Some((unknown, _)) = turns.first_key_value() {
        let message = format!("`turns` names a chat that the session does not list: {unknown}");
        return Err(uri::bad(message).into());
    }
    if chats.iter().all(|(_, _, turns)| turns.is_empty()) {
        return Err(uri::bad("`turns` holds none: there is nothing to import").into());
    }
    Ok(ImportedSession { uri, state, chats, created, modified })
}

/// When it was made and changed last, as it says; never in the future, or it would stay on top of the list.
fn times_of(kernel: &Kernel, session: &Value) -> (Timestamp, Timestamp) {
    let now = kernel.now();
    let time = |field: &str| {
        session[field].as_str().and_then(Timestamp::parse_rfc3339).map(|at| at.min(now))
    };
    let modified = time("modifiedAt").unwrap_or(now);
    (time("createdAt").unwrap_or(modified).min(modified), modified)
}

/// The state without what was true only there and then: who was active, what was waited for, what the agent was allowed.
fn read_state(kernel: &Kernel, mut session: Value) -> Result<SessionState, RpcError> {
    let bad = |error: &dyn std::fmt::Display| uri::bad(format!("`session`: {error}"));
    if let Value::Object(fields) = &mut session {
        for field in ["resource", "createdAt", "modifiedAt"] {
            fields.shift_remove(field);
        }
    }
    if let Err(error) = published_session(&session) {
        return Err(bad(&error));
    }
    if let Value::Object(fields) = &mut session {
        for field in ["config", "customizations", "inputNeeded", "activity"] {
            fields.shift_remove(field);
        }
        fields.insert("activeClients".to_owned(), json!([]));
        bounds::check_imported_session(fields, |bound| kernel.limits().of(bound))
            .map_err(|over| bad(&over))?;
        check_depth("`session`", &session)?;
    }
    let state = SessionState::from_value(session).map_err(|error| bad(&error))?;
    check_directories(state.working_directories.as_deref())?;
    let agent = kernel.find_agent(&state.provider);
    let config = agent.and_then(|agent| {
        let values = config::with_defaults(&agent.config_schema, &Object::new()).ok()?;
        Some(ConfigState { schema: agent.config_schema.clone(), values, extra: Object::new() })
    });
    let chats = state.chats.into_iter().map(|chat| ChatSummary {
        status: status::with_activity(chat.status & FLAGS, status::IDLE),
        activity: None,
        ..chat
    });
    Ok(SessionState {
        status: status::with_activity(state.status & FLAGS, status::IDLE),
        lifecycle: "ready".to_owned(),
        chats: chats.collect(),
        config,
        ..state
    })
}

/// Whether clients can read the state.
fn published_session(session: &Value) -> Result<(), serde_json::Error> {
    published::state::SessionState::deserialize(session).map(drop)
}

/// Bounds what a text costs to decode, before it is.
fn check_values(kernel: &Kernel, what: &str, json: &str) -> Result<(), RpcError> {
    let most = kernel.limits().import_values_max;
    if rpc::measure(json).values > most {
        Err(uri::bad(format!("{what} has at most {most} JSON values (import_values_max)")))
    } else {
        Ok(())
    }
}

fn check_depth(what: &str, value: &Value) -> Result<(), RpcError> {
    if depth_of(value) > CONTENT_DEPTH_MAX {
        Err(uri::bad(format!("{what} nests at most {CONTENT_DEPTH_MAX} levels deep")))
    } else {
        Ok(())
    }
}

fn check_directories(directories: Option<&[String]>) -> Result<(), RpcError> {
    let mut directories = directories.into_iter().flatten();
    match directories.find(|directory| wire::file_uri::path_of(directory).is_none()) {
        Some(_) => Err(uri::bad("a working directory is an absolute `file:` URI")),
        None => Ok(()),
    }
}

/// The chats of the session, each once; the default one among them.
fn chat_uris(
    kernel: &Kernel,
    session: &ChannelUri,
    state: &SessionState,
) -> Result<Vec<ChannelUri>, RpcError> {
    if state.chats.is_empty() {
        return Err(uri::bad("`session.chats` has at least one entry"));
    }
    let default = state.default_chat.as_deref();
    if default.is_none_or(|default| state.chat(default).is_none()) {
        return Err(uri::bad("`session.defaultChat` must be one of its chats"));
    }
    let mut seen = BTreeSet::new();
    let parse = |chat: &ChatSummary| {
        let parsed = uri::parse("session.chats", &chat.resource)?;
        uri::check_names_chat(kernel, session, &parsed)?;
        check_directories(own_directories(chat).as_deref())?;
        if seen.insert(parsed.clone()) {
            Ok(parsed)
        } else {
            Err(uri::bad("`session.chats` names a chat twice"))
        }
    };
    state.chats.iter().map(parse).collect()
}

type TurnsByChat = BTreeMap<String, Vec<Arc<Turn>>>;

fn read_turns(kernel: &Kernel, lines: &str) -> Result<TurnsByChat, RpcError> {
    let most = kernel.limits().turn_bytes_max;
    let mut turns = TurnsByChat::new();
    let mut ids = BTreeSet::new();
    for (index, line) in lines.lines().enumerate() {
        let place = format!("`turns`, line {}", index + 1);
        let bad = |why: String| uri::bad(format!("{place}: {why}"));
        let turns_max = kernel.limits().import_turns_max;
        if index >= turns_max {
            let why = format!("a session has at most {turns_max} turns (import_turns_max)");
            return Err(bad(why));
        }
        if line.len() > most {
            return Err(bad(format!("a turn has at most {most} bytes (turn_bytes_max)")));
        }
        check_values(kernel, &place, line)?;
        let imported: ImportedTurn =
            serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
        bounds::check_imported_turn(&imported.turn, |bound| kernel.limits().of(bound))
            .map_err(|over| bad(over.to_string()))?;
        let turn = Value::Object(imported.turn);
        check_depth(&place, &turn)?;
        check_readable(&turn).map_err(|error| bad(error.to_string()))?;
        let turn = Turn::from_value(&turn).map_err(|error| bad(error.to_string()))?;
        if !ids.insert((imported.chat.clone(), turn.id.clone())) {
            return Err(bad("a turn id that its chat has already".to_owned()));
        }
        turns.entry(imported.chat).or_default().push(Arc::new(turn));
    }
    Ok(turns)
}

/// Whether clients can read the turn.
fn check_readable(turn: &Value) -> Result<(), serde_json::Error> {
    published::state::Turn::deserialize(turn).map(drop)
}

/// The chat that an entry of the catalogue describes.
fn chat_state(session: &SessionState, entry: &ChatSummary) -> ChatState {
    let mut state =
        ChatState::new(&entry.resource, &entry.title, entry.status, entry.modified_at.clone());
    state.working_directories =
        own_directories(entry).or_else(|| session.working_directories.clone());
    for key in ["origin", "interactivity"] {
        if let Some(value) = entry.extra.get(key) {
            state.extra.insert(key.to_owned(), value.clone());
        }
    }
    state
}

/// The directories of a chat that has its own.
fn own_directories(entry: &ChatSummary) -> Option<Vec<String>> {
    let own = entry.extra.get("workingDirectories")?.as_array()?.iter();
    own.map(|directory| directory.as_str().map(str::to_owned)).collect()
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, imported: ImportedSession) {
    let ImportedSession { uri, state, chats, created, modified } = imported;
    let now = step.now();
    let session_id = ChannelId(step.next_seq().0);
    for (chat, state, turns) in chats {
        let chat_id = ChannelId(step.next_seq().0);
        let seq = step.seq();
        let mut channel = Chat::new(state, uri.clone(), session_id);
        for turn in &turns {
            channel.note_host_like_turn(&turn.id, seq);
        }
        let channel = Channel::chat(chat_id, now, channel);
        step.record_channel(&chat, &channel);
        for (n, turn) in (0_u64..).zip(turns) {
            step.record(Record::Turn { chat: chat_id, n, turn });
        }
    }
    let mut session = Session::imported(state, created, modified);
    summary::announce_stored(step, &uri, session_id, &mut session);
    let channel = Channel::session(session_id, now, session);
    step.record_channel(&uri, &channel);
    step.respond(peer, id, &json!({"session": uri.as_str()}));
}
