//! Puts what is known at the time of playing into the strings of a step.

use serde_json::Value;

/// What can be named in a string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    pub groups: Vec<String>,
    pub text: String,
    pub history: String,
    pub last: String,
    pub steering: String,
    pub session: String,
    /// The terminal that was made last.
    pub terminal: String,
}

impl Words {
    /// The step with every name replaced. `$10` is not a group: there are at most nine.
    pub(crate) fn fill(&self, step: &Value) -> Value {
        match step {
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| match name.as_str() {
                    // Filled when they are played: more is known then.
                    "steps" => (name.clone(), value.clone()),
                    _ => (name.clone(), self.fill(value)),
                })
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => step.clone(),
        }
    }

    fn fill_text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (index, group) in self.groups.iter().enumerate().skip(1).take(9) {
            text = text.replace(&format!("${index}"), group);
        }
        let directory = || std::env::current_dir().unwrap_or_default();
        text = self.fill_environment(text);
        text.replace("{{cwd}}", &directory().display().to_string())
            .replace("{{pid}}", &std::process::id().to_string())
            .replace("{{session}}", &self.session)
            .replace("{{terminal}}", &self.terminal)
            .replace("{{history}}", &self.history)
            .replace("{{steering}}", &self.steering)
            .replace("{{last}}", &self.last)
            .replace("{{text}}", &self.text)
    }

    fn fill_environment(&self, mut text: String) -> String {
        while let Some((before, rest)) = text.split_once("{{env:") {
            let Some((name, after)) = rest.split_once("}}") else { break };
            let value = std::env::var(name).unwrap_or_else(|_| "unset".to_owned());
            text = format!("{before}{value}{after}");
        }
        text
    }
}
