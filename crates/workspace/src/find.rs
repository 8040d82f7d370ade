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
                    && glob
                        .matched(self.absolute_path(&entry.path), false)
                        .is_whitelist()
                {
                    matches.push(entry.path.clone());
                }
            }
        }
        found.total = matches.len();
        self.sort_by_time(matches, options, &mut found);
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

    fn sort_by_time(
        &self,
        matches: Vec<WorkspacePath>,
        options: &FindOptions,
        found: &mut FoundFiles,
    ) {
        let mut files: Vec<_> = matches
            .into_iter()
            .map(|path| {
                let opened = self.open_file(&path, Links::Refused);
                // One that cannot be read has no time that is known here: it comes last.
                let modified = opened.map_or((i64::MIN, 0), |(_, stat)| stat.identity.modified());
                (std::cmp::Reverse(modified), self.display_path(&path))
            })
            .collect();
        files.sort();
        let mut bytes = 0;
        for (_, path) in files.into_iter().take(options.files_max) {
            bytes += path.len() + 1;
            if bytes > options.bytes_max {
                break;
            }
            // One path must not be able to look like two.
            found.paths.push(path.replace(char::is_control, "\u{fffd}"));
        }
    }
}
