//! A session or a chat in memory, and what is the same for both.

use std::sync::Arc;

use serde_json::Value;
use wire::{ChannelUri, Timestamp};

use super::chat::Chat;
use super::session::Session;
use crate::frame::ChannelSnapshot;
use crate::record::{BootWork, ChannelId, ChannelRecord, Head, Kind, Seq};

/// A session or a chat, and what is the same for both.
pub(crate) struct Channel {
    pub(super) id: ChannelId,
    pub(super) used: Timestamp,
    pub(super) body: ChannelBody,
    /// Snapshots that are still true, by the index of their first turn.
    pub(super) snapshots: Vec<(usize, Arc<ChannelSnapshot>)>,
    /// Bytes of actions since the head was last written, and of those of the running turn that it holds.
    pub(super) unwritten: usize,
    pub(super) head_bytes: usize,
}

pub(super) enum ChannelBody {
    Session(Box<Session>),
    Chat(Box<Chat>),
}

impl Channel {
    pub(crate) fn session(id: ChannelId, now: Timestamp, session: Session) -> Self {
        Self::new(id, now, ChannelBody::Session(Box::new(session)))
    }

    pub(crate) fn chat(id: ChannelId, now: Timestamp, chat: Chat) -> Self {
        Self::new(id, now, ChannelBody::Chat(Box::new(chat)))
    }

    pub(super) fn new(id: ChannelId, now: Timestamp, body: ChannelBody) -> Self {
        Self {
            id,
            used: now,
            body,
            snapshots: Vec::new(),
            unwritten: 0,
            head_bytes: 0,
        }
    }

    /// What boot would have to do in this channel if the host died now.
    pub(super) fn boot_work(&self) -> BootWork {
        match &self.body {
            ChannelBody::Session(session) => BootWork {
                open_turn: false,
                active_clients: !session.state().active_clients.is_empty(),
                creating: session.is_creating(),
            },
            ChannelBody::Chat(chat) => BootWork {
                open_turn: chat.state().active_turn.is_some(),
                ..BootWork::default()
            },
        }
    }

    pub(super) fn value(&self) -> Value {
        match &self.body {
            ChannelBody::Session(session) => wire::action::to_value(session.state()),
            ChannelBody::Chat(chat) => chat.state().value(),
        }
    }

    pub(crate) fn record(&self, uri: &ChannelUri, seq: Seq) -> ChannelRecord {
        let (kind, head, parent, private) = match &self.body {
            ChannelBody::Session(session) => (
                Kind::Session,
                Head::Session(session.shared_state()),
                None,
                session.encode_private(),
            ),
            ChannelBody::Chat(chat) => (
                Kind::Chat,
                Head::Chat(chat.shared_state()),
                Some(chat.session_id()),
                chat.private().encode(),
            ),
        };
        ChannelRecord {
            id: self.id,
            uri: uri.clone(),
            kind,
            parent,
            head,
            head_seq: seq,
            boot_work: self.boot_work(),
            private,
        }
    }
}
