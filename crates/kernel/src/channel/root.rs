//! The root channel: agents, counts, and the host's own settings.

use serde_json::Value;
use wire::action::RootAction;
use wire::reduce::Reduced;
use wire::{Action, Object};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::config;
use crate::io::Effect;
use crate::speak::Sender;

/// May a client do this to the root? Unknown settings are stripped, bad values refused (G-22, H-097).
pub(crate) fn validate(
    schema: &Value,
    verb: RootAction,
    mut action: Action,
) -> Result<Permit, Refusal> {
    match verb {
        RootAction::ConfigChanged => {
            let wanted = action
                .get("config")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default();
            let mut values =
                config::known_values(schema, &wanted).map_err(|bad| Refusal(bad.to_string()))?;
            if action.flag("replace") == Some(true) {
                values = config::with_defaults(schema, &values)
                    .map_err(|bad| Refusal(bad.to_string()))?;
            }
            action
                .body
                .insert("config".to_owned(), Value::Object(values));
            Ok(Permit(action))
        }
    }
}

impl Kernel {
    pub(crate) fn act_on_root(&mut self, action: Action, sender: &Sender) {
        if self.act_root(action, Some(sender)) == Reduced::Changed {
            let values: Object = self
                .root
                .config
                .as_ref()
                .map(|config| config.values.clone())
                .unwrap_or_default();
            self.out.effects.push(Effect::Configure { values });
        }
    }
}
