//! What follows from what: statuses from turns, catalogues from chats, summaries from catalogues, links both ways.

use std::collections::BTreeMap;

use serde_json::Value;

const ACTIVITY: u64 = 0b1_1111;
const IDLE: u64 = 1;
const ERROR: u64 = 2;
const IN_PROGRESS: u64 = 8;
const INPUT_NEEDED: u64 = 24;

type States = BTreeMap<String, Value>;

fn items<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[field].as_array().into_iter().flatten()
}

fn activity(value: &Value) -> u64 {
    value["status"].as_u64().unwrap_or(0) & ACTIVITY
}

/// All of it, for every session and chat there is; `listed` is what the list says of the sessions.
pub fn errors(host: &States, listed: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (uri, state) in host {
        if state.get("turns").is_some() {
            wrong.extend(chat_is_wrong(state).map(|why| format!("{uri}: {why}")));
            wrong.extend(links_are_wrong(host, uri, state));
        } else if state.get("claim").is_some() {
            // A terminal: nothing is derived from it but its entry in the root's list.
        } else if state.get("lifecycle").is_some() {
            wrong.extend(session_is_wrong(host, state).map(|why| format!("{uri}: {why}")));
            let chats = items(state, "chats")
                .filter_map(|chat| chat["resource"].as_str())
                .filter_map(|chat| Some((chat, host.get(chat)?)));
            wrong.extend(crate::blocks::mirrored(state, chats).map(|why| format!("{uri}: {why}")));
            let summary = listed.iter().find(|summary| summary["resource"] == uri.as_str());
            match summary {
                Some(summary) => {
                    wrong.extend(
                        summary_is_wrong(state, summary).map(|why| format!("{uri}: {why}")),
                    );
                }
                None if is_used(host, state) => wrong.push(format!("{uri} is not listed")),
                None => {} // G-28
            }
        }
    }
    wrong
}

/// Whether anything was said or typed in a session.
fn is_used(host: &States, session: &Value) -> bool {
    let has = |value: &Value, field: &str| items(value, field).next().is_some();
    let mut chats = items(session, "chats")
        .filter_map(|chat| host.get(chat["resource"].as_str()?))
        .map(|chat| {
            let draft = &chat["draft"];
            let drafted = has(draft, "attachments")
                || draft["text"].as_str().is_some_and(|text| !text.is_empty());
            let waits = has(chat, "queuedMessages") || chat.get("steeringMessage").is_some();
            drafted || waits || has(chat, "turns") || chat.get("activeTurn").is_some()
        });
    chats.any(|used| used)
}

/// H-174, H-178: the status says what the turns say, and nothing is open in a turn that is over.
fn chat_is_wrong(chat: &Value) -> Option<String> {
    let blocked = |part: &Value| {
        let status = part["toolCall"]["status"].as_str().unwrap_or("");
        let asks = part["kind"] == "inputRequest" && part.get("response").is_none();
        asks || status.starts_with("pending-") || status == "auth-required"
    };
    let last = items(chat, "turns").last();
    let expected: &[u64] = match chat.get("activeTurn") {
        Some(turn) if items(turn, "responseParts").any(blocked) => &[INPUT_NEEDED],
        Some(_) => &[IN_PROGRESS],
        None if last.is_some_and(|turn| turn["state"] == "error") => &[ERROR, IDLE],
        None => &[IDLE],
    };
    if !expected.contains(&activity(chat)) {
        return Some(format!("status {} means something else", chat["status"]));
    }
    if chat.get("steeringMessage").is_some() && chat.get("activeTurn").is_none() {
        return Some("steering waits where no turn runs".to_owned()); // G-08
    }
    for turn in items(chat, "turns") {
        for part in items(turn, "responseParts").filter(|part| part["kind"] == "toolCall") {
            let status = part["toolCall"]["status"].as_str().unwrap_or("");
            if !matches!(status, "completed" | "cancelled") {
                return Some(format!("{} is over, and left {part}", turn["id"]));
            }
        }
    }
    None
}

