//! A session's working directories: opened once, and what the session remembers of the files in them.
//!
//! Promises: the directories stay the ones that were opened, whatever is renamed later. What was read is remembered as
//! long as the process runs, so that nothing is overwritten that changed since.
//! Must not know: what files are opened for.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use wire::file_uri;

use crate::confined::{self, Links, Stat};
use crate::confinement::{HiddenDirectory, is_in_any};
use crate::discovery::SkillBody;
use crate::error::{errno_to_file_error, io_to_file_error};
use crate::file_filter::FileFilter;
use crate::write::{CallProposal, FileHistory};
use crate::{Confinement, FileError, OpenError, WorkspacePath};

/// Skills that a session gets again as it got them first.
const SKILL_BODIES_MAX: usize = 64;

/// The working directories of a session. A handle: clones share what is remembered.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub(crate) shared: Arc<RootsShared>,
    /// What lists and searches leave out.
    pub(crate) filter: Option<FileFilter>,
    /// Of one call, if the handle was made by [`Workspace::for_call`].
    pub(crate) proposal: CallProposal,
}

#[derive(Debug)]
pub(crate) struct RootsShared {
    pub(crate) roots: Vec<Root>,
    history: Mutex<FileHistory>,
    /// Skills by the URIs of their files, as the session first read them.
    skill_bodies: Mutex<BTreeMap<String, Arc<SkillBody>>>,
    /// Ids of customizations that the session switched off.
    switched_off: Mutex<BTreeSet<String>>,
    /// Plugins that clients brought, in one of the readable roots.
    plugins: Mutex<Vec<ClientPluginCopy>>,
    /// Held from looking at a file to replacing it: two calls must not replace what neither of them saw.
    writing: Mutex<()>,
}

/// A working directory, opened once.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) directory: OwnedFd,
    /// As the session names it.
    pub(crate) path: PathBuf,
    /// The same without links: whoever ran `pwd` knows it by that.
    pub(crate) real_path: PathBuf,
    pub(crate) role: RootUse,
    /// What must not be opened beneath it.
    hidden: Vec<Arc<HiddenDirectory>>,
}

/// What a directory is there for. Only working directories may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootUse {
    Working,
    /// Copies of attachments (C-032), and of plugins that clients brought.
    Attachments,
    /// What the user keeps for agents in all projects.
    UserAgents,
    /// A plugin that the user named.
    Plugin,
}

/// A plugin that a client of the session brought, and where its copy lies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientPluginCopy {
    pub client_id: String,
    /// As the client calls it.
    pub name: String,
    /// The client's own URI of it.
    pub uri: String,
    pub directory: PathBuf,
}

/// Directories that the user keeps for agents, wherever they lie: read and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserDirectories {
    /// `~/.agents`
    pub agents: Option<PathBuf>,
    pub plugins: Vec<PathBuf>,
}

impl UserDirectories {
    fn roles(&self) -> impl Iterator<Item = (&Path, RootUse)> {
        let agents = self.agents.iter().map(|path| (path.as_path(), RootUse::UserAgents));
        let plugins = self.plugins.iter().map(|path| (path.as_path(), RootUse::Plugin));
        agents.chain(plugins)
    }
}

/// A directory for a process to start in.
#[derive(Debug)]
pub struct CommandDirectory {
    open: OwnedFd,
    /// As the session names it.
    pub name: PathBuf,
}

impl CommandDirectory {
    /// Valid for a child of this process, as long as this value lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.open.as_raw_fd()))
    }
}

impl Workspace {
    /// Opens the directories that `file:` URIs name, the default one first.
    pub fn open(
        working_directories: &[String],
        confinement: &Confinement,
    ) -> Result<Self, OpenError> {
        let user = UserDirectories::default();
        Self::open_with_readable(working_directories, None, &user, confinement)
    }

