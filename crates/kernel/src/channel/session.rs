//! A session: what a client may do in it, and what follows for its summary and its chats.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::AgentError;
use bytes::Bytes;
use serde_json::{Value, json};
use wire::dispatchable::SessionAction;
use wire::reduce::Reduced;
use wire::state::{SessionState, status};
use wire::{Action, ChannelUri, Object, Timestamp, rpc};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::chore::Chore;
use crate::config;
use crate::io::Effect;
use crate::speak::Sender;

/// Longest title taken from a client, in bytes: it travels in every summary.
pub(crate) const TITLE_BYTES_MAX: usize = 4_096;

/// A session in memory.
pub(crate) struct SessionChannel {
    pub state: Arc<SessionState>,
    pub creator: Option<String>,
    pub created: Timestamp,
    pub modified: Timestamp,
    /// It had a turn, at least once: it is nobody's leftover (G-28).
    pub had_turn: bool,
    /// Chats that hold a draft or a message that waits.
    pub waiting: BTreeSet<String>,
    /// What its agent noted.
    pub notes: Option<Bytes>,
    /// Chats whose queue starts when the session is ready. Not kept over a restart: a queue survives that held (G-08).
    pub eager: BTreeSet<ChannelUri>,
    /// Bytes that are embedded in its messages (C-033).
    pub embedded: usize,
    /// The summary as it was last published.
    pub published: Object,
}

impl SessionChannel {
    pub fn stored(state: SessionState, private: &[u8]) -> Self {
        let private: Value = serde_json::from_slice(private).unwrap_or(Value::Null);
        Self {
            state: Arc::new(state),
            creator: private["creator"].as_str().map(str::to_owned),
            created: Timestamp(private["created"].as_i64().unwrap_or(0)),
            modified: Timestamp(private["modified"].as_i64().unwrap_or(0)),
            had_turn: private["hadTurn"] == true,
            waiting: private["waiting"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|chat| chat.as_str().map(str::to_owned))
                .collect(),
            notes: private["notes"]
                .as_str()
                .map(|notes| Bytes::from(notes.to_owned())),
            eager: BTreeSet::new(),
            embedded: private["embedded"]
                .as_u64()
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(0),
            published: private["published"]
                .as_object()
                .cloned()
                .unwrap_or_default(),
        }
    }

    pub fn private(&self) -> Bytes {
        Bytes::from(rpc::to_json(&json!({
            "creator": self.creator,
            "created": self.created.0,
            "modified": self.modified.0,
            "hadTurn": self.had_turn,
            "waiting": self.waiting,
            "notes": self.notes.as_ref().map(|notes| String::from_utf8_lossy(notes)),
            "embedded": self.embedded,
            "published": self.published,
        })))
    }
}

/// May this client do this to this session?
pub(crate) fn validate(
    session: &SessionState,
    client_id: &str,
    verb: SessionAction,
    action: Action,
) -> Result<Permit, Refusal> {
    let permit = |action| Ok(Permit(action));
    match verb {
        SessionAction::TitleChanged => match action.text("title") {
            Some(title) if title.len() > TITLE_BYTES_MAX => Err(Refusal(format!(
                "a title has at most {TITLE_BYTES_MAX} bytes"
            ))),
            _ => permit(action),
        },
        SessionAction::IsReadChanged | SessionAction::IsArchivedChanged => permit(action),
        // A client may only set and remove itself (H-125).
        SessionAction::ActiveClientSet => {
            match action.get("activeClient").map(|client| &client["clientId"]) {
                Some(id) if *id == client_id => permit(action),
                _ => Err(Refusal::because(
                    "a client may only make itself active: `clientId` must be its own",
                )),
            }
        }
        SessionAction::ActiveClientRemoved => match action.text("clientId") {
            Some(id) if id == client_id => permit(action),
            _ => Err(Refusal::because(
                "a client may only remove itself: `clientId` must be its own",
            )),
        },
        SessionAction::ConfigChanged => validate_config(session, action),
        SessionAction::SystemMessageTransformSet => {
            crate::render::validate_opt_in(session, client_id, action)
        }
        SessionAction::DefaultChatChanged => {
            let known = action
                .text("defaultChat")
                .is_some_and(|chat| session.chat(chat).is_some());
            if known {
                permit(action)
            } else {
                Err(Refusal::because("`defaultChat` is no chat of this session"))
            }
        }
        SessionAction::WorkingDirectorySet
        | SessionAction::WorkingDirectoryRemoved
        | SessionAction::WorkingDirectoryReplaced => Err(Refusal::because(
            "this agent does not take more than one working directory",
        )),
        SessionAction::CustomizationToggled => {
            Err(Refusal::because("no customization has this id"))
        }
        SessionAction::McpServerStartRequested
        | SessionAction::McpServerStopRequested
        | SessionAction::McpServerBackgroundRequested => {
            Err(Refusal::because("no MCP server has this id"))
        }
    }
}

