//! Watching a file, a directory or a tree (H-260, H-261).
//!
//! Promises: every directory is opened beneath its root before it is watched, and no link is followed; the host's own directory
//! is not watched. A tree of too many directories is refused, with their number; what is excluded is not counted. Changes
//! are told once a path and batch; where some were lost, all directories are looked for again, and what is watched itself is told as
//! changed. A watch that cannot see everything any more ends and says why.
//! Must not know: who listens.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use wire::file_uri;

use super::resolved_resource::{LastName, ResolvedResource};
use super::seen_changes::{CHANGES_MAX, EarlierState, ResourceChangeKind, SeenChanges};
use super::watch_globs::WatchGlobs;
use super::watched_directories::WatchedDirectory;
use super::{ResourceAccess, ResourceError, ResourceFiles, ResourceGrant};
use crate::Confinement;
use crate::confined::{Links, Stat};
use crate::write::atomic::TEMP_PREFIX;

/// Events that are read at once.
const EVENTS_MAX: usize = 4 * CHANGES_MAX;

/// Room for events between two reads.
const BUFFER_BYTES: usize = 64 * 1_024;

/// What is to be watched.
#[derive(Debug, Clone, Copy)]
pub struct WatchRequest<'a> {
    pub uri: &'a str,
    pub recursive: bool,
    /// Globs or paths beneath it.
    pub excludes: &'a [String],
    /// Only these, if there are any.
    pub includes: Option<&'a [String]>,
}

/// A change to one path, by the name that the client gave what it watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceChange {
    pub uri: String,
    pub kind: ResourceChangeKind,
}

/// What a watch saw since it was last asked.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct WatchedBatch {
    pub changes: Vec<ResourceChange>,
    /// Some changes are not told: anything may be something else by now.
    pub is_incomplete: bool,
    /// Why it sees nothing from now on.
    pub end: Option<ResourceError>,
}

/// A watch. Dropped, it ends.
#[derive(Debug)]
pub struct ResourceWatch {
    pub(super) events: OwnedFd,
    pub(super) resource: ResolvedResource,
    confinement: Confinement,
    /// As the client named it.
    named: PathBuf,
    pub(super) recursive: bool,
    pub(super) globs: WatchGlobs,
    /// What is watched, by its number: a directory beneath the resource, or the directory that the resource lies in.
    pub(super) watched: HashMap<i32, WatchedDirectory>,
}

impl ResourceFiles {
    /// Begins to watch.
    pub fn watch(
        &self,
        request: &WatchRequest<'_>,
        grants: &[ResourceGrant],
    ) -> Result<ResourceWatch, ResourceError> {
        let access = ResourceAccess::Read;
        let resource = self.locate(request.uri, LastName::Followed, access, grants)?;
        let (_, stat) = resource.existing()?;
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(
            |errno| match errno {
                Errno::MFILE | Errno::NFILE => {
                    ResourceError::NoMoreWatches { setting: "fs.inotify.max_user_instances" }
                }
                errno => resource.failed(errno),
            },
        )?;
        let mut watch = ResourceWatch {
            events,
            confinement: self.confinement.clone(),
            named: PathBuf::from(&resource.display),
            recursive: request.recursive,
            globs: WatchGlobs::new(request.excludes, request.includes)?,
            watched: HashMap::new(),
            resource,
        };
        let is_directory = stat.kind == FileType::Directory;
        watch.watch_around(is_directory)?;
        if is_directory {
            watch.watch_directory(Path::new(""), None)?;
        }
        Ok(watch)
    }
}

impl ResourceWatch {
    /// What changed since it was last asked; nothing, if nothing that is reported did. Does not wait.
    pub fn read_changes(&mut self) -> WatchedBatch {
        let mut batch = SeenChanges::default();
        let end = match self.read_batch(&mut batch) {
            Ok(()) => None,
            Err(error) => {
                // What is known of the batch may be a part of it.
                batch.is_incomplete = true;
                Some(error)
            }
        };
        WatchedBatch {
            is_incomplete: batch.is_incomplete,
            changes: self.report_changes(batch),
            end,
        }
    }

    fn read_batch(&mut self, batch: &mut SeenChanges) -> Result<(), ResourceError> {
        let mut is_overflown = false;
        for event in self.read_events()? {
            is_overflown |= event.flags.contains(ReadFlags::QUEUE_OVERFLOW);
            self.take(event, batch)?;
        }
        self.check_root()?;
        if is_overflown { self.look_again(batch) } else { Ok(()) }
    }

