//! Indexes of files, built in the background.
//!
//! Promises: one walk over a set of directories at a time, and a bounded number in all; no request waits for one but the very
//! first answer, and that briefly.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::paths::{PathKind, Paths};
use crate::directory::{EntryKind, IgnoreMode, Listing};
use crate::{Confinement, Workspace, WorkspacePath};

/// When an index is built again, if it is asked for.
const STALE: Duration = Duration::from_secs(10);

/// How long the first answer waits for its index.
const FIRST_ANSWER_WAIT: Duration = Duration::from_millis(250);

/// How long a walk may take; what it found by then counts.
const WALK_MAX: Duration = Duration::from_secs(20);

/// Indexes in memory.
const INDEXES_MAX: usize = 8;

/// An index that was not used for this long is dropped.
const UNUSED_MAX: Duration = Duration::from_secs(600);

/// Walks at a time.
const WALKS_MAX: usize = 2;

/// The indexes, by their directories.
#[derive(Debug, Default)]
pub(super) struct PathIndexes {
    indexes: Mutex<HashMap<Vec<String>, Arc<PathIndex>>>,
    walks: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct PathIndex {
    state: Mutex<IndexState>,
    changed: Condvar,
    is_dropped: AtomicBool,
}

#[derive(Debug)]
struct IndexState {
    paths: Arc<Paths>,
    /// When the index was built.
    built: Option<Instant>,
    used: Instant,
    is_walking: bool,
}

impl Drop for PathIndexes {
    fn drop(&mut self) {
        for index in self.indexes.lock().values() {
            index.is_dropped.store(true, Ordering::Relaxed);
        }
    }
}

impl PathIndexes {
    /// The paths in these directories, as far as they are indexed. Starts another walk if they are old.
    pub(super) fn paths(
        &self,
        working_directories: &[String],
        confinement: &Confinement,
    ) -> Arc<Paths> {
        let now = Instant::now();
        let index = self.index(working_directories, now);
        let mut state = index.state.lock();
        state.used = now;
        let is_stale =
            state.built.is_none_or(|built| now.saturating_duration_since(built) >= STALE);
        let may_walk = is_stale && !state.is_walking;
        if may_walk && self.start_walk(&index, working_directories, confinement) {
            state.is_walking = true;
        }
        if state.built.is_none() {
            let is_waiting = |state: &mut IndexState| state.built.is_none() && state.is_walking;
            index.changed.wait_while_for(&mut state, is_waiting, FIRST_ANSWER_WAIT);
        }
        Arc::clone(&state.paths)
    }

    fn index(&self, working_directories: &[String], now: Instant) -> Arc<PathIndex> {
        let mut indexes = self.indexes.lock();
        if let Some(index) = indexes.get(working_directories) {
            return Arc::clone(index);
        }
        indexes.retain(|_, index| {
            let unused = now.saturating_duration_since(index.state.lock().used);
            let is_in_use = unused < UNUSED_MAX;
            index.is_dropped.store(!is_in_use, Ordering::Relaxed);
            is_in_use
        });
        if indexes.len() >= INDEXES_MAX {
            let oldest = indexes.iter().min_by_key(|(_, index)| index.state.lock().used);
            let oldest = oldest.map(|(directories, _)| directories.clone());
            if let Some(index) = oldest.and_then(|directories| indexes.remove(&directories)) {
                index.is_dropped.store(true, Ordering::Relaxed);
            }
        }
        let index = Arc::new(PathIndex {
            state: Mutex::new(IndexState {
                paths: Arc::default(),
                built: None,
                used: now,
                is_walking: false,
            }),
            changed: Condvar::new(),
            is_dropped: AtomicBool::new(false),
        });
        indexes.insert(working_directories.to_vec(), Arc::clone(&index));
        index
    }

    /// Starts a walk; `false` if that must wait for another time.
    fn start_walk(
        &self,
        index: &Arc<PathIndex>,
        working_directories: &[String],
        confinement: &Confinement,
    ) -> bool {
        let slot = WalkSlot(Arc::clone(&self.walks));
        if slot.0.fetch_add(1, Ordering::Relaxed) >= WALKS_MAX {
            return false;
        }
        let (index, directories) = (Arc::clone(index), working_directories.to_vec());
        let confinement = confinement.clone();
        let thread = std::thread::Builder::new().name("path-index".to_owned());
        let started = thread.spawn(move || {
            let _slot = slot;
            let _finished = FinishOnDrop(&index);
            // What cannot be opened, or must not be, has no paths to suggest.
            let (workspace, _) = Workspace::open_available(&directories, &confinement);
            let paths = walk(&workspace, Instant::now() + WALK_MAX, &index.is_dropped);
            let mut state = index.state.lock();
            state.paths = Arc::new(paths);
            state.built = Some(Instant::now());
        });
        started.is_ok()
    }
}

/// Counts as one walk while it lives.
struct WalkSlot(Arc<AtomicUsize>);

impl Drop for WalkSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// However a walk ends, another may start.
struct FinishOnDrop<'a>(&'a PathIndex);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_walking = false;
        self.0.changed.notify_all();
    }
}

/// All paths that are not ignored, those near the top first.
fn walk(workspace: &Workspace, deadline: Instant, is_dropped: &AtomicBool) -> Paths {
    let roots: Vec<WorkspacePath> = workspace.root_paths().collect();
    let names = roots
        .iter()
        .map(|root| workspace.absolute_path(root))
        .map(|name| name.to_string_lossy().into_owned());
    let mut paths = Paths::new(names.collect());
    let mut pending: VecDeque<_> = roots
        .iter()
        .enumerate()
        .filter_map(|(at, root)| Some((at, workspace.directory(root, IgnoreMode::Apply).ok()?)))
        .collect();
    while let Some((root, directory)) = pending.pop_front() {
        if Instant::now() >= deadline || is_dropped.load(Ordering::Relaxed) {
            break;
        }
        let Ok(listing) = workspace.list_directory(&directory) else {
            // It may be gone by now, or not be readable.
            continue;
        };
        if !add_entries(workspace, root, &listing, &mut paths) {
            break;
        }
        let below = listing.entries.iter().filter_map(|entry| listing.subdirectory(entry));
        pending.extend(below.map(|directory| (root, directory)));
    }
    paths
}

/// `false` if there is no space for more.
fn add_entries(workspace: &Workspace, root: usize, listing: &Listing, paths: &mut Paths) -> bool {
    for entry in &listing.entries {
        let kind = match entry.kind {
            EntryKind::Link => workspace.link_target_kind(&entry.path),
            kind => Some(kind),
        };
        let kind = match kind {
            Some(EntryKind::File) => PathKind::File,
            Some(EntryKind::Directory) => PathKind::Directory,
            Some(EntryKind::Link | EntryKind::Other) | None => continue,
        };
        let Some(path) = entry.path.relative.to_str() else {
            // What cannot be typed cannot be suggested.
            continue;
        };
        if path.contains(char::is_control) {
            continue;
        }
        if !paths.push(root, path, kind) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests;
