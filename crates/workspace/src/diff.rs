//! What changed between two contents of a file.
//!
//! Promises: takes a bounded time, whatever the contents are.

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, InternedInput, Token};

/// What differs is compared line by line up to this many pairs of lines: time grows with their number in the worst case.
const COMPARISONS_MAX: usize = 20_000 * 20_000;

/// How many lines were added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStats {
    pub added: u32,
    pub removed: u32,
}

impl DiffStats {
    /// Compares two contents; a file that was not there before was empty.
    pub fn between(before: Option<&[u8]>, after: &[u8]) -> Self {
        let before = before.unwrap_or_default();
        let input = InternedInput::new(byte_lines(before), byte_lines(after));
        let (removed, added) = count_differing(&input.before, &input.after);
        if removed.saturating_mul(added) > COMPARISONS_MAX {
            // Too much to compare: all that differs counts as replaced.
            let count = |lines| u32::try_from(lines).unwrap_or(u32::MAX);
            return Self { added: count(added), removed: count(removed) };
        }
        let diff = Diff::compute(Algorithm::Histogram, &input);
        Self { added: diff.count_additions(), removed: diff.count_removals() }
    }
}

/// Lines of each side between what both begin and end with.
fn count_differing(before: &[Token], after: &[Token]) -> (usize, usize) {
    let pairs = before.iter().zip(after);
    let start = pairs.take_while(|(before, after)| before == after).count();
    let (before, after) = (&before[start..], &after[start..]);
    let pairs = before.iter().rev().zip(after.iter().rev());
    let end = pairs.take_while(|(before, after)| before == after).count();
    (before.len() - end, after.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_counted() {
        let check = |before, after, added, removed| {
            let stats = DiffStats::between(before, after);
            assert_eq!(stats, DiffStats { added, removed });
        };
        check(None, b"a\nb\n", 2, 0);
        check(None, b"", 0, 0);
        check(Some(b"a\nb\nc\n"), b"a\nB\nc\nd\n", 2, 1);
        check(Some(b"a\n"), b"", 0, 1);
        check(Some(b"a"), b"a\n", 1, 1);
        check(Some(b"\xff\n"), b"\xff\nb\n", 1, 0);
    }

    #[test]
    fn contents_that_cannot_be_compared_in_time_count_as_replaced() {
        // Few different lines in another order on each side: the worst case for every algorithm.
        let content = |step: usize| -> Vec<u8> {
            let lines: String = (0..60_000)
                .map(|line| (line * line / step) % 7)
                .map(|digit| format!("{digit}\n"))
                .collect();
            format!("head\n{lines}tail\n").into_bytes()
        };
        let (before, after) = (content(3), content(11));
        let stats = DiffStats::between(Some(&before), &after);
        assert!(stats.added > 50_000 && stats.added <= 60_000, "{stats:?}");
        assert!(stats.removed > 50_000 && stats.removed <= 60_000);
    }
}
