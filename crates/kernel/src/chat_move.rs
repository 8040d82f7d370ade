//! A chat is moved: to another place in its session, to another session, or to one of its own (H-156 to H-159, G-57).
//!
//! Promises: whatever moves keeps its URI, its state and its turns; everything is one step, so that nobody sees half of it.

use serde_json::json;
use wire::state::ConfigState;
use wire::{ActionKind, ChannelUri};

use crate::changesets::OwnWorktree;
use crate::chats::{chat_summary, set_movable, update_movable_chats};
use crate::sessions::{self, EmptySession};
use crate::state::Step;

/// A chat that is to be moved. Everything was checked.
pub(crate) struct ChatMove {
    /// The chat, then those that work for it.
    pub chats: Vec<ChannelUri>,
    pub from: ChannelUri,
    pub to: MoveTarget,
}

/// Where to.
pub(crate) enum MoveTarget {
    /// A session, perhaps its own; after one of its chats, else first.
    Session { session: ChannelUri, after: Option<ChannelUri> },
    /// A session that is made for it, by a client.
    New { session: ChannelUri, creator: Option<String> },
}

/// Moves a chat. Returns the session it is in then.
pub(crate) fn move_chat(step: &mut Step, planned: ChatMove) -> ChannelUri {
    let ChatMove { chats, from, to } = planned;
    let Some(chat) = chats.first().cloned() else {
        debug_assert!(false, "a move is of a chat");
        return from;
    };
    match to {
        MoveTarget::Session { session, after } => {
            if session != from {
                change_owner(step, &chats, &from, &session);
            }
            place(step, &session, &chat, after.as_ref());
            session
        }
        MoveTarget::New { session, creator } => {
            make_session(step, &from, &session, &chat, creator);
            change_owner(step, &chats, &from, &session);
            leave_worktree(step, &from, &chats);
            let fields = json!({"defaultChat": chat.as_str()});
            step.act_as_host(&session, ActionKind::SessionDefaultChatChanged, fields);
            set_movable(step, &chat);
            sessions::start_agent(step, &session);
            session
        }
    }
}

/// A session like the one that the chat comes from, without a chat.
fn make_session(
    step: &mut Step,
    from: &ChannelUri,
    uri: &ChannelUri,
    chat: &ChannelUri,
    creator: Option<String>,
) {
    let worktree = OwnWorktree::of(step, from);
    let state = step.session(from).state();
    let mut config = state.config.clone().unwrap_or_else(|| ConfigState {
        schema: json!({}),
        values: wire::Object::new(),
        extra: wire::Object::new(),
    });
    let mut directories = state.working_directories.clone();
    if let Some(worktree) = &worktree {
        // A worktree is of its session alone (G-54): this one gets its own, which begins with what was committed in the other.
        for directory in directories.iter_mut().flatten() {
            if *directory == worktree.replacement {
                directory.clone_from(&worktree.directory);
            }
        }
        let branch = json!(worktree.branch);
        config.values.insert("branch".to_owned(), branch);
    }
    let new = EmptySession {
        uri: uri.clone(),
        title: step.chat(chat).state().title.clone(),
        provider: state.provider.clone(),
        config,
        directories,
        creator,
    };
    sessions::create_empty(step, new);
}

/// Chats that name a worktree among directories of their own name what it stands for instead.
fn leave_worktree(step: &mut Step, from: &ChannelUri, chats: &[ChannelUri]) {
    let Some(worktree) = OwnWorktree::of(step, from) else {
        return; // they work where they did
    };
    for chat in chats {
        let own = &step.chat(chat).state().working_directories;
        if own.iter().flatten().any(|own| *own == worktree.replacement) {
            let left = json!({"directory": worktree.replacement});
            step.act_as_host(chat, ActionKind::ChatWorkingDirectoryRemoved, left);
            let came = json!({"directory": worktree.directory});
            step.act_as_host(chat, ActionKind::ChatWorkingDirectorySet, came);
        }
    }
}

/// Chats leave one session and come to another.
fn change_owner(step: &mut Step, chats: &[ChannelUri], from: &ChannelUri, to: &ChannelUri) {
    let has_turns = chats.iter().any(|chat| step.chat(chat).has_turns());
    for chat in chats {
        step.session_mut(from).set_holds_input_of(chat, false);
        let fields = json!({"chat": chat.as_str()});
        step.act_as_host(from, ActionKind::SessionChatRemoved, fields);
    }
    if has_turns {
        step.session_mut(to).set_had_turn();
    }
    for chat in chats {
        step.set_owner(chat, to);
        let summary = chat_summary(step.chat(chat).state());
        let fields = json!({"summary": summary});
        step.act_as_host(to, ActionKind::SessionChatAdded, fields);
    }
    step.touch_modified(from);
    step.touch_modified(to);
    update_movable_chats(step, to);
}

/// Puts a chat after another one of its session, or first.
fn place(step: &mut Step, session: &ChannelUri, chat: &ChannelUri, after: Option<&ChannelUri>) {
    let chats = step.session(session).state().chats.iter();
    let before: Vec<String> = chats.map(|entry| entry.resource.clone()).collect();
    let mut order: Vec<String> = before.clone();
    order.retain(|entry| entry != chat.as_str());
    let anchor = after.and_then(|after| order.iter().position(|entry| entry == after.as_str()));
    order.insert(anchor.map_or(0, |anchor| anchor + 1), chat.to_string());
    if order != before {
        let fields = json!({"chats": order});
        step.act_as_host(session, ActionKind::SessionChatsReordered, fields);
    }
}
