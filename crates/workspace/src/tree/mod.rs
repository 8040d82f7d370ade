//! Looks at the working directories, and what changed between two looks: for whatever changes files without saying so.
//!
//! Promises: in a git repository one call of `git status` per look, and content only of files that differ from the last commit; elsewhere
//! the files themselves, within bounds. Links are never followed; what they point to is never read. What a look could not see is said.
//! Must not know: who changed files, and why.

mod committed;
mod compare;
#[cfg(test)]
mod earlier_tests;
mod entry;
mod plain;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wire::Digest;

pub use compare::{TreeChange, TreeChanges};
use entry::{EarlierFiles, EntryReader, FileTime};
pub use entry::{FileSide, LINK, SUBMODULE, is_link};

use crate::roots::RootUse;
use crate::{Cancellation, Confinement, GitEntry, GitError, Repository, Workspace};

/// Stores a content before it is needed; an error if it cannot be.
pub type StoreContent<'a> = dyn FnMut(&Digest, &[u8]) -> Result<(), String> + 'a;

/// The working directories at one moment.
#[derive(Debug, Clone, Default)]
pub struct TreeSnapshot {
    roots: BTreeMap<usize, RootSnapshot>,
    /// Working directories that could not be looked at.
    unseen: BTreeMap<usize, Unseen>,
    /// What of the others is not known, and why.
    pub problems: Vec<String>,
    /// The moment before the first file was looked at.
    pub(crate) begun: FileTime,
}

/// Why a working directory could not be looked at.
#[derive(Debug, Clone)]
struct Unseen {
    why: String,
    /// It lies in a repository, as far as can be told.
    is_by_git: bool,
}

/// One working directory.
#[derive(Debug, Clone)]
pub(crate) struct RootSnapshot {
    source: TreeSource,
    /// By their paths beneath the directory: in a repository those that differ from the last commit.
    files: BTreeMap<PathBuf, FileSide>,
}

#[derive(Debug, Clone)]
pub(crate) enum TreeSource {
    Repository(Box<RepositorySnapshot>),
    Plain,
}

/// A repository at one moment.
#[derive(Debug, Clone)]
pub(crate) struct RepositorySnapshot {
    repository: Repository,
    head: Option<String>,
    /// What differs from the last commit, by paths beneath the working directory.
    entries: BTreeMap<PathBuf, GitEntry>,
}

impl TreeSnapshot {
    /// Why working directories could not be looked at; empty if all were.
    pub fn unseen(&self) -> impl Iterator<Item = &str> {
        self.unseen.values().map(|unseen| unseen.why.as_str())
    }

    /// The same as far as git is the reason: it took too long, or could not read its repository.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        let unseen = self.unseen.values();
        let by_git = unseen.filter(|unseen| unseen.is_by_git);
        by_git.map(|unseen| unseen.why.as_str())
    }

    /// The contents that it found, each of which was kept or found by an earlier look.
    pub fn contents(&self) -> impl Iterator<Item = Digest> {
        let files = self.roots.values().flat_map(|root| root.files.values());
        files.filter_map(|side| side.digest)
    }

    fn files_of(&self, root: usize) -> Option<EarlierFiles<'_>> {
        let files = &self.roots.get(&root)?.files;
        let begun = self.begun;
        Some(EarlierFiles { files, begun })
    }

    /// Whether nothing was seen, so that nothing can be compared with it.
    pub fn is_blind(&self) -> bool {
        self.roots.is_empty()
    }
}

impl Workspace {
    /// Looks at the working directories, and has the content kept that a later comparison needs. What an earlier look at the same
    /// directories read, and nobody touched since, is not read and not kept again: the caller still has its contents.
    pub fn look_at_tree(
        &self,
        confinement: &Confinement,
        store: &mut StoreContent<'_>,
        earlier: Option<&TreeSnapshot>,
        cancellation: &Cancellation,
    ) -> TreeSnapshot {
        let mut reader = EntryReader::new(store);
        let mut look = self.look_with_git(confinement, &mut reader, earlier, cancellation);
        for index in self.working_roots() {
            if look.roots.contains_key(&index) || look.unseen.contains_key(&index) {
                continue; // git told of it, or should have
            }
            let known = earlier.and_then(|look| look.files_of(index));
            match plain::read(self, index, &mut reader, known, cancellation) {
                Ok(files) => {
                    let source = TreeSource::Plain;
                    look.roots.insert(index, RootSnapshot { source, files });
                }
                Err(why) => {
                    let is_by_git = false;
                    look.unseen.insert(index, Unseen { why, is_by_git });
                }
            }
        }
        look.problems.extend(reader.problem());
        look
    }

    /// The same of what lies in repositories alone, for a comparison with a commit.
    pub fn look_at_repositories(
        &self,
        confinement: &Confinement,
        store: &mut StoreContent<'_>,
        cancellation: &Cancellation,
    ) -> TreeSnapshot {
        let mut reader = EntryReader::new(store);
        let mut look = self.look_with_git(confinement, &mut reader, None, cancellation);
        look.problems.extend(reader.problem());
        look
    }

    fn look_with_git(
        &self,
        confinement: &Confinement,
        reader: &mut EntryReader<'_, '_>,
        earlier: Option<&TreeSnapshot>,
        cancellation: &Cancellation,
    ) -> TreeSnapshot {
        let begun =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut look = TreeSnapshot {
            begun: FileTime {
                seconds: i64::try_from(begun.as_secs()).unwrap_or(i64::MAX),
                nanoseconds: begun.subsec_nanos(),
            },
            ..TreeSnapshot::default()
        };
        for index in self.working_roots() {
            let known = earlier.and_then(|look| look.files_of(index));
            match self.look_at_repository(index, confinement, reader, known, cancellation) {
                Ok(Some(seen)) => {
                    look.roots.insert(index, seen);
                }
                Ok(None) => {} // it lies in none
                Err(error) => {
                    let (why, is_by_git) = (error.to_string(), true);
                    look.unseen.insert(index, Unseen { why, is_by_git });
                }
            }
        }
        look
    }

    /// The repository that a working directory lies in; `None` if it lies in none.
    fn look_at_repository(
        &self,
        index: usize,
        confinement: &Confinement,
        reader: &mut EntryReader<'_, '_>,
        earlier: Option<EarlierFiles<'_>>,
        cancellation: &Cancellation,
    ) -> Result<Option<RootSnapshot>, GitError> {
        let root = &self.shared.roots[index];
        let found = Repository::find(&root.real_path, confinement, cancellation)?;
        let Some(repository) = found else { return Ok(None) };
        let status = repository.status(cancellation)?;
        let entries = by_path(&repository, status.entries);
        let mut files = BTreeMap::new();
        for (path, entry) in &entries {
            if cancellation.is_cancelled() {
                return Err(GitError::Cancelled);
            }
            let side = if entry.is_submodule() {
                submodule(entry.mode)
            } else {
                reader.read(root, path, earlier)
            };
            files.extend(side.map(|side| (path.clone(), side)));
        }
        Ok(Some(RootSnapshot {
            source: TreeSource::Repository(Box::new(RepositorySnapshot {
                repository,
                head: status.head,
                entries,
            })),
            files,
        }))
    }

    /// The working directories that are looked at: one that lies in another is looked at with it.
    fn working_roots(&self) -> impl Iterator<Item = usize> {
        let roots = self.shared.roots.iter().enumerate();
        let working = roots.filter(|(_, root)| root.role == RootUse::Working);
        let indexes = working.map(|(index, _)| index);
        indexes.filter(|index| !self.is_inside_another(*index))
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
        inode: 0,
    })
}
