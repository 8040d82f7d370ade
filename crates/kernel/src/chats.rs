//! Chats of a session come and go: their place in the catalogue, and which of them is the default (H-140, H-154, H-155).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wire::state::{ChatState, ChatSummary, Turn, TurnList, status};
use wire::{Action, ActionKind, ChannelUri};

use crate::Kernel;
use crate::channel::{Body, Channel, ChatChannel};
use crate::io::{Compacted, Effect};
use crate::load::turns_of;
use crate::record::{ChannelId, Record, TurnPage};

/// Channels disposed of lately that are remembered: more than could be read at once.
const DISPOSED_MAX: usize = 1_024;

/// A chat to be made.
pub(crate) struct NewChat {
    pub uri: ChannelUri,
    pub title: String,
    /// `ChatOrigin`.
    pub origin: Value,
    pub interactivity: Option<String>,
    pub working_directories: Option<Vec<String>>,
    pub source: Option<Source>,
    /// What a worker is handed, and how deep it works.
    pub brief: Option<Bytes>,
    pub depth: usize,
}

/// The turns of another chat that a new one begins with.
pub(crate) struct Source {
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
    pub foreseen: BTreeSet<String>,
    /// How far back the agent remembers of them.
    pub compacted: Option<Compacted>,
}

impl Kernel {
    /// Makes a chat and tells its session. Nothing can go wrong here: everything was checked before.
    pub(crate) fn found_chat(&mut self, session: &ChannelUri, new: NewChat) {
        let Some(session_id) = self.channels.get(session).map(|channel| channel.id) else {
            return;
        };
        let as_of = self.seq;
        let id = ChannelId(self.next_seq().0);
        let moment = self.now.to_rfc3339();
        let mut state = ChatState::new(new.uri.as_str(), &new.title, status::IDLE, moment);
        state.working_directories = new.working_directories;
        state.extra.insert("origin".to_owned(), new.origin);
        // The enum is closed: clients could not read the whole chat for a value they do not know (H-051).
        let known = |mode: &String| matches!(mode.as_str(), "full" | "read-only" | "hidden");
        if let Some(interactivity) = new.interactivity {
            let interactivity = match known(&interactivity) {
                true => interactivity,
                false => "read-only".to_owned(),
            };
            let interactivity = Value::String(interactivity);
            state
                .extra
                .insert("interactivity".to_owned(), interactivity);
        }
        let mut chat = ChatChannel::new(state, session.clone(), session_id);
        chat.brief = new.brief;
        chat.depth = new.depth;
        let mut partial = None;
        let fork = new.source.and_then(|source| {
            chat.next_n = source.through.map_or(0, |(_, n)| n + 1);
            if source.visible {
                let older = source.page.older;
                let (ns, turns) = turns_of(source.page);
                chat.ns = ns;
                chat.older = older;
                Arc::make_mut(&mut chat.state).turns = Arc::new(TurnList::new(turns));
            }
            chat.foreseen = source.foreseen;
            let next_n = chat.next_n;
            chat.compacted = source
                .compacted
                .filter(|compacted| compacted.from_n <= next_n);
            chat.checkpoint = source.checkpoint;
            partial = source.partial;
            source.through.map(|through| (through, source.visible))
        });
        let partial = partial.map(|turn| {
            chat.next_n += 1;
            (chat.next_n - 1, turn)
        });
        if chat.is_side_chat() {
            chat.context_n = chat.next_n.checked_sub(1);
        }
        let checkpoint = chat.checkpoint.clone();
        self.undo.touch(&new.uri);
        let channel = Channel::new(id, self.now, Body::Chat(Box::new(chat)));
        self.channels.insert(new.uri.clone(), channel);
        self.write_head(&new.uri);
        let mut shown = true;
        if let Some(((source, through_n), visible)) = fork {
            self.out.records.push(Record::Fork {
                chat: id,
                source,
                through_n,
                as_of,
            });
            shown = visible;
        }
        if let Some((n, turn)) = partial {
            self.out.records.push(Record::Turn { chat: id, n, turn });
            shown = false;
        }
        if !shown {
            // They stay reachable as its context, and are never shown.
            self.out.records.push(Record::HideTurns {
                chat: id,
                from_n: 0,
                at: self.seq,
            });
        }
        if let Some((turn_id, data)) = checkpoint {
            self.out.records.push(Record::Checkpoint {
                chat: id,
                turn_id,
                data: Some(data),
            });
        }
        self.dirty.insert(new.uri.clone());
        let Some(summary) = self.chat_state(&new.uri).map(summary_of) else {
            return;
        };
        let fields = json!({"summary": summary});
        self.act(
            session,
            Action::host(ActionKind::SessionChatAdded, fields),
            None,
        );
    }

