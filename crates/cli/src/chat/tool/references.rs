//! What calls refer to: contents, as far as they were read from the host, and the chats of workers.
//!
//! Promises: what cannot be read is known as such, so that nothing waits for it. Bounded.
//! Must not know: how contents are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wire::Object;

/// Contents that are kept; those of the calls that are asked about or were shown last.
const CONTENTS_MAX: usize = 32;
/// The edits of one call whose contents are read.
const EDITS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct References {
    known: BTreeMap<String, ReferencedContent>,
    /// The names of what is known, the oldest first.
    order: Vec<String>,
    /// Workers by their chats.
    workers: BTreeMap<String, WorkerState>,
}

/// A worker that is at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerState {
    pub(crate) status: u32,
    pub(crate) activity: Option<String>,
    /// How long it is known here.
    pub(crate) seconds: i64,
}

#[derive(Debug, Clone)]
pub(crate) enum ReferencedContent {
    Here(Arc<[u8]>),
    /// It is being read.
    Coming,
    /// It cannot be read.
    Missing,
}

/// What is known of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup<'a> {
    Here(&'a [u8]),
    Coming,
    Missing,
    /// Nobody has asked for it.
    Unknown,
}

impl References {
    pub(crate) fn set(&mut self, uri: &str, content: ReferencedContent) {
        if self.known.insert(uri.to_owned(), content).is_none() {
            self.order.push(uri.to_owned());
        }
        if self.order.len() > CONTENTS_MAX {
            let oldest = self.order.remove(0);
            self.known.remove(&oldest);
        }
    }

    pub(crate) fn set_workers(&mut self, workers: BTreeMap<String, WorkerState>) {
        self.workers = workers;
    }

    pub(super) fn worker(&self, chat: &str) -> Option<&WorkerState> {
        self.workers.get(chat)
    }

    pub(crate) fn find(&self, uri: &str) -> Lookup<'_> {
        match self.known.get(uri) {
            Some(ReferencedContent::Here(bytes)) => Lookup::Here(bytes),
            Some(ReferencedContent::Coming) => Lookup::Coming,
            Some(ReferencedContent::Missing) => Lookup::Missing,
            None => Lookup::Unknown,
        }
    }

    /// The contents a call needs to be shown that nobody has asked for.
    pub(crate) fn unknown_of(&self, call: &Object) -> Vec<String> {
        let uris = content_uris(call).into_iter();
        uris.filter(|uri| self.find(uri) == Lookup::Unknown)
            .collect()
    }

    /// Whether a call can be shown as well as it ever can.
    pub(crate) fn is_complete(&self, call: &Object) -> bool {
        let is_there = |uri: &String| matches!(self.find(uri), Lookup::Here(_) | Lookup::Missing);
        content_uris(call).iter().all(is_there)
    }
}

/// The contents of both sides of the edits of a call, of those that it asks about or that it made.
fn content_uris(call: &Object) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    for edit in edits_of(call).take(EDITS_MAX) {
        for side in ["before", "after"] {
            if let Some(uri) = edit[side]["content"]["uri"].as_str() {
                uris.push(uri.to_owned());
            }
        }
    }
    uris
}

/// The edits of a call: what it wants to do while it waits, what it did when it is over.
pub(super) fn edits_of(call: &Object) -> impl Iterator<Item = &Value> {
    let is_waiting = call
        .get("status")
        .is_some_and(|status| status == "pending-confirmation");
    let planned = call
        .get("edits")
        .and_then(|edits| edits["items"].as_array());
    let done = call.get("content").and_then(Value::as_array);
    let planned = planned.filter(|_| is_waiting).into_iter().flatten();
    let done = done.filter(|_| !is_waiting).into_iter().flatten();
    planned.chain(done.filter(|block| block["type"] == "fileEdit"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_complete_when_all_it_refers_to_was_looked_for() {
        let side = |uri: &str| json!({"uri": "file:///a", "content": {"uri": uri}});
        let call = json!({"status": "completed", "content": [
            {"type": "text", "text": "x"},
            {"type": "fileEdit", "before": side("c:1"), "after": side("c:2")},
        ]});
        let call = call.as_object().unwrap();
        let mut references = References::default();
        assert_eq!(references.unknown_of(call), ["c:1", "c:2"]);
        references.set("c:1", ReferencedContent::Coming);
        references.set("c:2", ReferencedContent::Missing);
        assert!(references.unknown_of(call).is_empty() && !references.is_complete(call));
        references.set("c:1", ReferencedContent::Here(Arc::from(&b"a"[..])));
        assert!(references.is_complete(call));
        for number in 0..100 {
            references.set(&format!("other:{number}"), ReferencedContent::Missing);
        }
        assert_eq!(references.known.len(), CONTENTS_MAX);
        assert_eq!(references.find("c:1"), Lookup::Unknown);
    }
}
