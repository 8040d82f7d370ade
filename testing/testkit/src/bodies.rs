//! What scenarios do with bodies outside of state: read them, ask whether they are there, have them collected.

use serde_json::{Value, json};

use crate::ROOT;
use crate::scenario::Scenario;
use crate::scenario_client::ScenarioClient;

impl Scenario {
    /// A host that collects bodies after a minute and forgets disposed channels after two.
    pub fn that_collects_soon() -> Self {
        Self::with(|limits| {
            limits.sweep_ms = 1_000;
            limits.blob_grace_s = 60;
            limits.retention_disposed_s = 120;
        })
    }

    /// Something is written, the grace of every body stored so far passes, and the collector visits all of them.
    pub fn collects_bodies(&mut self, client: &ScenarioClient) {
        self.advances_ms(61_000);
        let title = json!(self.look().now.0.to_string());
        let renamed = json!({"type": "session/titleChanged", "title": title});
        let written = client.tries(&client.session(), renamed);
        written.expect("a session can be renamed");
        self.advances_in_steps(10_000, 1_000);
    }

    /// Whether the body of a content URI is stored.
    pub fn has_body(&self, uri: &str) -> bool {
        let digests = self.look().blobs.digests();
        digests.iter().any(|digest| digest.uri() == uri)
    }
}

impl ScenarioClient {
    pub fn reads_resource(&self, uri: &str) -> Result<Value, Value> {
        self.asks("resourceRead", json!({"channel": ROOT, "uri": uri}))
    }
}
