//! Lists of files, made beside the answers that use them.
//!
//! Promises: one look at a set of directories at a time, so many of them in all; nobody waits for one but the very first
//! answer, and that not for long.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::path::{Kind, Paths};
use crate::tool::Workspace;
use crate::tool::workspace::{self, Listing, Place, Wanted};

/// When a list is made anew, if somebody asks.
const STALE: Duration = Duration::from_secs(10);

/// What the first answer waits for its list.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long a look may take; what was seen by then counts.
const LOOK_MAX: Duration = Duration::from_secs(20);

/// Lists kept.
const LISTS_MAX: usize = 8;

/// A list nobody asked for this long is given up.
const UNUSED: Duration = Duration::from_secs(600);

/// Looks at a time.
const LOOKS_MAX: usize = 2;

/// The lists there are.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    lists: Mutex<HashMap<Vec<String>, Arc<List>>>,
    looking: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct List {
    state: Mutex<State>,
    changed: Condvar,
    is_dropped: AtomicBool,
}

#[derive(Debug)]
struct State {
    paths: Arc<Paths>,
    /// When the list was made.
    made: Option<Instant>,
    used: Instant,
    is_looking: bool,
}

impl Drop for Indexes {
    fn drop(&mut self) {
        for list in lock(&self.lists).values() {
            list.is_dropped.store(true, Ordering::Relaxed);
        }
    }
}

impl Indexes {
    /// The paths in these directories, as far as they are known. Has them looked at again if they are old.
    pub(super) fn paths(&self, working_directories: &[String]) -> Arc<Paths> {
        let now = Instant::now();
        let list = self.list(working_directories, now);
        let mut state = lock(&list.state);
        state.used = now;
        let is_stale = state
            .made
            .is_none_or(|made| now.saturating_duration_since(made) >= STALE);
        if is_stale && !state.is_looking && self.look(&list, working_directories) {
            state.is_looking = true;
        }
        if state.made.is_none() {
            let wait = list.changed.wait_timeout_while(state, PATIENCE, |state| {
                state.made.is_none() && state.is_looking
            });
            state = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        Arc::clone(&state.paths)
    }

    fn list(&self, working_directories: &[String], now: Instant) -> Arc<List> {
        let mut lists = lock(&self.lists);
        if let Some(list) = lists.get(working_directories) {
            return Arc::clone(list);
        }
        lists.retain(|_, list| {
            let unused = now.saturating_duration_since(lock(&list.state).used);
            let is_kept = unused < UNUSED;
            list.is_dropped.store(!is_kept, Ordering::Relaxed);
            is_kept
        });
        if lists.len() >= LISTS_MAX {
            let oldest = lists.iter().min_by_key(|(_, list)| lock(&list.state).used);
            let oldest = oldest.map(|(directories, _)| directories.clone());
            if let Some(list) = oldest.and_then(|directories| lists.remove(&directories)) {
                list.is_dropped.store(true, Ordering::Relaxed);
            }
        }
        let list = Arc::new(List {
            state: Mutex::new(State {
                paths: Arc::default(),
                made: None,
                used: now,
                is_looking: false,
            }),
            changed: Condvar::new(),
            is_dropped: AtomicBool::new(false),
        });
        lists.insert(working_directories.to_vec(), Arc::clone(&list));
        list
    }

    /// Begins to look; `false` if that must wait for another time.
    fn look(&self, list: &Arc<List>, working_directories: &[String]) -> bool {
        let looking = Looking(Arc::clone(&self.looking));
        if looking.0.fetch_add(1, Ordering::Relaxed) >= LOOKS_MAX {
            return false;
        }
        let (list, directories) = (Arc::clone(list), working_directories.to_vec());
        let looker = std::thread::Builder::new().name("files".to_owned());
        let begun = looker.spawn(move || {
            let _looking = looking;
            let _done = Done(&list);
            let paths = walk(&directories, Instant::now() + LOOK_MAX, &list.is_dropped);
            let mut state = lock(&list.state);
            state.paths = Arc::new(paths);
            state.made = Some(Instant::now());
        });
        begun.is_ok()
    }
}

/// Counts as one look while it is there.
struct Looking(Arc<AtomicUsize>);

impl Drop for Looking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// However a look ends, others may begin.
struct Done<'a>(&'a List);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_looking = false;
        self.0.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All paths that are not ignored, those near the top first.
fn walk(working_directories: &[String], until: Instant, is_dropped: &AtomicBool) -> Paths {
    let (workspace, _) = Workspace::open_some(working_directories);
    let roots: Vec<Place> = workspace.roots().collect();
    let names = roots.iter().map(|root| workspace.absolute(root));
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut paths = Paths::new(names.collect());
    let mut waiting: VecDeque<_> = roots
        .iter()
        .enumerate()
        .filter_map(|(at, root)| Some((at, workspace.folder(root, Wanted::NotIgnored).ok()?)))
        .collect();
    while let Some((root, folder)) = waiting.pop_front() {
        if Instant::now() >= until || is_dropped.load(Ordering::Relaxed) {
            break;
        }
        // It may have gone, or not be ours to look into.
        let Ok(listing) = workspace.look_into(&folder) else {
            continue;
        };
        if !take(&workspace, root, &listing, &mut paths) {
            break;
        }
        let below = listing
            .entries
            .iter()
            .filter_map(|entry| listing.folder(entry));
        waiting.extend(below.map(|folder| (root, folder)));
    }
    paths
}

/// `false` if there is no room for more.
fn take(workspace: &Workspace, root: usize, listing: &Listing, paths: &mut Paths) -> bool {
    for entry in &listing.entries {
        let kind = match entry.kind {
            workspace::Kind::Link => workspace.kind_behind(&entry.place),
            kind => Some(kind),
        };
        let kind = match kind {
            Some(workspace::Kind::File) => Kind::File,
            Some(workspace::Kind::Directory) => Kind::Directory,
            _ => continue,
        };
        // What cannot be typed cannot be proposed.
        let Some(path) = entry.place.inside().to_str() else {
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
