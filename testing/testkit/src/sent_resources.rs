//! The resources that a client named in its messages: of them alone may the host ask it (H-259).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::client::ROOT;

/// Every URI of a resource that a client ever attached.
#[derive(Debug, Clone, Default)]
pub struct SentResources(BTreeSet<String>);

impl SentResources {
    /// It sends a message.
    pub fn message(&mut self, message: &Value) {
        let attachments = message["attachments"].as_array().into_iter().flatten();
        let resources = attachments.filter(|attachment| attachment["type"] == "resource");
        let uris = resources.filter_map(|attachment| attachment["uri"].as_str());
        self.0.extend(uris.map(str::to_owned));
    }

    /// What is wrong with a request of the host's, if anything is.
    pub fn wrong(&self, frame: &Value) -> Option<String> {
        let params = &frame["params"];
        let uri = params["uri"].as_str().unwrap_or("");
        let is_plain = params["channel"] == ROOT && params.as_object()?.len() == 2;
        let is_ours = ["file:", "http:", "https:", "data:", "ahp-"]
            .iter()
            .any(|scheme| uri.starts_with(scheme));
        let known = self.0.contains(uri) && is_plain && !is_ours;
        (!known).then(|| format!("for `{uri}`, which is not its own to read"))
    }
}
