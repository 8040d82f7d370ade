//! Values that clients up to 0.8 have to know.
//!
//! The published types of 0.4 to 0.8 refuse a state that holds any other: the whole snapshot is unreadable, or the action is
//! ignored without a word. From 0.9 on most of these are open, so a newer client, an agent or an import may bring what no
//! older one knows. One table says what is sent in its place.
//!
//! Not in the table: enums that 1.0 closes, too (such a value is refused where it arrives), and the tags of unions whose
//! types keep what they cannot read. The sets below are the same from 0.4 to 0.8.

use serde_json::{Value, json};

use super::shape::{
    for_each_customization, for_each_message, for_each_tool_call, object_mut, objects_mut,
};
use crate::Object;

/// One closed enum of the published types.
#[derive(Debug)]
pub struct ClosedEnum {
    /// As the published types call it.
    pub name: &'static str,
    /// What 0.8 reads.
    pub known: &'static [&'static str],
    /// What is sent in the place of a value that came later.
    pub renamed: &'static [(&'static str, &'static str)],
    /// What is sent in the place of everything else.
    pub nearest: &'static str,
}

pub const MESSAGE_KIND: ClosedEnum = ClosedEnum {
    name: "MessageKind",
    known: &["user", "agent", "tool", "systemNotification"],
    renamed: &[],
    // Nobody typed it.
    nearest: "systemNotification",
};

pub const SESSION_LIFECYCLE: ClosedEnum = ClosedEnum {
    name: "SessionLifecycle",
    known: &["creating", "ready", "creationFailed"],
    renamed: &[("failed", "creationFailed")],
    // It can be read, and a turn in it is refused with a reason if it is not to be had.
    nearest: "ready",
};

pub const CONFIRMATION_REASON: ClosedEnum = ClosedEnum {
    name: "ToolCallConfirmationReason",
    known: &["not-needed", "user-action", "setting"],
    renamed: &[],
    // Only clients can make one up, and a client acts for its user.
    nearest: "user-action",
};

pub const OPTION_KIND: ClosedEnum = ClosedEnum {
    name: "ConfirmationOptionKind",
    known: &["approve", "deny"],
    renamed: &[],
    // What is not known to approve is never shown as if it did.
    nearest: "deny",
};

pub const MCP_AUTH_REASON: ClosedEnum = ClosedEnum {
    name: "McpAuthRequiredReason",
    known: &["required", "expired", "insufficientScope"],
    renamed: &[],
    nearest: "required",
};

pub const CHANGESET_STATUS: ClosedEnum = ClosedEnum {
    name: "ChangesetStatus",
    known: &["computing", "ready", "error"],
    renamed: &[],
    // What is there may change: `recomputing` among them.
    nearest: "computing",
};

pub const OPERATION_STATUS: ClosedEnum = ClosedEnum {
    name: "ChangesetOperationStatus",
    known: &["idle", "running", "error", "disabled"],
    renamed: &[],
    // Nobody starts what they do not understand.
    nearest: "disabled",
};

/// What is no such scope is left out: an operation may have several, or none.
pub const OPERATION_SCOPES: [&str; 3] = ["changeset", "resource", "range"];

pub const CLOSED_ENUMS: [&ClosedEnum; 7] = [
    &MESSAGE_KIND,
    &SESSION_LIFECYCLE,
    &CONFIRMATION_REASON,
    &OPTION_KIND,
    &MCP_AUTH_REASON,
    &CHANGESET_STATUS,
    &OPERATION_STATUS,
];

impl ClosedEnum {
    /// What is sent for a value.
    pub fn fit<'a>(&self, value: &'a str) -> &'a str {
        if self.known.contains(&value) {
            return value;
        }
        let renamed = self.renamed.iter().find(|(newer, _)| *newer == value);
        renamed.map_or(self.nearest, |(_, older)| older)
    }

    fn fit_field(&self, holder: &mut Object, field: &str) {
        if let Some(Value::String(value)) = holder.get_mut(field) {
            let fitting = self.fit(value);
            if fitting != value {
                *value = fitting.to_owned();
            }
        }
    }
}

/// Makes every value in a state or action one that 0.8 knows.
pub(super) fn fit(holder: &mut Object) {
    SESSION_LIFECYCLE.fit_field(holder, "lifecycle");
    for_each_message(holder, fit_message);
    for_each_tool_call(holder, fit_tool_call);
    for_each_customization(holder, fit_customization);
    // An action about a tool call, an MCP server or a customization has the fields itself.
    fit_tool_call(holder);
    fit_customization(holder);
}

/// The status of a changeset, in its state or in an action.
pub(super) fn fit_changeset_status(holder: &mut Object) {
    CHANGESET_STATUS.fit_field(holder, "status");
}

/// The operations of a changeset, in its state or in an action.
pub(super) fn fit_operations(holder: &mut Object) {
    for operation in objects_mut(holder, "operations") {
        fit_operation_status(operation);
        if let Some(Value::Array(scopes)) = operation.get_mut("scopes") {
            let is_known = |scope: &str| OPERATION_SCOPES.contains(&scope);
            scopes.retain(|scope| scope.as_str().is_some_and(is_known));
        }
    }
}

