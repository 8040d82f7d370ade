//! The state of the root channel: agents, counts, host configuration.

use serde::Serialize;
use serde_json::Value;

use super::{Fields, StateError};
use crate::Object;

/// The root channel. Terminals and `_meta` live in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootState {
    pub agents: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_sessions: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigState>,
    #[serde(flatten)]
    pub extra: Object,
}

/// A schema and the values under it: on the root channel and in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigState {
    pub schema: Value,
    pub values: Object,
    #[serde(flatten)]
    pub extra: Object,
}

impl RootState {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("the root", value)?;
        Ok(Self {
            agents: fields.list("agents").ok_or_else(|| fields.missing("agents"))?,
            active_sessions: fields.take("activeSessions").and_then(|v| v.as_i64()),
            config: fields.take("config").map(ConfigState::from_value).transpose()?,
            extra: fields.rest(),
        })
    }
}

impl ConfigState {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a config", value)?;
        let schema = fields.take("schema").ok_or_else(|| fields.missing("schema"))?;
        let Some(Value::Object(values)) = fields.take("values") else {
            return Err(fields.missing("values"));
        };
        Ok(Self { schema, values, extra: fields.rest() })
    }
}
