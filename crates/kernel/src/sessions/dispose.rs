//! A session ends: its turns, its subscriptions, its place in the list. Its rows stay for a while (G-28).

use std::collections::BTreeSet;

use serde_json::json;
use wire::methods::HostNotification;
use wire::{ChannelUri, rpc};

use super::create::count_sessions;
use crate::changesets;
use crate::frame::Frame;
use crate::io::{Effect, PeerId};
use crate::record::Record;
use crate::state::{Kernel, Step};
use crate::{plain, terminal};

/// Ends a session that is in memory, and its chats, in memory or not.
pub(crate) fn dispose_session(step: &mut Step, uri: &ChannelUri) {
    let id = step.id_of(uri);
    let session = step.session(uri);
    let (chats, clients) = (session.chat_uris(), session.active_client_ids());
    let is_announced = session.is_announced();
    let watching = watchers_of(step, uri, &chats);
    changesets::clear_all(step, uri);
    if let Some(worktree) = changesets::worktree_of(step, uri) {
        step.effect(Effect::RemoveWorktree(worktree));
    }
    for client_id in clients {
        step.remove_active_client(uri, &client_id);
    }
    for gone in chats.iter().chain([uri]) {
        if let Some(run) = step.take_run(gone) {
            step.effect(Effect::StopTurn { run: run.id() });
        }
        step.dispose_channel(gone);
    }
    terminal::end_of_session(step, uri);
    plain::end_channels_of(step, uri);
    debug_assert!(
        !step.channels().contains(uri) && step.peers().watchers(uri).is_empty(),
        "nobody watches what is gone"
    );
    let at = step.now();
    step.record(Record::Dispose { channel: id, at });
    step.record(Record::SummaryGone { session: id });
    let params = json!({"channel": ChannelUri::root().as_str(), "session": uri.as_str()});
    if is_announced {
        count_sessions(step, -1);
        return step.notify_root(HostNotification::SessionRemoved, &params);
    }
    // It was never announced, so only its watchers know it (G-28).
    let method = HostNotification::SessionRemoved.name(); // the same in every version
    let text = rpc::notification(method, &params);
    for peer in watching {
        step.send(peer, Frame::Text(text.clone()));
    }
}

/// Who watches the root and a session or one of its chats.
fn watchers_of(kernel: &Kernel, session: &ChannelUri, chats: &[ChannelUri]) -> BTreeSet<PeerId> {
    let (peers, root) = (kernel.peers(), ChannelUri::root());
    let watchers = chats.iter().chain([session]).flat_map(|uri| peers.watchers(uri));
    let peer_ids = watchers.map(|watcher| watcher.peer);
    peer_ids.filter(|peer| peers.subscription(*peer, &root).is_some()).collect()
}

/// Disposes of a session without turns that nobody watches and whose creator is gone.
pub(crate) fn dispose_if_empty(step: &mut Step, uri: &ChannelUri) {
    let session = step.session(uri);
    let is_watched = |uri: &ChannelUri| !step.peers().watchers(uri).is_empty();
    let creator_is_here = |creator: &str| step.peers().is_connected(creator);
    let busy = !session.is_empty()
        || !session.state().active_clients.is_empty()
        || session.creator().is_some_and(creator_is_here)
        || is_watched(uri)
        || session.chat_uris().iter().any(is_watched);
    if !busy {
        dispose_session(step, uri);
    }
}
