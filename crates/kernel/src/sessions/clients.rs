//! Clients that are active in a session: how long one that is gone stays active, and what follows when it is not (H-126).

use serde_json::json;
use wire::ActionKind;
use wire::ChannelUri;

use super::create::start_agent;
use crate::customization::survey_plugins;
use crate::io::Timer;
use crate::state::Step;
use crate::tool_call::reply::fail_calls_of_client;

/// A session from before the restart: its agent is started if it was being created, and grace periods start again (G-07).
pub(crate) fn revive(step: &mut Step, uri: &ChannelUri) {
    let session = step.session(uri);
    let (creating, clients) = (session.is_creating(), session.active_client_ids());
    if creating {
        start_agent(step, uri);
    }
    for client_id in clients {
        // Who it was is not stored: until it comes back, its id is anybody's who may take part.
        step.lose_active_client(&client_id, None);
        let timer = Timer::Grace { session: uri.clone(), client_id };
        let grace_ms = step.limits().active_client_grace_ms;
        step.wake_in(timer, grace_ms);
    }
}

/// A client that was lost has had its grace, unless it came back or was lost again since.
pub(crate) fn end_grace(step: &mut Step, session: &ChannelUri, client_id: &str) {
    let grace_ms = step.limits().active_client_grace_ms;
    let lost = step.active_clients().lost_at(client_id);
    let due = lost.is_none_or(|lost| lost.plus_ms(grace_ms) <= step.now());
    if due && !step.peers().is_connected(client_id) {
        remove_active_client(step, session, client_id);
    }
}

/// A client is active in a session no more: what it was carrying out there comes to nothing.
pub(crate) fn remove_active_client(step: &mut Step, session: &ChannelUri, client_id: &str) {
    let fields = json!({"clientId": client_id});
    step.act_as_host(session, ActionKind::SessionActiveClientRemoved, fields);
    step.remove_active_client(session, client_id);
    debug_assert!(
        !step.active_clients().is_active(client_id, session),
        "its state and its owner agree that it is gone"
    );
    fail_calls_of_client(step, session, client_id);
    survey_plugins(step, session, None);
}
