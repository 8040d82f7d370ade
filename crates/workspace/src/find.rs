//! Files by their names: those below a directory that match a glob, the most recently changed first.
//!
//! Promises: what is looked at and what is returned are bounded; links are not followed.
//! Must not know: what the files are looked for.

use ignore::overrides::{Override, OverrideBuilder};

use crate::confined::Links;
use crate::directory::{EntryKind, IgnoreMode};
use crate::glob_bounds;
use crate::{Cancellation, FileError, Workspace, WorkspacePath};

/// Matches that are looked at: of more, those that come first in the order of the tree.
const MATCHES_MAX: usize = 20_000;

/// Directories that are listed.
const DIRECTORIES_MAX: usize = 50_000;

/// Which files, and how many of them.
#[derive(Debug, Clone)]
pub struct FindOptions {
    pub ignore: IgnoreMode,
    /// As in `.gitignore`: without a slash it matches at any depth.
    pub glob: String,
    pub files_max: usize,
    /// Of all paths together, with their ends.
    pub bytes_max: usize,
}

/// What was found, the most recently changed first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundFiles {
    pub paths: Vec<String>,
    /// How many matched, those included that are not in `paths`.
    pub total: usize,
    /// Not everything was looked at.
    pub is_cut: bool,
    /// How many files and directories the caller wanted to be left out.
    pub left_out: usize,
}

impl Workspace {
    /// The files below a directory whose paths match a glob.
    pub fn find_files(
        &self,
        path: &WorkspacePath,
        options: &FindOptions,
        cancellation: &Cancellation,
    ) -> Result<FoundFiles, FileError> {
        let directory = self.directory(path, options.ignore)?;
        let glob = self.compile_glob(&directory.path, &options.glob)?;
        let mut found = FoundFiles::default();
        let mut matches = Vec::new();
        let mut pending = vec![directory];
        let mut listed = 0;
        while let Some(directory) = pending.pop() {
            cancellation.check()?;
            listed += 1;
            if listed > DIRECTORIES_MAX || matches.len() >= MATCHES_MAX {
                found.is_cut = true;
                break;
            }
            let listing = match self.list_directory(&directory) {
                Ok(listing) => listing,
                Err(error) if listed == 1 => return Err(error),
                // It may be gone by now, or not be readable: the rest of the tree is still worth looking at.
                Err(_) => continue,
            };
            found.is_cut |= listing.is_cut;
            found.left_out += listing.left_out;
            for entry in &listing.entries {
                if let Some(directory) = listing.subdirectory(entry) {
                    pending.push(directory);
                } else if entry.kind == EntryKind::File
                    && glob.matched(self.absolute_path(&entry.path), false).is_whitelist()
                {
                    matches.push(entry.path.clone());
                }
            }
        }
        found.total = matches.len();
        found.paths = self.sort_by_time(matches, options, cancellation)?;
        Ok(found)
    }

    fn compile_glob(&self, directory: &WorkspacePath, glob: &str) -> Result<Override, FileError> {
        let invalid = |error: ignore::Error| FileError::InvalidGlob {
            glob: glob.to_owned(),
            reason: error.to_string(),
        };
        if glob.trim().is_empty() || glob.starts_with('!') {
            return Err(FileError::InvalidGlob {
                glob: glob.to_owned(),
                reason: "it says which files are looked for, such as `**/*.rs`".to_owned(),
            });
        }
        if !glob_bounds::is_bounded(glob) {
            return Err(FileError::InvalidGlob {
                glob: glob_bounds::shorten(glob),
                reason: glob_bounds::TOO_LARGE.to_owned(),
            });
        }
        let mut builder = OverrideBuilder::new(self.absolute_path(directory));
        builder.add(glob).map_err(invalid)?;
        builder.build().map_err(invalid)
    }

    /// The paths that are returned. Each file is opened, which takes as long as the disk takes.
    fn sort_by_time(
        &self,
        matches: Vec<WorkspacePath>,
        options: &FindOptions,
        cancellation: &Cancellation,
    ) -> Result<Vec<String>, FileError> {
        let mut files = Vec::with_capacity(matches.len());
        for path in matches {
            cancellation.check()?;
            let opened = self.open_file(&path, Links::Refused);
            // One that cannot be read has no time that is known here: it comes last.
            let modified = opened.map_or((i64::MIN, 0), |(_, stat)| stat.identity.modified());
            files.push((std::cmp::Reverse(modified), self.display_path(&path)));
        }
        files.sort();
        let mut paths = Vec::new();
        let mut bytes = 0;
        for (_, path) in files.into_iter().take(options.files_max) {
            bytes += path.len() + 1;
            if bytes > options.bytes_max {
                break;
            }
            // One path must not be able to look like two.
            paths.push(path.replace(char::is_control, "\u{fffd}"));
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confinement;

    #[test]
    fn a_cancelled_search_ends_also_while_files_are_sorted() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "").unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        let options = FindOptions {
            ignore: IgnoreMode::Apply,
            glob: "*".to_owned(),
            files_max: 10,
            bytes_max: 1_024,
        };
        let cancellation = Cancellation::default();
        let matches = || vec![workspace.resolve("a").unwrap()];
        let sorted = workspace.sort_by_time(matches(), &options, &cancellation);
        assert_eq!(sorted, Ok(vec!["a".to_owned()]));
        cancellation.cancel();
        let sorted = workspace.sort_by_time(matches(), &options, &cancellation);
        assert_eq!(sorted, Err(FileError::Cancelled));
    }
}
