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
            Err(_) => ReferencedContent::Missing("the host sent what is not base64".to_owned()),
        },
        Ok(Err(error)) => ReferencedContent::Missing(error.to_string()),
        Err(_) => ReferencedContent::Missing("the host did not send it in time".to_owned()),
    }
}

/// Reads all that a call refers to, as far as it is not known.
pub(crate) async fn read_all(
    references: &mut References,
    call: &Object,
    live: &Live,
    channel: &ChannelUri,
) {
    references.set_needed(content_uris(call));
    loop {
        let mut reads = JoinSet::new();
        for uri in references.next_to_read(READS_MAX) {
            references.set(&uri, ReferencedContent::Coming);
            let (live, channel) = (live.clone(), channel.clone());
            reads.spawn(async move {
                let content = read_content(&live, &channel, &uri).await;
                (uri, content)
            });
        }
        if reads.is_empty() {
            return;
        }
        for (uri, content) in reads.join_all().await {
            references.set(&uri, content);
        }
    }
}
