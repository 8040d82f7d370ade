//! A directory that is in no repository: its files, within bounds.
//!
//! Promises: what `.gitignore` and the like exclude is left out; a directory with more files than the bound is not compared at all,
//! so that nothing is taken for new that was only not seen.
//! Must not know: what it is compared with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::FileSide;
use super::entry::{EarlierFiles, EntryReader};
use crate::directory::{EntryKind, IgnoreMode};
use crate::{Cancellation, Workspace, WorkspacePath};

/// Files of a directory without git.
const FILES_MAX: usize = 5_000;

/// Directories that are listed of it.
const DIRECTORIES_MAX: usize = 5_000;

pub(super) fn read(
    workspace: &Workspace,
    index: usize,
    reader: &mut EntryReader<'_, '_>,
    earlier: Option<EarlierFiles<'_>>,
    cancellation: &Cancellation,
) -> Result<BTreeMap<PathBuf, FileSide>, String> {
    let root = &workspace.shared.roots[index];
    let path = WorkspacePath { root: index, relative: PathBuf::new() };
    let too_large = || {
        format!(
            "{} is in no git repository and has more than {FILES_MAX} files: what commands change there is not seen",
            root.path.display()
        )
    };
    let first = workspace.directory(&path, IgnoreMode::Apply);
    let mut pending = vec![first.map_err(|error| error.to_string())?];
    let mut paths = Vec::new();
    let mut listed = 0;
    while let Some(directory) = pending.pop() {
        cancellation.check().map_err(|error| error.to_string())?;
        listed += 1;
        let Ok(listing) = workspace.list_directory(&directory) else {
            continue; // gone by now, or not readable: nothing in it can be seen
        };
        for entry in &listing.entries {
            match entry.kind {
                EntryKind::Directory => pending.extend(listing.subdirectory(entry)),
                EntryKind::File | EntryKind::Link => paths.push(entry.path.relative.clone()),
                EntryKind::Other => {}
            }
        }
        if listing.is_cut || paths.len() > FILES_MAX || listed > DIRECTORIES_MAX {
            return Err(too_large());
        }
    }
    let mut files = BTreeMap::new();
    for path in paths {
        cancellation.check().map_err(|error| error.to_string())?;
        if let Some(side) = reader.read(root, &path, earlier) {
            files.insert(path, side);
        }
    }
    Ok(files)
}
