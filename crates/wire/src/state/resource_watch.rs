//! The state of a watch of resources: what is watched. It never changes; what happens is told by actions and kept nowhere.

use serde::Serialize;
use serde_json::Value;

use super::{Fields, StateError};
use crate::Object;

/// A watch. `excludes` and `includes` live in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceWatchState {
    pub root: String,
    pub recursive: bool,
    #[serde(flatten)]
    pub extra: Object,
}

impl ResourceWatchState {
    pub fn from_value(value: Value) -> Result<Self, StateError> {
        let mut fields = Fields::of("a watch", value)?;
        Ok(Self {
            root: fields.text("root")?,
            recursive: fields.flag("recursive")?,
            extra: fields.rest(),
        })
    }
}