    /// A root of the host that was removed or moved is open here all the same: what happens in it is not what its name leads to.
    fn check_root(&self) -> Result<(), ResourceError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = &self.resource.root;
        match rustix::fs::open(&root.real_path, flags, Mode::empty()) {
            Ok(now) if Stat::is_same_file(&now, &root.directory) => Ok(()),
            Ok(_) | Err(_) => Err(self.resource.failed(Errno::NOENT)),
        }
    }

    /// Events were lost, and with them new directories and the end of others: all are looked for again.
    fn look_again(&mut self, batch: &mut SeenChanges) -> Result<(), ResourceError> {
        batch.is_incomplete = true;
        let before: Vec<i32> = self.watched.keys().copied().collect();
        self.watched.retain(|_, watched| *watched == WatchedDirectory::Around);
        match self.watch_directory(Path::new(""), None) {
            // A file, or nothing at the moment: seen from around.
            Err(ResourceError::NotFound { .. } | ResourceError::NotADirectory { .. })
                if self.is_seen_from_around() => {}
            watched => watched?,
        }
        for number in before {
            if !self.watched.contains_key(&number) {
                // The system lets go by itself of what was removed.
                let _ = inotify::remove_watch(&self.events, number);
            }
        }
        Ok(())
    }

    fn is_seen_from_around(&self) -> bool {
        let mut watched = self.watched.values();
        watched.any(|watched| *watched == WatchedDirectory::Around)
    }

    /// The file that is readable when something changed.
    pub fn share_events(&self) -> std::io::Result<File> {
        Ok(File::from(self.events.try_clone()?))
    }

    /// What is told of a batch.
    fn report_changes(&self, batch: SeenChanges) -> Vec<ResourceChange> {
        if batch.is_incomplete {
            let kind = if self.is_there(Path::new("")) {
                ResourceChangeKind::Updated
            } else {
                ResourceChangeKind::Deleted
            };
            let uri = self.uri(Path::new(""));
            return vec![ResourceChange { uri, kind }];
        }
        let seen = batch.changes.into_iter();
        let reported = seen.filter(|(path, _)| self.globs.reports(path) && !is_temporary(path));
        let changes = reported.filter_map(|(path, seen)| {
            Some(ResourceChange { uri: self.uri(&path), kind: seen.kind(self.is_there(&path))? })
        });
        changes.collect()
    }

    /// Whether something has this path now, be it a link.
    fn is_there(&self, path: &Path) -> bool {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        self.resource.root.open_path(&self.relative(path), flags, Links::Refused).is_ok()
    }

    fn uri(&self, path: &Path) -> String {
        let whole =
            if path.as_os_str().is_empty() { self.named.clone() } else { self.named.join(path) };
        file_uri::uri_of(whole.as_os_str().as_bytes())
    }

    fn read_events(&self) -> Result<Vec<WatchEvent>, ResourceError> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        let mut events = Vec::new();
        // What comes while this is read waits for the next time.
        while events.len() < EVENTS_MAX {
            match reader.next() {
                Ok(event) => events.push(WatchEvent {
                    watched: event.wd(),
                    flags: event.events(),
                    name: event.file_name().map(|name| name.to_bytes().to_vec()),
                }),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.resource.failed(errno)),
            }
        }
        Ok(events)
    }

    fn take(&mut self, event: WatchEvent, batch: &mut SeenChanges) -> Result<(), ResourceError> {
        let Some(watched) = self.watched.get(&event.watched).cloned() else {
            return Ok(()); // it was let go before this was read, or says that events were lost
        };
        if event.flags.contains(ReadFlags::IGNORED) {
            self.watched.remove(&event.watched);
            return match watched {
                // Nobody would tell if what lay in it came back.
                WatchedDirectory::Around => Err(self.resource.failed(Errno::NOENT)),
                WatchedDirectory::Inside(_) => Ok(()),
            };
        }
        let name = event.name.as_deref().map(OsStr::from_bytes);
        let path = match (watched, name) {
            (WatchedDirectory::Around, name) if name == self.resource.relative.file_name() => {
                PathBuf::new()
            }
            (WatchedDirectory::Around, _) => return Ok(()), // something beside it
            (WatchedDirectory::Inside(directory), Some(name)) => directory.join(name),
            (WatchedDirectory::Inside(directory), None) => directory,
        };
        let real = self.resource.real_path().join(&path);
        if self.confinement.hides(&real).unwrap_or(true) {
            return Ok(()); // the host's own
        }
        let is_directory = event.flags.contains(ReadFlags::ISDIR);
        let leaves = event.flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
        let comes = event.flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        let before = match (event.flags.contains(ReadFlags::CREATE), comes) {
            (true, _) => EarlierState::Absent,
            (false, true) => EarlierState::Unknown,
            (false, false) => EarlierState::Present,
        };
        if is_directory && leaves {
            self.let_go(&path);
        }
        batch.add(path.clone(), before, leaves);
        let is_looked_at = self.recursive || path.as_os_str().is_empty();
        if is_directory && comes && is_looked_at {
            // What is in it may have come before it was watched.
            match self.watch_directory(&path, Some(batch)) {
                // It is gone again.
                Err(ResourceError::NotFound { .. }) => {}
                watched => watched?,
            }
        }
        Ok(())
    }
}

/// An event as it was read.
struct WatchEvent {
    watched: i32,
    flags: ReadFlags,
    name: Option<Vec<u8>>,
}

/// Whether a path is that of a file that is being written.
fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let rest = name.and_then(|name| name.strip_prefix(TEMP_PREFIX));
    rest.is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
