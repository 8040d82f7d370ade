//! References: whatever is recorded keeps the content it names, in the same batch. One look at all records of a step, so that
//! nothing that is recorded can be forgotten.

use std::collections::BTreeMap;

use wire::content;

use crate::record::Record;

/// What the records of a step refer to.
pub(crate) fn references_of(records: &[Record]) -> Vec<Record> {
    let mut references = Vec::new();
    for record in records {
        let (channel, turn, json) = match record {
            Record::Action {
                channel, envelope, ..
            } => (*channel, None, envelope),
            Record::Turn { chat, n, turn } => (*chat, Some(*n), &turn.json),
            // The context of a side chat is named nowhere else.
            Record::Channel(channel) => (channel.id, None, &channel.private),
            _ => continue,
        };
        let digests = content::digests_in(json);
        let mut types = match turn {
            None if !digests.is_empty() => content::types_in(json),
            _ => BTreeMap::new(), // an action named it before
        };
        references.extend(digests.into_iter().map(|digest| Record::Reference {
            channel,
            turn,
            digest,
            content_type: types.remove(&digest),
        }));
    }
    references
}
