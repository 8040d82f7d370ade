//! From the journal into memory: a stored channel becomes a session, a chat or a plain channel.

use wire::action::ChannelKind;
use wire::reduce::reduce_chat;
use wire::state::{ChatState, PlainState, SessionState};
use wire::{ChannelUri, Timestamp, action};

use super::chat::StoredChat;
use super::chat_private::ChatPrivate;
use super::{Channel, ChannelBody, Channels, Chat, PlainChannel, Session, TerminalBound};
use crate::config;
use crate::io::AgentFacts;
use crate::journal_query::{StoredChannel, TurnPage};
use crate::record::{ChannelId, StoredKind};

/// What lies in the journal but cannot be understood: a failed load, not a channel that is missing.
#[derive(Debug, thiserror::Error)]
#[error("{uri} is damaged: {problem}")]
pub(crate) struct DamagedChannel {
    uri: ChannelUri,
    problem: String,
}

impl Channels {
    /// Puts a stored channel, and its session before it, into memory. Returns the URIs that were not there yet, a session
    /// before its chat. Nothing here is a change: there is nothing to undo and nothing to write.
    pub(crate) fn install(
        &mut self,
        stored: StoredChannel,
        agents: &[AgentFacts],
        now: Timestamp,
    ) -> Result<Vec<ChannelUri>, DamagedChannel> {
        let mut installed = Vec::new();
        self.install_one(stored, agents, now, &mut installed)?;
        Ok(installed)
    }

    fn install_one(
        &mut self,
        stored: StoredChannel,
        agents: &[AgentFacts],
        now: Timestamp,
        installed: &mut Vec<ChannelUri>,
    ) -> Result<(), DamagedChannel> {
        if self.contains(&stored.uri) {
            return Ok(()); // another answer was quicker
        }
        let uri = stored.uri.clone();
        let damaged = |problem: String| DamagedChannel { uri: uri.clone(), problem };
        let mut stored = stored;
        let parent = stored.parent.take();
        let session = parent.as_ref().map(|parent| (parent.uri.clone(), parent.id));
        if let Some(parent) = parent {
            self.install_one(*parent, agents, now, installed)?;
        }
        let id = stored.id;
        let body = match stored.kind {
            StoredKind::Root => return Err(damaged("the root is not loaded like this".to_owned())),
            StoredKind::Session => {
                ChannelBody::Session(Box::new(load_session(&stored, agents).map_err(damaged)?))
            }
            StoredKind::Chat => {
                let (session, session_id) =
                    session.ok_or_else(|| damaged("it has no session".to_owned()))?;
                let chat = self.load_chat(stored, session, session_id).map_err(damaged)?;
                ChannelBody::Chat(Box::new(chat))
            }
            StoredKind::Changeset | StoredKind::Annotations if session.is_none() => {
                return Err(damaged("it has no session".to_owned()));
            }
            StoredKind::Changeset | StoredKind::Annotations | StoredKind::Terminal => {
                let plain = load_plain(&stored, session, self.trim).map_err(damaged)?;
                ChannelBody::Plain(Box::new(plain))
            }
        };
        let channel = Channel::new(id, now, body);
        assert!(
            channel.owner().is_none_or(|session| self.contains(session)),
            "nothing is in memory without the session it belongs to"
        );
        self.in_memory.insert(uri.clone(), channel);
        installed.push(uri);
        Ok(())
    }

    fn load_chat(
        &self,
        stored: StoredChannel,
        session: ChannelUri,
        session_id: ChannelId,
    ) -> Result<Chat, String> {
        let head = serde_json::from_slice(&stored.head).map_err(|error| error.to_string())?;
        let mut state = ChatState::from_value(head).map_err(|error| error.to_string())?;
        let private = ChatPrivate::decode(&stored.private);
        let private = private.map_err(|error| format!("its private record: {error}"))?;
        // The title lives in the catalogue: no chat action carries it (G-13, H-150).
        let catalogue = self.find_session(&session);
        let entry = catalogue.and_then(|session| session.state().chat(stored.uri.as_str()));
        if let Some(entry) = entry {
            state.title.clone_from(&entry.title);
        }
        for (_, envelope) in &stored.later {
            let action = action::from_envelope(envelope);
            let action = action.ok_or_else(|| "an action cannot be read".to_owned())?;
            reduce_chat(&mut state, &action);
        }
        Ok(Chat::from_stored(
            state,
            StoredChat {
                session,
                session_id,
                turns: stored.turns,
                next_n: stored.next_n,
                checkpoint: stored.checkpoint,
                private,
            },
        ))
    }

