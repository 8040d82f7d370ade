//! Files that a caller does not want to see, whatever lists or searches them.
//!
//! Promises: a file is judged by its name without links.
//! Must not know: why it is not to be seen.

use std::fmt;
use std::sync::Arc;

use crate::{RealLocation, Workspace, WorkspacePath};

/// Whether a file, or a directory with all below it, is left out.
#[derive(Clone)]
pub(crate) struct FileFilter(Arc<dyn Fn(&RealLocation) -> bool + Send + Sync>);

impl fmt::Debug for FileFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileFilter")
    }
}

impl Workspace {
    /// The same files, but for those that lists and searches are to leave out.
    #[must_use]
    pub fn excluding(
        &self,
        is_left_out: impl Fn(&RealLocation) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { filter: Some(FileFilter(Arc::new(is_left_out))), ..self.clone() }
    }

    /// Whether an entry of an open directory is left out. Its path has no links.
    pub(crate) fn leaves_out(&self, path: &WorkspacePath) -> bool {
        self.filter.as_ref().is_some_and(|FileFilter(filter)| {
            filter(&RealLocation {
                root: self.root(path).real_path.clone(),
                relative: path.relative.clone(),
            })
        })
    }
}