/// Only values that may change while a session lives (H-117); with `replace` the others stay what they are.
fn validate_config(session: &SessionState, mut action: Action) -> Result<Permit, Refusal> {
    let Some(current) = &session.config else {
        return Err(Refusal::because("this session has no configuration"));
    };
    let wanted = action
        .get("config")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for key in wanted.keys() {
        if !config::is_mutable(&current.schema, key) {
            return Err(Refusal(format!(
                "`{key}` cannot be changed in a session that exists"
            )));
        }
    }
    let mut values =
        config::known_values(&current.schema, &wanted).map_err(|bad| Refusal(bad.to_string()))?;
    if action.flag("replace") == Some(true) {
        let kept = current
            .values
            .iter()
            .filter(|(key, _)| !config::is_mutable(&current.schema, key));
        let kept: Object = kept
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        values = config::with_defaults(&current.schema, &values)
            .map_err(|bad| Refusal(bad.to_string()))?;
        values.extend(kept);
    }
    action
        .body
        .insert("config".to_owned(), Value::Object(values));
    Ok(Permit(action))
}

impl Kernel {
    /// A client's action on a session, already permitted, and what follows from it.
    pub(crate) fn act_on_session(
        &mut self,
        uri: &ChannelUri,
        verb: SessionAction,
        action: Action,
        sender: &Sender,
    ) {
        if verb == SessionAction::SystemMessageTransformSet {
            return self.opt_in(uri, action, sender);
        }
        if self.act(uri, action, Some(sender)) == Reduced::Unchanged {
            return;
        }
        match verb {
            SessionAction::TitleChanged => self.title_followed(uri),
            SessionAction::ActiveClientSet => {
                self.note_active(uri, &sender.origin.client_id.clone())
            }
            SessionAction::ActiveClientRemoved => {
                self.forget_active(uri, &sender.origin.client_id);
                self.client_left(uri, &sender.origin.client_id);
            }
            SessionAction::DefaultChatChanged
            | SessionAction::IsReadChanged
            | SessionAction::IsArchivedChanged
            | SessionAction::ConfigChanged
            | SessionAction::WorkingDirectorySet
            | SessionAction::WorkingDirectoryRemoved
            | SessionAction::WorkingDirectoryReplaced
            | SessionAction::CustomizationToggled
            | SessionAction::McpServerStartRequested
            | SessionAction::McpServerStopRequested
            | SessionAction::McpServerBackgroundRequested
            | SessionAction::SystemMessageTransformSet => {}
        }
        self.publish(uri);
    }

    /// The default chat's title follows the session's (G-13): by the catalogue; in the chat's own state without an
    /// action, for there is none (H-150).
    pub(crate) fn title_followed(&mut self, session: &ChannelUri) {
        self.touch_modified(session);
        let Some(state) = self.session_state(session) else {
            return;
        };
        let title = state.title.clone();
        let Some(chat) = state.default_chat.clone() else {
            return;
        };
        let fields = json!({"chat": chat, "changes": {"title": title}});
        self.act(session, Action::host("session/chatUpdated", fields), None);
        if let Ok(chat) = ChannelUri::parse(&chat)
            && let Some(channel) = self.chat_mut(&chat)
        {
            Arc::make_mut(&mut channel.state).title = title;
            if let Some(channel) = self.channels.get_mut(&chat) {
                channel.snapshots.clear();
            }
            self.undo.touch(&chat);
            self.dirty.insert(chat);
        }
    }

    pub(crate) fn note_active(&mut self, session: &ChannelUri, client_id: &str) {
        self.remember_active(session, client_id);
        self.active
            .entry(client_id.to_owned())
            .or_default()
            .insert(session.clone());
    }

