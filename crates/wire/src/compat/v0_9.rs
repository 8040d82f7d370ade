//! Between 0.9 and 1.0: additive on the wire, but for a field that published 0.9 clients do not send, and a word for changesets.
//!
//! Their plugin customizations have no `type`; the current types need it, or the whole action is unreadable. A changeset that is
//! computed again was one that is computed.

use serde_json::json;

use super::shape::{kind_of, object_mut, objects_mut, text};
use super::{AfterAction, Receiving, SnapshotOf, VersionStep};
use crate::action::ChannelKind;
use crate::methods::Method;
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_9,
    touches: |kind| kind == ActionKind::ChangesetStatusChanged,
    down_action,
    down_state,
    down_summary,
    up_action,
    up_params,
};

fn down_action(mut sent: Object, _: AfterAction, out: &mut Vec<Object>) {
    if kind_of(&sent) == ActionKind::ChangesetStatusChanged {
        down_status(&mut sent);
    }
    out.push(sent);
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    if let SnapshotOf::Plain(ChannelKind::Changeset) = of {
        down_status(state);
    }
}

/// Their types would keep the newer word as one that nobody knows.
fn down_status(changeset: &mut Object) {
    if text(changeset, "status") == Some("recomputing") {
        changeset.insert("status".to_owned(), json!("computing"));
    }
}

/// The compact chat catalogue of a summary came with 1.0.
fn down_summary(summary: &mut Object) {
    summary.shift_remove("chats");
    summary.shift_remove("defaultChat");
}

fn up_action(action: &mut Object, _: &Receiving) {
    if kind_of(action) == ActionKind::SessionActiveClientSet {
        up_active_client(action);
    }
}

fn up_params(method: Method, params: &mut Object) {
    if method == Method::CreateSession {
        up_active_client(params);
    }
}

/// Without customizations there is nothing to add; what is no list of objects is refused by the typed decoder.
fn up_active_client(holder: &mut Object) {
    let client = object_mut(holder, "activeClient");
    for client in client.into_iter() {
        for customization in objects_mut(client, "customizations") {
            customization.entry("type").or_insert(json!("plugin"));
        }
    }
}
