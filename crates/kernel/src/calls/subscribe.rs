//! `subscribe`: a snapshot and a place among the watchers, in one step (H-040 to H-054).

use std::sync::Arc;

use serde_json::json;
use wire::Id;
use wire::published::commands::SubscribeParams;

use super::serve::{SnapshotMode, WantedChannel, serve_snapshots};
use super::uri;
use crate::frame::{Frame, LateResponse, LateResponseBody};
use crate::io::PeerId;
use crate::load::need_channel_with;
use crate::pause::{HandlerAnswers, RequestStop};
use crate::rights::check_watch;
use crate::state::{Kernel, Step};

/// Longest delivery window taken (H-047 lets a host choose): a frame is held no longer than a client is willing to wait.
const WINDOW_MS_MAX: u32 = 10_000;

/// The channel to be served, which is in memory.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    params: &SubscribeParams,
    answers: &HandlerAnswers,
) -> Result<WantedChannel, RequestStop> {
    let uri = uri::parse("channel", &params.channel)?;
    check_watch(kernel, peer, &uri)?;
    let most = kernel.limits().subscriptions_max;
    let peers = kernel.peers();
    if peers.subscription_count(peer) >= most && peers.subscription(peer, &uri).is_none() {
        let message = format!("at most {most} subscriptions per connection");
        return Err(uri::bad(message).into());
    }
    // The view is advisory: a number that makes no sense is no view (H-049).
    let view = params.view.as_ref().and_then(|view| view.turns);
    let view_turns = view.and_then(|turns| u32::try_from(turns).ok()).map(|turns| turns.max(1));
    let delivery = params.delivery.as_ref();
    let latency =
        delivery.and_then(|delivery| delivery.max_latency_ms).and_then(|ms| u32::try_from(ms).ok());
    let turns = view_turns.unwrap_or(u32::MAX);
    if !need_channel_with(kernel, &uri, answers, turns)? {
        return Err(uri::not_found(kernel, &uri).into());
    }
    Ok(WantedChannel { uri, view_turns, max_latency_ms: latency.map(|ms| ms.min(WINDOW_MS_MAX)) })
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, wanted: WantedChannel) {
    let Some(generation) = step.ready(peer).map(|ready| ready.generation) else {
        unreachable!("only an admitted peer subscribes");
    };
    let snapshots = serve_snapshots(step, peer, &[wanted], SnapshotMode::Additional);
    if snapshots.is_empty() {
        return step.respond(peer, id, &json!({})); // it has no state
    }
    for snapshot in snapshots {
        let response = LateResponse {
            id: id.clone(),
            generation,
            body: LateResponseBody::Subscribe(snapshot),
        };
        step.send(peer, Frame::Response(Arc::new(response)));
    }
}
