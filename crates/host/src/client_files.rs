//! Files that were read from the client that sent a message: resolved like files of the host's own, and stored before the
//! message is recorded, since nobody can read them again when the client is gone.
//!
//! Promises: a file that was not read leaves a descriptor and a sentence for the user.
//! Must not know: how a client is asked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::ahp::client_resource;
use compositor::resolve::{InlineLimits, Resolved, WhyUnavailable, resolve_to_body};
use kernel::{ClientFile, ClientFileBody, ClientFileError, FrozenPart, WorkFailed};
use wire::Timestamp;

use crate::blobs::Blobs;
use crate::frozen::{self, FrozenReference};

/// How much of a URI a sentence repeats.
const URI_CHARS_MAX: usize = 120;

/// Resolves the references of a message to what its client read of them.
pub(crate) fn freeze_client_files(
    store: &dyn Blobs,
    parts: &[Part],
    files: Vec<ClientFile>,
    diagnostics: &mut Vec<String>,
    now: Timestamp,
) -> Result<Vec<FrozenPart>, WorkFailed> {
    let mut frozen = Vec::new();
    for file in files {
        let body = decode(file.read).map_err(|why| {
            let uri = shorten(&file.uri);
            diagnostics.push(format!("file: '{uri}': {why} (described only)"));
        });
        let named = parts.iter().enumerate();
        for (index, part) in named.filter(|(_, part)| client_resource(part) == Some(&file.uri)) {
            let resolved = match &body {
                Ok(body) => resolve_to_body(part, body.clone(), &InlineLimits::default()),
                Err(()) => {
                    Some(Resolved::Unavailable { why: WhyUnavailable::NotFound, lines: None })
                }
            };
            let Some(resolved) = resolved else {
                debug_assert!(false, "what names a file of the client is a reference");
                continue;
            };
            let stored = frozen::store(part, &resolved, store, now);
            let FrozenReference { json, digest } =
                stored.map_err(|error| WorkFailed(error.to_string()))?;
            frozen.push(FrozenPart { part: index, json, digest });
        }
    }
    Ok(frozen)
}

fn decode(read: Result<ClientFileBody, ClientFileError>) -> Result<Vec<u8>, ClientFileError> {
    match read? {
        ClientFileBody::Text(text) => Ok(text.as_bytes().to_vec()),
        ClientFileBody::Base64(data) => {
            STANDARD.decode(data.as_bytes()).map_err(|_| ClientFileError::Malformed)
        }
    }
}

/// A URI in a sentence: on one line, not too long.
fn shorten(uri: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    uri.chars().take(URI_CHARS_MAX).map(visible).collect()
}
