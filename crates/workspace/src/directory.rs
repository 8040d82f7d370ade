//! Directories and their entries, opened one by one beneath their root: a walk cannot be led out by a swap.
//!
//! Promises: entries are in the order of their names; links are listed and never followed; git's own directory is left
//! out; what one directory yields is bounded.
//! Must not know: what entries are looked for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, PathBuf};
use std::sync::Arc;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::confined::{Links, Stat};
use crate::error::errno_to_file_error;
use crate::ignore_rules::IgnoreRules;
use crate::{FileError, Workspace, WorkspacePath};

/// Entries of one directory that are read.
const ENTRIES_MAX: usize = 50_000;

/// Whether ignore rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreMode {
    /// What `.gitignore` and the like exclude is left out.
    Apply,
    /// Everything is included.
    Disregard,
}

/// A directory to list, with the ignore rules that apply in it.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) path: WorkspacePath,
    mode: IgnoreMode,
    rules: Option<Arc<IgnoreRules>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Link,
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct DirectoryEntry {
    pub(crate) name: OsString,
    pub(crate) path: WorkspacePath,
    pub(crate) kind: EntryKind,
}

/// The entries of a directory.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<DirectoryEntry>,
    /// There are more than were read.
    pub(crate) is_cut: bool,
    /// How many were left out because the caller wants so.
    pub(crate) left_out: usize,
    mode: IgnoreMode,
    rules: Option<Arc<IgnoreRules>>,
}

impl Workspace {
    /// A directory that was named explicitly. It can be listed even if it is ignored itself; then only its own rules apply.
    pub(crate) fn directory(
        &self,
        path: &WorkspacePath,
        mode: IgnoreMode,
    ) -> Result<Directory, FileError> {
        let root = self.root(path);
        let failed = |errno| errno_to_file_error(errno, &self.display_path(path));
        let opened = root.open_directory(&path.relative, Links::Followed);
        let real = root.real_path_inside(&opened.map_err(failed)?);
        let path = path.with_relative(real.ok_or_else(|| failed(Errno::AGAIN))?);
        let rules = match mode {
            IgnoreMode::Apply => self.rules_above(&path),
            IgnoreMode::Disregard => None,
        };
        Ok(Directory { path, mode, rules })
    }

    /// A directory with everything in it; `None` if it is not there.
    pub(crate) fn directory_if_exists(
        &self,
        path: &WorkspacePath,
    ) -> Result<Option<Directory>, FileError> {
        match self.directory(path, IgnoreMode::Disregard) {
            Ok(directory) => Ok(Some(directory)),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rules_above(&self, path: &WorkspacePath) -> Option<Arc<IgnoreRules>> {
        let mut rules = None;
        let mut above = path.with_relative(PathBuf::new());
        for part in path.relative.components() {
            let Component::Normal(name) = part else {
                // The path of an open directory has no other parts.
                debug_assert!(false, "{part:?} in a real path");
                continue;
            };
            rules = IgnoreRules::read_in(self, &above, rules);
            above = above.child(name);
            let absolute = self.absolute_path(&above);
            rules = rules.filter(|rules| !rules.ignores(&absolute, EntryKind::Directory));
        }
        rules
    }

    /// The entries of a directory.
    pub(crate) fn list_directory(&self, directory: &Directory) -> Result<Listing, FileError> {
        let path = &directory.path;
        let failed = |errno| errno_to_file_error(errno, &self.display_path(path));
        let root = self.root(path);
        let open = root.open_directory(&path.relative, Links::Refused).map_err(failed)?;
        let entries = Dir::read_from(&open).and_then(|entries| read_entries(entries, path));
        let (mut entries, is_cut) = entries.map_err(failed)?;
        for entry in &mut entries {
            // Some file systems report the kind only when asked for it.
            if entry.kind == EntryKind::Other
                && let Ok(stat) = Stat::of_entry(&open, &entry.name)
            {
                entry.kind = EntryKind::of(stat.kind);
            }
        }
        let mut rules = directory.rules.clone();
        if directory.mode == IgnoreMode::Apply {
            let may_have_rules = |entry: &DirectoryEntry| {
                matches!(entry.name.as_bytes(), b".ignore" | b".gitignore" | b".git")
            };
            if entries.iter().any(may_have_rules) {
                rules = IgnoreRules::read_in(self, path, rules);
            }
        }
        let hidden = root.hidden_paths();
        entries.retain(|entry| {
            let is_hidden = hidden.contains(&entry.path.relative);
            let is_ignored = rules
                .as_ref()
                .is_some_and(|rules| rules.ignores(&self.absolute_path(&entry.path), entry.kind));
            entry.name != OsStr::new(".git") && !is_hidden && !is_ignored
        });
        let all = entries.len();
        entries.retain(|entry| !self.leaves_out(&entry.path));
        let left_out = all - entries.len();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Listing { entries, is_cut, left_out, mode: directory.mode, rules })
    }

    /// What a link leads to, if that is inside and can be opened.
    pub(crate) fn link_target_kind(&self, path: &WorkspacePath) -> Option<EntryKind> {
        let opened = self.root(path).open_any(&path.relative, Links::Followed);
        let (_, stat) = opened.ok()?;
        match EntryKind::of(stat.kind) {
            kind @ (EntryKind::File | EntryKind::Directory) => Some(kind),
            EntryKind::Link | EntryKind::Other => None,
        }
    }
}

impl Listing {
    /// An entry as a directory to list, if it is one.
    pub(crate) fn subdirectory(&self, entry: &DirectoryEntry) -> Option<Directory> {
        (entry.kind == EntryKind::Directory).then(|| Directory {
            path: entry.path.clone(),
            mode: self.mode,
            rules: self.rules.clone(),
        })
    }
}

impl EntryKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

fn read_entries(
    mut directory: Dir,
    path: &WorkspacePath,
) -> Result<(Vec<DirectoryEntry>, bool), Errno> {
    let mut entries = Vec::new();
    while let Some(entry) = directory.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if entries.len() == ENTRIES_MAX {
            return Ok((entries, true));
        }
        entries.push(DirectoryEntry {
            path: path.child(name),
            name: name.to_owned(),
            kind: EntryKind::of(entry.file_type()),
        });
    }
    Ok((entries, false))
}
