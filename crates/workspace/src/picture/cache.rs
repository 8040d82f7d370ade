//! Fitted pictures that are kept: a conversation is sent again in every round of every turn.
//!
//! Promises: it stays under its bounds in bytes and in entries; a failure is kept, too.
//! Must not know: how a picture is fitted.

use std::collections::VecDeque;

use compositor::resolve::ImageLimits;
use sha2::{Digest as _, Sha256};

use super::Fitted;

const CACHE_BYTES_MAX: usize = 32 * 1_024 * 1_024;
const CACHE_ENTRIES_MAX: usize = 256;

pub(super) type PictureKey = [u8; 32];

/// Name of a picture under these limits: the same always becomes the same.
pub(super) fn key(mime: &str, bytes: &[u8], limits: &ImageLimits) -> PictureKey {
    let mut digest = Sha256::new();
    digest.update(format!("{mime} {limits:?}\n"));
    digest.update(bytes);
    digest.finalize().into()
}

/// Fitted pictures, the most recently used last.
pub(super) struct FittedCache {
    entries: VecDeque<(PictureKey, Fitted)>,
    bytes: usize,
}

impl FittedCache {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn get(&mut self, key: &PictureKey) -> Option<Fitted> {
        let at = self.entries.iter().position(|(cached, _)| cached == key)?;
        let entry = self.entries.remove(at)?;
        let fitted = entry.1.clone();
        self.entries.push_back(entry);
        Some(fitted)
    }

    pub(super) fn insert(&mut self, key: PictureKey, fitted: Fitted) {
        let size = size_of(&fitted);
        if size > CACHE_BYTES_MAX {
            // It would push everything else out and still not fit.
            return;
        }
        self.bytes += size;
        self.entries.push_back((key, fitted));
        while self.bytes > CACHE_BYTES_MAX || self.entries.len() > CACHE_ENTRIES_MAX {
            let Some((_, oldest)) = self.entries.pop_front() else { break };
            self.bytes -= size_of(&oldest);
        }
    }
}

fn size_of(fitted: &Fitted) -> usize {
    fitted.as_ref().map_or(0, |(_, bytes)| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(bytes: usize) -> Fitted {
        Some(("image/png".to_owned(), vec![0; bytes]))
    }

    #[test]
    fn fitted_pictures_are_cached_up_to_a_bound() {
        let mut cache = FittedCache::new();
        let third = CACHE_BYTES_MAX / 3;
        for name in 0..3 {
            cache.insert([name; 32], fitted(third));
        }
        assert_eq!(cache.get(&[0; 32]), Some(fitted(third)), "used again: the latest");
        cache.insert([3; 32], fitted(third));
        assert_eq!(cache.get(&[1; 32]), None);
        assert!(cache.get(&[0; 32]).is_some() && cache.get(&[3; 32]).is_some());
        cache.insert([4; 32], fitted(CACHE_BYTES_MAX + 1));
        assert_eq!(cache.get(&[4; 32]), None);
        assert!(cache.bytes <= CACHE_BYTES_MAX);

        cache.insert([5; 32], None);
        assert_eq!(cache.get(&[5; 32]), Some(None), "a failure is cached, too");
        for name in 0..1_000_u32 {
            let mut key = [9; 32];
            key[..4].copy_from_slice(&name.to_le_bytes());
            cache.insert(key, None);
        }
        assert_eq!((cache.entries.len(), cache.bytes), (CACHE_ENTRIES_MAX, 0));
    }
}
