//! `unsubscribe`: stops delivery at once; no answer (H-046). A client that was active in a session it leaves is active no more.

use wire::ChannelUri;

use crate::background_task::BackgroundTask;
use crate::io::PeerId;
use crate::load::need_channel;
use crate::pause::{HandlerAnswers, Pause, Unread};
use crate::record::Record;
use crate::resource_watch;
use crate::sessions::remove_active_client;
use crate::state::Step;

pub(crate) fn handle(
    step: &mut Step,
    peer: PeerId,
    uri: &ChannelUri,
    answers: &HandlerAnswers,
) -> Result<(), Pause> {
    let Some(client_id) = step.ready(peer).map(|ready| ready.client_id.clone()) else {
        return Ok(()); // nothing counts before `initialize` (H-020)
    };
    if step.peers().subscription(peer, uri).is_none() {
        return Ok(()); // it watches no such channel
    }
    let active = step.active_clients().is_active(&client_id, uri);
    if active && let Err(Unread::Read(queries)) = need_channel(step, uri, answers) {
        return Err(Pause::Read(queries));
    }
    step.peers_mut().unsubscribe(peer, uri);
    resource_watch::end_if_unused(step, uri);
    if step.unwritable().is_some() {
        step.peers_mut().mark_volatile(&client_id);
        if active {
            let task = BackgroundTask::RemoveActiveClient {
                session: uri.clone(),
                client_id,
            };
            step.recovery_mut().postpone(task);
        }
        return Ok(());
    }
    step.record(Record::FloorGone {
        client_id: client_id.clone(),
        channel: uri.clone(),
    });
    // In a session that could not be read the client stays active until its grace ends.
    if active && step.find_session(uri).is_some() {
        remove_active_client(step, uri, &client_id);
    }
    Ok(())
}
