//! What a client opted in to rewrite, and what the host may therefore ask of it. Knows the wire only: what a client
//! never named must never reach it, and restricted sections reach no client.

use std::collections::BTreeSet;

use serde_json::Value;

/// Everything a client ever opted in to, by either name of the method.
#[derive(Debug, Clone, Default)]
pub struct TransformOptIn {
    by_field: BTreeSet<String>,
    otherwise: BTreeSet<String>,
}

fn take(into: &mut BTreeSet<String>, opt_in: &Value) {
    let listed = opt_in["sections"].as_array().into_iter().flatten();
    into.extend(listed.filter_map(Value::as_str).map(str::to_owned));
}

impl TransformOptIn {
    fn entry(&mut self, entry: &Value) {
        take(&mut self.by_field, &entry["systemMessageTransform"]);
        take(&mut self.otherwise, &entry["_meta"]["x-systemMessageTransform"]);
    }

    /// It sends a request.
    pub fn request(&mut self, method: &str, params: &Value) {
        match method {
            "createSession" => self.entry(&params["activeClient"]),
            "initialize" => {
                take(&mut self.otherwise, &params["_meta"]["x-systemMessageTransform"]);
            }
            _ => {}
        }
    }

    /// It dispatches an action.
    pub fn action(&mut self, action: &Value) {
        match action["type"].as_str() {
            Some("session/activeClientSet") => self.entry(&action["activeClient"]),
            Some("x-session/systemMessageTransformSet") => take(&mut self.otherwise, action),
            _ => {}
        }
    }

    /// What is wrong with a request of the host's, if anything is.
    pub fn wrong(&self, frame: &Value) -> Option<String> {
        let opted = match frame["method"].as_str() {
            Some("systemMessageTransform") => &self.by_field,
            Some("x-systemMessageTransform") => &self.otherwise,
            _ => return Some("something else".to_owned()),
        };
        let sections = frame["params"]["sections"].as_object();
        let Some(sections) = sections.filter(|sections| !sections.is_empty()) else {
            return Some("for nothing".to_owned());
        };
        if sections.contains_key("safety") {
            return Some("for what is restricted".to_owned());
        }
        let strange = sections.keys().find(|id| !opted.contains(*id));
        strange.map(|id| format!("for `{id}`, which it did not opt in to"))
    }
}
