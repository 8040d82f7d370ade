//! The methods on resources: content that was moved out of state is read (H-252, G-32), files are left to the host (H-250).

use std::sync::Arc;

use wire::methods::ResourceCall;
use wire::published::commands::ResourceReadParams;
use wire::rpc::code;
use wire::{Digest, Generation, Id, RpcError, content};

use crate::customization;
use crate::file_task::{FileAnswer, FileTask};
use crate::frame::{EncodedContent, Frame, LateResponse, LateResponseBody};
use crate::io::{FetchTask, FetchedContent, PeerId};
use crate::pause::{HandlerAnswers, HostWork, Pause, RequestStop};
use crate::state::{Kernel, Step};

/// What a response takes beside its data.
const ENVELOPE_BYTES: usize = 1_024;

/// The answer, encoded.
pub(super) fn gather(
    kernel: &Kernel,
    peer: PeerId,
    call: &Arc<ResourceCall>,
    answers: &HandlerAnswers,
) -> Result<FileAnswer, RequestStop> {
    let (first, second) = call.uris();
    if let ResourceCall::Read(params) = &**call
        && scheme_of(first) == content::SCHEME
    {
        let digest = Digest::from_uri(first).ok_or_else(|| missing(first))?;
        return read_content(kernel, params, digest, answers).map(FileAnswer::Content);
    }
    check_scheme(first)?;
    second.map_or(Ok(()), check_scheme)?;
    check_numbers(call)?;
    match answers.file_result() {
        None => {
            let Some(ready) = kernel.ready(peer) else {
                let message = "send `initialize` or `reconnect` first";
                return Err(RpcError::new(code::INVALID_REQUEST, message).into());
            };
            Err(Pause::Work(HostWork::UseFiles(Box::new(FileTask {
                client_id: ready.client_id.clone(),
                call: Arc::clone(call),
                bytes_max: bytes_max(kernel),
            })))
            .into())
        }
        Some(Ok(answer)) => Ok(answer.clone()),
        Some(Err(refusal)) => Err(refusal.to_error(first, second).into()),
    }
}

pub(super) fn apply(
    step: &mut Step,
    peer: PeerId,
    id: &Id,
    call: &ResourceCall,
    answer: FileAnswer,
) {
    let (first, second) = changed_uris(call);
    for changed in [first, second].into_iter().flatten() {
        customization::survey_changed(step, changed);
    }
    let response = LateResponse {
        id: id.clone(),
        // Resources are the same in every version.
        generation: Generation::V1_0,
        body: match answer {
            FileAnswer::Content(content) => LateResponseBody::Content(content),
            FileAnswer::Json(json) => LateResponseBody::Encoded(json),
        },
    };
    step.send(peer, Frame::Response(Arc::new(response)));
}

/// What is not the same any more after a call.
fn changed_uris(call: &ResourceCall) -> (Option<&str>, Option<&str>) {
    match call {
        ResourceCall::Write(_) | ResourceCall::Delete(_) | ResourceCall::MakeDirectory(_) => {
            (Some(call.uris().0), None)
        }
        ResourceCall::Move(params) => (Some(&params.source), Some(&params.destination)),
        ResourceCall::Copy(params) => (None, Some(&params.destination)),
        ResourceCall::Read(_)
        | ResourceCall::List(_)
        | ResourceCall::Resolve(_)
        | ResourceCall::Request(_) => (None, None),
    }
}

fn bytes_max(kernel: &Kernel) -> usize {
    kernel.limits().message_out_bytes.saturating_sub(ENVELOPE_BYTES)
}

fn read_content(
    kernel: &Kernel,
    params: &ResourceReadParams,
    digest: Digest,
    answers: &HandlerAnswers,
) -> Result<EncodedContent, RequestStop> {
    let bytes_max = bytes_max(kernel);
    match answers.fetch_result() {
        None => Err(Pause::Work(HostWork::Fetch(FetchTask {
            digest,
            encoding: params.encoding,
            bytes_max,
        }))
        .into()),
        Some(Ok(FetchedContent::Content(content))) if content.data.len() <= bytes_max => {
            Ok(content.clone())
        }
        Some(Ok(FetchedContent::Content(_) | FetchedContent::TooLarge)) => {
            let message = format!("this content does not fit into a message of {bytes_max} bytes");
            Err(RpcError::new(code::INTERNAL_ERROR, message).into())
        }
        Some(Ok(FetchedContent::Missing)) => Err(missing(&params.uri).into()),
        Some(Err(failed)) => Err(RpcError::new(code::INTERNAL_ERROR, failed.to_string()).into()),
    }
}

fn scheme_of(uri: &str) -> String {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.to_ascii_lowercase()
}

/// Only files can be used by all methods; content is read alone.
pub(super) fn check_scheme(uri: &str) -> Result<(), RpcError> {
    match scheme_of(uri).as_str() {
        "file" => Ok(()),
        content::SCHEME => {
            let message = "content is kept by the host: it can be read by `resourceRead`, and neither listed nor changed";
            Err(RpcError::new(code::PERMISSION_DENIED, message))
        }
        _ => Err(missing(uri)),
    }
}

/// A place in a file is counted from one of its ends.
fn check_numbers(call: &ResourceCall) -> Result<(), RpcError> {
    match call {
        ResourceCall::Write(params) if params.position.is_some_and(|position| position < 0) => {
            let message = "`position` must not be negative";
            Err(RpcError::new(code::INVALID_PARAMS, message))
        }
        _ => Ok(()),
    }
}

fn missing(uri: &str) -> RpcError {
    let uri: String = uri.chars().take(URI_CHARS_MAX).collect();
    RpcError::new(code::NOT_FOUND, format!("there is no resource {uri}"))
}

/// How much of a URI an error repeats.
const URI_CHARS_MAX: usize = 128;
