//! A watch of files that a client asks the host for.

use serde_json::{Value, json};
use wire::Object;
use wire::state::ResourceWatchState;

/// What is to be watched, and for whom.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchTask {
    pub client_id: String,
    pub uri: String,
    pub recursive: bool,
    pub excludes: Vec<String>,
    pub includes: Option<Vec<String>>,
}

/// What the host saw of what a client watches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SeenResources {
    /// `ResourceChange`s, at least one.
    pub changes: Vec<Value>,
    /// Some changes are missing from the list: anything may have changed.
    pub is_incomplete: bool,
    /// Why the watch ended, for people.
    pub end: Option<String>,
}

impl WatchTask {
    pub(crate) fn state(&self) -> ResourceWatchState {
        let mut extra = Object::new();
        if !self.excludes.is_empty() {
            extra.insert("excludes".to_owned(), json!({"items": self.excludes}));
        }
        if let Some(includes) = &self.includes {
            extra.insert("includes".to_owned(), json!({"items": includes}));
        }
        ResourceWatchState { root: self.uri.clone(), recursive: self.recursive, extra }
    }
}
