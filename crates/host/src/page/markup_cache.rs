//! What was rendered before, so that the second watcher of a text costs a look-up.
//!
//! Promises: never more than `BYTES_MAX`; what was not asked for the longest time goes first.
//! Must not know: what is rendered.

use std::collections::BTreeMap;

use bytes::Bytes;
use wire::Digest;

const BYTES_MAX: usize = 16 << 20;
/// What an entry takes beside its bytes.
const ENTRY_BYTES: usize = 200;

#[derive(Default)]
pub(super) struct MarkupCache {
    entries: BTreeMap<Digest, (Bytes, u64)>,
    /// The entries by when they were last asked for.
    by_use: BTreeMap<u64, Digest>,
    uses: u64,
    bytes: usize,
}

impl MarkupCache {
    pub(super) fn find(&mut self, key: &Digest) -> Option<Bytes> {
        let (answer, last_use) = self.entries.get_mut(key)?;
        self.by_use.remove(last_use);
        self.uses += 1;
        *last_use = self.uses;
        self.by_use.insert(self.uses, *key);
        Some(answer.clone())
    }

    pub(super) fn insert(&mut self, key: Digest, answer: Bytes) {
        if answer.len() > BYTES_MAX / 4 {
            return; // it would push out too much
        }
        self.remove(&key);
        self.uses += 1;
        self.bytes += answer.len() + ENTRY_BYTES;
        self.by_use.insert(self.uses, key);
        self.entries.insert(key, (answer, self.uses));
        while self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.by_use.first_key_value() else {
                break; // nothing is left, so nothing is counted
            };
            let oldest = *oldest;
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &Digest) {
        if let Some((answer, last_use)) = self.entries.remove(key) {
            self.by_use.remove(&last_use);
            self.bytes -= answer.len() + ENTRY_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_the_longest_time_goes_first() {
        let mut cache = MarkupCache::default();
        let key = |n: u8| Digest::new([n; 32]);
        let answer = Bytes::from(vec![b'x'; 3 << 20]);
        for n in 0..5 {
            cache.insert(key(n), answer.clone());
        }
        assert!(cache.find(&key(0)).is_some());
        cache.insert(key(5), answer.clone());
        assert!(cache.find(&key(0)).is_some(), "it was asked for");
        assert!(cache.find(&key(1)).is_none());
        cache.insert(key(0), Bytes::from_static(b"small"));
        assert_eq!(cache.find(&key(0)).unwrap(), "small");
        assert!(cache.bytes <= BYTES_MAX);
        cache.insert(key(9), Bytes::from(vec![b'x'; BYTES_MAX]));
        assert!(cache.find(&key(9)).is_none());
        assert_eq!(cache.entries.len(), cache.by_use.len());
    }
}
