//! The best few of many, by how well they fit what was typed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Something that knows how well a text fits.
pub(super) struct Judge {
    atom: Atom,
    matcher: Matcher,
    chars: Vec<char>,
}

impl Judge {
    pub(super) fn of(query: &str, case: CaseMatching) -> Self {
        Self {
            atom: Atom::new(query, case, Normalization::Smart, AtomKind::Fuzzy, false),
            matcher: Matcher::new(Config::DEFAULT.match_paths()),
            chars: Vec::new(),
        }
    }

    /// `None` if it does not fit at all.
    pub(super) fn score(&mut self, text: &str) -> Option<u16> {
        let text = Utf32Str::new(text, &mut self.chars);
        self.atom.score(text, &mut self.matcher)
    }
}

/// Keeps the best of what is offered.
pub(super) struct Top<K: Ord> {
    max: usize,
    /// The worst of those kept is on top.
    kept: BinaryHeap<Reverse<K>>,
}

impl<K: Ord> Top<K> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            kept: BinaryHeap::new(),
        }
    }

    pub(super) fn offer(&mut self, key: K) {
        if self.kept.len() < self.max {
            self.kept.push(Reverse(key));
        } else if let Some(mut worst) = self.kept.peek_mut()
            && worst.0 < key
        {
            *worst = Reverse(key);
        }
    }

    /// The best first.
    pub(super) fn sorted(self) -> impl Iterator<Item = K> {
        self.kept
            .into_sorted_vec()
            .into_iter()
            .map(|Reverse(key)| key)
    }
}

/// The best of a few things with names: those that begin with what was typed, then those that fit. Equals stay in order.
pub(super) fn named<T, N>(query: &str, things: Vec<T>, name: N, max: usize) -> Vec<T>
where
    N: Fn(&T) -> &str,
{
    let mut judge = Judge::of(query, CaseMatching::Ignore);
    let judged = things.into_iter().filter_map(|thing| {
        let text = name(&thing);
        let score = judge.score(text)?;
        let begins = text
            .get(..query.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(query));
        Some((Reverse((begins, if begins { 0 } else { score })), thing))
    });
    let mut judged: Vec<_> = judged.collect();
    judged.sort_by_key(|(rank, _)| *rank);
    judged.truncate(max);
    judged.into_iter().map(|(_, thing)| thing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_best_first() {
        let mut top = Top::new(3);
        for key in [4, 9, 1, 7, 8, 2] {
            top.offer(key);
        }
        assert_eq!(top.sorted().collect::<Vec<_>>(), [9, 8, 7]);
        let mut none = Top::new(0);
        none.offer(1);
        assert_eq!(none.sorted().count(), 0);
    }

    #[test]
    fn names_that_begin_so_come_first() {
        let names = vec!["archive", "branch", "compact", "rewind", "review", "prefer"];
        let best = |query| named(query, names.clone(), |name| name, 10);
        assert_eq!(best(""), names);
        assert_eq!(best("re"), ["rewind", "review", "prefer", "archive"]);
        assert_eq!(best("RE"), best("re"));
        assert_eq!(best("cmp"), ["compact"]);
        assert_eq!(best("zzz"), Vec::<&str>::new());
        assert_eq!(
            named("", names.clone(), |name| name, 2),
            ["archive", "branch"]
        );
    }
}
