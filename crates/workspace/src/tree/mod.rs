//! Looks at the working directories, and what changed between two looks: for whatever changes files without saying so.
//!
//! Promises: in a git repository one call of `git status` per look, and content only of files that differ from the last commit; elsewhere
//! the files themselves, within bounds. Links are never followed; what they point to is never read. What a look could not see is said.
//! Must not know: who changed files, and why.

mod committed;
mod compare;
mod entry;
mod plain;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wire::Digest;

pub use compare::{TreeChange, TreeChanges};
use entry::EntryReader;
pub use entry::{FileSide, LINK, SUBMODULE, is_link};

use crate::roots::RootUse;
use crate::{Cancellation, Confinement, GitEntry, Repository, Workspace};

/// Stores a content before it is needed; an error if it cannot be.
pub type KeepContent<'a> = dyn FnMut(&Digest, &[u8]) -> Result<(), String> + 'a;

/// The working directories at one moment.
#[derive(Debug, Clone, Default)]
pub struct TreeLook {
    roots: BTreeMap<usize, RootLook>,
    /// What could not be looked at, and why.
    pub problems: Vec<String>,
    /// When it was begun, in seconds and nanoseconds since 1970, by the clock that files are stamped with.
    pub(crate) begun: (i64, u32),
}

/// One working directory.
#[derive(Debug, Clone)]
pub(crate) struct RootLook {
    source: TreeSource,
    /// By their paths beneath the directory: in a repository those that differ from the last commit.
    files: BTreeMap<PathBuf, FileSide>,
}

#[derive(Debug, Clone)]
pub(crate) enum TreeSource {
    Repository(Box<RepositoryLook>),
    Plain,
}

/// A repository at one moment.
#[derive(Debug, Clone)]
pub(crate) struct RepositoryLook {
    repository: Repository,
    head: Option<String>,
    /// What differs from the last commit, by paths beneath the working directory.
    entries: BTreeMap<PathBuf, GitEntry>,
}

impl Workspace {
    /// Looks at the working directories, and has the content kept that a later comparison needs.
    pub fn look_at_tree(
        &self,
        confinement: &Confinement,
        keep: &mut KeepContent<'_>,
        cancellation: &Cancellation,
    ) -> TreeLook {
        let begun = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let begun = begun.unwrap_or_default();
        let mut look = TreeLook {
            begun: (
                i64::try_from(begun.as_secs()).unwrap_or(i64::MAX),
                begun.subsec_nanos(),
            ),
            ..TreeLook::default()
        };
        let mut reader = EntryReader::new(keep);
        for (index, root) in self.shared.roots.iter().enumerate() {
            if root.role != RootUse::Working || self.is_inside_another(index) {
                continue; // nothing of it is changed, or it is looked at already
            }
            match self.look_at_root(index, confinement, &mut reader, cancellation) {
                Ok(seen) => {
                    look.roots.insert(index, seen);
                }
                Err(problem) => look.problems.push(problem),
            }
        }
        look.problems.extend(reader.problem());
        look
    }

    fn look_at_root(
        &self,
        index: usize,
        confinement: &Confinement,
        reader: &mut EntryReader<'_, '_>,
        cancellation: &Cancellation,
    ) -> Result<RootLook, String> {
        let root = &self.shared.roots[index];
        let found = Repository::find(&root.real_path, confinement, cancellation);
        let found = found.map_err(|error| error.to_string())?;
        let Some(repository) = found else {
            let files = plain::read(self, index, reader, cancellation);
            return files.map(|files| RootLook {
                source: TreeSource::Plain,
                files,
            });
        };
        let status = repository.status(cancellation);
        let status = status.map_err(|error| error.to_string())?;
        let entries = by_path(&repository, status.entries);
        let mut files = BTreeMap::new();
        for (path, entry) in &entries {
            if cancellation.is_cancelled() {
                return Err("cancelled".to_owned());
            }
            let side = match entry.is_submodule() {
                true => submodule(entry.mode),
                false => reader.read(root, path),
            };
            files.extend(side.map(|side| (path.clone(), side)));
        }
        Ok(RootLook {
            source: TreeSource::Repository(Box::new(RepositoryLook {
                repository,
                head: status.head,
                entries,
            })),
            files,
        })
    }

    /// Whether a working directory lies in another one.
    fn is_inside_another(&self, index: usize) -> bool {
        let own = &self.shared.roots[index].real_path;
        let mut others = self.shared.roots.iter().enumerate();
        others.any(|(other, root)| {
            let is_first = other < index || root.real_path != *own;
            other != index
                && is_first
                && root.role == RootUse::Working
                && own.starts_with(&root.real_path)
        })
    }
}

/// Entries by their paths beneath the working directory. A file that is not in the index any more but still there is listed twice, as
/// removed and as new: the entry that knows what the commit has counts, wherever it stands.
fn by_path(repository: &Repository, entries: Vec<GitEntry>) -> BTreeMap<PathBuf, GitEntry> {
    let mut found: BTreeMap<PathBuf, GitEntry> = BTreeMap::new();
    for entry in entries {
        let Some(path) = beneath(repository, &entry.path) else {
            continue; // it lies elsewhere
        };
        let known = found.get(&path);
        let is_tracked = known.is_some_and(|known| known.committed.is_some());
        if !is_tracked || entry.committed.is_some() {
            found.insert(path, entry);
        }
    }
    found
}

/// A path of git as one beneath the working directory; `None` if it lies elsewhere.
fn beneath(repository: &Repository, path: &Path) -> Option<PathBuf> {
    // A repository inside is listed as a directory: it is its own.
    let is_directory = path.as_os_str().as_encoded_bytes().last() == Some(&b'/');
    let absolute = repository.top().join(path);
    let relative = absolute.strip_prefix(repository.directory()).ok()?;
    let is_file = !relative.as_os_str().is_empty() && !is_directory;
    is_file.then(|| relative.to_owned())
}

/// A submodule that is there: it has no content of its own.
fn submodule(mode: u32) -> Option<FileSide> {
    (mode != 0).then_some(FileSide {
        mode: SUBMODULE,
        bytes: 0,
        digest: None,
        changed: (0, 0),
    })
}
