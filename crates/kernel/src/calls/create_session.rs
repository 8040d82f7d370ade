//! `createSession`: under whatever URI the client chose, ready when its agent is (H-110 to H-116).

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use wire::published::commands::CreateSessionParams;
use wire::rpc::code;
use wire::state::{ChatState, ConfigState, SessionState, status};
use wire::{Action, ActionKind, ChannelUri, Id, Object, RpcError};

use crate::authority::{CONTENT_DEPTH_MAX, depth_of};
use crate::channel::{Body, Channel, ChatChannel, SessionChannel};
use crate::io::{AgentFacts, Effect, PeerId};
use crate::load::{Flow, Memo};
use crate::record::ChannelId;
use crate::{Kernel, config, directory};

/// What a new session is called until somebody names it.
pub(crate) const NEW_TITLE: &str = "New session";

/// The URI of the chat that comes with a session (G-26).
pub(crate) fn default_chat_of(session: &ChannelUri) -> String {
    format!(
        "ahp-chat://default/{}",
        URL_SAFE_NO_PAD.encode(session.as_str())
    )
}

impl Kernel {
    pub(crate) fn create_session(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &CreateSessionParams,
        raw: &Value,
        memo: &Memo,
    ) -> Flow<()> {
        let uri = match self.parse_channel(&params.channel) {
            Ok(uri) => uri,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        if uri.is_root() {
            let error = RpcError::new(
                code::INVALID_PARAMS,
                "`channel` is the root; choose a URI for the session",
            );
            return self.answer_error(peer, id, &error);
        }
        let chat = match self.parse_channel(&default_chat_of(&uri)) {
            Ok(chat) => chat,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        let exist = match self.need_channels(&[(uri.clone(), 1), (chat.clone(), 1)], memo) {
            Flow::Ready(exist) => exist,
            Flow::Ask(queries) => return Flow::Ask(queries),
            Flow::Failed(failed) => return Flow::Failed(failed),
        };
        if let Some(reason) = self.unwritable() {
            return self.answer_error(peer, id, &RpcError::new(code::INTERNAL_ERROR, reason));
        }
        let too_deep = raw
            .get("activeClient")
            .is_some_and(|client| depth_of(client) > CONTENT_DEPTH_MAX);
        let planned = if too_deep {
            Err(RpcError::new(
                code::INVALID_PARAMS,
                format!("`activeClient` nests at most {CONTENT_DEPTH_MAX} levels deep"),
            ))
        } else if exist.contains(&true) {
            Err(RpcError::new(
                code::SESSION_ALREADY_EXISTS,
                format!("{uri} exists already"),
            )) // H-110
        } else {
            self.plan_session(peer, params)
        };
        match planned {
            Err(error) => return self.answer_error(peer, id, &error),
            Ok((agent, config, directories)) => {
                self.found_session(peer, &uri, &chat, &agent, config, directories);
            }
        }
        // The entry is taken as it was sent: fields the published types do not know must survive (H-365).
        if let Some(client) = raw.get("activeClient").filter(|client| client.is_object())
            && let Some(client_id) = self.ready(peer).map(|ready| ready.client_id.clone())
        {
            self.act(
                &uri,
                Action::host(
                    ActionKind::SessionActiveClientSet,
                    json!({"activeClient": client}),
                ),
                None,
            );
            self.note_active(&uri, &client_id);
        }
        self.count_sessions(1);
        self.publish_now(&uri);
        self.respond(peer, id, &Value::Null);
        Flow::Ready(())
    }

    /// Everything that can be wrong with the request, checked before anything changes.
    fn plan_session(
        &self,
        peer: PeerId,
        params: &CreateSessionParams,
    ) -> Result<(AgentFacts, ConfigState, Vec<String>), RpcError> {
        let agent = self.agent(params.provider.as_deref())?.clone();
        let values = config::with_defaults(
            &agent.config_schema,
            params.config.as_ref().unwrap_or(&Object::new()),
        )
        .map_err(|bad| RpcError::new(code::INVALID_PARAMS, format!("config: {bad}")))?;
        let config = ConfigState {
            schema: agent.config_schema.clone(),
            values,
            extra: Object::new(),
        };
        let creator = self.ready(peer).map(|ready| ready.client_id.as_str());
        if params
            .active_client
            .as_ref()
            .is_some_and(|client| Some(client.client_id.as_str()) != creator)
        {
            let message = "`activeClient.clientId` must be the creator's own"; // H-115
            return Err(RpcError::new(code::INVALID_PARAMS, message));
        }
        // Without the capability only the first directory counts (H-114).
        let directory = params
            .working_directories
            .as_ref()
            .and_then(|all| all.first());
        let directory = match directory {
            None => self.facts.default_directory.clone(),
            Some(uri) => {
                let path = directory::path_of(uri).ok_or_else(|| {
                    RpcError::new(
                        code::INVALID_PARAMS,
                        "a working directory is an absolute `file:` URI",
                    )
                })?;
                if !directory::is_inside(&path, &self.facts.roots) {
                    let roots = self.facts.roots.join(", ");
                    let message = format!("a working directory must lie inside one of: {roots}");
                    return Err(RpcError::new(code::PERMISSION_DENIED, message)); // G-23
                }
                Some(uri.clone())
            }
        };
        Ok((agent, config, directory.into_iter().collect()))
    }

    /// The agent a provider id names; the first if none is named (H-111).
    pub(crate) fn agent(&self, provider: Option<&str>) -> Result<&AgentFacts, RpcError> {
        let found = match provider {
            None => self.facts.agents.first(),
            Some(provider) => self
                .facts
                .agents
                .iter()
                .find(|agent| agent.provider == provider),
        };
        found.ok_or_else(|| {
            let known: Vec<&str> = self
                .facts
                .agents
                .iter()
                .map(|agent| agent.provider.as_str())
                .collect();
            let wanted = provider.unwrap_or("(default)");
            RpcError::new(
                code::PROVIDER_NOT_FOUND,
                format!("no agent {wanted}; there are: {}", known.join(", ")),
            )
        })
    }

    fn found_session(
        &mut self,
        peer: PeerId,
        uri: &ChannelUri,
        chat: &ChannelUri,
        agent: &AgentFacts,
        config: ConfigState,
        directories: Vec<String>,
    ) {
        let moment = self.now.to_rfc3339();
        let session_id = ChannelId(self.next_seq().0);
        let chat_id = ChannelId(self.next_seq().0);
        let directories = (!directories.is_empty()).then_some(directories);
        let state = SessionState {
            provider: agent.provider.clone(),
            title: NEW_TITLE.to_owned(),
            status: status::IDLE,
            activity: None,
            lifecycle: "creating".to_owned(),
            working_directories: directories.clone(),
            active_clients: Vec::new(),
            chats: Vec::new(),
            default_chat: None,
            config: Some(config),
            customizations: None,
            input_needed: Vec::new(),
            extra: Object::new(),
        };
        let session = SessionChannel {
            state: Arc::new(state),
            creator: self.ready(peer).map(|ready| ready.client_id.clone()),
            created: self.now,
            modified: self.now,
            had_turn: false,
            waiting: BTreeSet::new(),
            notes: None,
            eager: BTreeSet::new(),
            embedded: 0,
            published: Object::new(),
        };
        let mut chat_state = ChatState::new(chat.as_str(), NEW_TITLE, status::IDLE, moment.clone());
        chat_state.working_directories = directories;
        chat_state
            .extra
            .insert("origin".to_owned(), json!({"kind": "user"}));
        self.undo.touch(uri);
        self.undo.touch(chat);
        self.channels.insert(
            uri.clone(),
            Channel::new(session_id, self.now, Body::Session(Box::new(session))),
        );
        let channel = ChatChannel::new(chat_state, uri.clone(), session_id);
        self.channels.insert(
            chat.clone(),
            Channel::new(chat_id, self.now, Body::Chat(Box::new(channel))),
        );
        self.dirty.insert(chat.clone());
        let mut summary = json!({
            "resource": chat.as_str(),
            "title": NEW_TITLE,
            "status": status::IDLE,
            "modifiedAt": moment,
            "origin": {"kind": "user"},
        });
        if let Some(directories) = self
            .chat_state(chat)
            .and_then(|state| state.working_directories.as_ref())
        {
            summary["workingDirectories"] = json!(directories);
        }
        self.act(
            uri,
            Action::host(ActionKind::SessionChatAdded, json!({"summary": summary})),
            None,
        );
        let fields = json!({"defaultChat": chat.as_str()});
        self.act(
            uri,
            Action::host(ActionKind::SessionDefaultChatChanged, fields),
            None,
        );
        self.start_session(uri);
    }

    /// Starts the agent of a session that is being created.
    pub(crate) fn start_session(&mut self, uri: &ChannelUri) {
        let Some(state) = self.session_state(uri) else {
            return;
        };
        let config = state.config.as_ref().map(|config| config.values.clone());
        let effect = Effect::StartSession {
            session: uri.clone(),
            provider: state.provider.clone(),
            config: config.unwrap_or_default(),
            working_directories: state.working_directories.clone().unwrap_or_default(),
        };
        self.out.effects.push(effect);
    }
}