    /// Ends a chat: its turn, its place in the catalogue, its subscriptions. Rows stay for a while (G-28).
    pub(crate) fn dispose_chat(&mut self, uri: &ChannelUri) {
        let (Some(chat), Some(channel)) = (self.chat(uri), self.channels.get(uri)) else {
            return;
        };
        let (id, session) = (channel.id, chat.session.clone());
        self.stop_run(uri);
        self.worker_gone(uri, "the worker's chat was disposed of");
        let had_activity = self
            .chat_state(uri)
            .is_some_and(|state| state.activity.is_some());
        self.mirror_needs(&session, uri, Vec::new());
        self.undo.touch(uri);
        self.channels.remove(uri);
        self.dirty.remove(uri);
        self.orphans.remove(uri);
        if let Some(channel) = self.session_mut(&session) {
            channel.waiting.remove(uri.as_str());
        }
        let state = self.session_state(&session);
        let is_default =
            state.is_some_and(|state| state.default_chat.as_deref() == Some(uri.as_str()));
        // The first that takes messages, for that is what a default chat is for (H-155, G-13).
        let next = state.and_then(|state| {
            let others = || {
                let chats = state.chats.iter();
                chats.filter(|chat| chat.resource != uri.as_str())
            };
            let mode = |chat: &ChatSummary| chat.extra.get("interactivity").cloned();
            let takes_messages = |chat: &&ChatSummary| mode(chat).is_none_or(|mode| mode == "full");
            others().find(takes_messages).or_else(|| others().next())
        });
        if let Some(next) = next
            .map(|chat| chat.resource.clone())
            .filter(|_| is_default)
        {
            let fields = json!({"defaultChat": next});
            self.act(
                &session,
                Action::host(ActionKind::SessionDefaultChatChanged, fields),
                None,
            ); // G-13
        }
        let fields = json!({"chat": uri.as_str()});
        self.act(
            &session,
            Action::host(ActionKind::SessionChatRemoved, fields),
            None,
        );
        if had_activity {
            self.activity_followed(&session, None);
        }
        self.end_subscriptions(uri);
        self.out.records.push(Record::Dispose {
            channel: id,
            at: self.now,
        });
        self.forget_disposed(id);
        self.touch_modified(&session);
        self.publish(&session);
    }

    /// What was read before a channel was disposed of must not bring it back.
    pub(crate) fn forget_disposed(&mut self, id: ChannelId) {
        self.undo.disposed.push(id);
        self.disposed.push_back(id);
        if self.disposed.len() > DISPOSED_MAX {
            self.disposed.pop_front();
        }
    }

    /// Takes the run of a chat away: nobody hears it any more, and its workers end with it.
    pub(crate) fn stop_run(&mut self, uri: &ChannelUri) {
        if let Some(run) = self.chat_mut(uri).and_then(|chat| chat.run.take()) {
            self.runs.remove(&run.id);
            self.out.effects.push(Effect::StopTurn { run: run.id });
            self.end_workers(&run);
        }
    }
}

/// `ChatSummary`: what the catalogue says of a chat (H-148).
pub(crate) fn summary_of(state: &ChatState) -> Value {
    let mut summary = json!({
        "resource": state.resource,
        "title": state.title,
        "status": state.status,
        "modifiedAt": state.modified_at,
    });
    if let Some(activity) = &state.activity {
        summary["activity"] = json!(activity);
    }
    for key in ["origin", "interactivity"] {
        if let Some(value) = state.extra.get(key) {
            summary[key] = value.clone();
        }
    }
    if let Some(directories) = &state.working_directories {
        summary["workingDirectories"] = json!(directories);
    }
    summary
}
