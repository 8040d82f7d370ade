//! Between 0.9 and 1.0: additive on the wire, but for a field that published 0.9 clients do not send.
//!
//! Their plugin customizations have no `type`; the current types need it, or the whole action is unreadable.

use serde_json::{Value, json};

use crate::{ActionKind, Object};

pub(super) fn up_action(action: &mut Value) {
    let name = action.get("type").and_then(Value::as_str);
    if name == Some(ActionKind::SessionActiveClientSet.name()) {
        up_active_client(action.get_mut("activeClient"));
    }
}

pub(super) fn up_create_session(params: &mut Value) {
    up_active_client(params.get_mut("activeClient"));
}

fn up_active_client(client: Option<&mut Value>) {
    let customizations = client.and_then(|client| client.get_mut("customizations"));
    // Without customizations there is nothing to add; with others than a list, the typed decoder refuses the action.
    let list = customizations.and_then(Value::as_array_mut);
    for customization in list.into_iter().flatten() {
        if let Value::Object(customization) = customization {
            customization
                .entry("type")
                .or_insert_with(|| json!("plugin"));
        }
    }
}

/// The compact chat catalogue of a summary came with 1.0.
pub(super) fn down_summary(summary: &mut Object) {
    summary.shift_remove("chats");
    summary.shift_remove("defaultChat");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;

    fn set(customization: Value) -> Value {
        json!({
            "type": "session/activeClientSet",
            "activeClient": {"clientId": "c", "tools": [], "customizations": [customization]},
        })
    }

    #[test]
    fn a_plugin_without_a_type_becomes_readable() {
        let mut action = set(json!({"id": "p", "uri": "u", "name": "n"}));
        assert!(Action::decode(action.clone()).is_err());
        up_action(&mut action);
        assert!(Action::decode(action.clone()).is_ok());
        assert_eq!(
            action["activeClient"]["customizations"][0]["type"],
            "plugin"
        );

        let mut params = json!({"activeClient": action["activeClient"]});
        params["activeClient"]["customizations"][0] = json!({"id": "p"});
        up_create_session(&mut params);
        assert_eq!(
            params["activeClient"]["customizations"][0]["type"],
            "plugin"
        );
    }

    #[test]
    fn customizations_with_a_type_or_another_shape_are_unchanged() {
        for action in [
            set(json!({"type": "new", "id": "p"})),
            set(json!(7)),
            json!({"type": "session/activeClientSet"}),
            json!({"type": "session/activeClientSet", "activeClient": []}),
            json!({"type": "chat/delta", "activeClient": {"customizations": [{}]}}),
            json!(null),
        ] {
            let mut after = action.clone();
            up_action(&mut after);
            assert_eq!(after, action);
        }
    }

    #[test]
    fn a_summary_loses_its_chats() {
        let Value::Object(mut summary) = json!({"title": "t", "chats": [], "defaultChat": "d"})
        else {
            unreachable!()
        };
        down_summary(&mut summary);
        assert_eq!(Value::Object(summary), json!({"title": "t"}));
    }
}
