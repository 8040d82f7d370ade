//! What the index has of some files, so that it can be put back after something that failed in the middle.
//!
//! Promises: only these files are looked at and changed, and only in the index.

use std::path::PathBuf;

use super::{GitError, Repository};
use crate::Cancellation;

/// Paths in one call: they are arguments, which have a bound in all.
const PATHS_MAX: usize = 100;

/// The entries of some files, as git lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntries {
    paths: Vec<PathBuf>,
    listed: Vec<u8>,
}

impl Repository {
    /// What the index has of paths, relative to the working tree's beginning.
    pub fn index_entries(
        &self,
        paths: &[PathBuf],
        cancellation: &Cancellation,
    ) -> Result<IndexEntries, GitError> {
        let mut listed = Vec::new();
        for some in paths.chunks(PATHS_MAX) {
            let printed = self
                .call(cancellation)
                .args(["--literal-pathspecs", "-C"])
                .arg_path(&self.top)
                .args(["ls-files", "--stage", "-z", "--"])
                .args(some)
                .output()?;
            listed.extend_from_slice(&printed);
        }
        Ok(IndexEntries { paths: paths.to_vec(), listed })
    }

    /// Makes the index again what it was for these paths.
    pub fn restore_index(
        &self,
        entries: &IndexEntries,
        cancellation: &Cancellation,
    ) -> Result<(), GitError> {
        self.remove_from_index(&entries.paths, cancellation)?;
        if !entries.listed.is_empty() {
            self.call(cancellation)
                .args(["-C"])
                .arg_path(&self.top)
                .args(["update-index", "-z", "--index-info"])
                .input(entries.listed.clone())
                .output()?;
        }
        Ok(())
    }
}
