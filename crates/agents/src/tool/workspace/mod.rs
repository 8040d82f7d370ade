//! The session's working directories: what tools may touch, and what they remember of it.
//!
//! Promises: every open goes through `beneath`, at the moment of use; a name that was checked is never trusted later.
//! What was read is remembered as long as the host runs, so that nothing is overwritten that changed since.
//! Must not know: tools, models, who consents to what.

mod beneath;
mod contents;
mod folder;
mod given;
mod glance;
mod ignored;
mod memory;
mod replace;
mod survey;
mod target;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use wire::file_uri;

pub(super) use contents::{Contents, FILE_BYTES_MAX, digest_of, is_binary};
pub(crate) use folder::{Entry, Folder, Kind, Listing, Wanted};
pub(crate) use given::Unopened;
pub(super) use memory::Extent;
pub(super) use target::Target;

use super::ToolError;
use beneath::Links;
use memory::Memory;

/// The working directories of a session. A handle: clones share what is remembered.
#[derive(Debug, Clone)]
pub struct Workspace {
    shared: Arc<Shared>,
    hidden_variables: Arc<[String]>,
}

#[derive(Debug)]
struct Shared {
    roots: Vec<Root>,
    memory: Mutex<Memory>,
    /// Texts the session was given once and is given again as they were, by their names.
    given: Mutex<BTreeMap<String, Arc<str>>>,
    /// Held from looking at a file to replacing it: two calls must not replace what neither of them saw.
    replacing: Mutex<()>,
}

/// A working directory, opened once.
#[derive(Debug)]
struct Root {
    directory: OwnedFd,
    /// As the session names it.
    path: PathBuf,
    /// The same without links: a model may have it from `pwd`.
    real: PathBuf,
    access: Access,
}

/// What tools may do in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Full,
    Read,
}

/// A directory for a process to begin in.
#[derive(Debug)]
pub(super) struct CommandDirectory {
    open: OwnedFd,
    /// What it is called.
    pub(super) name: PathBuf,
}

impl CommandDirectory {
    /// Good for a child of this process, while this is kept.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.open.as_raw_fd()))
    }
}

/// Why a session's working directories cannot be used; the user hears it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    #[error("the working directory {0} is no `file:` URI of this machine")]
    NotLocal(String),
    #[error("the working directory {path} cannot be opened: {why}")]
    Unopenable { path: String, why: String },
    #[error("tools need openat2 to stay inside the working directories: Linux 5.6 or later")]
    Unconfined,
}

/// A name inside a working directory, checked as a name only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    root: usize,
    /// Without `.` and `..`; empty for the directory itself.
    path: PathBuf,
}

impl Workspace {
    /// Opens the directories that `file:` URIs name, the default one first.
    pub fn open(working_directories: &[String]) -> Result<Self, WorkspaceError> {
        Self::open_beside(working_directories, None)
    }

    /// The same, with one more directory that tools may read and nothing else: copies of attachments (C-032).
    pub fn open_beside(
        working_directories: &[String],
        readable: Option<&Path>,
    ) -> Result<Self, WorkspaceError> {
        let roots = working_directories.iter().map(|uri| Root::open(uri));
        let mut roots = roots.collect::<Result<Vec<Root>, _>>()?;
        if let Some(path) = readable.filter(|_| !roots.is_empty()) {
            let mut root = Root::open(&file_uri::uri_of(path.as_os_str().as_bytes()))?;
            root.access = Access::Read;
            roots.push(root);
        }
        Ok(Self {
            shared: Arc::new(Shared {
                roots,
                memory: Mutex::default(),
                given: Mutex::default(),
                replacing: Mutex::default(),
            }),
            hidden_variables: Arc::default(),
        })
    }

    /// Environment variables that commands do not get to see, beside those whose names tell that they hold a secret.
    pub fn without_variables(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.hidden_variables = names.into_iter().collect();
        self
    }

    pub(super) fn hidden_variables(&self) -> &[String] {
        &self.hidden_variables
    }

