//! Where sessions may work: beneath the host's roots, and never in the host's own directories, also where those lie beneath
//! a root.
//!
//! Promises: a directory is judged by what was opened, not by its name: links are followed first, and a name that leads
//! elsewhere later is judged again when it is opened again.
//! Must not know: what directories are opened for.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::confined;
use crate::{OpenError, Workspace};

/// What confines working directories. A handle: clones share it.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    /// Without links. None: any directory will do.
    roots: Option<Arc<[PathBuf]>>,
    hidden: Vec<Arc<HiddenDirectory>>,
}

/// A directory of which nothing is opened.
#[derive(Debug)]
pub(crate) struct HiddenDirectory(OwnedFd);

impl Confinement {
    /// None: for whoever opens directories that the user names himself.
    pub fn none() -> Self {
        Self::default()
    }

    /// Working directories must be one of these or lie beneath one.
    pub fn within(roots: &[PathBuf]) -> std::io::Result<Self> {
        let roots =
            roots.iter().map(std::fs::canonicalize).collect::<std::io::Result<Vec<PathBuf>>>()?;
        Ok(Self { roots: Some(roots.into()), hidden: Vec::new() })
    }

    /// Nothing in this directory is opened, and no working directory lies in it.
    pub fn hiding(mut self, directory: &Path) -> std::io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
        self.hidden.push(Arc::new(HiddenDirectory(open)));
        Ok(self)
    }

    /// Whether these working directories, `file:` URIs, may be used; one that cannot be opened at all is no reason
    /// against the others. Blocks.
    pub fn check(&self, working_directories: &[String]) -> Result<(), OpenError> {
        let (_, errors) = Workspace::open_available(working_directories, self);
        let mut errors = errors.into_iter();
        match errors.find(|error| matches!(error, OpenError::NotAllowed { .. })) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Whether a directory without links may be used: it lies in a root, and not in what is hidden.
    pub(crate) fn allows(&self, real_path: &Path) -> bool {
        let is_inside = self.roots.is_none() || self.root_of(real_path).is_some();
        let mut hidden = self.hidden.iter();
        // Where it cannot be told, it may not.
        is_inside && hidden.all(|hidden| matches!(hidden.contains(real_path), Ok(false)))
    }

    /// The root that a directory without links lies in, the outermost if there are several.
    pub(crate) fn root_of(&self, real_path: &Path) -> Option<&Path> {
        let roots = self.roots.iter().flat_map(|roots| roots.iter());
        let around = roots.filter(|root| real_path.starts_with(root));
        let outermost = around.min_by_key(|root| root.as_os_str().len());
        outermost.map(PathBuf::as_path)
    }

    /// Whether an open directory may be worked in; `path` is how the session names it. Returns its real path.
    pub(crate) fn admit(&self, open: &impl AsFd, path: &Path) -> Result<PathBuf, OpenError> {
        let real_path =
            confined::real_path(open).map_err(|errno| OpenError::unopenable(path, errno))?;
        let is_inside = self.roots.is_none() || self.root_of(&real_path).is_some();
        match self.hides(&real_path) {
            Ok(false) if is_inside => Ok(real_path),
            Ok(_) => Err(OpenError::NotAllowed {
                path: path.display().to_string(),
                roots: self.display_roots(),
            }),
            Err(errno) => Err(OpenError::unopenable(path, errno)),
        }
    }

    /// What must not be opened beneath a directory, if that is around it.
    pub(crate) fn hidden_in(&self, real_path: &Path) -> Vec<Arc<HiddenDirectory>> {
        // Where it cannot be told, every open is checked.
        let is_around = |hidden: &&Arc<HiddenDirectory>| {
            hidden.real_path().map_or(true, |path| path.starts_with(real_path))
        };
        self.hidden.iter().filter(is_around).cloned().collect()
    }

    /// Whether a path without links is hidden, or lies in what is.
    pub(crate) fn hides(&self, real_path: &Path) -> Result<bool, Errno> {
        is_in_any(&self.hidden, real_path)
    }

    /// Whether something that is hidden is a path without links, or lies in it.
    pub(crate) fn is_around_hidden(&self, real_path: &Path) -> Result<bool, Errno> {
        for hidden in &self.hidden {
            if hidden.real_path()?.starts_with(real_path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a path without links is a root, or has one in it.
    pub(crate) fn has_root_in(&self, real_path: &Path) -> bool {
        let mut roots = self.roots.iter().flat_map(|roots| roots.iter());
        roots.any(|root| root.starts_with(real_path))
    }

    fn display_roots(&self) -> String {
        let roots: Vec<String> = self
            .roots
            .iter()
            .flat_map(|roots| roots.iter())
            .map(|root| root.display().to_string())
            .collect();
        roots.join(", ")
    }
}

/// Whether a path without links is one of these directories or lies beneath one.
pub(crate) fn is_in_any(hidden: &[Arc<HiddenDirectory>], real_path: &Path) -> Result<bool, Errno> {
    for hidden in hidden {
        if hidden.contains(real_path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl HiddenDirectory {
    /// Whether a path without links is this directory or lies beneath it.
    fn contains(&self, real_path: &Path) -> Result<bool, Errno> {
        Ok(real_path.starts_with(self.real_path()?))
    }

    /// Where it is now: it may have been moved with a directory around it.
    pub(crate) fn real_path(&self) -> Result<PathBuf, Errno> {
        confined::real_path(&self.0)
    }
}
