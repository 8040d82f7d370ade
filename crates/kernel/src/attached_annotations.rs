//! Annotations that a message refers to: the model reads what they say at the moment it is recorded.

use compositor::Part;
use compositor::annotations::{AnnotationsReference, describe, with_annotations};
use serde_json::Value;
use wire::state::{Annotation, AnnotationEntry, AnnotationsState};
use wire::{ChannelUri, Object};

use crate::refusal::Refusal;
use crate::state::Kernel;

/// The channels whose annotations a message refers to.
pub(crate) fn channels_in(message: &Object) -> Vec<ChannelUri> {
    references_in(message).filter_map(|reference| ChannelUri::parse(reference.uri).ok()).collect()
}

fn references_in(message: &Object) -> impl Iterator<Item = AnnotationsReference<'_>> {
    let attachments = message.get("attachments").and_then(Value::as_array).into_iter().flatten();
    attachments.filter_map(AnnotationsReference::of_attachment)
}

/// What a message names in a channel must be there, and fit into the message.
pub(crate) fn check(kernel: &Kernel, message: &Object) -> Result<(), Refusal> {
    let most = kernel.limits().attached_chats_max;
    if references_in(message).count() > most {
        return Err(Refusal(format!(
            "a message refers to the annotations of at most {most} sessions (attached_chats_max)"
        )));
    }
    let mut bytes = 0;
    for reference in references_in(message) {
        let uri = reference.uri;
        let Some(state) = find(kernel, uri) else {
            continue; // of another host, or gone: the model is told that it cannot be read
        };
        let ids = reference.ids.iter().flatten();
        let mut missing = ids.filter(|id| state.annotation(id).is_none());
        if let Some(id) = missing.next() {
            return Err(Refusal(format!("{uri} has no annotation `{id}` to attach")));
        }
        bytes += wire::rpc::json_bytes(&describe_all(state, &reference));
    }
    let most = kernel.limits().message_bytes_max;
    if bytes > most {
        Err(Refusal(format!(
            "the annotations of a message have at most {most} bytes (message_bytes_max); attach fewer of them"
        )))
    } else {
        Ok(())
    }
}

/// Fills in what they say now, or that it cannot be read.
pub(crate) fn fill_parts(kernel: &Kernel, parts: &mut [Part]) {
    for part in parts {
        let Some(reference) = AnnotationsReference::of(part) else { continue };
        let state = find(kernel, reference.uri);
        let described = state.map(|state| describe_all(state, &reference));
        *part = with_annotations(part.clone(), described);
    }
}

fn find<'a>(kernel: &'a Kernel, uri: &str) -> Option<&'a AnnotationsState> {
    let uri = ChannelUri::parse(uri).ok()?;
    kernel.find_plain(&uri)?.state().annotations()
}

fn describe_all(state: &AnnotationsState, reference: &AnnotationsReference) -> Vec<Value> {
    let named = |annotation: &&Annotation| reference.names(&annotation.id);
    let annotations = state.annotations.iter().filter(named);
    let described = annotations.map(|annotation| {
        let comments: Vec<&str> =
            annotation.entries.iter().map(AnnotationEntry::plain_text).collect();
        let path = wire::file_uri::path_of(&annotation.resource);
        let path = path.and_then(|path| String::from_utf8(path).ok());
        let file = path.as_deref().unwrap_or(&annotation.resource);
        let (range, resolved) = (annotation.range.as_ref(), annotation.resolved);
        describe(file, range, resolved, &comments)
    });
    described.collect()
}
