//! What of the channels is undone if it cannot be written: what changed leaves memory and is loaded again, the root is restored.

use std::collections::BTreeSet;

use wire::ChannelUri;

use super::{Channel, ChannelBody, Channels, ChannelsUndo, RootBefore, Run};
use crate::record::ChannelId;

impl Channels {
    pub(crate) fn commit(&mut self) {
        debug_assert!(self.unwritten_heads.is_empty(), "heads are taken at the end of every step");
        self.undo = ChannelsUndo::default();
    }

    /// What changed since the last commit leaves memory, and so do the chats in `also`: they are loaded again when
    /// somebody needs them. Returns the URIs and the runs that were there.
    pub(crate) fn roll_back(&mut self, also: Vec<ChannelUri>) -> Vec<(ChannelUri, Option<Run>)> {
        let undo = std::mem::take(&mut self.undo);
        self.unwritten_heads.clear();
        self.undo_root_and_disposals(undo.root, &undo.disposed);
        let mut evicted: BTreeSet<ChannelUri> = undo.touched.into_keys().collect();
        evicted.extend(also);
        self.evict(evicted)
    }

    /// What some steps changed leaves memory; what others changed stays, unless its session leaves. Returns the same.
    pub(crate) fn undo_steps(
        &mut self,
        failed: &BTreeSet<usize>,
    ) -> Vec<(ChannelUri, Option<Run>)> {
        let is_failed = |steps: &[usize]| steps.iter().any(|step| failed.contains(step));
        let touched = self.undo.touched.iter();
        let evicted =
            touched.filter(|(_, steps)| is_failed(steps)).map(|(uri, _)| uri.clone()).collect();
        self.undo.touched.retain(|_, steps| {
            steps.retain(|step| !failed.contains(step));
            !steps.is_empty()
        });
        let (root, kept) = std::mem::take(&mut self.undo.root)
            .into_iter()
            .partition(|(step, _)| failed.contains(step));
        self.undo.root = kept;
        let (disposed, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.undo.disposed)
            .into_iter()
            .partition(|(step, _)| failed.contains(step));
        self.undo.disposed = kept;
        self.undo_root_and_disposals(root, &disposed);
        self.evict(evicted)
    }

    /// Each channel that changed since the last commit, as the session it belongs to, and the steps that changed it.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (ChannelUri, usize)> {
        let touched = self.undo.touched.iter().flat_map(|(uri, steps)| {
            let group = self.group_of(uri);
            steps.iter().map(move |step| (group.clone(), *step))
        });
        let root = self.undo.root.iter();
        touched.chain(root.map(|(step, _)| (ChannelUri::root(), *step)))
    }

    /// The session that a channel in memory belongs to; every other channel stands for itself.
    pub(crate) fn group_of(&self, uri: &ChannelUri) -> ChannelUri {
        self.in_memory.get(uri).and_then(Channel::owner).unwrap_or(uri).clone()
    }

    /// The root is what it was before the first of these; what was disposed of may be read again.
    fn undo_root_and_disposals(
        &mut self,
        root: Vec<(usize, RootBefore)>,
        disposed: &[(usize, ChannelId)],
    ) {
        if let Some((_, (root, enablement))) = root.into_iter().next() {
            self.root = root;
            self.enablement = enablement;
            self.root_snapshot = None;
        }
        self.disposed.retain(|id| disposed.iter().all(|(_, undone)| undone != id));
    }

    fn evict(&mut self, mut evicted: BTreeSet<ChannelUri>) -> Vec<(ChannelUri, Option<Run>)> {
        // Nothing is in memory without the session it belongs to.
        let orphans: Vec<ChannelUri> = self
            .in_memory
            .iter()
            .filter(|(_, channel)| channel.owner().is_some_and(|session| evicted.contains(session)))
            .map(|(uri, _)| uri.clone())
            .collect();
        evicted.extend(orphans);
        let evicted = evicted.into_iter().map(|uri| {
            let run = self.in_memory.remove(&uri).and_then(|channel| match channel.body {
                ChannelBody::Chat(mut chat) => chat.take_run(),
                ChannelBody::Session(_) | ChannelBody::Plain(_) => None,
            });
            (uri, run)
        });
        evicted.collect()
    }
}
