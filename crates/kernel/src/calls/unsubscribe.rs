//! `unsubscribe`: stops delivery at once; no answer (H-046). A client that was active in a session it leaves is active no more.

use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::io::PeerId;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, NotLoaded, Pause};
use crate::record::Record;
use crate::resource_watch;
use crate::sessions::remove_active_client;
use crate::state::{Kernel, Step};

/// A subscription that its client ends.
pub(crate) struct EndedSubscription {
    uri: ChannelUri,
    client_id: String,
    /// Whether the client is active in the session.
    is_active: bool,
}

/// The subscription, if there is one. The session that an active client leaves is in memory, unless it cannot be read.
pub(crate) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    uri: &ChannelUri,
    answers: &HandlerAnswers,
) -> Result<Option<EndedSubscription>, Pause> {
    let Some(client_id) = kernel.ready(peer).map(|ready| ready.client_id.clone()) else {
        return Ok(None); // nothing counts before `initialize` (H-020)
    };
    if kernel.peers().subscription(peer, uri).is_none() {
        return Ok(None); // it watches no such channel
    }
    let is_active = kernel.active_clients().is_active(&client_id, uri);
    if is_active && let Err(NotLoaded::Read(queries)) = need_channel(kernel, uri, answers) {
        return Err(Pause::Read(queries));
    }
    Ok(Some(EndedSubscription { uri: uri.clone(), client_id, is_active }))
}

pub(crate) fn apply(step: &mut Step, peer: PeerId, ended: EndedSubscription) {
    let EndedSubscription { uri, client_id, is_active } = ended;
    step.peers_mut().unsubscribe(peer, &uri);
    resource_watch::end_if_unused(step, &uri);
    if step.unwritable().is_some() {
        step.peers_mut().mark_volatile(&client_id);
        if is_active {
            let session = uri;
            let task = BackgroundTask::RemoveActiveClient { session, client_id };
            step.recovery_mut().postpone(task);
        }
        return;
    }
    step.record(Record::FloorGone { client_id: client_id.clone(), channel: uri.clone() });
    // In a session that could not be read the client stays active until its grace ends.
    if is_active && step.find_session(&uri).is_some() {
        remove_active_client(step, &uri, &client_id);
    }
}
