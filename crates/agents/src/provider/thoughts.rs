//! Whether a request asks to be shown what its model thinks: some servers do it for some of their users alone.

use serde_json::Value;

use super::ModelRequest;

/// The settings by which the wire formats ask for it.
const ASKED_BY: [(&str, &str); 2] =
    [("reasoning", "summary"), ("thinkingConfig", "includeThoughts")];

impl ModelRequest {
    /// Whether it asks for them.
    pub(crate) fn shows_thoughts(&self) -> bool {
        ASKED_BY.iter().any(|(setting, field)| {
            let asked = self.settings.get(*setting).and_then(|it| it.get(*field));
            asked.is_some_and(|asked| !asked.is_null() && *asked != false)
        })
    }

    /// Asks for them no more; whatever else is said of how much the model thinks stays.
    pub(crate) fn hide_thoughts(&mut self) {
        for (setting, field) in ASKED_BY {
            let Some(Value::Object(said)) = self.settings.get_mut(setting) else {
                continue; // nothing is said of it
            };
            said.shift_remove(field);
            if said.is_empty() {
                self.settings.shift_remove(setting);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(settings: Value) -> ModelRequest {
        ModelRequest {
            settings: settings.as_object().cloned().unwrap_or_default(),
            ..ModelRequest::default()
        }
    }

    #[test]
    fn what_else_is_said_of_thinking_stays() {
        for (settings, rest) in [
            (json!({"reasoning": {"summary": "auto"}}), json!({})),
            (
                json!({"reasoning": {"effort": "low", "summary": "auto"}}),
                json!({"reasoning": {"effort": "low"}}),
            ),
            (
                json!({"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": true}}),
                json!({"thinkingConfig": {"thinkingLevel": "low"}}),
            ),
        ] {
            let mut request = request(settings);
            assert!(request.shows_thoughts(), "{request:?}");
            request.hide_thoughts();
            assert!(!request.shows_thoughts());
            assert_eq!(Value::Object(request.settings), rest);
        }
        let silent =
            json!({"reasoning": {"effort": "low"}, "thinkingConfig": {"includeThoughts": false}});
        assert!(!request(silent).shows_thoughts());
    }
}
