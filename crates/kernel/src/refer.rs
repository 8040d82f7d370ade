//! References: whatever is recorded keeps the content it names, in the same batch. One look at all records of a step,
//! so that nothing that is recorded can be forgotten.

use std::collections::BTreeMap;

use wire::content;

use crate::Kernel;
use crate::io::Effect;
use crate::record::Record;

/// Parts of the blob store that are looked through in one sweep: it is never done in one go.
const BUCKETS_STEP: u16 = 32;
/// The parts there are: one for each first byte of a digest.
const BUCKETS: u16 = 256;

/// How far the collection of bodies that nothing refers to has come.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    next: u8,
    /// Parts to be looked through until all of them were since something was last written.
    left: u16,
}

impl Kernel {
    /// Adds to the records of this step what they refer to.
    pub(crate) fn refer(&mut self) {
        let mut references = Vec::new();
        for record in &self.out.records {
            let (channel, turn, json) = match record {
                Record::Action {
                    channel, envelope, ..
                } => (*channel, None, envelope),
                Record::Turn { chat, n, turn } => (*chat, Some(*n), &turn.json),
                // What a side chat was made from is nowhere else.
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
        self.out.records.append(&mut references);
    }

    /// Sends the collector through the next part of the blob store.
    pub(crate) fn collect(&mut self, written: bool) {
        if written {
            self.collection.left = BUCKETS;
        }
        let step = BUCKETS_STEP.min(self.collection.left);
        let Some(last) = step.checked_sub(1) else {
            return;
        };
        let first = self.collection.next;
        // The steps divide the parts evenly, so that none of them goes over the end.
        let last = first.saturating_add(u8::try_from(last).unwrap_or(u8::MAX));
        self.collection.next = last.wrapping_add(1);
        self.collection.left -= step;
        let before = self.seconds_ago(self.limits.blob_grace_s);
        self.out.effects.push(Effect::Collect {
            buckets: first..=last,
            before,
        });
    }
}