    /// Where a path given by a model leads: relative to the first directory, or absolute inside any of them.
    pub(super) fn place(&self, path: &str) -> Result<Place, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError("`path` is no path".to_owned()));
        }
        let path = Path::new(path);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(ToolError(format!(
                "{} goes up by `..`; give it from a working directory down, without `..`",
                path.display()
            )));
        }
        let (root, inside) = if path.is_absolute() {
            self.inside(path).ok_or_else(|| self.outside(path))?
        } else if self.shared.roots.is_empty() {
            return Err(no_directory());
        } else {
            (0, path)
        };
        let normal = inside
            .components()
            .filter(|part| matches!(part, Component::Normal(_)));
        let path = normal.collect();
        Ok(Place { root, path })
    }

    fn inside<'a>(&self, path: &'a Path) -> Option<(usize, &'a Path)> {
        let roots = self.shared.roots.iter().enumerate();
        roots
            .flat_map(|(at, root)| [(at, &root.path), (at, &root.real)])
            .filter_map(|(at, root)| Some((at, path.strip_prefix(root).ok()?)))
            .min_by_key(|(_, inside)| inside.as_os_str().len())
    }

    fn outside(&self, path: &Path) -> ToolError {
        let roots: Vec<String> = self.shared.roots.iter().map(Root::shown).collect();
        if roots.is_empty() {
            return no_directory();
        }
        let (path, roots) = (path.display(), roots.join(", "));
        ToolError(format!(
            "{path} is outside the working directories ({roots}); only what is in them can be used"
        ))
    }

    fn root(&self, place: &Place) -> &Root {
        &self.shared.roots[place.root]
    }

    /// How a place is called towards models and people: relative to the first directory, absolute in others. What is
    /// shown can be given back as a path.
    pub(crate) fn shown(&self, place: &Place) -> String {
        let path = match place.root {
            0 if place.path.as_os_str().is_empty() => PathBuf::from("."),
            0 => place.path.clone(),
            _ => self.absolute(place),
        };
        path.to_string_lossy().into_owned()
    }

    /// The path of a place as the session would name it.
    pub(crate) fn absolute(&self, place: &Place) -> PathBuf {
        self.root(place).path.join(&place.path)
    }

    /// The working directory a place is in.
    pub(super) fn root_path(&self, place: &Place) -> &Path {
        &self.root(place).path
    }

    pub(crate) fn uri(&self, place: &Place) -> String {
        file_uri::uri_of(self.absolute(place).as_os_str().as_bytes())
    }

    /// Where commands begin: the first directory, the one that was opened, not whatever has its name by now.
    pub(super) fn command_directory(&self) -> Result<CommandDirectory, ToolError> {
        let root = self.shared.roots.first().ok_or_else(no_directory)?;
        let failed = |error| ToolError(format!("no command can be run now: {error}"));
        Ok(CommandDirectory {
            open: root.directory.try_clone().map_err(failed)?,
            name: root.path.clone(),
        })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        let memory = self.shared.memory.lock();
        memory.unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps other calls from replacing files until it is dropped.
    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        let replacing = self.shared.replacing.lock();
        replacing.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Root {
    fn open(uri: &str) -> Result<Self, WorkspaceError> {
        let path =
            file_uri::path_of(uri).ok_or_else(|| WorkspaceError::NotLocal(uri.to_owned()))?;
        let path = PathBuf::from(OsString::from_vec(path));
        let unopenable = |errno: Errno| WorkspaceError::Unopenable {
            path: path.display().to_string(),
            why: std::io::Error::from(errno).to_string(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, &path, flags, Mode::empty()).map_err(unopenable)?;
        match beneath::open(&directory, Path::new("."), OFlags::PATH, Links::Refused) {
            Ok(_) => {}
            Err(Errno::NOSYS | Errno::PERM) => return Err(WorkspaceError::Unconfined),
            Err(errno) => return Err(unopenable(errno)),
        }
        let real = beneath::real_path(&directory).unwrap_or_else(|_| path.clone());
        Ok(Self {
            directory,
            path,
            real,
            access: Access::Full,
        })
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Where an open file lies beneath this directory, without links.
    fn real_inside(&self, file: &impl AsFd) -> Option<PathBuf> {
        let real = beneath::real_path(file).ok()?;
        let root = beneath::real_path(&self.directory).ok()?;
        Some(real.strip_prefix(root).ok()?.to_owned())
    }
}

impl Place {
    /// A place inside this one.
    pub(super) fn join(&self, name: &OsStr) -> Self {
        debug_assert!(!name.as_bytes().contains(&b'/'));
        Self {
            root: self.root,
            path: self.path.join(name),
        }
    }

    fn at(&self, path: PathBuf) -> Self {
        let root = self.root;
        Self { root, path }
    }
}

fn no_directory() -> ToolError {
    ToolError("this session has no working directory; no file or command can be used".to_owned())
}
