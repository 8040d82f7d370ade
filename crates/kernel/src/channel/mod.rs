//! Channels in memory: a session or a chat as a value, with what only the host knows of it.

pub(crate) mod chat;
pub(crate) mod root;
pub(crate) mod session;

use std::sync::Arc;

use serde_json::Value;
use wire::state::{ChatState, SessionState};
use wire::{ChannelUri, Generation, Timestamp};

pub(crate) use chat::ChatChannel;
pub(crate) use session::SessionChannel;

use crate::frame::Snapshot;
use crate::io::PeerId;
use crate::record::{ChannelId, Duty, Head, Kind};

/// One channel.
pub(crate) struct Channel {
    pub id: ChannelId,
    pub used: Timestamp,
    pub body: Body,
    /// Snapshots that are still true, by the index of their first turn.
    pub snapshots: Vec<(usize, Arc<Snapshot>)>,
    /// Bytes of actions since the head was last written, and of those of the running turn that it holds.
    pub unwritten: usize,
    pub head_bytes: usize,
}

pub(crate) enum Body {
    Session(Box<SessionChannel>),
    Chat(Box<ChatChannel>),
}

/// A subscription, as fan-out needs it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Watcher {
    pub peer: PeerId,
    pub generation: Generation,
    pub window_ms: u32,
}

impl Channel {
    pub fn new(id: ChannelId, now: Timestamp, body: Body) -> Self {
        Self {
            id,
            used: now,
            body,
            snapshots: Vec::new(),
            unwritten: 0,
            head_bytes: 0,
        }
    }

    pub fn kind(&self) -> Kind {
        match &self.body {
            Body::Session(_) => Kind::Session,
            Body::Chat(_) => Kind::Chat,
        }
    }

    pub fn head(&self) -> Head {
        match &self.body {
            Body::Session(session) => Head::Session(Arc::clone(&session.state)),
            Body::Chat(chat) => Head::Chat(Arc::clone(&chat.state)),
        }
    }

    pub fn duty(&self) -> Duty {
        match &self.body {
            Body::Session(session) => Duty {
                open_turn: false,
                active_clients: !session.state.active_clients.is_empty(),
                creating: session.state.lifecycle == "creating",
            },
            Body::Chat(chat) => Duty {
                open_turn: chat.state.active_turn.is_some(),
                ..Duty::default()
            },
        }
    }

    pub fn value(&self) -> Value {
        match &self.body {
            Body::Session(session) => wire::action::to_value(&*session.state),
            Body::Chat(chat) => chat.state.value(),
        }
    }
}

impl crate::Kernel {
    pub(crate) fn session(&self, uri: &ChannelUri) -> Option<&SessionChannel> {
        match &self.channels.get(uri)?.body {
            Body::Session(session) => Some(session),
            Body::Chat(_) => None,
        }
    }

    pub(crate) fn session_mut(&mut self, uri: &ChannelUri) -> Option<&mut SessionChannel> {
        match &mut self.channels.get_mut(uri)?.body {
            Body::Session(session) => Some(session),
            Body::Chat(_) => None,
        }
    }

    pub(crate) fn chat(&self, uri: &ChannelUri) -> Option<&ChatChannel> {
        match &self.channels.get(uri)?.body {
            Body::Chat(chat) => Some(chat),
            Body::Session(_) => None,
        }
    }

    pub(crate) fn chat_mut(&mut self, uri: &ChannelUri) -> Option<&mut ChatChannel> {
        match &mut self.channels.get_mut(uri)?.body {
            Body::Chat(chat) => Some(chat),
            Body::Session(_) => None,
        }
    }

    pub(crate) fn session_state(&self, uri: &ChannelUri) -> Option<&SessionState> {
        self.session(uri).map(|session| &*session.state)
    }

    pub(crate) fn chat_state(&self, uri: &ChannelUri) -> Option<&ChatState> {
        self.chat(uri).map(|chat| &*chat.state)
    }

    /// The chats of a session that are in memory.
    pub(crate) fn chats_in_memory(&self, session: &ChannelUri) -> Vec<ChannelUri> {
        let chats = self
            .session_state(session)
            .map(|state| state.chats.as_slice())
            .unwrap_or(&[]);
        let uris = chats
            .iter()
            .filter_map(|chat| ChannelUri::parse(&chat.resource).ok());
        uris.filter(|uri| self.channels.contains_key(uri)).collect()
    }
}
