//! The reducers of a session channel, one function per action. Customizations are in a file of their own.
//!
//! No action sets the activity bits of a session's status except through `inputNeeded` (H-124).

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Reduced, add_directory, configure, optional_text, remove_directory, remove_entry, set,
    set_field, set_flag, upsert,
};
use crate::state::{ChatSummary, SessionState, status};
use crate::{Action, Object};

pub(super) fn mark_ready(state: &mut SessionState, _: &Action) -> Reduced {
    set(&mut state.lifecycle, "ready".to_owned()) // H-112
}

pub(super) fn fail_creation(state: &mut SessionState, action: &Action) -> Reduced {
    set(&mut state.lifecycle, "failed".to_owned())
        | set_field(&mut state.extra, "creationError", action.present("error"))
}

pub(super) fn set_default_chat(state: &mut SessionState, action: &Action) -> Reduced {
    set(&mut state.default_chat, optional_text(action, "defaultChat"))
}

pub(super) fn set_title(state: &mut SessionState, action: &Action) -> Reduced {
    match action.text("title") {
        Some(title) => set(&mut state.title, title.to_owned()),
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_is_read(state: &mut SessionState, action: &Action) -> Reduced {
    set_flag(&mut state.status, status::IS_READ, action.flag("isRead"))
}

pub(super) fn set_is_archived(state: &mut SessionState, action: &Action) -> Reduced {
    set_flag(&mut state.status, status::IS_ARCHIVED, action.flag("isArchived"))
}

pub(super) fn set_activity(state: &mut SessionState, action: &Action) -> Reduced {
    set(&mut state.activity, optional_text(action, "activity"))
}

pub(super) fn set_changesets(state: &mut SessionState, action: &Action) -> Reduced {
    set_field(&mut state.extra, "changesets", action.present("changesets"))
}

pub(super) fn change_config(state: &mut SessionState, action: &Action) -> Reduced {
    configure(&mut state.config, action)
}

pub(super) fn set_meta(state: &mut SessionState, action: &Action) -> Reduced {
    set_field(&mut state.extra, "_meta", action.present("_meta"))
}

pub(super) fn set_server_tools(state: &mut SessionState, action: &Action) -> Reduced {
    match action.present("tools") {
        Some(tools) => set_field(&mut state.extra, "serverTools", Some(tools)),
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_active_client(state: &mut SessionState, action: &Action) -> Reduced {
    match action.present("activeClient") {
        Some(client) => upsert(&mut state.active_clients, "clientId", client),
        None => Reduced::Unchanged,
    }
}

pub(super) fn remove_active_client(state: &mut SessionState, action: &Action) -> Reduced {
    match action.text("clientId") {
        Some(id) => remove_entry(&mut state.active_clients, "clientId", id),
        None => Reduced::Unchanged,
    }
}

pub(super) fn add_working_directory(state: &mut SessionState, action: &Action) -> Reduced {
    add_directory(&mut state.working_directories, action)
}

pub(super) fn remove_working_directory(state: &mut SessionState, action: &Action) -> Reduced {
    remove_directory(&mut state.working_directories, action)
}

/// The whole entry, at the index it had or at the end: the only way to clear a field of one (H-149).
pub(super) fn add_chat(state: &mut SessionState, action: &Action) -> Reduced {
    let summary = action.present("summary").cloned().map(ChatSummary::from_value);
    let Some(Ok(summary)) = summary else { return Reduced::Unchanged };
    match state.chats.iter_mut().find(|chat| chat.resource == summary.resource) {
        Some(chat) => set(chat, summary),
        None => {
            state.chats.push(summary);
            Reduced::Changed
        }
    }
}

pub(super) fn remove_chat(state: &mut SessionState, action: &Action) -> Reduced {
    let gone = action.text("chat");
    let Some(position) = state.chats.iter().position(|chat| Some(chat.resource.as_str()) == gone)
    else {
        return Reduced::Unchanged;
    };
    state.chats.remove(position);
    if state.default_chat.as_deref() == gone {
        state.default_chat = None; // H-154
    }
    Reduced::Changed
}

pub(super) fn update_chat(state: &mut SessionState, action: &Action) -> Reduced {
    let target = action.text("chat");
    let (Some(chat), Some(Value::Object(changes))) = (
        state.chats.iter_mut().find(|chat| Some(chat.resource.as_str()) == target),
        action.get("changes"),
    ) else {
        return Reduced::Unchanged;
    };
    let text = |field: &str| changes.get(field).and_then(Value::as_str).map(str::to_owned);
    let mut reduced = Reduced::Unchanged;
    if let Some(title) = text("title") {
        reduced = reduced | set(&mut chat.title, title);
    }
    let bits = changes.get("status").and_then(Value::as_u64);
    if let Some(Ok(bits)) = bits.map(u32::try_from) {
        reduced = reduced | set(&mut chat.status, bits);
    }
    if let Some(activity) = text("activity") {
        reduced = reduced | set(&mut chat.activity, Some(activity));
    }
    if let Some(modified_at) = text("modifiedAt") {
        reduced = reduced | set(&mut chat.modified_at, modified_at);
    }
    // `interactivity` and `movable` are not in this list: published clients ignore them here (H-149).
    for field in ["changes", "origin", "workingDirectories"] {
        if let Some(value) = super::present(changes, field) {
            reduced = reduced | set_field(&mut chat.extra, field, Some(value));
        }
    }
    reduced
}

/// Takes an order only if it names every chat exactly once (H-158).
pub(super) fn reorder_chats(state: &mut SessionState, action: &Action) -> Reduced {
    let Some(order) = texts(&action.body, "chats") else { return Reduced::Unchanged };
    let distinct: HashSet<&str> = order.iter().copied().collect();
    if order.len() != state.chats.len() || distinct.len() != order.len() {
        return Reduced::Unchanged;
    }
    let reordered: Option<Vec<ChatSummary>> =
        order.iter().map(|resource| state.chat(resource).cloned()).collect();
    match reordered {
        Some(chats) => set(&mut state.chats, chats),
        None => Reduced::Unchanged,
    }
}

fn texts<'a>(object: &'a Object, field: &str) -> Option<Vec<&'a str>> {
    object.get(field)?.as_array()?.iter().map(Value::as_str).collect()
}

/// Puts the replacement where the directory was; it stays listed once, at the earlier of two indexes.
pub(super) fn replace_working_directory(state: &mut SessionState, action: &Action) -> Reduced {
    let (Some(list), Some(directory), Some(replacement)) =
        (state.working_directories.as_mut(), action.text("directory"), action.text("replacement"))
    else {
        return Reduced::Unchanged;
    };
    let Some(position) = list.iter().position(|known| known == directory) else {
        return Reduced::Unchanged;
    };
    let listed_before = list.iter().take(position).any(|known| known == replacement);
    let next: Vec<String> = list
        .iter()
        .enumerate()
        .filter_map(|(index, known)| {
            if index == position {
                (!listed_before).then(|| replacement.to_owned())
            } else {
                (listed_before || known != replacement).then(|| known.clone())
            }
        })
        .collect();
    set(list, next)
}

pub(super) fn set_input_needed(state: &mut SessionState, action: &Action) -> Reduced {
    let request = action.present("request");
    let Some(request) = request.filter(|request| request["id"].is_string()) else {
        return Reduced::Unchanged;
    };
    upsert(&mut state.input_needed, "id", request) | refresh_input_needed(state)
}

pub(super) fn remove_input_needed(state: &mut SessionState, action: &Action) -> Reduced {
    let removed = match action.text("id") {
        Some(id) => remove_entry(&mut state.input_needed, "id", id),
        None => Reduced::Unchanged,
    };
    match removed {
        Reduced::Changed => Reduced::Changed | refresh_input_needed(state),
        Reduced::Unchanged => Reduced::Unchanged,
    }
}

/// Work that a client does is not a question to the user (H-221); what remains after the last question is "in progress".
fn refresh_input_needed(state: &mut SessionState) -> Reduced {
    let asks_user = |request: &Value| {
        request["kind"] != "toolClientExecution" || request["toolCall"]["status"] != "running"
    };
    let bits = if state.input_needed.iter().any(asks_user) {
        status::with_activity(state.status, status::INPUT_NEEDED)
    } else {
        state.status & !(status::INPUT_NEEDED & !status::IN_PROGRESS)
    };
    set(&mut state.status, bits)
}
