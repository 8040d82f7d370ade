//! The best few of many, by how well they match what was typed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Scores how well texts match a query.
pub(super) struct QueryMatcher {
    atom: Atom,
    matcher: Matcher,
    chars: Vec<char>,
}

impl QueryMatcher {
    pub(super) fn new(query: &str, case: CaseMatching) -> Self {
        Self {
            atom: Atom::new(query, case, Normalization::Smart, AtomKind::Fuzzy, false),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            chars: Vec::new(),
        }
    }

    /// `None` if it does not match at all.
    pub(super) fn score(&mut self, text: &str) -> Option<u16> {
        let text = Utf32Str::new(text, &mut self.chars);
        self.atom.score(text, &mut self.matcher)
    }
}

/// Holds the best of what is pushed.
pub(super) struct TopK<K: Ord> {
    max: usize,
    /// The worst is on top.
    heap: BinaryHeap<Reverse<K>>,
}

impl<K: Ord> TopK<K> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, heap: BinaryHeap::new() }
    }

    pub(super) fn push(&mut self, key: K) {
        if self.heap.len() < self.max {
            self.heap.push(Reverse(key));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && worst.0 < key
        {
            *worst = Reverse(key);
        }
    }

    /// The best first.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = K> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(key)| key)
    }
}

/// The best of a few items with names: those that begin with what was typed, then those that match. Equals stay in order.
pub(super) fn best_names<T, N>(query: &str, items: Vec<T>, name: N, max: usize) -> Vec<T>
where
    N: Fn(&T) -> &str,
{
    let mut matcher = QueryMatcher::new(query, CaseMatching::Ignore);
    let mut scored: Vec<_> = items
        .into_iter()
        .filter_map(|item| {
            let text = name(&item);
            let score = matcher.score(text)?;
            let begins =
                text.get(..query.len()).is_some_and(|start| start.eq_ignore_ascii_case(query));
            Some((Reverse((begins, if begins { 0 } else { score })), item))
        })
        .collect();
    scored.sort_by_key(|(rank, _)| *rank);
    scored.truncate(max);
    scored.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_matches_come_first() {
        let mut top = TopK::new(3);
        for key in [4, 9, 1, 7, 8, 2] {
            top.push(key);
        }
        assert_eq!(top.into_sorted().collect::<Vec<_>>(), [9, 8, 7]);
        let mut none = TopK::new(0);
        none.push(1);
        assert_eq!(none.into_sorted().count(), 0);
    }

    #[test]
    fn names_that_begin_with_the_query_come_first() {
        let names = vec!["archive", "branch", "compact", "rewind", "review", "prefer"];
        let best = |query| best_names(query, names.clone(), |name| name, 10);
        assert_eq!(best(""), names);
        assert_eq!(best("re"), ["rewind", "review", "prefer", "archive"]);
        assert_eq!(best("RE"), best("re"));
        assert_eq!(best("cmp"), ["compact"]);
        assert_eq!(best("zzz"), Vec::<&str>::new());
        assert_eq!(best_names("", names.clone(), |name| name, 2), ["archive", "branch"]);
    }
}
