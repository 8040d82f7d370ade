//! What changed between two contents of a file.

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, InternedInput};

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
        let diff = Diff::compute(Algorithm::Histogram, &input);
        Self {
            added: diff.count_additions(),
            removed: diff.count_removals(),
        }
    }
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
}
