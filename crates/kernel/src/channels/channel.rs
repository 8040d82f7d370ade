//! What is the same for all channels in memory: how they are made, and what is stored of them.

use serde_json::Value;
use wire::{ChannelUri, Timestamp};

use super::{Channel, ChannelBody, Chat, PlainChannel, Session};
use crate::record::{BootWork, ChannelId, ChannelRecord, Head, Seq, StoredKind};

impl Channel {
    pub(crate) fn session(id: ChannelId, now: Timestamp, session: Session) -> Self {
        Self::new(id, now, ChannelBody::Session(Box::new(session)))
    }

    pub(crate) fn chat(id: ChannelId, now: Timestamp, chat: Chat) -> Self {
        Self::new(id, now, ChannelBody::Chat(Box::new(chat)))
    }

    pub(crate) fn plain(id: ChannelId, now: Timestamp, plain: PlainChannel) -> Self {
        Self::new(id, now, ChannelBody::Plain(Box::new(plain)))
    }

    pub(super) fn new(id: ChannelId, now: Timestamp, body: ChannelBody) -> Self {
        Self { id, used: now, body, snapshots: Vec::new(), unwritten: 0, head_bytes: 0 }
    }

    /// What boot would have to do in this channel if the host died now.
    pub(super) fn boot_work(&self) -> BootWork {
        match &self.body {
            ChannelBody::Session(session) => BootWork {
                open_turn: false,
                active_clients: !session.state().active_clients.is_empty(),
                creating: session.is_creating(),
                ..BootWork::default()
            },
            ChannelBody::Chat(chat) => {
                BootWork { open_turn: chat.state().active_turn.is_some(), ..BootWork::default() }
            }
            ChannelBody::Plain(plain) => plain.boot_work(),
        }
    }

    pub(super) fn value(&self) -> Value {
        match &self.body {
            ChannelBody::Session(session) => wire::action::to_value(session.state()),
            ChannelBody::Chat(chat) => chat.state().value(),
            ChannelBody::Plain(plain) => wire::action::to_value(plain.state()),
        }
    }

    /// What is stored of it; none of what is not stored.
    pub(crate) fn record(&self, uri: &ChannelUri, seq: Seq) -> Option<ChannelRecord> {
        let (kind, head, parent, private) = match &self.body {
            ChannelBody::Session(session) => (
                StoredKind::Session,
                Head::Session(session.shared_state()),
                None,
                session.encode_private(),
            ),
            ChannelBody::Chat(chat) => (
                StoredKind::Chat,
                Head::Chat(chat.shared_state()),
                Some(chat.session_id()),
                chat.private().encode(),
            ),
            ChannelBody::Plain(plain) => {
                let (kind, head) = plain.stored_as()?;
                (kind, head, plain.session_id(), plain.encode_private())
            }
        };
        Some(ChannelRecord {
            id: self.id,
            uri: uri.clone(),
            kind,
            parent,
            head,
            head_seq: seq,
            boot_work: self.boot_work(),
            private,
        })
    }
}
