//! Renders what devices ask for, on threads where nobody waits for it, and remembers it.
//!
//! Promises: a device has a few requests in flight and no more; all of them together take as many threads as are set aside.
//! Must not know: HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use wire::Digest;

use super::markup_cache::MarkupCache;
use super::render_markup::{MarkupItem, MarkupText, render};
use crate::blobs::{Blobs, digest_of};

/// How long one item may be coloured; grammars are loaded within it, too.
const ITEM_TIME: Duration = Duration::from_millis(50);
/// Requests of one device at once.
const IN_FLIGHT_MAX: usize = 4;
/// Threads that render at once: a host has agents to run, too.
const THREADS_MAX: usize = 2;

/// The service.
#[derive(Clone)]
pub(crate) struct MarkupService {
    blobs: Arc<dyn Blobs>,
    cache: Arc<Mutex<MarkupCache>>,
    in_flight: InFlightCounts,
    threads: Arc<Semaphore>,
}

type InFlightCounts = Arc<Mutex<BTreeMap<String, usize>>>;

/// One request of a device; it is over when this is dropped.
pub(crate) struct InFlight {
    device: String,
    counts: InFlightCounts,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.device) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.device);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change below is complete before its lock is given back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MarkupService {
    pub(super) fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self {
            blobs,
            cache: Arc::default(),
            in_flight: Arc::default(),
            threads: Arc::new(Semaphore::new(THREADS_MAX)),
        }
    }

    /// Counts a request of a device. `None`: it has as many in flight as it may.
    pub(crate) fn begin(&self, device: &str) -> Option<InFlight> {
        let mut counts = lock(&self.in_flight);
        let count = counts.entry(device.to_owned()).or_default();
        if *count >= IN_FLIGHT_MAX {
            return None;
        }
        *count += 1;
        Some(InFlight {
            device: device.to_owned(),
            counts: Arc::clone(&self.in_flight),
        })
    }

    /// `{"items": [..]}`, an answer for each item in order, finished by `pack` on the same thread.
    /// The request counts as in flight until its thread is done, whether or not somebody still waits for the answer.
    pub(crate) async fn render_all<T: Send + 'static>(
        &self,
        in_flight: InFlight,
        items: Vec<MarkupItem>,
        pack: impl FnOnce(Bytes) -> T + Send + 'static,
    ) -> Option<T> {
        let thread = Arc::clone(&self.threads).acquire_owned().await.ok()?;
        let service = self.clone();
        let rendered = tokio::task::spawn_blocking(move || {
            let _held = (thread, in_flight);
            let mut answer = BytesMut::from(&b"{\"items\":["[..]);
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    answer.put_u8(b',');
                }
                answer.extend_from_slice(&service.find_or_render(item));
            }
            answer.extend_from_slice(b"]}");
            pack(answer.freeze())
        });
        match rendered.await {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::error!(%error, "markup was not rendered; this is a defect");
                None
            }
        }
    }

    fn find_or_render(&self, item: &MarkupItem) -> Bytes {
        let key = key_of(item);
        if let Some(known) = lock(&self.cache).find(&key) {
            return known;
        }
        let rendered = render(item, &*self.blobs, ITEM_TIME);
        let answer = Bytes::from(rendered.answer);
        if rendered.is_final {
            lock(&self.cache).insert(key, answer.clone());
        }
        answer
    }
}

/// What an item is remembered by.
fn key_of(item: &MarkupItem) -> Digest {
    match item {
        // The text as it is: most items are texts, and to write one as JSON first takes longer than to hash it. JSON begins otherwise.
        MarkupItem::Markdown {
            markdown: MarkupText::Text(text),
            open,
        } => {
            let mut hash = Sha256::new_with_prefix([b'm', u8::from(*open)]);
            hash.update(text);
            Digest::new(hash.finalize().into())
        }
        MarkupItem::Markdown { .. } | MarkupItem::Code { .. } | MarkupItem::Diff { .. } => {
            digest_of(&wire::rpc::to_json(item))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::blobs::MemoryBlobs;

    #[test]
    fn items_that_differ_are_remembered_apart() {
        let items = json!([
            {"markdown": "a"}, {"markdown": "a", "open": true}, {"markdown": "b"}, {"code": "a"},
            {"code": "a", "lang": "rust"}, {"markdown": {"uri": "a"}}, {"diff": {"after": "a", "path": "a"}},
        ]);
        let items: Vec<MarkupItem> = serde_json::from_value(items).unwrap();
        let keys: std::collections::BTreeSet<Digest> = items.iter().map(key_of).collect();
        assert_eq!(keys.len(), items.len());
    }

    #[tokio::test]
    async fn a_device_has_four_requests_in_flight_and_others_have_theirs() {
        let service = MarkupService::new(Arc::new(MemoryBlobs::new()));
        let mut held: Vec<_> = (0..4).map(|_| service.begin("phone").unwrap()).collect();
        assert!(service.begin("phone").is_none());
        assert!(service.begin("laptop").is_some());
        held.pop();
        assert!(service.begin("phone").is_some());
        drop(held);
        assert!(lock(&service.in_flight).is_empty());
    }

    #[tokio::test]
    async fn answers_come_in_order_and_the_second_time_from_memory() {
        let service = MarkupService::new(Arc::new(MemoryBlobs::new()));
        let items = || -> Vec<MarkupItem> {
            serde_json::from_str(r#"[{"markdown": "a"}, {"markdown": "b"}]"#).unwrap()
        };
        for _ in 0..2 {
            let answer = service
                .render_all(service.begin("phone").unwrap(), items(), |answer| answer)
                .await
                .unwrap();
            assert_eq!(
                answer,
                r#"{"items":[{"tree":[["p","a"]]},{"tree":[["p","b"]]}]}"#
            );
        }
        let key = key_of(&items()[0]);
        lock(&service.cache).insert(key, Bytes::from_static(b"0"));
        let answer = service
            .render_all(service.begin("phone").unwrap(), items(), |answer| answer)
            .await
            .unwrap();
        assert_eq!(answer, r#"{"items":[0,{"tree":[["p","b"]]}]}"#);
    }
}
