//! What changed between two looks at the working directories.
//!
//! Promises: each path once; what both looks found the same is no change. The content of a file that was as committed comes from
//! the repository. A comparison that is not possible is said.
//! Must not know: who made a change; only when it was made.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags};
use wire::file_uri;

use super::entry::{EntryReader, FileSide, FileTime, SUBMODULE, is_link};
use super::{RepositorySnapshot, RootSnapshot, StoreContent, TreeSnapshot, TreeSource, beneath};
use crate::roots::Root;
use crate::{Cancellation, GitEntry, GitError, Repository, Workspace};

/// Changes of one comparison.
const CHANGES_MAX: usize = 10_000;

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeChanges {
    pub changes: Vec<TreeChange>,
    /// What is not known, and why.
    pub problems: Vec<String>,
}

/// A path at which something else lies than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// `file:` URI, by the name that the session gives its directory.
    pub uri: String,
    pub before: Option<FileSide>,
    pub after: Option<FileSide>,
    /// How many directories were made for it.
    pub new_directories: usize,
    /// When the last change was made, as far as that can be told: in seconds and nanoseconds since 1970.
    pub made_at: (i64, u32),
}

impl Workspace {
    /// What changed from one look to the next.
    pub fn compare_looks(
        &self,
        before: &TreeSnapshot,
        after: &TreeSnapshot,
        store: &mut StoreContent<'_>,
        cancellation: &Cancellation,
    ) -> TreeChanges {
        let mut compared = TreeChanges::default();
        let mut reader = EntryReader::new(store);
        for (index, now) in &after.roots {
            let (Some(root), Some(then)) = (self.shared.roots.get(*index), before.roots.get(index))
            else {
                continue; // why it was not looked at then is said already
            };
            let pairs = match (&then.source, &now.source) {
                (TreeSource::Plain, TreeSource::Plain) => Ok(pair_plain(then, now)),
                (TreeSource::Repository(old), TreeSource::Repository(new)) => {
                    let mut pairing = Pairing {
                        root,
                        then: (then, old),
                        now: (now, new),
                        reader: &mut reader,
                        cancellation,
                    };
                    pairing.pair()
                }
                (TreeSource::Plain, TreeSource::Repository(_)) | (TreeSource::Repository(_), TreeSource::Plain) => {
                    Err("a git repository was made or removed meanwhile: what else changed is not known".to_owned())
                }
            };
            match pairs {
                Ok(pairs) => self.add_changes(&mut compared, root, pairs, before.begun),
                Err(problem) => compared.problems.push(problem),
            }
        }
        compared.problems.extend(reader.problem());
        compared
    }

    pub(super) fn add_changes(
        &self,
        compared: &mut TreeChanges,
        root: &Root,
        pairs: Pairs,
        begun: FileTime,
    ) {
        for (path, (before, after)) in pairs {
            let is_same = match (&before, &after) {
                (Some(before), Some(after)) => before.is_same(after),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if is_same {
                continue;
            }
            if compared.changes.len() == CHANGES_MAX {
                let problem =
                    format!("more than {CHANGES_MAX} files changed; the others are not shown");
                compared.problems.push(problem);
                return;
            }
            let absolute = root.path.join(&path);
            compared.changes.push(TreeChange {
                uri: file_uri::uri_of(absolute.as_os_str().as_bytes()),
                made_at: after.map_or_else(|| removed_at(&absolute), |after| after.changed),
                new_directories: match before {
                    Some(_) => 0,
                    None => new_directories(&root.real_path, &path, begun),
                },
                before,
                after,
            });
        }
    }
}

pub(super) type Pairs = BTreeMap<PathBuf, (Option<FileSide>, Option<FileSide>)>;

fn pair_plain(then: &RootSnapshot, now: &RootSnapshot) -> Pairs {
    let paths: BTreeSet<&PathBuf> = then.files.keys().chain(now.files.keys()).collect();
    let pairs = paths.into_iter().map(|path| {
        let sides = (then.files.get(path).copied(), now.files.get(path).copied());
        (path.clone(), sides)
    });
    pairs.collect()
}

/// Finds both sides of what may have changed in a repository.
struct Pairing<'a, 'r, 'k> {
    root: &'a Root,
    then: (&'a RootSnapshot, &'a RepositorySnapshot),
    now: (&'a RootSnapshot, &'a RepositorySnapshot),
    reader: &'a mut EntryReader<'r, 'k>,
    cancellation: &'a Cancellation,
}

