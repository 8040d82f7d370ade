//! `x-addModel` and `x-reloadModels`: a client gives a running host a model, or lets it read its configuration again (G-71).
//!
//! Promises: a key is never in a message, only the name of the place where the host finds it.
//! Must not know: what the fields of a model mean.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Object;

/// The request that adds a model until the host stops; it also announces the extension in `InitializeResult._meta`.
pub const ADD_MODEL: &str = "x-addModel";
/// The request that lets the host read the models of its configuration again.
pub const RELOAD_MODELS: &str = "x-reloadModels";

const EXTENSION_VERSION: u32 = 1;

/// `x-addModel`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddModelParams {
    /// As a `[[models]]` table of the configuration.
    pub model: Object,
}

/// What both requests answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelsResult {
    /// The agent that the models belong to.
    pub provider: String,
    /// The id of the model that was added, which may be another than the one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The entry of `InitializeResult._meta`.
pub fn support() -> Value {
    json!({"version": EXTENSION_VERSION})
}
