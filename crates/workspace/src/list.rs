//! A directory tree as lines of text: one path each, directories end in `/`, symbolic links in `@`.

use std::collections::VecDeque;

use crate::directory::{DirectoryEntry, EntryKind, IgnoreMode};
use crate::{Cancellation, FileError, Workspace, WorkspacePath};

/// How much of a tree is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Levels; 1 is the directory alone.
    pub depth: usize,
    pub entries: usize,
    /// Of all lines together, with their ends.
    pub bytes: usize,
}

/// A listing, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    pub lines: Vec<String>,
    /// There is more within the requested depth.
    pub is_cut: bool,
    /// How many entries the caller wanted to be left out.
    pub left_out: usize,
}

impl Workspace {
    /// Lists a directory and those below it. What does not fit is what lies deepest.
    pub fn list_tree(
        &self,
        path: &WorkspacePath,
        mode: IgnoreMode,
        limits: TreeLimits,
        cancellation: &Cancellation,
    ) -> Result<Tree, FileError> {
        let mut lines = Vec::new();
        let mut bytes = 0;
        let (mut is_cut, mut left_out) = (false, 0);
        let mut pending = VecDeque::from([(self.directory(path, mode)?, String::new(), 1)]);
        'all: while let Some((directory, prefix, depth)) = pending.pop_front() {
            cancellation.check()?;
            let listing = match self.list_directory(&directory) {
                Ok(listing) => listing,
                Err(error) if depth == 1 => return Err(error),
                // It may be gone by now, or not be readable: the rest of the tree is still worth listing.
                Err(_) => continue,
            };
            is_cut |= listing.is_cut;
            left_out += listing.left_out;
            for entry in &listing.entries {
                let line = format!("{prefix}{}", display_name(entry));
                bytes += line.len() + 1;
                if lines.len() == limits.entries || bytes > limits.bytes {
                    is_cut = true;
                    break 'all;
                }
                if depth < limits.depth
                    && let Some(directory) = listing.subdirectory(entry)
                {
                    pending.push_back((directory, line.clone(), depth + 1));
                }
                lines.push(line);
            }
        }
        lines.sort();
        Ok(Tree { lines, is_cut, left_out })
    }
}

fn display_name(entry: &DirectoryEntry) -> String {
    let name = entry.name.to_string_lossy();
    // One name must not be able to look like two.
    let name = name.replace(char::is_control, "\u{fffd}");
    let mark = match entry.kind {
        EntryKind::Directory => "/",
        EntryKind::Link => "@",
        EntryKind::File | EntryKind::Other => "",
    };
    format!("{name}{mark}")
}
