//! The models of a host, changed while it runs (G-71).
//!
//! Promises: no key is sent, only where the host finds it; when a change is answered, the root shows it.

use serde_json::{Value, json};
use wire::ChannelUri;
use wire::ext::models::{ADD_MODEL, RELOAD_MODELS};

use crate::{ClientError, Live};

impl Live {
    /// Adds a model until the host stops, as the configuration would have it; the id it goes by.
    pub async fn add_model(&self, model: &Value) -> Result<String, ClientError> {
        let answer = self.request(ADD_MODEL, json!({"model": model})).await?;
        self.read_root_again().await?;
        let id = answer["model"].as_str().or_else(|| model["id"].as_str());
        id.map(str::to_owned)
            .ok_or_else(|| ClientError::Unreadable("an added model without an id".to_owned()))
    }

    /// Lets the host read the models of its configuration again.
    pub async fn reload_models(&self) -> Result<(), ClientError> {
        self.request(RELOAD_MODELS, json!({})).await?;
        self.read_root_again().await
    }

    /// An answer may be here before what was announced with it: that of a subscription comes after both.
    async fn read_root_again(&self) -> Result<(), ClientError> {
        self.subscribe(&ChannelUri::root()).await
    }
}
