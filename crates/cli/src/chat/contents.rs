//! Reading what calls refer to from the host.
//!
//! Promises: every content that was asked for is answered, by what it is or by why it cannot be read, in bounded time.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client::{Live, ReadContent};
use tokio::task::JoinSet;
use wire::{ChannelUri, Object};

use super::tool::{ReferencedContent, References, content_uris};

/// How long a content may take; after that a call is shown without it.
pub(crate) const CONTENT_TIMEOUT: Duration = Duration::from_secs(10);
const TOO_LATE: &str = "the host did not send it in time";
/// Contents that are read at once.
pub(crate) const READS_MAX: usize = 16;

/// Reads one content.
pub(crate) async fn read_content(
    live: &Live,
    channel: &ChannelUri,
    uri: &str,
) -> ReferencedContent {
    let read = live.read_content(channel, uri);
    match tokio::time::timeout(CONTENT_TIMEOUT, read).await {
        Ok(Ok(ReadContent::Text(text))) => ReferencedContent::Here(Arc::from(text.into_bytes())),
        Ok(Ok(ReadContent::Base64(data))) => match STANDARD.decode(data) {
            Ok(bytes) => ReferencedContent::Here(Arc::from(bytes)),
            Err(_) => ReferencedContent::Missing("the host sent invalid base64".to_owned()),
        },
        Ok(Err(error)) => ReferencedContent::Missing(error.to_string()),
        Err(_) => ReferencedContent::Missing(TOO_LATE.to_owned()),
    }
}

/// Reads all that a call refers to, as far as it is not here, in the time that one content may take.
pub(crate) async fn read_all(
    references: &mut References,
    call: &Object,
    live: &Live,
    channel: &ChannelUri,
) {
    read_all_with(references, call, CONTENT_TIMEOUT, |uri| {
        let (live, channel) = (live.clone(), channel.clone());
        async move { read_content(&live, &channel, &uri).await }
    })
    .await;
}

async fn read_all_with<R>(
    references: &mut References,
    call: &Object,
    timeout: Duration,
    read: impl Fn(String) -> R,
) where
    R: Future<Output = ReferencedContent> + Send + 'static,
{
    references.set_needed(content_uris(call));
    let deadline = tokio::time::Instant::now() + timeout;
    // What somebody else is reading is read here as well: whoever asks for all waits for it.
    let mut unread = references.unread();
    let mut waiting = unread.iter().rev().cloned().collect::<Vec<String>>();
    let mut reads = JoinSet::new();
    loop {
        while reads.len() < READS_MAX
            && let Some(uri) = waiting.pop()
        {
            let content = read(uri.clone());
            reads.spawn(async move { (uri, content.await) });
        }
        match tokio::time::timeout_at(deadline, reads.join_next()).await {
            Ok(Some(Ok((uri, content)))) => {
                unread.remove(&uri);
                references.set(&uri, content);
            }
            Ok(Some(Err(_))) => {} // which one it was is known by what is left
            Ok(None) | Err(_) => break,
        }
    }
    for uri in unread {
        references.set(&uri, ReferencedContent::Missing(TOO_LATE.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;
    use crate::chat::tool::Lookup;

    /// A call that waits, with as many contents as this.
    fn call_with(count: usize) -> Object {
        let side =
            |n: usize| json!({"uri": "file:///w/a", "content": {"uri": format!("c:{n:03}")}});
        let edits: Vec<_> = (0..count).map(|n| json!({"after": side(n)})).collect();
        let call = json!({"status": "pending-confirmation", "edits": {"items": edits}});
        call.as_object().unwrap().clone()
    }

    #[tokio::test]
    async fn all_contents_share_one_deadline_and_what_is_late_is_said() {
        let mut references = References::default();
        let call = call_with(100);
        let begun = AtomicUsize::new(0);
        let timeout = Duration::from_millis(50);
        read_all_with(&mut references, &call, timeout, |uri| {
            begun.fetch_add(1, Ordering::SeqCst);
            async move {
                if uri != "c:000" {
                    std::future::pending::<()>().await;
                }
                ReferencedContent::Here(Arc::from(uri.into_bytes()))
            }
        })
        .await;
        assert_eq!(references.find("c:000"), Lookup::Here(b"c:000"));
        assert_eq!(references.find("c:099"), Lookup::Missing(TOO_LATE));
        assert!(references.is_complete(&call), "nothing waits for the rest");
        let begun = begun.into_inner();
        assert_eq!(begun, READS_MAX + 1, "no more than that at once");
    }

    #[tokio::test]
    async fn what_is_being_read_already_is_waited_for() {
        let mut references = References::default();
        let call = call_with(2);
        references.set("c:001", ReferencedContent::Coming);
        read_all_with(&mut references, &call, CONTENT_TIMEOUT, |uri| async move {
            ReferencedContent::Here(Arc::from(uri.into_bytes()))
        })
        .await;
        assert_eq!(references.find("c:001"), Lookup::Here(b"c:001"));
        assert!(references.is_complete(&call));
    }
}
