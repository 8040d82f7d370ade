//! Which directories a watch looks at: found, opened beneath their root, and let go.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, WatchFlags};
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use super::ResourceError;
use super::seen_changes::{EarlierState, SeenChanges};
use super::watch::ResourceWatch;
use crate::confined::{Links, Stat};

/// Directories that one watch looks at.
pub(super) const WATCHED_MAX: usize = 8_192;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WatchedDirectory {
    /// Beneath the resource.
    Inside(PathBuf),
    /// Around the resource: only its name counts there.
    Around,
}

impl ResourceWatch {
    /// Beneath the root.
    pub(super) fn relative(&self, path: &Path) -> PathBuf {
        // Joining nothing would add a slash.
        if path.as_os_str().is_empty() {
            self.resource.relative.clone()
        } else {
            self.resource.relative.join(path)
        }
    }

    /// A directory is gone from where it was: what is below it is not watched any more.
    pub(super) fn let_go(&mut self, path: &Path) {
        let events = &self.events;
        self.watched.retain(|number, watched| match watched {
            WatchedDirectory::Inside(directory) if directory.starts_with(path) => {
                // The system lets go by itself of what was removed.
                let _ = inotify::remove_watch(events, *number);
                false
            }
            WatchedDirectory::Inside(_) | WatchedDirectory::Around => true,
        });
    }

    /// Watches the directory that the resource lies in, if it is not a root itself.
    pub(super) fn watch_around(&mut self, is_directory: bool) -> Result<(), ResourceError> {
        if self.resource.relative.as_os_str().is_empty() {
            return Ok(());
        }
        let (parent, _) = self.resource.parent()?;
        let mut flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVE;
        // Of itself: it may be a root, and is moved or removed then.
        flags |= WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
        if !is_directory {
            // What is in a directory is seen from inside.
            flags |= WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        }
        self.add(&parent, flags, WatchedDirectory::Around)
    }

    /// Watches a directory, and with `recursive` all that are below it. What is in it is added to a batch.
    pub(super) fn watch_directory(
        &mut self,
        path: &Path,
        mut batch: Option<&mut SeenChanges>,
    ) -> Result<(), ResourceError> {
        let mut pending = vec![path.to_owned()];
        while let Some(path) = pending.pop() {
            if self.globs.leaves_out(&path) {
                continue;
            }
            let open = self.resource.root.open_directory(&self.relative(&path), Links::Refused);
            let open = match open {
                Ok(open) => open,
                Err(errno) if path.as_os_str().is_empty() => {
                    return Err(self.resource.failed(errno));
                }
                // It is gone by now, a link, the host's own, or not for us.
                Err(_) => continue,
            };
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVE
                | WatchFlags::MODIFY
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::ATTRIB
                | WatchFlags::ONLYDIR;
            let is_root = self.relative(&path).as_os_str().is_empty();
            let flags = if is_root {
                // what lies around it is not watched
                flags | WatchFlags::MOVE_SELF
            } else {
                flags
            };
            self.add(&open, flags, WatchedDirectory::Inside(path.clone()))?;
            if self.recursive || batch.is_some() {
                self.look_into(&open, &path, &mut pending, batch.as_deref_mut());
            }
        }
        Ok(())
    }

    /// Finds what is in a directory: directories to watch, and what to report.
    fn look_into(
        &self,
        open: &OwnedFd,
        path: &Path,
        pending: &mut Vec<PathBuf>,
        mut batch: Option<&mut SeenChanges>,
    ) {
        let Ok(entries) = Dir::read_from(open) else {
            return; // gone by now: its end is told by the directory around it
        };
        for entry in entries.flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let below = path.join(name);
            let kind = match entry.file_type() {
                FileType::Unknown => Stat::of_entry(open, name).map(|stat| stat.kind),
                kind => Ok(kind),
            };
            if let Some(batch) = batch.as_deref_mut() {
                batch.add(below.clone(), EarlierState::Absent, false);
            }
            if self.recursive && kind == Ok(FileType::Directory) {
                pending.push(below);
            }
        }
    }

    fn add(
        &mut self,
        open: &OwnedFd,
        flags: WatchFlags,
        watched: WatchedDirectory,
    ) -> Result<(), ResourceError> {
        if self.watched.len() >= WATCHED_MAX {
            return Err(ResourceError::TooManyDirectories { path: self.resource.display.clone() });
        }
        // The directory that was opened, not whatever has its name by now.
        let link = format!("/proc/self/fd/{}", open.as_raw_fd());
        let number =
            inotify::add_watch(&self.events, link, flags).map_err(|errno| match errno {
                Errno::NOSPC => {
                    ResourceError::NoMoreWatches { setting: "fs.inotify.max_user_watches" }
                }
                errno => self.resource.failed(errno),
            })?;
        self.watched.insert(number, watched);
        Ok(())
    }
}
