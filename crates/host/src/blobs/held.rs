//! Bodies that somebody works with and nothing refers to yet: what files held before a turn that still runs.
//!
//! Promises: a body that is held is not collected, however old it is. A hold ends when it is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use wire::Digest;

/// What is held, and how often. A handle: clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldBodies {
    counts: Arc<Mutex<BTreeMap<Digest, usize>>>,
}

/// Holds bodies until it is dropped. A handle: clones share it.
#[derive(Debug, Clone)]
pub(crate) struct BodyHold(Arc<OneHold>);

#[derive(Debug)]
struct OneHold {
    held: HeldBodies,
    digests: Mutex<BTreeSet<Digest>>,
}

impl HeldBodies {
    /// A hold on nothing yet.
    pub(crate) fn begin(&self) -> BodyHold {
        BodyHold(Arc::new(OneHold { held: self.clone(), digests: Mutex::default() }))
    }

    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.counts.lock().contains_key(digest)
    }
}

impl BodyHold {
    pub(crate) fn add(&self, digest: Digest) {
        let mut own = self.0.digests.lock();
        if own.insert(digest) {
            *self.0.held.counts.lock().entry(digest).or_default() += 1;
        }
    }
}

impl Drop for OneHold {
    fn drop(&mut self) {
        let own = self.digests.get_mut();
        let mut counts = self.held.counts.lock();
        for digest in std::mem::take(own) {
            if let Some(count) = counts.get_mut(&digest) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&digest);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_held_as_long_as_anybody_holds_it() {
        let (held, digest) = (HeldBodies::default(), Digest::new([1; 32]));
        let (one, other) = (held.begin(), held.begin());
        one.add(digest);
        one.add(digest);
        other.add(digest);
        let copy = one.clone();
        drop(one);
        drop(other);
        assert!(held.contains(&digest));
        drop(copy);
        assert!(!held.contains(&digest));
    }
}
