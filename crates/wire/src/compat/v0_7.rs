//! Between 0.7 and 0.8: customizations are on or off by a list of decisions, where they had one flag; a working directory can
//! be replaced; a resource that wants a token is told by its name alone.

use serde_json::{Value, json};

use super::shape::{action, for_each_customization, kind_of, object_mut, objects_mut, text};
use super::{AfterAction, Receiving, SnapshotOf, VersionStep, unchanged};
use crate::methods::Method;
use crate::state::SessionState;
use crate::{ActionKind, Generation, Object};

pub(super) const STEP: VersionStep = VersionStep {
    to: Generation::V0_7,
    touches,
    down_action,
    down_state,
    down_summary: unchanged::down_summary,
    up_action,
    up_params,
};

/// A toggle that decides for its session and leaves all wider decisions as they are: the flag was one for the session.
pub const SESSION_ONLY: &str = "x-sessionOnly";

fn touches(kind: ActionKind) -> bool {
    matches!(
        kind,
        ActionKind::RootAgentsChanged
            | ActionKind::SessionActiveClientSet
            | ActionKind::SessionCustomizationsChanged
            | ActionKind::SessionCustomizationUpdated
            | ActionKind::SessionCustomizationToggled
            | ActionKind::SessionWorkingDirectoryReplaced
    )
}

fn down_action(mut sent: Object, after: AfterAction, out: &mut Vec<Object>) {
    match kind_of(&sent) {
        ActionKind::SessionCustomizationToggled => {
            let enabled = is_enabled(sent.get("enablement"));
            sent.shift_remove("enablement");
            sent.insert("enabled".to_owned(), json!(enabled));
            out.push(sent);
        }
        ActionKind::SessionWorkingDirectoryReplaced => match after {
            AfterAction::Session(session) => replace_directory(&sent, session, out),
            // Only sessions have it.
            AfterAction::Root | AfterAction::Chat(_) | AfterAction::Changeset(_) => {}
        },
        kind => {
            if touches(kind) {
                for_each_customization(&mut sent, down_customization);
            }
            out.push(sent);
        }
    }
}

/// Plugins and MCP servers had the flag that others still have.
fn down_customization(entry: &mut Object) {
    if matches!(text(entry, "type"), Some("plugin" | "mcpServer")) {
        let enabled = is_enabled(entry.get("enablement"));
        entry.shift_remove("enablement");
        entry.shift_remove("childEnablement");
        entry.insert("enabled".to_owned(), json!(enabled));
    }
}

/// The first decision counts; without one it is on (H-301).
fn is_enabled(decisions: Option<&Value>) -> bool {
    let first = decisions.and_then(|decisions| decisions.get(0));
    first.is_none_or(|decision| decision["enabled"] == true)
}

/// All from the replaced one on are removed, and those that are there now are set again: the order stays.
fn replace_directory(sent: &Object, session: &SessionState, out: &mut Vec<Object>) {
    let now = session.working_directories.as_deref().unwrap_or(&[]);
    let replacement = text(sent, "replacement");
    let from = now.iter().position(|each| Some(each.as_str()) == replacement);
    let tail = now.get(from.unwrap_or(now.len())..).unwrap_or(&[]);
    let replaced = text(sent, "directory").map(str::to_owned);
    for directory in replaced.iter().chain(tail) {
        let fields = [("directory", json!(directory))];
        out.push(action(ActionKind::SessionWorkingDirectoryRemoved.name(), &fields));
    }
    for directory in tail {
        let fields = [("directory", json!(directory))];
        out.push(action(ActionKind::SessionWorkingDirectorySet.name(), &fields));
    }
}

fn down_state(of: SnapshotOf, state: &mut Object) {
    match of {
        SnapshotOf::Root | SnapshotOf::Session { .. } => {
            for_each_customization(state, down_customization);
        }
        SnapshotOf::Chat | SnapshotOf::Plain(_) => {}
    }
}

/// A resource that wants a token was named, where it is described now.
pub(super) fn down_auth_required(params: &mut Value) {
    let described = params.get_mut("resource");
    if let Some(name) = described.and_then(|described| described.get_mut("resource")) {
        params["resource"] = name.take();
    }
}

fn up_action(sent: &mut Object, _: &Receiving) {
    match kind_of(sent) {
        ActionKind::SessionCustomizationToggled => {
            if let Some(enabled) = sent.shift_remove("enabled") {
                let decisions = json!([{"kind": "session", "enabled": enabled}]);
                sent.insert("enablement".to_owned(), decisions);
                sent.insert(SESSION_ONLY.to_owned(), json!(true));
            }
        }
        ActionKind::SessionActiveClientSet => up_active_client(sent),
        _ => {}
    }
}

fn up_params(method: Method, params: &mut Object) {
    if method == Method::CreateSession {
        up_active_client(params);
    }
}

fn up_active_client(holder: &mut Object) {
    if let Some(client) = object_mut(holder, "activeClient") {
        for customization in objects_mut(client, "customizations") {
            if let Some(enabled) = customization.shift_remove("enabled") {
                let decision = json!([{"kind": "global", "enabled": enabled}]);
                customization.insert("enablement".to_owned(), decision);
            }
        }
    }
}
