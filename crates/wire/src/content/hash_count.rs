//! How often a body was hashed, for tests: hashing a large one is most of the work with it.
//!
//! Promises: only bodies that a test watches are counted, on whatever thread they are hashed. Not in a release build.
//! Must not know: who hashes what.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Digest;

/// The bodies that are watched, and how often each was hashed since.
static WATCHED: Mutex<BTreeMap<Digest, usize>> = Mutex::new(BTreeMap::new());

/// Counts how often a body is hashed. Two tests that run at once must not watch the same body.
#[derive(Debug)]
pub struct HashCount(Digest);

impl HashCount {
    /// Counts from now on.
    pub fn watch(body: &[u8]) -> Self {
        let digest = Digest::of(body);
        let is_new = watched().insert(digest, 0).is_none();
        assert!(is_new, "a body is watched by one test at a time");
        Self(digest)
    }

    pub fn get(&self) -> usize {
        watched().get(&self.0).copied().unwrap_or(0)
    }
}

impl Drop for HashCount {
    fn drop(&mut self) {
        watched().remove(&self.0);
    }
}

pub(super) fn record(digest: &Digest) {
    if let Some(count) = watched().get_mut(digest) {
        *count += 1;
    }
}

fn watched() -> MutexGuard<'static, BTreeMap<Digest, usize>> {
    // Every change is one insert, one remove or one addition: a panic elsewhere leaves nothing half done.
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_watched_is_counted_and_checking_a_name_is_not() {
        let count = HashCount::watch(b"watched");
        let digest = std::thread::spawn(|| Digest::of(b"watched")).join();
        Digest::of(b"not watched");
        assert!(digest.unwrap().is_of(b"watched"));
        assert_eq!(count.get(), 1);
    }
}
