//! Paths inside working directories: from what a caller gives to a root and a path beneath it, and back to what callers
//! and users read.
//!
//! Promises: a [`WorkspacePath`] is a name and no more; whether it leads anywhere, and whether that is inside, is decided
//! each time it is opened.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use wire::file_uri;

use crate::{FileError, Workspace};

/// A path beneath a working directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkspacePath {
    /// Which working directory.
    pub(crate) root: usize,
    /// Empty for the directory itself.
    pub(crate) relative: PathBuf,
}

impl Workspace {
    /// A path as a caller gives it: relative to the first directory, or absolute inside any of them.
    pub fn resolve(&self, path: &str) -> Result<WorkspacePath, FileError> {
        let resolved = self.resolve_reference(path)?;
        let mut parts = Path::new(path).components();
        if parts.any(|part| part == Component::ParentDir) {
            let path = path.to_owned();
            return Err(FileError::ParentSegment { path });
        }
        let parts = resolved.relative.components();
        let relative = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
        Ok(resolved.with_relative(relative))
    }

    /// The same for a reference in a user's message, which may contain `..`: where that leads is decided when it is
    /// opened.
    pub(crate) fn resolve_reference(&self, path: &str) -> Result<WorkspacePath, FileError> {
        if path.is_empty() || path.contains('\0') {
            return Err(FileError::InvalidPath);
        }
        if self.shared.roots.is_empty() {
            return Err(FileError::NoWorkingDirectory);
        }
        let path = Path::new(path);
        let (root, relative) = if path.is_absolute() {
            self.strip_root(path).ok_or_else(|| self.outside(path))?
        } else {
            (0, path)
        };
        Ok(WorkspacePath { root, relative: relative.to_owned() })
    }

    /// The innermost root that an absolute path begins with, and the rest of the path.
    fn strip_root<'a>(&self, path: &'a Path) -> Option<(usize, &'a Path)> {
        let roots = self.shared.roots.iter().enumerate();
        roots
            .flat_map(|(index, root)| [(index, &root.path), (index, &root.real_path)])
            .filter_map(|(index, root)| Some((index, path.strip_prefix(root).ok()?)))
            .min_by_key(|(_, relative)| relative.as_os_str().len())
    }

    fn outside(&self, path: &Path) -> FileError {
        let roots: Vec<String> =
            self.shared.roots.iter().map(|root| root.path.display().to_string()).collect();
        FileError::OutsideRoots { path: path.display().to_string(), roots: roots.join(", ") }
    }

    /// The working directories, the default one first.
    pub(crate) fn root_paths(&self) -> impl Iterator<Item = WorkspacePath> + use<> {
        (0..self.shared.roots.len()).map(|root| WorkspacePath { root, relative: PathBuf::new() })
    }

    /// A path as models and people read it: relative to the first directory, absolute in others. It can be given back
    /// as a path.
    pub fn display_path(&self, path: &WorkspacePath) -> String {
        let path = match path.root {
            0 if path.relative.as_os_str().is_empty() => PathBuf::from("."),
            0 => path.relative.clone(),
            _ => self.absolute_path(path),
        };
        path.to_string_lossy().into_owned()
    }

    /// The absolute path, by the name that the session gives its directory.
    pub(crate) fn absolute_path(&self, path: &WorkspacePath) -> PathBuf {
        self.root(path).path.join(&path.relative)
    }

    pub(crate) fn uri(&self, path: &WorkspacePath) -> String {
        file_uri::uri_of(self.absolute_path(path).as_os_str().as_bytes())
    }
}

impl WorkspacePath {
    /// An entry of this directory.
    pub(crate) fn child(&self, name: &OsStr) -> Self {
        debug_assert!(!name.as_bytes().contains(&b'/'), "a name, not a path");
        self.with_relative(self.relative.join(name))
    }

    /// A path below this one, from a constant of this crate.
    pub(crate) fn join(&self, path: &str) -> Self {
        self.with_relative(self.relative.join(path))
    }

    /// A path below this one that a file names; `None` if it leads elsewhere.
    pub(crate) fn join_inside(&self, path: &str) -> Option<Self> {
        let mut parts = Path::new(path).components();
        let is_inside = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let is_name = !path.is_empty() && !path.contains('\0');
        (is_inside && is_name).then(|| self.join(path))
    }

    /// The directory it is in.
    pub(crate) fn parent(&self) -> Self {
        let parent = self.relative.parent().unwrap_or(Path::new(""));
        self.with_relative(parent.to_owned())
    }

    /// Another path in the same working directory.
    pub(crate) fn with_relative(&self, relative: PathBuf) -> Self {
        let root = self.root;
        Self { root, relative }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Confinement;

    fn open(roots: &[&Path]) -> Workspace {
        let uris: Vec<String> =
            roots.iter().map(|root| root.as_os_str().as_bytes()).map(file_uri::uri_of).collect();
        Workspace::open(&uris, &Confinement::none()).unwrap()
    }

    #[test]
    fn a_displayed_path_resolves_to_the_same_path() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let workspace = open(&[first.path(), second.path()]);
        let absolute = second.path().join("b").display().to_string();
        for (given, displayed) in [
            ("a/./b/", "a/b"),
            (".", "."),
            (&first.path().join("a").display().to_string(), "a"),
            (&first.path().display().to_string(), "."),
            (&absolute, &absolute),
        ] {
            let path = workspace.resolve(given).unwrap();
            assert_eq!(workspace.display_path(&path), displayed, "{given}");
            assert_eq!(workspace.resolve(displayed), Ok(path), "{given}");
        }
    }

    #[test]
    fn a_directory_is_known_by_the_name_of_a_link_and_by_its_own() {
        let parent = tempfile::tempdir().unwrap();
        let (real, link) = (parent.path().join("real"), parent.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let workspace = open(&[&link]);
        for given in [link.join("a"), real.join("a")] {
            let path = workspace.resolve(given.to_str().unwrap()).unwrap();
            assert_eq!(workspace.display_path(&path), "a");
            assert_eq!(workspace.absolute_path(&path), link.join("a"));
        }
    }

    #[test]
    fn paths_that_leave_the_directories_are_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let workspace = open(&[root.path()]);
        let beside = format!("{}x", root.path().display());
        for path in ["/etc/passwd", "/", &beside] {
            let error = workspace.resolve(path).unwrap_err();
            assert!(matches!(error, FileError::OutsideRoots { .. }), "{path}: {error}");
        }
        for path in ["..", "a/../b"] {
            let error = workspace.resolve(path).unwrap_err();
            assert!(matches!(error, FileError::ParentSegment { .. }), "{path}: {error}");
            assert!(workspace.resolve_reference(path).is_ok(), "{path}");
        }
        for path in ["", "a\0b"] {
            assert_eq!(workspace.resolve(path), Err(FileError::InvalidPath));
        }
        let none = open(&[]);
        for path in ["a", "/etc/passwd"] {
            assert_eq!(none.resolve(path), Err(FileError::NoWorkingDirectory));
        }
    }
}
