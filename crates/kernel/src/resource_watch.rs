//! Watches of files (H-260 to H-262): each is a channel that reports changes and stores nothing.
//!
//! Promises: a watch ends when its last subscriber is gone, and when nobody subscribed to it for a while; what the host watches
//! for a channel that is not there ends, too. A batch is never empty. One that does not hold everything says so, and the last one of a watch
//! that fails says why.
//! Must not know: how files are watched.

use serde_json::json;
use wire::{Action, ActionKind, ChannelUri, Object};

use crate::io::{Effect, Timer};
use crate::plain::{self, NewPlainChannel};
use crate::state::Step;
use crate::watch_task::{SeenResources, WatchTask};

/// The scheme of watches.
const SCHEME: &str = "ahp-resource-watch";

/// How long a watch waits for somebody to subscribe to it.
const UNUSED_MS: u64 = 60_000;

/// Creates the channel of a watch that the host has started.
pub(crate) fn begin(step: &mut Step, uri: ChannelUri, task: &WatchTask) {
    let new = NewPlainChannel {
        uri: uri.clone(),
        state: task.state().into(),
        session: None,
        private: Object::new(),
    };
    plain::create_channel(step, new);
    step.wake_in(Timer::UnusedWatch { watch: uri }, UNUSED_MS);
}

/// What the last batch of a watch has in its `_meta`: why it ended. The protocol has no field for it (H-054).
const ENDED: &str = "greenroom.watchEnded";

/// What a batch has in its `_meta` if it does not hold everything that changed.
const INCOMPLETE: &str = "greenroom.incomplete";

/// The host saw changes.
pub(crate) fn report(step: &mut Step, watch: &ChannelUri, seen: SeenResources) {
    if step.find_plain(watch).is_none() {
        let watch = watch.clone();
        return step.effect(Effect::EndWatch { watch }); // it has no channel any more
    }
    debug_assert!(!seen.changes.is_empty(), "a batch is never empty (H-261)");
    let mut fields = json!({"changes": {"items": seen.changes}});
    if seen.is_incomplete || seen.end.is_some() {
        fields["_meta"] = json!({INCOMPLETE: true});
    }
    if let Some(why) = &seen.end {
        fields["_meta"][ENDED] = json!(why);
    }
    let action = Action::host(ActionKind::ResourceWatchChanged, fields);
    step.send_unrecorded(watch, &action);
    if seen.end.is_some() {
        plain::end_channel(step, watch);
    }
}

/// Somebody may have been the last to watch.
pub(crate) fn end_if_unused(step: &mut Step, watch: &ChannelUri) {
    if watch.scheme() != SCHEME || !step.peers().watchers(watch).is_empty() {
        return; // another kind of channel, or somebody listens
    }
    if step.find_plain(watch).is_some() {
        plain::end_channel(step, watch);
    }
    let watch = watch.clone();
    step.effect(Effect::EndWatch { watch });
}

/// A connection is gone: so are the watches that only it listened to.
pub(crate) fn end_unused_of(step: &mut Step, watched: Vec<ChannelUri>) {
    for watch in watched {
        end_if_unused(step, &watch);
    }
}
