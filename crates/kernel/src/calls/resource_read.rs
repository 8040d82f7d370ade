//! `resourceRead`: content that was moved out of state (H-252, G-32). Files come later.

use std::sync::Arc;

use wire::published::commands::ResourceReadParams;
use wire::rpc::code;
use wire::{Digest, Generation, Id, RpcError, content};

use crate::frame::{Content, Frame, LateBody, LateResponse};
use crate::io::{Fetch, Fetched, PeerId};
use crate::pause::{HandlerAnswers, HostWork, Pause, Stop};
use crate::state::{Kernel, Step};

/// What a response takes beside its data.
const ENVELOPE_BYTES: usize = 1_024;

/// The content, encoded.
pub(super) fn gather(
    kernel: &Kernel,
    params: &ResourceReadParams,
    answers: &HandlerAnswers,
) -> Result<Content, Stop> {
    let digest = digest_of(&params.uri)?;
    let bytes_max = kernel.limits().message_out_bytes;
    let bytes_max = bytes_max.saturating_sub(ENVELOPE_BYTES);
    match answers.fetched() {
        None => Err(Pause::Work(HostWork::Fetch(Fetch {
            digest,
            encoding: params.encoding,
            bytes_max,
        }))
        .into()),
        Some(Ok(Fetched::Content(content))) if content.data.len() <= bytes_max => {
            Ok(content.clone())
        }
        Some(Ok(Fetched::Content(_) | Fetched::TooLarge)) => {
            let message = format!("this content does not fit into a message of {bytes_max} bytes");
            Err(RpcError::new(code::INTERNAL_ERROR, message).into())
        }
        Some(Ok(Fetched::Missing)) => Err(missing(&params.uri).into()),
        Some(Err(failed)) => Err(RpcError::new(code::INTERNAL_ERROR, failed.to_string()).into()),
    }
}

pub(super) fn apply(step: &mut Step, peer: PeerId, id: &Id, content: Content) {
    let response = LateResponse {
        id: id.clone(),
        // Content is the same in every version.
        generation: Generation::V1_0,
        body: LateBody::Content(content),
    };
    step.send(peer, Frame::Response(Arc::new(response)));
}

/// The content a URI names. What this host may not or cannot read is said as the one policy says it (H-250).
fn digest_of(uri: &str) -> Result<Digest, RpcError> {
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