    /// The same, with further directories that may be read but not changed, wherever they lie: copies of attachments (C-032)
    /// and what the user keeps for agents, as far as it is there.
    pub fn open_with_readable(
        working_directories: &[String],
        attachments: Option<&Path>,
        user: &UserDirectories,
        confinement: &Confinement,
    ) -> Result<Self, OpenError> {
        let mut roots = working_directories
            .iter()
            .map(|uri| Root::open(uri, confinement))
            .collect::<Result<Vec<Root>, _>>()?;
        if let Some(path) = attachments.filter(|_| !roots.is_empty()) {
            roots.push(Root::open_readable(path, RootUse::Attachments)?);
        }
        if !roots.is_empty() {
            // Most users have none; whoever searches them says what is wrong with one that is there.
            let user = user.roles().map(|(path, role)| Root::open_readable(path, role));
            roots.extend(user.flatten());
        }
        Ok(Self::new(roots))
    }

    /// Opens those directories that can be opened, and returns why the others cannot.
    pub fn open_available(
        working_directories: &[String],
        confinement: &Confinement,
    ) -> (Self, Vec<OpenError>) {
        Self::open_available_with(
            working_directories,
            &UserDirectories::default(),
            &[],
            confinement,
        )
    }

    /// The same with the user's directories, and with plugins that clients brought.
    pub(crate) fn open_available_with(
        working_directories: &[String],
        user: &UserDirectories,
        brought: &[ClientPluginCopy],
        confinement: &Confinement,
    ) -> (Self, Vec<OpenError>) {
        let mut errors = Vec::new();
        let mut roots = Vec::new();
        let working = working_directories.iter().map(|uri| Root::open(uri, confinement));
        // The user need not have any of them but those he named.
        let user = user
            .roles()
            .filter(|(path, role)| *role == RootUse::Plugin || path.exists())
            .map(|(path, role)| Root::open_readable(path, role));
        let brought_roots = brought
            .iter()
            .map(|plugin| Root::open_readable(&plugin.directory, RootUse::Attachments));
        for root in working.chain(user).chain(brought_roots) {
            match root {
                Ok(root) => roots.push(root),
                Err(error) => errors.push(error),
            }
        }
        let workspace = Self::new(roots);
        workspace.use_plugins(brought.to_vec());
        (workspace, errors)
    }

    fn new(roots: Vec<Root>) -> Self {
        Self {
            shared: Arc::new(RootsShared {
                roots,
                history: Mutex::default(),
                skill_bodies: Mutex::default(),
                switched_off: Mutex::default(),
                plugins: Mutex::default(),
                writing: Mutex::default(),
            }),
            filter: None,
            proposal: CallProposal::default(),
        }
    }

    /// Whether its directories are still the ones that their names lead to, and may still be worked in.
    pub fn is_current(&self, confinement: &Confinement) -> bool {
        let is_current = |root: &Root| {
            let uri = file_uri::uri_of(root.path.as_os_str().as_bytes());
            let confinement = match root.role {
                RootUse::Working => confinement,
                RootUse::Attachments | RootUse::UserAgents | RootUse::Plugin => {
                    &Confinement::none()
                }
            };
            let now = Root::open(&uri, confinement);
            now.is_ok_and(|now| Stat::is_same_file(&now.directory, &root.directory))
        };
        self.shared.roots.iter().all(is_current)
    }

    /// Where processes start: the first directory, the one that was opened, not whatever has its name by now.
    pub fn command_directory(&self) -> Result<CommandDirectory, FileError> {
        let root = self.shared.roots.first().ok_or(FileError::NoWorkingDirectory)?;
        let failed = |error| io_to_file_error(&error, &root.path.display().to_string());
        Ok(CommandDirectory {
            open: root.directory.try_clone().map_err(failed)?,
            name: root.path.clone(),
        })
    }

