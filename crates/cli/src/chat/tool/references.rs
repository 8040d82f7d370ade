//! What calls refer to: contents, as far as they were read from the host, and the chats of workers.
//!
//! Promises: what cannot be read is known as such, with the reason, so that nothing waits for it. What is being shown is never
//! dropped to make room, so that nothing is read again and again; a content that does not fit beside it is left out, and said so.
//! Bounded by bytes.
//! Must not know: how contents are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use markup::diff;
use serde_json::Value;
use wire::Object;

use crate::format::format_bytes;

/// All contents together.
const BYTES_MAX: usize = 64 << 20;
/// Contents that are kept though nothing on the screen needs them: those that were shown last.
const SPARE_MAX: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct References {
    known: BTreeMap<String, KnownContent>,
    /// The names of what is known, the oldest first.
    order: Vec<String>,
    /// What is being shown.
    needed: BTreeSet<String>,
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
    /// It cannot be read, and why.
    Missing(String),
}

#[derive(Debug, Clone)]
enum KnownContent {
    Read(ReferencedContent),
    /// It was read, and there was no room for so many bytes.
    LeftOut(usize),
}

/// What is known of a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lookup<'a> {
    Here(&'a [u8]),
    Coming,
    /// It cannot be shown, and why.
    Missing(&'a str),
    /// Nobody has asked for it.
    Unknown,
}

impl KnownContent {
    fn bytes(&self) -> usize {
        match self {
            Self::Read(ReferencedContent::Here(bytes)) => bytes.len(),
            Self::Read(_) | Self::LeftOut(_) => 0,
        }
    }
}

impl References {
    pub(crate) fn set(&mut self, uri: &str, content: ReferencedContent) {
        let known = match content {
            ReferencedContent::Here(bytes) if bytes.len() > diff::BYTES_MAX => {
                let why = format!("it is larger than {}", format_bytes(diff::BYTES_MAX as u64));
                KnownContent::Read(ReferencedContent::Missing(why))
            }
            ReferencedContent::Here(bytes) => {
                self.forget(uri);
                self.make_room(bytes.len());
                if self.bytes() + bytes.len() > BYTES_MAX {
                    KnownContent::LeftOut(bytes.len())
                } else {
                    KnownContent::Read(ReferencedContent::Here(bytes))
                }
            }
            other => KnownContent::Read(other),
        };
        if self.known.insert(uri.to_owned(), known).is_none() {
            self.order.push(uri.to_owned());
        }
    }

    /// Notes which contents are being shown: these are kept. Others stay for a while, in case somebody wants to see them again.
    pub(crate) fn set_needed(&mut self, uris: impl IntoIterator<Item = String>) {
        self.needed = uris.into_iter().collect();
        let is_spare = |uri: &&String| !self.needed.contains(*uri);
        let spare: Vec<String> = self.order.iter().filter(is_spare).cloned().collect();
        let surplus = spare.len().saturating_sub(SPARE_MAX);
        for uri in spare.iter().take(surplus) {
            self.forget(uri);
        }
        // What there was no room for is read again when there is.
        let needed_bytes: usize = self.needed.iter().map(|uri| self.bytes_of(uri)).sum();
        let fits = |known: &KnownContent| match known {
            KnownContent::LeftOut(bytes) => needed_bytes + bytes <= BYTES_MAX,
            KnownContent::Read(_) => false,
        };
        let again: Vec<String> = self
            .known
            .iter()
            .filter(|(_, known)| fits(known))
            .map(|(uri, _)| uri.clone())
            .collect();
        for uri in again {
            self.forget(&uri);
        }
    }

    /// Drops what nothing needs, the oldest first, until so many more bytes fit or only what is needed is left.
    fn make_room(&mut self, more: usize) {
        let mut bytes = self.bytes();
        let is_spare = |uri: &&String| !self.needed.contains(*uri);
        let spare: Vec<String> = self.order.iter().filter(is_spare).cloned().collect();
        for uri in spare {
            if bytes + more <= BYTES_MAX {
                break;
            }
            bytes -= self.bytes_of(&uri);
            self.forget(&uri);
        }
    }

    fn forget(&mut self, uri: &str) {
        if self.known.remove(uri).is_some() {
            self.order.retain(|known| known != uri);
        }
    }

    fn bytes(&self) -> usize {
        self.known.values().map(KnownContent::bytes).sum()
    }

    fn bytes_of(&self, uri: &str) -> usize {
        self.known.get(uri).map_or(0, KnownContent::bytes)
    }

    pub(crate) fn set_workers(&mut self, workers: BTreeMap<String, WorkerState>) {
        self.workers = workers;
    }

    pub(super) fn worker(&self, chat: &str) -> Option<&WorkerState> {
        self.workers.get(chat)
    }

    pub(crate) fn find(&self, uri: &str) -> Lookup<'_> {
        match self.known.get(uri) {
            Some(KnownContent::Read(ReferencedContent::Here(bytes))) => Lookup::Here(bytes),
            Some(KnownContent::Read(ReferencedContent::Coming)) => Lookup::Coming,
            Some(KnownContent::Read(ReferencedContent::Missing(why))) => Lookup::Missing(why),
            Some(KnownContent::LeftOut(_)) => {
                Lookup::Missing("more is changed at once than can be shown")
            }
            None => Lookup::Unknown,
        }
    }

    /// Which of the contents that are needed are to be read next, so that no more than `at_once` are being read.
    pub(crate) fn next_to_read(&self, at_once: usize) -> Vec<String> {
        let is_coming =
            |known: &&KnownContent| matches!(known, KnownContent::Read(ReferencedContent::Coming));
        let coming = self.known.values().filter(is_coming).count();
        let unknown = self.needed.iter();
        unknown
            .filter(|uri| self.find(uri) == Lookup::Unknown)
            .take(at_once.saturating_sub(coming))
            .cloned()
            .collect()
    }

    /// Which of the contents that are needed are not there, nor known to be missing.
    pub(crate) fn unread(&self) -> BTreeSet<String> {
        let is_unread = |uri: &&String| matches!(self.find(uri), Lookup::Unknown | Lookup::Coming);
        self.needed.iter().filter(is_unread).cloned().collect()
    }

    /// Whether a call can be shown as well as it ever can.
    pub(crate) fn is_complete(&self, call: &Object) -> bool {
        let is_there =
            |uri: &String| matches!(self.find(uri), Lookup::Here(_) | Lookup::Missing(_));
        content_uris(call).iter().all(is_there)
    }
}

