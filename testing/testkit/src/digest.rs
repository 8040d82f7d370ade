//! What a kernel knows, as one JSON value, and which of it can be compared with another kernel.
//!
//! Promises: every section of a digest is compared. What a kernel knows and no digest has, because a fresh start cannot have
//! it alike:
//! - what a connection was served, its floors and the turns it was sent: that is of its past. Floors that count as stored
//!   are compared with the journal instead;
//! - which clients' rows are untrue: a kernel that never could write has stored nothing, and trusts what it finds;
//! - since when a client is gone: a fresh start gives every one its grace again;
//! - tasks that are postponed, other than to close a turn: a fresh start finds its work in what is open;
//! - requests to clients that no agent waits for, questions to the journal, timers: they are out already;
//! - how far housekeeping has come, and how renders ended.
//!
//! Must not know: why two kernels are compared.

use serde_json::Value;

/// Peers that wait for an answer of their host: what they are about to become cannot be compared.
fn is_waiting(peer: &Value) -> bool {
    peer["waiting"] == true
}

fn is_anyone_waiting(digest: &Value) -> bool {
    let peers = digest["peers"].as_object();
    peers.is_some_and(|peers| peers.values().any(is_waiting))
}

/// Where clients are active, without sessions that are still being read.
fn without_sessions(active: &Value, reading: &Value) -> Value {
    let reading = reading.as_array().cloned().unwrap_or_default();
    let clients = active.as_object().into_iter().flatten().filter_map(|(client, sessions)| {
        let mut sessions = sessions.as_array().cloned().unwrap_or_default();
        sessions.retain(|session| !reading.contains(session));
        (!sessions.is_empty()).then(|| (client.clone(), Value::Array(sessions)))
    });
    Value::Object(clients.collect())
}

/// Chats with a turn that a fresh start closes and the other does not. One whose session is being created goes on by itself.
fn missing_chats<'a>(live: &Value, fresh: &'a Value) -> Vec<&'a str> {
    let channels = fresh["channels"].as_object().into_iter().flatten();
    let creating: Vec<&Value> = channels
        .filter(|(_, state)| state["lifecycle"] == "creating")
        .flat_map(|(_, state)| state["chats"].as_array().into_iter().flatten())
        .map(|chat| &chat["resource"])
        .collect();
    let live = live.as_array().cloned().unwrap_or_default();
    let chats = fresh["chatsToClose"].as_array().into_iter().flatten();
    chats
        .filter(|chat| !live.contains(chat) && !creating.contains(chat))
        .filter_map(Value::as_str)
        .collect()
}

/// Where two digests differ, in words. Of channels and peers those are compared that the first one has.
pub fn differences(live: &Value, fresh: &Value) -> Vec<String> {
    let mut different = Vec::new();
    let sections = live.as_object().into_iter().flatten();
    for (section, value) in sections {
        let other = &fresh[section];
        match section.as_str() {
            "privateRecords" => {
                compare_entries(section, value, other, |a, b| a != b, &mut different);
            }
            "channels" => compare_entries(section, value, other, channels_differ, &mut different),
            "peers" => compare_entries(section, value, other, peers_differ, &mut different),
            "watchers" if is_anyone_waiting(live) => {}
            "sessionsToRevive" => {} // a fresh start has read all of them by now
            "activeClients" => {
                let other = &without_sessions(other, &live["sessionsToRevive"]);
                let value = &without_sessions(value, &live["sessionsToRevive"]);
                if value != other {
                    different.push(format!("`{section}`:\n  live  {value}\n  fresh {other}"));
                }
            }
            "chatsToClose" => {
                for chat in missing_chats(value, fresh) {
                    different.push(format!("the turn of {chat} would stay open"));
                }
            }
            _ if value != other => {
                different.push(format!("`{section}`:\n  live  {value}\n  fresh {other}"));
            }
            _ => {}
        }
    }
    different
}

fn compare_entries(
    section: &str,
    live: &Value,
    fresh: &Value,
    differ: fn(&Value, &Value) -> bool,
    different: &mut Vec<String>,
) {
    for (name, value) in live.as_object().into_iter().flatten() {
        let other = &fresh[name];
        if differ(value, other) {
            different.push(format!("`{section}` {name}:\n  live  {value}\n  fresh {other}"));
        }
    }
}

fn peers_differ(live: &Value, fresh: &Value) -> bool {
    !is_waiting(live) && live != fresh
}

/// How many of a chat's turns are in memory depends on what was asked for; those that are must be the same.
fn channels_differ(live: &Value, fresh: &Value) -> bool {
    let without_turns = |state: &Value| {
        let mut state = state.clone();
        if let Some(fields) = state.as_object_mut() {
            fields.shift_remove("turns");
            fields.shift_remove("turnsNextCursor");
        }
        state
    };
    let turns = |state: &Value| state["turns"].as_array().cloned().unwrap_or_default();
    let (live_turns, fresh_turns) = (turns(live), turns(fresh));
    let same_turns = live_turns.ends_with(&fresh_turns) || fresh_turns.ends_with(&live_turns);
    !same_turns || without_turns(live) != without_turns(fresh)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unnamed_sections_of_a_digest_are_compared() {
        let (live, fresh) = (json!({"seq": 1, "new": [2]}), json!({"seq": 1, "new": []}));
        assert_eq!(differences(&live, &live), Vec::<String>::new());
        assert_eq!(differences(&live, &fresh).len(), 1);
    }

    #[test]
    fn turns_in_memory_may_be_more_but_not_others() {
        let with = |turns: Value| json!({"channels": {"c": {"turns": turns, "title": "t"}}});
        let live = with(json!([1, 2, 3]));
        assert!(differences(&live, &with(json!([2, 3]))).is_empty());
        assert_eq!(differences(&live, &with(json!([2, 4]))).len(), 1);
        assert_eq!(differences(&live, &json!({"channels": {}})).len(), 1);
    }
}
