//! A session is made, and its agent gets ready for it (H-110 to H-116, G-09).

use agent_api::AgentError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use wire::state::{ChatState, ConfigState, SessionState, status};
use wire::{Action, ActionKind, ChannelUri};

use crate::background_task::BackgroundTask;
use crate::channels::{Channel, Chat, ProgressReport, Session};
use crate::chats::{DEFAULT_CHATS, ForkSource, NewChat, chat_summary, create_chat};
use crate::customization;
use crate::follow_up::FollowUp;
use crate::io::Effect;
use crate::progress;
use crate::record::ChannelId;
use crate::state::{Kernel, Step};
use crate::turn::end::end_turn_in_error;
use crate::working_directories::inherited;

/// What a new session is called until somebody names it.
pub(crate) const NEW_SESSION_TITLE: &str = "New session";

/// A session to be made.
pub(crate) struct NewSession {
    pub uri: ChannelUri,
    /// The chat that comes with it.
    pub chat: ChannelUri,
    pub provider: String,
    pub config: ConfigState,
    pub directories: Vec<String>,
    pub creator: Option<String>,
    /// The creator's entry among the active clients, as it was sent: fields that the published types do not know must
    /// survive (H-365).
    pub active_client: Option<Value>,
    /// `_meta` of its state.
    pub meta: Option<Value>,
    /// Turns of another session that it begins with.
    pub source: Option<SessionSource>,
    /// The progress token of its creator.
    pub progress_token: Option<String>,
}

/// The turns of another session's default chat, up to one of them.
pub(crate) struct SessionSource {
    pub chat: ChannelUri,
    pub turn_id: String,
    /// What that session is called.
    pub title: String,
    pub turns: ForkSource,
}

/// The URI of the chat that comes with a session (G-26).
pub(crate) fn default_chat_of(session: &ChannelUri) -> String {
    format!("{DEFAULT_CHATS}{}", URL_SAFE_NO_PAD.encode(session.as_str()))
}

/// A session to be made without a chat: one is moved there.
pub(crate) struct EmptySession {
    pub uri: ChannelUri,
    pub title: String,
    pub provider: String,
    pub config: ConfigState,
    pub directories: Option<Vec<String>>,
    pub creator: Option<String>,
}

/// Makes a session without a chat; the caller adds one and starts its agent.
pub(crate) fn create_empty(step: &mut Step, new: EmptySession) {
    let id = ChannelId(step.next_seq().0);
    let now = step.now();
    let state = SessionState {
        provider: new.provider,
        title: new.title,
        status: status::IDLE,
        activity: None,
        lifecycle: "creating".to_owned(),
        working_directories: new.directories,
        active_clients: Vec::new(),
        chats: Vec::new(),
        default_chat: None,
        config: Some(new.config),
        customizations: None,
        input_needed: Vec::new(),
        extra: wire::Object::new(),
    };
    let session = Session::new(state, new.creator, now);
    step.insert_channel(new.uri.clone(), Channel::session(id, now, session));
    // Rows of its chats refer to it.
    step.write_head(&new.uri);
}

/// Makes a session with its first chat and starts its agent. Nothing can go wrong here: everything was checked before.
pub(crate) fn create_session(step: &mut Step, mut new: NewSession) {
    let source = new.source.take();
    let NewSession { uri, chat, .. } = &new;
    let session_id = ChannelId(step.next_seq().0);
    let now = step.now();
    let directories = (!new.directories.is_empty()).then(|| new.directories.clone());
    let title = source.as_ref().map(|source| source.title.clone());
    let meta = new.meta.clone().map(|meta| ("_meta".to_owned(), meta));
    let state = SessionState {
        provider: new.provider.clone(),
        title: title.unwrap_or_else(|| NEW_SESSION_TITLE.to_owned()),
        status: status::IDLE,
        activity: None,
        lifecycle: "creating".to_owned(),
        working_directories: directories,
        active_clients: Vec::new(),
        chats: Vec::new(),
        default_chat: None,
        config: Some(new.config.clone()),
        customizations: None,
        input_needed: Vec::new(),
        extra: meta.into_iter().collect(),
    };
    let mut session = Session::new(state, new.creator.clone(), now);
    if source.is_some() {
        session.set_had_turn();
    }
    step.insert_channel(uri.clone(), Channel::session(session_id, now, session));
    match source {
        Some(source) => copy_chat(step, uri, chat, source),
        None => add_first_chat(step, uri, chat),
    }
    let fields = json!({"defaultChat": chat.as_str()});
    step.act_as_host(uri, ActionKind::SessionDefaultChatChanged, fields);
    debug_assert!(
        step.session(uri).state().chat(chat.as_str()).is_some(),
        "the default chat is in the catalogue"
    );
    start_agent(step, uri);
    if let (Some(client_id), Some(token)) = (&new.creator, &new.progress_token) {
        let progress = ProgressReport::new(client_id.clone(), token.clone());
        step.session_mut(uri).set_progress(progress);
        progress::report(step, uri, None, Some("starting the agent"));
    }
    if let (Some(entry), Some(client_id)) = (&new.active_client, &new.creator) {
        let fields = json!({"activeClient": entry});
        step.act_as_host(uri, ActionKind::SessionActiveClientSet, fields);
        step.add_active_client(uri, client_id);
    }
}