/// The status of one of them.
pub(super) fn fit_operation_status(holder: &mut Object) {
    OPERATION_STATUS.fit_field(holder, "status");
}

fn fit_message(message: &mut Object) {
    if let Some(origin) = object_mut(message, "origin") {
        MESSAGE_KIND.fit_field(origin, "kind");
    }
}

fn fit_tool_call(call: &mut Object) {
    CONFIRMATION_REASON.fit_field(call, "confirmed");
    for option in objects_mut(call, "options") {
        OPTION_KIND.fit_field(option, "kind");
    }
    if let Some(option) = object_mut(call, "selectedOption") {
        OPTION_KIND.fit_field(option, "kind");
    }
    if let Some(auth) = object_mut(call, "auth") {
        MCP_AUTH_REASON.fit_field(auth, "reason");
    }
    if let Some(suggestion) = object_mut(call, "userSuggestion") {
        fit_message(suggestion);
    }
}

fn fit_customization(entry: &mut Object) {
    if let Some(Value::Array(decisions)) = entry.get_mut("enablement") {
        decisions.iter_mut().for_each(fit_decision);
    }
    if let Some(Value::Object(children)) = entry.get_mut("childEnablement") {
        children.values_mut().filter_map(Value::as_array_mut).flatten().for_each(fit_decision);
    }
    if let Some(server) = object_mut(entry, "state") {
        MCP_AUTH_REASON.fit_field(server, "reason");
    }
}

/// A decision about a customization that 0.8 cannot read: the customization is off by it, as for everyone who cannot read it
/// (H-301).
fn fit_decision(decision: &mut Value) {
    let kind = decision.get("kind").and_then(Value::as_str);
    let names_its_scope = match kind {
        Some("global" | "session") => true,
        Some("workspace") => decision.get("uri").is_some_and(Value::is_string),
        _ => false,
    };
    if !names_its_scope || !decision.get("enabled").is_some_and(Value::is_boolean) {
        *decision = json!({"kind": "session", "enabled": false});
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{down, object};
    use super::super::{AfterAction, SnapshotOf, down_state};
    use super::*;
    use crate::Generation;

    /// What 0.8 cannot read is sent as what is nearest to it, wherever it stands.
    #[test]
    fn values_that_a_client_would_not_know_are_told_as_those_it_knows() {
        let message = json!({"text": "", "origin": {"kind": "x-made-up"}});
        let call = json!({"toolCallId": "c", "confirmed": "x-made-up", "options": [{"id": "o", "kind": "x-made-up"}],
            "selectedOption": {"id": "o", "kind": "x-made-up"}, "userSuggestion": message, "auth": {"reason": "x-made-up"}});
        let mut chat = object(json!({
            "draft": message, "steeringMessage": {"id": "s", "message": message}, "queuedMessages": [{"id": "q", "message": message}],
            "turns": [{"id": "t", "message": message, "responseParts": [{"kind": "toolCall", "toolCall": call}]}]}));
        let before = chat.clone();
        down_state(Generation::V0_9, SnapshotOf::Chat, &mut chat);
        assert_eq!(chat, before);
        down_state(Generation::V0_8, SnapshotOf::Chat, &mut chat);
        let told = json!({"text": "", "origin": {"kind": "systemNotification"}});
        let told_call = json!({"toolCallId": "c", "confirmed": "user-action", "options": [{"id": "o", "kind": "deny"}],
            "selectedOption": {"id": "o", "kind": "deny"}, "userSuggestion": told, "auth": {"reason": "required"}});
        assert_eq!(
            Value::Object(chat),
            json!({
                "draft": told, "steeringMessage": {"id": "s", "message": told}, "queuedMessages": [{"id": "q", "message": told}],
                "turns": [{"id": "t", "message": told, "responseParts": [{"kind": "toolCall", "toolCall": told_call}]}]})
        );
        let confirmed =
            json!({"type": "chat/toolCallConfirmed", "approved": true, "confirmed": "x-made-up"});
        assert_eq!(
            down(Generation::V0_4, confirmed, AfterAction::Root)[0]["confirmed"],
            "user-action"
        );
        // A decision that nobody can read switches off (H-301), also for those who would not even read the list.
        let plugin = json!({"type": "plugin", "id": "p", "enablement": [{"kind": "x-made-up", "enabled": true}]});
        let changed = json!({"type": "session/customizationsChanged", "customizations": [plugin]});
        assert_eq!(
            down(Generation::V0_8, changed.clone(), AfterAction::Root)[0]["customizations"][0]["enablement"],
            json!([{"kind": "session", "enabled": false}])
        );
        assert_eq!(
            down(Generation::V0_7, changed, AfterAction::Root)[0]["customizations"][0]["enabled"],
            false
        );
    }
}
