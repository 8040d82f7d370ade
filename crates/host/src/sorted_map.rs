//! Map of few entries in a sorted `Vec`, for state that seldom changes.
//!
//! For each pair of types it compiles to much less code than a `BTreeMap`. An insertion moves the
//! entries behind it, so it is not for maps of many thousand entries.
//! Promises: iteration in the order of keys, as in a `BTreeMap`.
//! Must not know: the meaning of its entries.

use std::borrow::Borrow;

#[derive(Debug)]
pub(crate) struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &self.entries[at].1)
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &mut self.entries[at].1)
    }

    /// Returns the value that was there before.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    /// Returns the value of a key, inserted by `make` if there was none.
    pub(crate) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (key, make()));
                at
            }
        };
        &mut self.entries[at].1
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| self.entries.remove(at).1)
    }

    pub(crate) fn first_key_value(&self) -> Option<(&K, &V)> {
        self.entries.first().map(|(key, value)| (key, value))
    }

    pub(crate) fn pop_first(&mut self) -> Option<(K, V)> {
        if self.is_empty() { None } else { Some(self.entries.remove(0)) }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.entries.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_btree_map_holds(
            changes in prop::collection::vec((0_u8..5, 0_u8..16, any::<u8>()), 0..60),
        ) {
            let (mut sorted, mut model) = (SortedMap::default(), BTreeMap::new());
            for (change, key, value) in changes {
                match change {
                    0 => prop_assert_eq!(sorted.insert(key, value), model.insert(key, value)),
                    1 => prop_assert_eq!(sorted.remove(&key), model.remove(&key)),
                    2 => prop_assert_eq!(sorted.pop_first(), model.pop_first()),
                    3 => {
                        let own = sorted.get_or_insert_with(key, || value);
                        prop_assert_eq!(own, model.entry(key).or_insert(value));
                    }
                    _ => {
                        sorted.retain(|known, _| *known != key);
                        model.retain(|known, _| *known != key);
                    }
                }
                prop_assert_eq!(sorted.get(&key), model.get(&key));
                prop_assert!(sorted.iter().eq(model.iter()));
            }
            prop_assert_eq!(sorted.len(), model.len());
        }
    }
}