impl Pairing<'_, '_, '_> {
    fn pair(&mut self) -> Result<Pairs, String> {
        let (then, old) = self.then;
        let (now, new) = self.now;
        // What the last commit had of files that were not changed then, as far as they may have changed since.
        let mut committed: BTreeMap<PathBuf, GitEntry> = BTreeMap::new();
        for entry in self.changed_by_commits()? {
            if let Some(path) = beneath(&old.repository, &entry.path) {
                committed.insert(path, entry);
            }
        }
        for (path, entry) in &new.entries {
            // A path that no commit changed since is in both commits the same.
            committed.entry(path.clone()).or_insert_with(|| entry.clone());
        }
        committed.retain(|path, _| !old.entries.contains_key(path));
        let before = self.read_committed(&committed)?;
        let mut pairs = Pairs::new();
        let paths: BTreeSet<PathBuf> =
            old.entries.keys().chain(committed.keys()).cloned().collect();
        for path in paths {
            let after = match now.files.get(&path) {
                Some(after) => Some(*after),
                None if new.entries.contains_key(&path) => None,
                // As committed now: it was not looked at.
                None => self.reader.read(self.root, &path, None),
            };
            let before = if old.entries.contains_key(&path) {
                then.files.get(&path).copied()
            } else {
                before.get(&path).copied()
            };
            let before = before.map(|before| with_known_mode(before, after));
            pairs.insert(path, (before, after));
        }
        Ok(pairs)
    }

    /// What commits that were made or checked out meanwhile changed.
    fn changed_by_commits(&self) -> Result<Vec<GitEntry>, String> {
        let (old, new) = (self.then.1, self.now.1);
        match (&old.head, &new.head) {
            (Some(then), Some(now)) if then != now => {
                let changed = old.repository.changed_between(then, now, self.cancellation);
                changed.map_err(|error| error.to_string())
            }
            (Some(_), Some(_)) | (None, _) | (_, None) => Ok(Vec::new()),
        }
    }

    fn read_committed(
        &mut self,
        committed: &BTreeMap<PathBuf, GitEntry>,
    ) -> Result<BTreeMap<PathBuf, FileSide>, String> {
        let repository = &self.then.1.repository;
        let sides = committed_sides(repository, committed, self.reader, self.cancellation);
        sides.map_err(|error| error.to_string())
    }
}

/// What a commit has of some entries, by their paths beneath the working directory.
pub(super) fn committed_sides(
    repository: &Repository,
    committed: &BTreeMap<PathBuf, GitEntry>,
    reader: &mut EntryReader<'_, '_>,
    cancellation: &Cancellation,
) -> Result<BTreeMap<PathBuf, FileSide>, GitError> {
    let mut sides = BTreeMap::new();
    for (path, entry) in committed {
        if let Some((mode, _)) = &entry.committed {
            let mode = match mode {
                &SUBMODULE => SUBMODULE,
                mode if is_link(*mode) => *mode,
                mode => mode & 0o777,
            };
            let side = FileSide { mode, bytes: 0, digest: None, changed: (0, 0), inode: 0 };
            sides.insert(path.clone(), side);
        }
    }
    let entries: Vec<&GitEntry> = committed.values().collect();
    repository.read_committed(&entries, cancellation, |path, content| {
        let side = beneath(repository, path).and_then(|path| sides.get_mut(&path));
        if let (Some(side), Some(content)) = (side, content) {
            side.bytes = content.len() as u64;
            side.digest = reader.keep_content(&content);
        }
    })?;
    Ok(sides)
}

/// Git knows of permissions only whether a file can be executed: where that did not change, nothing did.
pub(super) fn with_known_mode(before: FileSide, after: Option<FileSide>) -> FileSide {
    let is_file = |mode: u32| mode & 0o170000 == 0;
    let Some(after) = after.filter(|after| is_file(after.mode) && is_file(before.mode)) else {
        return before;
    };
    let (can_run, could_run) = (after.mode & 0o100 != 0, before.mode & 0o100 != 0);
    let mode = match (could_run, can_run) {
        (true, true) | (false, false) => after.mode,
        (true, false) => after.mode | ((after.mode & 0o444) >> 2),
        (false, true) => after.mode & !0o111,
    };
    FileSide { mode, ..before }
}

/// When something was removed: the directory it was in changed then, if it is still there.
fn removed_at(path: &Path) -> (i64, u32) {
    let above = path.ancestors().skip(1);
    let mut stats = above.filter_map(|above| {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statx(CWD, above, flags, StatxFlags::BASIC_STATS).ok()
    });
    let time = stats.next().map(|stat| stat.stx_mtime);
    time.map_or((0, 0), |time| (time.tv_sec, time.tv_nsec))
}

/// How many of the directories around a path were made since a moment; none where the file system does not tell.
fn new_directories(root: &Path, path: &Path, since: FileTime) -> usize {
    let above = path.ancestors().skip(1);
    let above = above.filter(|above| !above.as_os_str().is_empty());
    let new = above.take_while(|above| {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let stat = rustix::fs::statx(CWD, root.join(above), flags, StatxFlags::BTIME);
        stat.is_ok_and(|stat| {
            let is_known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
            // The clock of files is behind by up to a tick.
            let nanoseconds = since.nanoseconds.saturating_sub(20_000_000);
            let since = FileTime { nanoseconds, ..since };
            let made = stat.stx_btime;
            is_known && FileTime { seconds: made.tv_sec, nanoseconds: made.tv_nsec } >= since
        })
    });
    new.count()
}
