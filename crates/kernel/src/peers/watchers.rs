//! Who watches each channel, as fan-out needs it.
//!
//! Promises: a peer watches a channel once; a channel that nobody watches has no entry.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::ChannelUri;

use super::subscription::Watcher;
use crate::frame::Recipient;
use crate::io::PeerId;

/// The watchers of all channels, in memory or not.
#[derive(Default)]
pub(super) struct Watchers {
    by_channel: BTreeMap<ChannelUri, ChannelWatchers>,
}

/// Who watches one channel.
#[derive(Default)]
struct ChannelWatchers {
    list: Vec<Watcher>,
    /// All of them as recipients, made once for all frames until somebody comes or goes.
    recipients: Option<Arc<[Recipient]>>,
}

impl Watchers {
    pub(super) fn of(&self, uri: &ChannelUri) -> &[Watcher] {
        let watchers = self.by_channel.get(uri);
        watchers.map_or(&[], |watchers| watchers.list.as_slice())
    }

    /// The channels that somebody watches, and who.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ChannelUri, &[Watcher])> {
        self.by_channel.iter().map(|(uri, watchers)| (uri, watchers.list.as_slice()))
    }

    /// The watchers of a channel that are meant, as recipients; `None` if there are none. A list of all of them is made once.
    pub(super) fn recipients(
        &mut self,
        uri: &ChannelUri,
        is_meant: impl Fn(&Watcher) -> bool,
    ) -> Option<Arc<[Recipient]>> {
        let ChannelWatchers { list, recipients } = self.by_channel.get_mut(uri)?;
        debug_assert!(!list.is_empty(), "a channel that nobody watches has no entry");
        if list.iter().all(&is_meant) {
            let all =
                recipients.get_or_insert_with(|| list.iter().map(Watcher::recipient).collect());
            return Some(Arc::clone(all));
        }
        let some: Arc<[Recipient]> =
            list.iter().filter(|watcher| is_meant(watcher)).map(Watcher::recipient).collect();
        (!some.is_empty()).then_some(some)
    }

    /// Makes this the watcher that a peer is of a channel, or ends that it is one.
    pub(super) fn replace(&mut self, uri: &ChannelUri, peer: PeerId, watcher: Option<Watcher>) {
        debug_assert!(
            watcher.as_ref().is_none_or(|watcher| watcher.peer == peer),
            "a watcher is of its own peer"
        );
        let watchers = self.by_channel.entry(uri.clone()).or_default();
        let index = watchers.list.iter().position(|other| other.peer == peer);
        watchers.recipients = None;
        match (index, watcher) {
            (Some(index), Some(watcher)) => watchers.list[index] = watcher,
            (Some(index), None) => {
                watchers.list.remove(index);
            }
            (None, Some(watcher)) => watchers.list.push(watcher),
            (None, None) => {} // it watched nothing
        }
        if watchers.list.is_empty() {
            self.by_channel.remove(uri);
        }
        if self.by_channel.is_empty() {
            // An empty map keeps room for eleven, and there may be thousands of kernels at rest.
            self.by_channel = BTreeMap::new();
        }
    }
}
