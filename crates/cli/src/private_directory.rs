//! Directories that are for their owner alone: the data directory, and where settings lie.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Creates a directory and those above it, as far as they are not there.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The same for the directory that a file lies in.
pub(crate) fn create_parent_of(file: &Path) -> io::Result<()> {
    match file.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(directory) => create_private_directory(directory),
        None => Ok(()), // it lies in the current one
    }
}
