//! The working directories as the house itself looks at them: what projects keep there for agents, and which files there
//! are. Not remembered as read: no model asked for it.
//!
//! Promises: every open goes through `beneath`; what is read is bounded; what is not there is no mistake.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use rustix::fs::FileType;
use rustix::io::Errno;

use super::beneath::{self, Links};
use super::{Folder, Kind, Place, Root, Shared, ToolError, Wanted, Workspace, WorkspaceError};

/// Texts that are given again as they were.
const GIVEN_MAX: usize = 64;

/// How a file begins.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) bytes: Vec<u8>,
    /// The file goes on.
    pub(crate) is_cut: bool,
}

impl Workspace {
    /// Opens those directories that can be opened, and says why the others cannot.
    pub(crate) fn open_some(working_directories: &[String]) -> (Self, Vec<WorkspaceError>) {
        let mut unopened = Vec::new();
        let mut roots = Vec::new();
        for uri in working_directories {
            match Root::open(uri) {
                Ok(root) => roots.push(root),
                Err(error) => unopened.push(error),
            }
        }
        let shared = Shared {
            roots,
            memory: Default::default(),
            given: Default::default(),
            replacing: Default::default(),
        };
        let workspace = Self {
            shared: Arc::new(shared),
            hidden_variables: Arc::default(),
        };
        (workspace, unopened)
    }

    /// The working directories, the default one first.
    pub(crate) fn roots(&self) -> impl Iterator<Item = Place> + use<> {
        (0..self.shared.roots.len()).map(|root| Place {
            root,
            path: std::path::PathBuf::new(),
        })
    }

    /// A directory, with everything in it; `None` if it is not there.
    pub(crate) fn folder_if_there(&self, place: &Place) -> Result<Option<Folder>, ToolError> {
        let root = &self.root(place).directory;
        match beneath::open_directory(root, &place.path, Links::Followed) {
            Ok(_) => self.folder(place, Wanted::All).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(beneath::told(errno, &self.shown(place))),
        }
    }

    /// How a file begins; `None` if it is not there. Links to it are followed as far as they stay inside.
    pub(crate) fn beginning(
        &self,
        place: &Place,
        bytes_max: usize,
    ) -> Result<Option<Beginning>, ToolError> {
        let root = &self.root(place).directory;
        let told = |errno| beneath::told(errno, &self.shown(place));
        let file = match beneath::open_any(root, &place.path, Links::Followed) {
            Ok((file, stat)) if stat.kind == FileType::RegularFile => file,
            Ok((_, stat)) if stat.kind == FileType::Directory => return Err(told(Errno::ISDIR)),
            Ok(_) => return Err(beneath::not_regular(&self.shown(place))),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(told(errno)),
        };
        let read = read_beginning(file, bytes_max);
        read.map(Some)
            .map_err(|error| told(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
    }

    /// What a link leads to, if that is inside and can be opened.
    pub(crate) fn kind_behind(&self, place: &Place) -> Option<Kind> {
        let root = &self.root(place).directory;
        let (_, stat) = beneath::open_any(root, &place.path, Links::Followed).ok()?;
        match stat.kind {
            FileType::RegularFile => Some(Kind::File),
            FileType::Directory => Some(Kind::Directory),
            _ => None,
        }
    }

    /// A text that this session was already given under a name.
    pub(crate) fn given(&self, name: &str) -> Option<Arc<str>> {
        let given = self.shared.given.lock();
        let given = given.unwrap_or_else(PoisonError::into_inner);
        given.get(name).cloned()
    }

    /// Remembers a text under a name, unless there is one; what counts is returned.
    pub(crate) fn give(&self, name: &str, text: String) -> Arc<str> {
        let given = self.shared.given.lock();
        let mut given = given.unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = given.get(name) {
            return Arc::clone(first);
        }
        let text: Arc<str> = text.into();
        if given.len() < GIVEN_MAX {
            given.insert(name.to_owned(), Arc::clone(&text));
        }
        text
    }
}

fn read_beginning(file: File, bytes_max: usize) -> std::io::Result<Beginning> {
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() > bytes_max;
    bytes.truncate(bytes_max);
    Ok(Beginning { bytes, is_cut })
}

impl Place {
    /// A place further down, by a path of ours.
    pub(crate) fn below(&self, path: &str) -> Self {
        self.at(self.path.join(path))
    }

    /// The directory it is in.
    pub(crate) fn parent(&self) -> Self {
        self.at(self.path.parent().unwrap_or(Path::new("")).to_owned())
    }

    /// Its path inside its working directory.
    pub(crate) fn inside(&self) -> &Path {
        &self.path
    }
}
