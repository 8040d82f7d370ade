//! Renders what devices ask for, on threads where nobody waits for it unless it is a few lines, and remembers what may be asked for again.
//!
//! Promises: a device has a few requests in flight and no more; all of them together take as many threads as are set aside.
//! Must not know: HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::markup_cache::MarkupCache;
use super::render_markup::{MarkupItem, render};
use crate::blobs::Blobs;
use crate::sorted_map::SortedMap;
use crate::task;

/// How long one item may be coloured; grammars are loaded within it, too.
const ITEM_TIME: Duration = Duration::from_millis(50);
/// Requests of one device at once.
const IN_FLIGHT_MAX: usize = 4;
/// Up to so many bytes of prose are rendered where they came in, in some tens of microseconds: to hand them to another thread and back
/// would take as long again.
const QUICK_BYTES_MAX: usize = 8 << 10;
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

type InFlightCounts = Arc<Mutex<SortedMap<String, usize>>>;

/// One request of a device; it is over when this is dropped.
pub(crate) struct InFlight {
    device: String,
    counts: InFlightCounts,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.device) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.device);
            }
        }
    }
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
        let mut counts = self.in_flight.lock();
        let count = counts.get_or_insert_with(device.to_owned(), || 0);
        if *count >= IN_FLIGHT_MAX {
            return None;
        }
        *count += 1;
        Some(InFlight { device: device.to_owned(), counts: Arc::clone(&self.in_flight) })
    }

    /// `{"items": [..]}`, an answer for each item in order, finished by `pack` on the same thread.
    /// The request counts as in flight until its thread is done, whether or not somebody still waits for the answer.
    pub(crate) async fn render_all<T: Send + 'static>(
        &self,
        in_flight: InFlight,
        items: Vec<MarkupItem>,
        pack: impl FnOnce(Bytes) -> T + Send + 'static,
    ) -> Option<T> {
        let text_bytes: usize = items.iter().map(MarkupItem::text_bytes).sum();
        if text_bytes <= QUICK_BYTES_MAX && items.iter().all(MarkupItem::is_prose) {
            return Some(pack(self.write_answer(&items, text_bytes)));
        }
        // The semaphore is never closed.
        let thread = Arc::clone(&self.threads).acquire_owned().await.ok()?;
        let service = self.clone();
        let rendered = task::spawn_blocking(move || {
            let _held = (thread, in_flight);
            pack(service.write_answer(&items, text_bytes))
        });
        match rendered.await {
            Ok(answer) => Some(answer),
            Err(error) => {
                tracing::error!(%error, "markup was not rendered; this is a defect");
                None
            }
        }
    }

    fn write_answer(&self, items: &[MarkupItem], text_bytes: usize) -> Bytes {
        // Tags take about half as much as the text of prose.
        let mut answer = Vec::with_capacity(text_bytes + text_bytes / 2 + 256);
        answer.extend_from_slice(b"{\"items\":[");
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                answer.push(b',');
            }
            self.find_or_render(item, &mut answer);
        }
        answer.extend_from_slice(b"]}");
        Bytes::from(answer)
    }

    fn find_or_render(&self, item: &MarkupItem, answer: &mut Vec<u8>) {
        let key = item.is_remembered().then(|| item.key());
        if let Some(known) = key.and_then(|key| self.cache.lock().find(&key)) {
            return answer.extend_from_slice(&known);
        }
        let start = answer.len();
        let is_final = render(item, &*self.blobs, ITEM_TIME, answer);
        if let (Some(key), true) = (key, is_final) {
            let rendered = Bytes::copy_from_slice(answer.get(start..).unwrap_or_default());
            self.cache.lock().insert(key, rendered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::MemoryBlobs;

    #[tokio::test]
    async fn a_device_has_four_requests_in_flight_and_others_have_theirs() {
        let service = MarkupService::new(Arc::new(MemoryBlobs::new()));
        let mut held: Vec<_> = (0..4).map(|_| service.begin("phone").unwrap()).collect();
        assert!(service.begin("phone").is_none());
        assert!(service.begin("laptop").is_some());
        held.pop();
        assert!(service.begin("phone").is_some());
        drop(held);
        assert!(service.in_flight.lock().is_empty());
    }

    #[tokio::test]
    async fn a_text_that_is_being_written_is_not_remembered_and_one_with_code_is_coloured() {
        let service = MarkupService::new(Arc::new(MemoryBlobs::new()));
        let items = r#"[{"markdown": "*a", "open": true}, {"markdown": "```rust\nlet a;\n```"}]"#;
        let items: Vec<MarkupItem> = serde_json::from_str(items).unwrap();
        let keys: Vec<_> = items.iter().map(MarkupItem::key).collect();
        let in_flight = service.begin("phone").unwrap();
        let answer = service.render_all(in_flight, items, |answer| answer).await;
        assert_eq!(
            answer.unwrap(),
            r#"{"items":[{"tree":[["p",["em","a"]]],"stable":0,"blocks":0},{"tree":[["pre",{"language":"rust","runs":[["keyword",0,3]]},"let a;"]]}]}"#
        );
        assert!(service.in_flight.lock().is_empty());
        let mut cache = service.cache.lock();
        let found = keys.iter().map(|key| cache.find(key).is_some());
        assert_eq!(found.collect::<Vec<_>>(), [false, true]);
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
            assert_eq!(answer, r#"{"items":[{"tree":[["p","a"]]},{"tree":[["p","b"]]}]}"#);
        }
        let key = items()[0].key();
        service.cache.lock().insert(key, Bytes::from_static(b"0"));
        let answer = service
            .render_all(service.begin("phone").unwrap(), items(), |answer| answer)
            .await
            .unwrap();
        assert_eq!(answer, r#"{"items":[0,{"tree":[["p","b"]]}]}"#);
    }
}
