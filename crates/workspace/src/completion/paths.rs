//! Paths of files and directories in one block of memory, searched from end to end.

use std::cmp::Reverse;

use nucleo_matcher::pattern::CaseMatching;

use super::ranking::{QueryMatcher, TopK};

/// Paths of one index.
const PATHS_MAX: usize = 100_000;

/// Bytes of all of them together.
const BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    File,
    Directory,
}

/// Files and directories of working directories.
#[derive(Debug, Clone, Default)]
pub struct Paths {
    /// Absolute, the default one first.
    roots: Vec<String>,
    /// All paths, one after the other.
    text: String,
    entries: Vec<PathEntry>,
}

#[derive(Debug, Clone, Copy)]
struct PathEntry {
    /// Where the path ends; it begins where the one before it does.
    end: u32,
    root: u16,
    kind: PathKind,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedPath<'a> {
    /// The working directory.
    pub root: &'a str,
    /// Relative to the working directory.
    pub relative: &'a str,
    pub kind: PathKind,
    /// It is in the default working directory.
    pub is_in_default: bool,
}

impl Paths {
    /// No paths yet, in these directories.
    pub fn new(roots: Vec<String>) -> Self {
        Self { roots, ..Self::default() }
    }

    /// Adds a path; `false` if there is no space for more.
    pub fn push(&mut self, root: usize, relative: &str, kind: PathKind) -> bool {
        let fits = self.entries.len() < PATHS_MAX && self.text.len() + relative.len() <= BYTES_MAX;
        let (Ok(root), true) = (u16::try_from(root), fits) else {
            // The caller stops its walk.
            return false;
        };
        self.text.push_str(relative);
        let Ok(end) = u32::try_from(self.text.len()) else {
            debug_assert!(false, "BYTES_MAX fits into 32 bits");
            return false;
        };
        self.entries.push(PathEntry { end, root, kind });
        true
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Those that match best, the best first: by score, then the shorter, then the one that was there first.
    pub fn best(&self, query: &str, max: usize) -> Vec<IndexedPath<'_>> {
        if max == 0 {
            return Vec::new();
        }
        if query.is_empty() {
            return (0..self.len().min(max)).map(|at| self.get(at)).collect();
        }
        let mut matcher = QueryMatcher::new(query, CaseMatching::Smart);
        let mut top = TopK::new(max);
        let mut start = 0;
        for (at, entry) in self.entries.iter().enumerate() {
            let path = &self.text[start..entry.end as usize];
            start = entry.end as usize;
            if let Some(score) = matcher.score(path) {
                top.push((score, Reverse(path.len()), Reverse(at)));
            }
        }
        top.into_sorted().map(|(_, _, Reverse(at))| self.get(at)).collect()
    }

    fn get(&self, at: usize) -> IndexedPath<'_> {
        let entry = self.entries[at];
        let start = match at {
            0 => 0,
            at => self.entries[at - 1].end as usize,
        };
        IndexedPath {
            root: self.roots.get(usize::from(entry.root)).map_or("", String::as_str),
            relative: &self.text[start..entry.end as usize],
            kind: entry.kind,
            is_in_default: entry.root == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(all: &[&str]) -> Paths {
        let mut paths = Paths::new(vec!["/ws".to_owned()]);
        for path in all {
            assert!(paths.push(0, path, PathKind::File));
        }
        paths
    }

    fn check(all: &[&str], query: &str, expected: &[&str]) {
        let paths = paths(all);
        let best: Vec<&str> = paths.best(query, 3).iter().map(|path| path.relative).collect();
        assert_eq!(best, expected, "{query:?}");
    }

    #[test]
    fn the_likeliest_path_is_first() {
        let all = ["README.md", "src/main.rs", "src/domain.rs", "tests/main.rs", "maintain.md"];
        check(&all, "main", &["src/main.rs", "maintain.md", "tests/main.rs"]);
        check(&all, "src/m", &["src/main.rs", "src/domain.rs"]);
        check(&all, "srmain", &["src/main.rs", "src/domain.rs"]);
        check(&all, "README", &["README.md"]);
        check(&all, "nothing", &[]);
        check(&all, "", &["README.md", "src/main.rs", "src/domain.rs"]);
        check(&["é/ñandú.txt", "x"], "nandu", &["é/ñandú.txt"]);
        check(&[], "x", &[]);
    }

    #[test]
    fn an_index_is_bounded() {
        let mut paths = Paths::new(vec!["/ws".to_owned()]);
        let long = "x".repeat(1_024 * 1_024);
        let taken = (0..100).take_while(|_| paths.push(0, &long, PathKind::File)).count();
        assert_eq!(taken, 16);
        let mut paths = Paths::new(vec!["/ws".to_owned()]);
        let taken =
            (0..PATHS_MAX + 10).filter(|at| paths.push(0, &at.to_string(), PathKind::File)).count();
        assert_eq!((taken, paths.len()), (PATHS_MAX, PATHS_MAX));
        assert!(!paths.push(1 << 20, "x", PathKind::File));
    }
}
