//! The heads of channels: which are to be written at the end of a step, and what is in them.

use std::sync::Arc;

use bytes::Bytes;
use wire::{ChannelUri, rpc};

use super::{ChannelBody, Channels};
use crate::record::{BootWork, ChannelId, ChannelRecord, Head, Seq, StoredKind};

impl Channels {
    /// Has the head written at the end of this step. It holds what earlier steps changed, so this step rests on them.
    pub(crate) fn mark_head(&mut self, uri: &ChannelUri) {
        if !uri.is_root() {
            debug_assert!(self.contains(uri), "{uri} is in memory");
            self.touch(uri);
        }
        self.unwritten_heads.insert(uri.clone());
    }

    /// The heads of all channels that changed in this step, as they are now.
    pub(crate) fn take_heads(&mut self, seq: Seq) -> Vec<ChannelRecord> {
        let unwritten = std::mem::take(&mut self.unwritten_heads);
        let heads = unwritten.into_iter().filter_map(|uri| {
            if uri.is_root() {
                return Some(self.root_head(uri, seq));
            }
            self.head(&uri, seq)
        });
        heads.collect()
    }

    fn root_head(&self, uri: ChannelUri, seq: Seq) -> ChannelRecord {
        ChannelRecord {
            id: ChannelId::ROOT,
            uri,
            kind: StoredKind::Root,
            parent: None,
            head: Head::Root(Arc::clone(&self.root)),
            head_seq: seq,
            boot_work: BootWork::default(),
            private: Bytes::from(rpc::to_json(&*self.enablement)),
        }
    }

    /// The head of one channel as it is now; none of what is not stored.
    pub(crate) fn head(&mut self, uri: &ChannelUri, seq: Seq) -> Option<ChannelRecord> {
        let channel = self.in_memory.get_mut(uri)?;
        // What a running turn has streamed is in its head from now on; the next one waits until it has doubled.
        channel.head_bytes = match &channel.body {
            ChannelBody::Chat(chat) if chat.state().active_turn.is_some() => {
                channel.head_bytes + channel.unwritten
            }
            // What a terminal printed is written anew when as much was printed since.
            ChannelBody::Plain(plain) => plain.state().size_hint(),
            ChannelBody::Chat(_) | ChannelBody::Session(_) => 0,
        };
        channel.unwritten = 0;
        channel.record(uri, seq)
    }
}