    /// The same for a directory inside one of the working directories; it is held open as it is now.
    pub fn command_directory_at(
        &self,
        path: &WorkspacePath,
    ) -> Result<CommandDirectory, FileError> {
        let root = self.root(path);
        if root.role != RootUse::Working {
            return Err(FileError::OutsideRoots {
                path: self.display_path(path),
                roots: "commands run in the working directories alone".to_owned(),
            });
        }
        let failed = |errno| errno_to_file_error(errno, &self.display_path(path));
        let open = if path.relative.as_os_str().is_empty() {
            root.directory
                .try_clone()
                .map_err(|error| io_to_file_error(&error, &root.path.display().to_string()))?
        } else {
            root.open_directory(&path.relative, Links::Followed).map_err(failed)?
        };
        Ok(CommandDirectory { open, name: root.path.join(&path.relative) })
    }

    pub(crate) fn root(&self, path: &WorkspacePath) -> &Root {
        &self.shared.roots[path.root]
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, FileHistory> {
        self.shared.history.lock()
    }

    /// The files of the working directories that the session has read or written, as they are called in them.
    pub fn known_files(&self) -> Vec<String> {
        let history = self.history();
        let known = history
            .known()
            .filter(|path| self.root(path).role == RootUse::Working)
            .filter_map(|path| Some(path.relative.to_str()?.to_owned()));
        known.collect()
    }

    /// Keeps other calls from replacing files until the guard is dropped.
    pub(crate) fn lock_writes(&self) -> MutexGuard<'_, ()> {
        self.shared.writing.lock()
    }

    /// Leaves these customizations out from now on, by ids.
    pub fn switch_off(&self, ids: BTreeSet<String>) {
        *self.shared.switched_off.lock() = ids;
    }

    /// Uses these plugins of clients from now on, and no others.
    pub fn use_plugins(&self, brought: Vec<ClientPluginCopy>) {
        *self.shared.plugins.lock() = brought;
    }

    pub(crate) fn plugins(&self) -> Vec<ClientPluginCopy> {
        self.shared.plugins.lock().clone()
    }

    /// A directory that lies in a root, or is it; `None` if it lies elsewhere.
    pub(crate) fn path_in_root(
        &self,
        root: &WorkspacePath,
        directory: &Path,
    ) -> Option<WorkspacePath> {
        let inside = directory.strip_prefix(&self.root(root).path).ok()?;
        Some(root.with_relative(inside.to_owned()))
    }

    pub(crate) fn switched_off(&self) -> BTreeSet<String> {
        self.shared.switched_off.lock().clone()
    }

    /// A skill as the session read it before.
    pub(crate) fn remembered_skill(&self, uri: &str) -> Option<Arc<SkillBody>> {
        self.shared.skill_bodies.lock().get(uri).cloned()
    }

    /// Remembers a skill, unless another call was faster; returns the one that is remembered.
    pub(crate) fn remember_skill(&self, uri: &str, body: SkillBody) -> Arc<SkillBody> {
        let mut bodies = self.shared.skill_bodies.lock();
        if let Some(first) = bodies.get(uri) {
            return Arc::clone(first);
        }
        let body = Arc::new(body);
        if bodies.len() < SKILL_BODIES_MAX {
            bodies.insert(uri.to_owned(), Arc::clone(&body));
        }
        body
    }
}

/// Of a directory that cannot be opened: whether what is there on the way to it may be worked in. Nothing is disclosed about
/// what lies elsewhere.
fn check_nearest(path: &Path, confinement: &Confinement) -> Result<(), OpenError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    for above in path.ancestors().skip(1) {
        if let Ok(open) = rustix::fs::openat(CWD, above, flags, Mode::empty()) {
            return confinement.admit(&open, path).map(drop);
        }
    }
    Ok(())
}

