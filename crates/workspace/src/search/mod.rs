//! Searching files for lines that match a pattern, by ripgrep's libraries, in files opened one by one beneath their root.

mod matches;

use std::fs::File;
use std::io::{self, Read};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};

pub use matches::SearchMatches;

use crate::confined::Links;
use crate::directory::{Directory, EntryKind, IgnoreMode, Listing};
use crate::glob_bounds;
use crate::{Cancellation, FileError, Workspace, WorkspacePath};
use matches::FileMatches;

/// Larger files are skipped and counted.
const FILE_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// What the searcher may hold of one file, long lines included.
const HEAP_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// A pattern that was compiled: it can be searched for.
#[derive(Debug, Clone)]
pub struct SearchPattern(RegexMatcher);

impl SearchPattern {
    /// A regular expression that is matched against one line at a time, or plain text if it is `literal`.
    pub fn compile(pattern: &str, literal: bool, ignore_case: bool) -> Result<Self, FileError> {
        if pattern.is_empty() {
            return Err(FileError::EmptyPattern);
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .case_insensitive(ignore_case)
            .fixed_strings(literal);
        let invalid =
            |error: grep_regex::Error| FileError::InvalidPattern { reason: error.to_string() };
        builder.build(pattern).map(Self).map_err(invalid)
    }
}

/// How files are searched and how much is reported.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    pub ignore: IgnoreMode,
    /// Only files that match one of these; with `!` in front, none that match. Relative to the working directory.
    pub globs: Vec<String>,
    /// Lines reported before and after each match.
    pub context_lines: usize,
    pub output: SearchOutput,
    /// With [`SearchOutput::Lines`].
    pub lines_max: usize,
    /// With the others.
    pub files_max: usize,
    /// Of the report; the last match may go beyond it by its context.
    pub text_bytes_max: usize,
}

/// What is reported of each file that has a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchOutput {
    /// Its lines that match.
    Lines,
    /// That it has one.
    Files,
    /// How many of its lines match.
    Counts,
}

impl Workspace {
    /// Searches a directory, or one file.
    pub fn search(
        &self,
        path: &WorkspacePath,
        pattern: &SearchPattern,
        options: &SearchOptions,
        cancellation: &Cancellation,
    ) -> Result<SearchMatches, FileError> {
        let mut search = Search {
            workspace: self,
            cancellation,
            matcher: &pattern.0,
            searcher: searcher(options),
            globs: self.compile_globs(path, &options.globs)?,
            options,
            matches: SearchMatches::default(),
        };
        match self.directory(path, options.ignore) {
            Ok(directory) => search.tree(directory)?,
            // A file that was named is searched whatever ignore rules and globs say.
            Err(_) => {
                let (file, stat) = self.open_file(path, Links::Followed)?;
                search.file(path, file, stat.identity.bytes)?;
            }
        }
        Ok(search.matches)
    }

    fn compile_globs(&self, path: &WorkspacePath, globs: &[String]) -> Result<Override, FileError> {
        let invalid = |glob: &str, error: ignore::Error| FileError::InvalidGlob {
            glob: glob.to_owned(),
            reason: error.to_string(),
        };
        let mut builder = OverrideBuilder::new(&self.root(path).path);
        for glob in globs {
            if !glob_bounds::is_bounded(glob) {
                return Err(FileError::InvalidGlob {
                    glob: glob_bounds::shorten(glob),
                    reason: glob_bounds::TOO_LARGE.to_owned(),
                });
            }
            builder.add(glob).map_err(|error| invalid(glob, error))?;
        }
        builder.build().map_err(|error| invalid("list", error))
    }
}

struct Search<'a> {
    workspace: &'a Workspace,
    cancellation: &'a Cancellation,
    matcher: &'a RegexMatcher,
    searcher: Searcher,
    globs: Override,
    options: &'a SearchOptions,
    matches: SearchMatches,
}

enum PendingMatch {
    Directory(Directory),
    File(WorkspacePath),
}