/// The chat that comes with a session, empty.
fn add_first_chat(step: &mut Step, session: &ChannelUri, chat: &ChannelUri) {
    let chat_id = ChannelId(step.next_seq().0);
    let now = step.now();
    let mut state =
        ChatState::new(chat.as_str(), NEW_SESSION_TITLE, status::IDLE, now.to_rfc3339());
    state.working_directories = inherited(step, step.session(session).state());
    let origin = json!({"kind": "user"});
    state.extra.insert("origin".to_owned(), origin);
    let summary = chat_summary(&state);
    let channel = Chat::new(state, session.clone(), step.id_of(session));
    step.insert_channel(chat.clone(), Channel::chat(chat_id, now, channel));
    step.act_as_host(session, ActionKind::SessionChatAdded, json!({"summary": summary}));
}

/// The chat that comes with a session, with the turns of another session's.
fn copy_chat(step: &mut Step, session: &ChannelUri, chat: &ChannelUri, source: SessionSource) {
    // Rows of the chat refer to its session.
    step.write_head(session);
    let working_directories = inherited(step, step.session(session).state());
    let origin = json!({"kind": "fork", "chat": source.chat.as_str(), "turnId": source.turn_id});
    let new = NewChat {
        uri: chat.clone(),
        title: source.title,
        origin,
        interactivity: None,
        working_directories,
        source: Some(source.turns),
        brief: None,
        depth: 0,
        meta: None,
    };
    create_chat(step, session, new);
}

/// Starts the agent of a session that is being created.
pub(crate) fn start_agent(step: &mut Step, uri: &ChannelUri) {
    let effect = start_effect(step, uri);
    step.effect(effect);
}

fn start_effect(kernel: &Kernel, uri: &ChannelUri) -> Effect {
    let state = kernel.session(uri).state();
    let config = state.config.as_ref().map(|config| config.values.clone());
    Effect::StartSession {
        session: uri.clone(),
        provider: state.provider.clone(),
        config: config.unwrap_or_default(),
        working_directories: state.working_directories.clone().unwrap_or_default(),
    }
}

/// The agent is ready for the session, or never will be: turns that were waiting start or end (G-09).
pub(crate) fn finish_start(step: &mut Step, uri: &ChannelUri, result: Result<(), AgentError>) {
    if !step.session(uri).is_creating() {
        return; // announced before: a revived session is started once more
    }
    progress::finish(step, uri);
    match result {
        Ok(()) => {
            step.act_as_host(uri, ActionKind::SessionReady, json!({}));
            customization::survey(step, uri);
            for chat in step.channels().chats_in_memory(uri) {
                step.follow_up(FollowUp::StartAgent { chat, resume: None });
            }
            for chat in step.session_mut(uri).take_start_when_ready() {
                step.start_task(BackgroundTask::StartQueue(chat));
            }
        }
        Err(failure) => {
            let error = json!({"errorType": failure.error_type, "message": failure.message});
            step.act_as_host(uri, ActionKind::SessionCreationFailed, json!({"error": error}));
            for chat in step.channels().chats_in_memory(uri) {
                let failure = AgentError { resumable: false, ..failure.clone() };
                end_turn_in_error(step, &chat, failure);
            }
        }
    }
}

/// The root says how many sessions the list has.
pub(crate) fn count_sessions(step: &mut Step, change: i64) {
    let before = step.channels().root().active_sessions.unwrap_or(0);
    let count = (before + change).max(0);
    let fields = json!({"activeSessions": count});
    step.act_on_root(&Action::host(ActionKind::RootActiveSessionsChanged, fields), None);
}
