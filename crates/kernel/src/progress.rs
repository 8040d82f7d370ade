//! `root/progress`: progress of a long creation, sent to the client that gave a progress token.
//!
//! Promises: what is reported never falls; the last report says that it is done, and nothing follows it. It is not repeated after a
//! reconnect.

use serde_json::json;
use wire::methods::HostNotification;
use wire::{ChannelUri, compat, rpc};

use crate::channels::ProgressReport;
use crate::frame::Frame;
use crate::state::Step;

/// A creation goes on: `total` if that is known, and what it is at.
pub(crate) fn report(
    step: &mut Step,
    session: &ChannelUri,
    done_of: Option<(i64, i64)>,
    message: Option<&str>,
) {
    let Some(before) = step.session(session).progress().cloned() else {
        return; // nobody asked
    };
    // What is finished is reported once, at the end.
    let done_of = done_of.filter(|(done, total)| done < total);
    let done = done_of.map_or(before.done, |(done, _)| done.max(before.done));
    debug_assert!(done >= before.done, "what is reported never falls");
    let report = ProgressReport { done, ..before };
    let total = done_of.map(|(_, total)| total);
    send(step, &report, total, message);
    step.session_mut(session).set_progress(report);
}

/// The creation is over, well or not: the state says which.
pub(crate) fn finish(step: &mut Step, session: &ChannelUri) {
    if step.session(session).progress().is_none() {
        return; // nobody asked
    }
    if let Some(report) = step.session_mut(session).take_progress() {
        let done = report.done.saturating_add(1);
        let report = ProgressReport { done, ..report };
        send(step, &report, Some(done), None);
    }
}

fn send(step: &mut Step, report: &ProgressReport, total: Option<i64>, message: Option<&str>) {
    let Some(peer) = step.peers().peer_of(&report.client_id) else {
        return; // the client that asked is gone
    };
    let Some(generation) = step.ready(peer).map(|ready| ready.generation) else {
        return; // it has not negotiated a version yet, so nothing can be sent to it
    };
    let mut params = json!({
        "channel": ChannelUri::root().as_str(),
        "progressToken": report.token,
        "progress": report.done,
    });
    if let Some(total) = total {
        params["total"] = json!(total);
    }
    if let Some(message) = message {
        params["message"] = json!(message);
    }
    let notification = HostNotification::Progress;
    if let Some(params) = compat::down_notification(generation, notification, params) {
        let text = rpc::notification(notification.name(), &params);
        step.send(peer, Frame::Text(text));
    }
}