    /// Notes where a client was active before this step changes it.
    fn remember_active(&mut self, session: &ChannelUri, client_id: &str) {
        let was = self
            .active
            .get(client_id)
            .is_some_and(|sessions| sessions.contains(session));
        let lost = self.lost.get(client_id).copied();
        self.undo
            .active
            .push((session.clone(), client_id.to_owned(), was, lost));
    }

    pub(crate) fn forget_active(&mut self, session: &ChannelUri, client_id: &str) {
        self.remember_active(session, client_id);
        if let Some(sessions) = self.active.get_mut(client_id) {
            sessions.remove(session);
            if sessions.is_empty() {
                self.active.remove(client_id);
                self.lost.remove(client_id);
            }
        }
    }

    /// The agent is there, or never will be: turns that were waiting start or end (G-09).
    pub(crate) fn session_started(&mut self, uri: &ChannelUri, result: Result<(), AgentError>) {
        if self
            .session_state(uri)
            .is_none_or(|state| state.lifecycle != "creating")
        {
            return;
        }
        match result {
            Ok(()) => {
                self.act(uri, Action::host("session/ready", json!({})), None);
                for chat in self.chats_in_memory(uri) {
                    self.start_run(&chat, None);
                }
                let eager = self
                    .session_mut(uri)
                    .map(|session| std::mem::take(&mut session.eager));
                for chat in eager.unwrap_or_default() {
                    self.begin_chore(Chore::StartQueue(chat));
                }
            }
            Err(failure) => {
                let error = json!({"errorType": failure.error_type, "message": failure.message});
                self.act(
                    uri,
                    Action::host("session/creationFailed", json!({"error": error})),
                    None,
                );
                for chat in self.chats_in_memory(uri) {
                    let failure = AgentError {
                        resumable: false,
                        ..failure.clone()
                    };
                    self.end_turn_in_error(&chat, failure);
                }
            }
        }
        self.publish(uri);
    }

    /// A turn began or asked for something: who had read the session has not any more (G-24).
    pub(crate) fn mark_unread(&mut self, session: &ChannelUri) {
        let read = self
            .session_state(session)
            .is_some_and(|state| state.status & status::IS_READ != 0);
        if read {
            self.act(
                session,
                Action::host("session/isReadChanged", json!({"isRead": false})),
                None,
            );
        }
    }

    /// Ends a session: its turns, its subscriptions, its place in the list. Rows stay for a while (G-28).
    pub(crate) fn dispose_session(&mut self, uri: &ChannelUri) {
        let Some(channel) = self.channels.get(uri) else {
            return;
        };
        let id = channel.id;
        let Some(state) = self.session_state(uri) else {
            return;
        };
        let chats: Vec<ChannelUri> = state
            .chats
            .iter()
            .filter_map(|chat| ChannelUri::parse(&chat.resource).ok())
            .collect();
        let active: Vec<String> = state
            .active_clients
            .iter()
            .filter_map(|client| client["clientId"].as_str().map(str::to_owned))
            .collect();
        for client_id in active {
            self.forget_active(uri, &client_id);
        }
        for gone in chats.iter().chain([uri]) {
            if let Some(run) = self.chat_mut(gone).and_then(|chat| chat.run.take()) {
                self.runs.remove(&run.id);
                self.out.effects.push(Effect::StopTurn { run: run.id });
            }
            self.undo.touch(gone);
            self.channels.remove(gone);
            self.dirty.remove(gone);
            self.orphans.remove(gone);
            self.end_subscriptions(gone);
        }
        self.out.records.push(crate::Record::Dispose {
            channel: id,
            at: self.now,
        });
        self.out
            .records
            .push(crate::Record::SummaryGone { session: id });
        self.forget_disposed(id);
        self.count_sessions(-1);
        let params = json!({"channel": ChannelUri::root().as_str(), "session": uri.as_str()});
        self.notify_root("root/sessionRemoved", &params, Some(&params));
    }

    pub(crate) fn count_sessions(&mut self, change: i64) {
        let count = (self.root.active_sessions.unwrap_or(0) + change).max(0);
        self.act_root(
            Action::host(
                "root/activeSessionsChanged",
                json!({"activeSessions": count}),
            ),
            None,
        );
    }
}
