//! The state of a changeset channel: what changed, and what can be done with it.

use serde::Serialize;
use serde_json::Value;

use super::{Fields, StateError};
use crate::Object;

/// A changeset. Files and operations are kept as they came.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangesetState {
    /// `computing`, `recomputing`, `ready` or `error`.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// `ChangesetFile`, each with its `id`.
    pub files: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<Value>>,
    #[serde(flatten)]
    pub extra: Object,
}

impl ChangesetState {
    /// A changeset that is still being computed.
    pub fn computing() -> Self {
        Self {
            status: "computing".to_owned(),
            error: None,
            files: Vec::new(),
            operations: None,
            extra: Object::new(),
        }
    }

    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a changeset", value)?;
        Ok(Self {
            status: fields.text("status")?,
            error: fields.present("error"),
            files: fields.list("files").ok_or_else(|| fields.missing("files"))?,
            operations: fields.list("operations"),
            extra: fields.rest(),
        })
    }

    pub fn file(&self, id: &str) -> Option<&Value> {
        self.files.iter().find(|file| file["id"] == id)
    }

    pub fn operation(&self, id: &str) -> Option<&Value> {
        self.operations.as_deref().unwrap_or(&[]).iter().find(|operation| operation["id"] == id)
    }
}