/// The contents that a call refers to: its input, if that is stored elsewhere, and both sides of the edits that it asks about or
/// made.
pub(crate) fn content_uris(call: &Object) -> Vec<String> {
    let mut uris: Vec<String> = Vec::new();
    let input = call.get("toolInput").map(|input| &input["uri"]);
    uris.extend(input.and_then(Value::as_str).filter(|_| is_asked(call)).map(str::to_owned));
    for edit in edits_of(call) {
        for side in ["before", "after"] {
            if let Some(uri) = edit[side]["content"]["uri"].as_str() {
                uris.push(uri.to_owned());
            }
        }
    }
    uris
}

/// Whether somebody decides on it.
pub(crate) fn is_asked(call: &Object) -> bool {
    let status = call.get("status").and_then(Value::as_str);
    matches!(status, Some("pending-confirmation" | "pending-result-confirmation"))
}

/// The edits of a call: what it wants to do while it waits, what it did when it is over.
pub(super) fn edits_of(call: &Object) -> impl Iterator<Item = &Value> {
    let is_waiting = call.get("status").is_some_and(|status| status == "pending-confirmation");
    let planned = call.get("edits").and_then(|edits| edits["items"].as_array());
    let done = call.get("content").and_then(Value::as_array);
    let planned = planned.filter(|_| is_waiting).into_iter().flatten();
    let done = done.filter(|_| !is_waiting).into_iter().flatten();
    planned.chain(done.filter(|block| block["type"] == "fileEdit"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn here(bytes: usize) -> ReferencedContent {
        ReferencedContent::Here(Arc::from(vec![b'x'; bytes]))
    }

    #[test]
    fn a_call_is_complete_when_all_it_refers_to_was_looked_for() {
        let side = |uri: &str| json!({"uri": "file:///a", "content": {"uri": uri}});
        let call = json!({"status": "completed", "content": [
            {"type": "text", "text": "x"},
            {"type": "fileEdit", "before": side("c:1"), "after": side("c:2")},
        ]});
        let call = call.as_object().unwrap();
        let mut references = References::default();
        references.set_needed(content_uris(call));
        assert_eq!(references.next_to_read(16), ["c:1", "c:2"]);
        references.set("c:1", ReferencedContent::Coming);
        assert_eq!(references.next_to_read(1), [""; 0], "one at a time");
        references.set("c:2", ReferencedContent::Missing("gone".to_owned()));
        assert!(references.next_to_read(16).is_empty() && !references.is_complete(call));
        references.set("c:1", here(1));
        assert!(references.is_complete(call));
    }

    #[test]
    fn the_input_that_is_stored_elsewhere_is_read_before_it_is_decided_on() {
        let call = json!({"status": "pending-confirmation", "toolInput": {"uri": "c:in"}});
        assert_eq!(content_uris(call.as_object().unwrap()), ["c:in"]);
    }

    #[test]
    fn what_is_needed_is_never_dropped_and_nothing_is_read_twice() {
        let mut references = References::default();
        let needed: Vec<String> = (0..1000).map(|number| format!("c:{number}")).collect();
        let mut reads = 0;
        loop {
            references.set_needed(needed.clone());
            let next = references.next_to_read(16);
            if next.is_empty() {
                break;
            }
            for uri in next {
                references.set(&uri, ReferencedContent::Coming);
                references.set(&uri, here(10));
                reads += 1;
            }
        }
        assert_eq!(reads, needed.len());
        for uri in &needed {
            assert_eq!(references.find(uri), Lookup::Here(&[b'x'; 10]));
        }
        references.set_needed(["other".to_owned()]);
        assert_eq!(references.known.len(), SPARE_MAX, "the rest is dropped");
    }

    #[test]
    fn contents_are_bounded_and_what_was_left_out_comes_when_there_is_room() {
        let mut references = References::default();
        let large = diff::BYTES_MAX;
        let names = |from: usize, count: usize| (from..from + count).map(|n| format!("c:{n:02}"));
        let fitting = BYTES_MAX / large;
        references.set_needed(names(0, fitting + 2));
        for uri in names(0, fitting + 2) {
            references.set(&uri, here(large));
        }
        assert_eq!(references.bytes(), BYTES_MAX);
        let last = format!("c:{:02}", fitting + 1);
        assert!(matches!(references.find(&last), Lookup::Missing(_)));
        references.set_needed(names(0, fitting + 2));
        assert!(references.next_to_read(16).is_empty(), "there is no room");
        references.set_needed(names(fitting, 2));
        assert_eq!(references.next_to_read(16).len(), 2);
        for uri in names(fitting, 2) {
            references.set(&uri, here(large));
            assert!(matches!(references.find(&uri), Lookup::Here(_)));
        }
        assert!(references.bytes() <= BYTES_MAX);
        references.set("c:huge", here(large + 1));
        let why = "it is larger than 2 MiB";
        assert_eq!(references.find("c:huge"), Lookup::Missing(why));
    }
}