impl Root {
    fn open(uri: &str, confinement: &Confinement) -> Result<Self, OpenError> {
        let path = file_uri::path_of(uri).ok_or_else(|| OpenError::NotLocal(uri.to_owned()))?;
        let path = PathBuf::from(OsString::from_vec(path));
        let unopenable = |errno: Errno| OpenError::unopenable(&path, errno);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match rustix::fs::openat(CWD, &path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(errno) => {
                check_nearest(&path, confinement)?;
                return Err(unopenable(errno));
            }
        };
        let real_path = confinement.admit(&directory, &path)?;
        match confined::open(&directory, Path::new("."), OFlags::PATH, Links::Refused) {
            Ok(_) => {}
            Err(Errno::NOSYS | Errno::PERM) => return Err(OpenError::Unconfined),
            Err(errno) => return Err(unopenable(errno)),
        }
        Ok(Self {
            hidden: confinement.hidden_in(&real_path),
            directory,
            path,
            real_path,
            role: RootUse::Working,
        })
    }

    /// A directory by its name without links, wherever it lies; an error if that leads elsewhere by now. What is hidden stays
    /// hidden.
    pub(crate) fn open_exactly(path: &Path, confinement: &Confinement) -> Result<Self, OpenError> {
        let uri = file_uri::uri_of(path.as_os_str().as_bytes());
        let root = Self::open(&uri, &Confinement::none())?;
        if root.real_path != path {
            return Err(OpenError::unopenable(path, Errno::AGAIN));
        }
        Ok(Self { hidden: confinement.hidden_in(&root.real_path), ..root })
    }

    /// A directory that may be read, wherever it lies.
    fn open_readable(path: &Path, role: RootUse) -> Result<Self, OpenError> {
        let uri = file_uri::uri_of(path.as_os_str().as_bytes());
        let root = Self::open(&uri, &Confinement::none())?;
        Ok(Self { role, ..root })
    }

    /// Opens a path beneath this directory.
    pub(crate) fn open_path(
        &self,
        path: &Path,
        flags: OFlags,
        links: Links,
    ) -> Result<OwnedFd, Errno> {
        let open = confined::open(&self.directory, path, flags, links)?;
        self.check_visible(&open)?;
        Ok(open)
    }

    /// Opens a directory beneath this one.
    pub(crate) fn open_directory(&self, path: &Path, links: Links) -> Result<OwnedFd, Errno> {
        let open = confined::open_directory(&self.directory, path, links)?;
        self.check_visible(&open)?;
        Ok(open)
    }

    /// Opens anything beneath this directory for reading, with its metadata at that moment.
    pub(crate) fn open_any(&self, path: &Path, links: Links) -> Result<(File, Stat), Errno> {
        let (file, stat) = confined::open_any(&self.directory, path, links)?;
        self.check_visible(&file)?;
        Ok((file, stat))
    }

    /// What is hidden cannot be used, by whatever name it was opened.
    fn check_visible(&self, open: &impl AsFd) -> Result<(), Errno> {
        if self.hidden.is_empty() {
            return Ok(()); // nothing beneath this directory is hidden
        }
        if is_in_any(&self.hidden, &confined::real_path(open)?)? {
            Err(Errno::ACCESS)
        } else {
            Ok(())
        }
    }

    /// The paths of what must not be shown beneath this directory.
    pub(crate) fn hidden_paths(&self) -> Vec<PathBuf> {
        let Ok(root) = confined::real_path(&self.directory) else {
            return Vec::new(); // gone: nothing beneath it can be opened
        };
        let hidden = self.hidden.iter();
        let hidden = hidden.filter_map(|hidden| hidden.real_path().ok());
        let beneath = hidden.filter_map(|path| Some(path.strip_prefix(&root).ok()?.to_owned()));
        beneath.collect()
    }

    /// The path of an open file beneath this directory, without links.
    pub(crate) fn real_path_inside(&self, file: &impl AsFd) -> Option<PathBuf> {
        let real = confined::real_path(file).ok()?;
        let root = confined::real_path(&self.directory).ok()?;
        Some(real.strip_prefix(root).ok()?.to_owned())
    }
}
