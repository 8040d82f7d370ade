//! The reducer of a session channel.
//!
//! No action sets the activity bits of a session's status except through `inputNeeded` (H-124).

use std::collections::HashSet;

use ahp_types::actions::ActionType;
use serde_json::Value;

use super::{
    Reduced, add_directory, configure, customization, optional_text, put, put_field,
    remove_directory, remove_entry, upsert,
};
use crate::families::{chat_actions, root_actions, side_channel_actions};
use crate::state::{ChatSummary, SessionState, status};
use crate::{Action, Object};

pub fn reduce_session(state: &mut SessionState, action: &Action) -> Reduced {
    match &action.kind {
        ActionType::SessionReady => put(&mut state.lifecycle, "ready".to_owned()), // H-112
        ActionType::SessionCreationFailed => {
            put(&mut state.lifecycle, "failed".to_owned())
                | put_field(&mut state.extra, "creationError", action.present("error"))
        }
        ActionType::SessionChatAdded => chat_added(state, action),
        ActionType::SessionChatRemoved => chat_removed(state, action),
        ActionType::SessionChatUpdated => chat_updated(state, action),
        ActionType::SessionChatsReordered => chats_reordered(state, action),
        ActionType::SessionDefaultChatChanged => put(
            &mut state.default_chat,
            optional_text(action, "defaultChat"),
        ),
        ActionType::SessionTitleChanged => match action.text("title") {
            Some(title) => put(&mut state.title, title.to_owned()),
            None => Reduced::Unchanged,
        },
        ActionType::SessionIsReadChanged => {
            flag(&mut state.status, status::IS_READ, action.flag("isRead"))
        }
        ActionType::SessionIsArchivedChanged => flag(
            &mut state.status,
            status::IS_ARCHIVED,
            action.flag("isArchived"),
        ),
        ActionType::SessionActivityChanged => {
            put(&mut state.activity, optional_text(action, "activity"))
        }
        ActionType::SessionChangesetsChanged => {
            put_field(&mut state.extra, "changesets", action.present("changesets"))
        }
        ActionType::SessionConfigChanged => configure(&mut state.config, action),
        ActionType::SessionMetaChanged => {
            put_field(&mut state.extra, "_meta", action.present("_meta"))
        }
        ActionType::SessionServerToolsChanged => match action.present("tools") {
            Some(tools) => put_field(&mut state.extra, "serverTools", Some(tools)),
            None => Reduced::Unchanged,
        },
        ActionType::SessionActiveClientSet => match action.present("activeClient") {
            Some(client) => upsert(&mut state.active_clients, "clientId", client),
            None => Reduced::Unchanged,
        },
        ActionType::SessionActiveClientRemoved => match action.text("clientId") {
            Some(id) => remove_entry(&mut state.active_clients, "clientId", id),
            None => Reduced::Unchanged,
        },
        ActionType::SessionWorkingDirectorySet => {
            add_directory(&mut state.working_directories, action)
        }
        ActionType::SessionWorkingDirectoryRemoved => {
            remove_directory(&mut state.working_directories, action)
        }
        ActionType::SessionWorkingDirectoryReplaced => directory_replaced(state, action),
        ActionType::SessionInputNeededSet => input_needed_set(state, action),
        ActionType::SessionInputNeededRemoved => input_needed_removed(state, action),
        ActionType::SessionCustomizationsChanged => match action.get("customizations") {
            Some(Value::Array(list)) => put(&mut state.customizations, Some(list.clone())),
            _ => Reduced::Unchanged,
        },
        ActionType::SessionCustomizationToggled => {
            customization::toggled(&mut state.customizations, action)
        }
        ActionType::SessionCustomizationUpdated => {
            customization::updated(&mut state.customizations, action)
        }
        ActionType::SessionCustomizationRemoved => {
            customization::removed(&mut state.customizations, action)
        }
        ActionType::SessionMcpServerStateChanged => {
            customization::mcp_state_changed(&mut state.customizations, action)
        }
        ActionType::SessionMcpServerStartRequested => {
            customization::mcp_start_requested(&mut state.customizations, action)
        }
        ActionType::SessionMcpServerStopRequested => {
            customization::mcp_stop_requested(&mut state.customizations, action)
        }
        ActionType::SessionMcpServerBackgroundRequested => {
            customization::mcp_background_requested(&mut state.customizations, action)
        }
        root_actions!() => Reduced::Unchanged,
        chat_actions!() => Reduced::Unchanged,
        side_channel_actions!() => Reduced::Unchanged,
        ActionType::Unknown(_) => Reduced::Unchanged,
    }
}

/// Sets or clears one flag of a status.
pub(super) fn flag(status: &mut u32, flag: u32, on: Option<bool>) -> Reduced {
    match on {
        Some(on) => put(status, status::with_flag(*status, flag, on)),
        None => Reduced::Unchanged,
    }
}