impl Search<'_> {
    fn tree(&mut self, directory: Directory) -> Result<(), FileError> {
        // A stack: what is searched next is at its end.
        let mut pending = Vec::new();
        let listing = self.workspace.list_directory(&directory)?;
        self.push_entries(&listing, &mut pending);
        while let Some(next) = pending.pop() {
            self.cancellation.check()?;
            if self.matches.is_cut {
                break;
            }
            match next {
                // What cannot be opened is gone by now, a link, or not readable: the others are still worth searching.
                PendingMatch::File(path) => {
                    if let Ok((file, stat)) = self.workspace.open_file(&path, Links::Refused) {
                        self.file(&path, file, stat.identity.bytes)?;
                    }
                }
                PendingMatch::Directory(directory) => {
                    if let Ok(listing) = self.workspace.list_directory(&directory) {
                        self.push_entries(&listing, &mut pending);
                    }
                }
            }
        }
        Ok(())
    }

    fn push_entries(&mut self, listing: &Listing, pending: &mut Vec<PendingMatch>) {
        self.matches.left_out += listing.left_out;
        for entry in listing.entries.iter().rev() {
            let path = self.workspace.absolute_path(&entry.path);
            let is_directory = entry.kind == EntryKind::Directory;
            if self.globs.matched(&path, is_directory).is_ignore() {
                continue;
            }
            if let Some(directory) = listing.subdirectory(entry) {
                pending.push(PendingMatch::Directory(directory));
            } else if entry.kind == EntryKind::File {
                pending.push(PendingMatch::File(entry.path.clone()));
            }
        }
    }

    fn file(&mut self, path: &WorkspacePath, file: File, bytes: u64) -> Result<(), FileError> {
        if bytes > FILE_BYTES_MAX {
            self.matches.skipped_files += 1;
            return Ok(());
        }
        let source =
            CancellableFile { file: file.take(FILE_BYTES_MAX), cancellation: self.cancellation };
        let mut in_file = FileMatches::new(&self.matches, self.options);
        let searched = self.searcher.search_reader(self.matcher, source, &mut in_file);
        self.cancellation.check()?;
        match searched {
            Ok(()) => {
                let path = self.workspace.display_path(path);
                self.matches.add(&path, in_file, self.options);
            }
            // A line that is too long to hold, or a disk that fails: the others are still worth searching.
            Err(_) => self.matches.skipped_files += 1,
        }
        Ok(())
    }
}

/// A file that ends early when the search is cancelled.
struct CancellableFile<'a> {
    file: io::Take<File>,
    cancellation: &'a Cancellation,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancellation.is_cancelled() {
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

fn searcher(options: &SearchOptions) -> Searcher {
    let context = match options.output {
        SearchOutput::Lines => options.context_lines,
        SearchOutput::Files | SearchOutput::Counts => 0,
    };
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(HEAP_BYTES_MAX))
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confinement;

    #[test]
    fn a_cancelled_search_ends() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "word\n").unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        let cancellation = Cancellation::default();
        let pattern = SearchPattern::compile("word", false, false).unwrap();
        let options = SearchOptions {
            ignore: IgnoreMode::Apply,
            globs: Vec::new(),
            context_lines: 0,
            output: SearchOutput::Lines,
            lines_max: 10,
            files_max: 10,
            text_bytes_max: 1_024,
        };
        let search = |path| {
            let path = workspace.resolve(path).unwrap();
            let matches = workspace.search(&path, &pattern, &options, &cancellation);
            matches.map(|matches| matches.text)
        };
        assert_eq!(search(".").unwrap(), "a\n1:word\n");
        cancellation.cancel();
        assert_eq!(search("."), Err(FileError::Cancelled));
        // In the middle of a file, too.
        assert_eq!(search("a"), Err(FileError::Cancelled));
    }

    #[test]
    fn what_is_left_out_is_neither_searched_nor_listed_nor_found_and_is_counted() {
        use std::path::Path;

        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("secret/deep")).unwrap();
        for name in ["a", "secret/b", "secret/deep/c", "d"] {
            std::fs::write(root.join(name), "word\n").unwrap();
        }
        std::os::unix::fs::symlink("secret", root.join("innocent")).unwrap();
        let uri = format!("file://{}", root.display());
        let workspace =
            Workspace::open(&[uri], &Confinement::none()).unwrap().excluding(move |location| {
                assert_eq!(location.root, root);
                location.relative == Path::new("d") || location.relative.starts_with("secret/b")
            });
        let cancellation = Cancellation::default();
        let pattern = SearchPattern::compile("word", false, false).unwrap();
        let options = SearchOptions {
            ignore: IgnoreMode::Apply,
            globs: Vec::new(),
            context_lines: 0,
            output: SearchOutput::Files,
            lines_max: 10,
            files_max: 10,
            text_bytes_max: 1_024,
        };
        for (path, found, left_out) in
            [(".", "a\nsecret/deep/c\n", 2), ("innocent", "secret/deep/c\n", 1)]
        {
            let path = workspace.resolve(path).unwrap();
            let matches = workspace.search(&path, &pattern, &options, &cancellation).unwrap();
            assert_eq!((matches.text.as_str(), matches.left_out), (found, left_out));
            let limits = crate::TreeLimits { depth: 3, entries: 10, bytes: 1_024 };
            let tree =
                workspace.list_tree(&path, IgnoreMode::Apply, limits, &cancellation).unwrap();
            assert_eq!(tree.left_out, left_out, "{:?}", tree.lines);
            let glob = crate::FindOptions {
                ignore: IgnoreMode::Apply,
                glob: "*".to_owned(),
                files_max: 10,
                bytes_max: 1_024,
            };
            let files = workspace.find_files(&path, &glob, &cancellation).unwrap();
            let total = found.lines().count();
            assert_eq!((files.total, files.left_out), (total, left_out));
        }
    }
}