    /// Older turns of a chat were read: they are put in front of what is in memory.
    pub(crate) fn prepend_turns(&mut self, chat: ChannelId, before_n: u64, page: TurnPage) {
        let mut channels = self.in_memory.values_mut();
        let channel = channels.find(|channel| channel.id == chat);
        // A chat that left memory meanwhile is read again when somebody needs it.
        if let Some(channel) = channel
            && let ChannelBody::Chat(chat) = &mut channel.body
        {
            chat.prepend_if_adjacent(before_n, page);
            channel.snapshots.clear(); // they are found by an index
        }
    }
}

fn load_plain(
    stored: &StoredChannel,
    session: Option<(ChannelUri, ChannelId)>,
    trim: TerminalBound,
) -> Result<PlainChannel, String> {
    let kind = match stored.kind {
        StoredKind::Changeset => ChannelKind::Changeset,
        StoredKind::Annotations => ChannelKind::Annotations,
        StoredKind::Terminal => ChannelKind::Terminal,
        StoredKind::Root | StoredKind::Session | StoredKind::Chat => {
            return Err("it is another kind".to_owned());
        }
    };
    let head = serde_json::from_slice(&stored.head).map_err(|error| error.to_string())?;
    let state = PlainState::of_kind(kind, head).map_err(|error| error.to_string())?;
    let state = state.ok_or_else(|| "its state is of another kind".to_owned())?;
    let private = serde_json::from_slice(&stored.private);
    let private = private.map_err(|error| format!("its private record: {error}"))?;
    let mut plain = PlainChannel::new(state, session, private, trim);
    for (_, envelope) in &stored.later {
        let action = action::from_envelope(envelope);
        plain.reduce(&action.ok_or_else(|| "an action cannot be read".to_owned())?);
    }
    Ok(plain)
}

fn load_session(stored: &StoredChannel, agents: &[AgentFacts]) -> Result<Session, String> {
    let head = serde_json::from_slice(&stored.head).map_err(|error| error.to_string())?;
    let mut state = SessionState::from_value(head).map_err(|error| error.to_string())?;
    let agent = agents.iter().find(|agent| agent.provider == state.provider);
    if let (Some(agent), Some(config)) = (agent, &mut state.config) {
        config::renew(&agent.config_schema, &agent.renamed_settings, config);
    }
    Session::from_stored(state, &stored.private)
        .map_err(|error| format!("its private record: {error}"))
}

#[cfg(test)]
mod tests {
    use agent_api::RenamedSetting;
    use bytes::Bytes;
    use serde_json::{Value, json};
    use wire::state::RootState;

    use super::super::Enablement;
    use super::*;
    use crate::limits::Limits;
    use crate::record::Seq;

    #[test]
    fn a_stored_session_with_settings_of_before_has_those_of_today() {
        let uri = ChannelUri::parse("native:/s").unwrap();
        let property = json!({"type": "string", "enum": ["ask", "plan"], "default": "ask"});
        let agent = AgentFacts {
            provider: "native".to_owned(),
            config_schema: json!({"type": "object", "properties": {"approvals": property}}),
            renamed_settings: vec![RenamedSetting {
                old_name: "permissions".to_owned(),
                name: "approvals".to_owned(),
                values: vec![(json!("read-only"), json!("plan"))],
            }],
            ..AgentFacts::default()
        };
        let old = json!({"type": "object", "properties": {"permissions": {"type": "string"}}});
        let head = json!({
            "provider": "native", "title": "t", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": [],
            "config": {"schema": old, "values": {"permissions": "read-only"}},
        });
        let stored = StoredChannel {
            id: ChannelId(1),
            uri: uri.clone(),
            kind: StoredKind::Session,
            head: Bytes::from(head.to_string()),
            head_seq: Seq(1),
            private: Bytes::from_static(b"{}"),
            later: Vec::new(),
            turns: TurnPage::default(),
            next_n: 0,
            checkpoint: None,
            parent: None,
        };
        let root = RootState::from_value(json!({"agents": []})).unwrap();
        let mut channels = Channels::new(root, Enablement::default(), &Limits::default());
        channels.install(stored, std::slice::from_ref(&agent), Timestamp(0)).unwrap();
        let config = channels.find_session(&uri).unwrap().state().config.clone().unwrap();
        assert_eq!(Value::Object(config.values), json!({"approvals": "plan"}));
        assert_eq!(config.schema, agent.config_schema);
    }
}