/// H-148: the catalogue says what the chats say; the default chat is in it.
fn session_is_wrong(host: &States, session: &Value) -> Option<String> {
    for entry in items(session, "chats") {
        let Some(chat) = entry["resource"].as_str().and_then(|chat| host.get(chat)) else {
            return Some(format!("lists a chat that is not there: {entry}"));
        };
        for (field, value) in entry.as_object().into_iter().flatten() {
            if chat.get(field) != Some(value) {
                return Some(format!("lists {field} as {value}, the chat has {}", chat[field]));
            }
        }
        for field in ["activity", "origin", "interactivity", "workingDirectories"] {
            if entry.get(field) != chat.get(field) {
                return Some(format!("does not list {field} {}", chat[field]));
            }
        }
    }
    let default = &session["defaultChat"];
    let known = items(session, "chats").any(|chat| &chat["resource"] == default);
    (!known).then(|| format!("the default chat {default} is not listed"))
}

/// H-123, H-101: activity from the default chat, questions and errors from any; flags of the session.
fn summary_is_wrong(session: &Value, summary: &Value) -> Option<String> {
    let chats: Vec<&Value> = items(session, "chats").collect();
    let any = |bit: u64| chats.iter().any(|chat| activity(chat) == bit);
    let default = chats.iter().find(|chat| chat["resource"] == session["defaultChat"]);
    let expected = if any(INPUT_NEEDED) {
        INPUT_NEEDED
    } else if any(ERROR) {
        ERROR
    } else {
        default.map_or(IDLE, |chat| activity(chat))
    };
    let status = summary["status"].as_u64().unwrap_or(0);
    if status & ACTIVITY != expected {
        return Some(format!("is listed with status {status}, expected {expected}"));
    }
    let flags = session["status"].as_u64().unwrap_or(0) & !ACTIVITY;
    if status & !ACTIVITY != flags {
        return Some(format!("is listed with flags of {status}, has {flags}"));
    }
    let listed: Vec<&Value> = items(summary, "chats").collect();
    let differs = |(listed, chat): (&&Value, &&Value)| {
        let fields = ["resource", "title", "status", "interactivity"];
        let origins = ["kind", "chat", "turnId", "toolCallId"]; // what was selected is not for the list
        fields.iter().any(|field| listed.get(field) != chat.get(field))
            || origins.iter().any(|field| listed["origin"][field] != chat["origin"][field])
    };
    if listed.len() != chats.len() || listed.iter().zip(&chats).any(differs) {
        return Some(format!("is listed with chats {listed:?}, has {chats:?}"));
    }
    ["title", "activity", "defaultChat", "workingDirectories"]
        .iter()
        .find(|field| summary.get(field) != session.get(field))
        .map(|field| format!("is listed with another {field}: {}", summary[field]))
}

/// H-152: a worker names the call that spawned it, and that call's content names the worker.
fn links_are_wrong(host: &States, uri: &str, chat: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let turns = items(chat, "turns").chain(chat.get("activeTurn"));
    for part in turns.flat_map(|turn| items(turn, "responseParts")) {
        let call = &part["toolCall"];
        for content in items(call, "content").filter(|content| content["type"] == "subagent") {
            let worker = content["resource"].as_str().and_then(|worker| host.get(worker));
            let Some(worker) = worker else { continue }; // disposed of since
            let origin = &worker["origin"];
            // A fork shows the same call; the worker belongs to the chat it was spawned in.
            let ours = origin["chat"] == uri || chat["origin"]["kind"] == "fork";
            if origin["kind"] != "tool" || origin["toolCallId"] != call["toolCallId"] || !ours {
                wrong.push(format!("{uri} has {call}, the worker has {origin}"));
            }
        }
    }
    if chat["origin"]["kind"] == "tool" {
        let (parent, call) = (&chat["origin"]["chat"], &chat["origin"]["toolCallId"]);
        let Some(parent) = parent.as_str().and_then(|parent| host.get(parent)) else {
            return wrong; // disposed of since
        };
        let turns = items(parent, "turns").chain(parent.get("activeTurn"));
        let mut calls = turns
            .flat_map(|turn| items(turn, "responseParts"))
            .map(|part| &part["toolCall"])
            .filter(|entry| &entry["toolCallId"] == call);
        // A truncate or the end of the turn before the worker's takes the link from the parent.
        let unlinked = calls.find(|call| {
            let names_us = |content: &Value| content["resource"] == uri;
            call["status"] != "cancelled" && !items(call, "content").any(names_us)
        });
        wrong
            .extend(unlinked.map(|call| format!("{uri} was spawned by a call without it: {call}")));
    }
    wrong
}