/// The whole entry, in its place or at the end: the only way to clear a field of one (H-149).
fn chat_added(state: &mut SessionState, action: &Action) -> Reduced {
    let summary = action
        .present("summary")
        .cloned()
        .map(ChatSummary::from_value);
    let Some(Ok(summary)) = summary else {
        return Reduced::Unchanged;
    };
    match state
        .chats
        .iter_mut()
        .find(|chat| chat.resource == summary.resource)
    {
        Some(chat) => put(chat, summary),
        None => {
            state.chats.push(summary);
            Reduced::Changed
        }
    }
}

fn chat_removed(state: &mut SessionState, action: &Action) -> Reduced {
    let gone = action.text("chat");
    let Some(position) = state
        .chats
        .iter()
        .position(|chat| Some(chat.resource.as_str()) == gone)
    else {
        return Reduced::Unchanged;
    };
    state.chats.remove(position);
    if state.default_chat.as_deref() == gone {
        state.default_chat = None; // H-154
    }
    Reduced::Changed
}

fn chat_updated(state: &mut SessionState, action: &Action) -> Reduced {
    let target = action.text("chat");
    let (Some(chat), Some(Value::Object(changes))) = (
        state
            .chats
            .iter_mut()
            .find(|chat| Some(chat.resource.as_str()) == target),
        action.get("changes"),
    ) else {
        return Reduced::Unchanged;
    };
    let text = |field: &str| {
        changes
            .get(field)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let mut reduced = Reduced::Unchanged;
    if let Some(title) = text("title") {
        reduced = reduced | put(&mut chat.title, title);
    }
    let bits = changes.get("status").and_then(Value::as_u64);
    if let Some(Ok(bits)) = bits.map(u32::try_from) {
        reduced = reduced | put(&mut chat.status, bits);
    }
    if let Some(activity) = text("activity") {
        reduced = reduced | put(&mut chat.activity, Some(activity));
    }
    if let Some(modified_at) = text("modifiedAt") {
        reduced = reduced | put(&mut chat.modified_at, modified_at);
    }
    // `interactivity` and `movable` are not in this list: published clients ignore them here (H-149).
    for field in ["changes", "origin", "workingDirectories"] {
        if let Some(value) = super::present(changes, field) {
            reduced = reduced | put_field(&mut chat.extra, field, Some(value));
        }
    }
    reduced
}

/// Takes an order only if it names every chat exactly once (H-158).
fn chats_reordered(state: &mut SessionState, action: &Action) -> Reduced {
    let Some(order) = texts(&action.body, "chats") else {
        return Reduced::Unchanged;
    };
    let distinct: HashSet<&str> = order.iter().copied().collect();
    if order.len() != state.chats.len() || distinct.len() != order.len() {
        return Reduced::Unchanged;
    }
    let reordered: Option<Vec<ChatSummary>> = order
        .iter()
        .map(|resource| state.chat(resource).cloned())
        .collect();
    match reordered {
        Some(chats) => put(&mut state.chats, chats),
        None => Reduced::Unchanged,
    }
}

fn texts<'a>(object: &'a Object, field: &str) -> Option<Vec<&'a str>> {
    object
        .get(field)?
        .as_array()?
        .iter()
        .map(Value::as_str)
        .collect()
}

/// Puts the replacement where the directory was; it stays listed once, at the earlier of two places.
fn directory_replaced(state: &mut SessionState, action: &Action) -> Reduced {
    let (Some(list), Some(directory), Some(replacement)) = (
        state.working_directories.as_mut(),
        action.text("directory"),
        action.text("replacement"),
    ) else {
        return Reduced::Unchanged;
    };
    let Some(position) = list.iter().position(|known| known == directory) else {
        return Reduced::Unchanged;
    };
    let listed_before = list.iter().take(position).any(|known| known == replacement);
    let next = list.iter().enumerate().filter_map(|(index, known)| {
        if index == position {
            (!listed_before).then(|| replacement.to_owned())
        } else {
            (listed_before || known != replacement).then(|| known.clone())
        }
    });
    let next: Vec<String> = next.collect();
    put(list, next)
}

fn input_needed_set(state: &mut SessionState, action: &Action) -> Reduced {
    let request = action.present("request");
    let Some(request) = request.filter(|request| request["id"].is_string()) else {
        return Reduced::Unchanged;
    };
    upsert(&mut state.input_needed, "id", request) | refresh_input_needed(state)
}

fn input_needed_removed(state: &mut SessionState, action: &Action) -> Reduced {
    let removed = match action.text("id") {
        Some(id) => remove_entry(&mut state.input_needed, "id", id),
        None => Reduced::Unchanged,
    };
    match removed {
        Reduced::Changed => Reduced::Changed | refresh_input_needed(state),
        Reduced::Unchanged => Reduced::Unchanged,
    }
}

/// Work that a client does is no question to the user (H-221); what remains after the last question is "in progress".
fn refresh_input_needed(state: &mut SessionState) -> Reduced {
    let asks_user = |request: &Value| {
        request["kind"] != "toolClientExecution" || request["toolCall"]["status"] != "running"
    };
    let bits = if state.input_needed.iter().any(asks_user) {
        status::with_activity(state.status, status::INPUT_NEEDED)
    } else {
        state.status & !(status::INPUT_NEEDED & !status::IN_PROGRESS)
    };
    put(&mut state.status, bits)
}
