//! References: whatever is recorded keeps the content it names, in the same batch. One look at all records of a step, so that
//! nothing that is recorded can be forgotten; parts of messages name their bodies in a way of their own, when they are recorded.

use std::collections::BTreeMap;

use compositor::Part;
use compositor::part::{Body, Location, View};
use wire::{Digest, content};

use crate::record::Record;

/// No type of content is longer (RFC 6838); a reference has its type in a row that must stay small.
const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// What the records of a step refer to.
pub(crate) fn references_of(records: &[Record]) -> Vec<Record> {
    let mut references = Vec::new();
    for record in records {
        let (channel, turn, json) = match record {
            Record::Action { channel, envelope, .. } => (*channel, None, envelope),
            Record::Turn { chat, n, turn } => (*chat, Some(*n), &turn.json),
            // The context of a side chat is named nowhere else.
            Record::Channel(channel) => (channel.id, None, &channel.private),
            _ => continue,
        };
        let digests = content::digests_in(json);
        // Turns carry content types too: a fork shows a turn long after the actions that named the types are gone.
        let mut types = if digests.is_empty() { BTreeMap::new() } else { content::types_in(json) };
        references.extend(digests.into_iter().map(|digest| Record::Reference {
            channel,
            turn,
            digest,
            content_type: types.remove(&digest).filter(|name| name.len() <= CONTENT_TYPE_BYTES_MAX),
        }));
    }
    references
}

/// The stored body that a part of a message names.
pub(crate) fn body_of_part(part: &Part) -> Option<Digest> {
    let content_id = match part.view() {
        View::Attachment(attachment) => match attachment.body {
            Body::Stored(content_id) => content_id,
            Body::Inline(_) | Body::Absent => return None,
        },
        View::FileRef(reference) => match reference.location {
            Location::ContentId(content_id) => content_id,
            Location::Path(_) | Location::Url(_) => return None,
        },
        _ => return None,
    };
    Digest::from_hex(content_id.strip_prefix("sha256:")?)
}
