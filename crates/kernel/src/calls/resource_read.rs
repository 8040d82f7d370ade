//! `resourceRead`: content that was moved out of state (H-252, G-32). Files come later.

use std::sync::Arc;

use wire::published::commands::ResourceReadParams;
use wire::rpc::code;
use wire::{Digest, Id, RpcError, content};

use crate::Kernel;
use crate::errand::Errand;
use crate::frame::{Frame, LateBody, LateResponse};
use crate::io::{Fetch, Fetched, PeerId};
use crate::load::{Flow, Memo};

/// What a response takes beside its data.
const ENVELOPE_BYTES: usize = 1_024;

impl Kernel {
    pub(crate) fn resource_read(
        &mut self,
        peer: PeerId,
        id: &Id,
        params: &ResourceReadParams,
        memo: &Memo,
    ) -> Flow<()> {
        let digest = match named(&params.uri) {
            Ok(digest) => digest,
            Err(error) => return self.answer_error(peer, id, &error),
        };
        let bytes_max = self.limits.message_out_bytes.saturating_sub(ENVELOPE_BYTES);
        let error = match memo.fetched() {
            None => {
                return Flow::Errand(Errand::Fetch(Fetch {
                    digest,
                    encoding: params.encoding,
                    bytes_max,
                }));
            }
            Some(Ok(Fetched::Content(content))) if content.data.len() <= bytes_max => {
                let body = LateBody::Content(content.clone());
                let id = id.clone();
                self.say(peer, Frame::Response(Arc::new(LateResponse { id, body })));
                return Flow::Ready(());
            }
            Some(Ok(Fetched::Content(_) | Fetched::TooLarge)) => RpcError::new(
                code::INTERNAL_ERROR,
                format!("this content does not fit into a message of {bytes_max} bytes"),
            ),
            Some(Ok(Fetched::Missing)) => missing(&params.uri),
            Some(Err(failed)) => RpcError::new(code::INTERNAL_ERROR, failed.to_string()),
        };
        self.answer_error(peer, id, &error)
    }
}

/// The content a URI names. What this host may not or cannot read is said as the one policy says it (H-250).
fn named(uri: &str) -> Result<Digest, RpcError> {
    if let Some(digest) = Digest::from_uri(uri) {
        return Ok(digest);
    }
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    if scheme.eq_ignore_ascii_case("file") {
        let message = format!("this host reads no files yet, only `{}:`", content::SCHEME);
        return Err(RpcError::new(code::PERMISSION_DENIED, message));
    }
    Err(missing(uri))
}

fn missing(uri: &str) -> RpcError {
    let uri: String = uri.chars().take(URI_CHARS_MAX).collect();
    RpcError::new(code::NOT_FOUND, format!("there is no resource {uri}"))
}

/// How much of a URI an error repeats.
const URI_CHARS_MAX: usize = 128;
