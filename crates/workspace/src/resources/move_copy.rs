//! A move to another disk: a copy that takes its name, and a source that is removed afterwards.
//!
//! Promises: what is written to the source while it is copied is not lost. The source gets another name first, so that nobody finds it
//! any more, and is removed only if it is what was copied; if it is not, both names lead to what they led to before. What somebody
//! wrote to the destination meanwhile is not removed with the copy. A source that cannot be removed is put back, or, if a part of it
//! is gone already, the move stands and what is left is named. Killed at any point, the host leaves the whole of it under one of
//! the names.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::ResourceError;
use super::rename::{Existing, PutInPlace, TempTree, failed, make_parent, rename_to_free, sync};
use super::resolved_resource::ResolvedResource;
use super::tree::{self, EntryPlace, TreeDescription, TreeError};
use crate::write::atomic;

/// How much earlier than the host's a disk's clock may be, in seconds: what was written later than that is compared by content.
const CLOCK_SECONDS: i64 = 2;

/// A copy that has its name, and a source that is still there.
pub(super) struct MovedCopy<'a> {
    from: &'a ResolvedResource,
    to: &'a ResolvedResource,
    source: (OwnedFd, OsString),
    name: OsString,
    copy: TempTree,
    put: PutInPlace,
    /// The copy before anybody could find it.
    made: TreeDescription,
    /// The source when it was copied, and when that was.
    copied: TreeDescription,
    copied_at: i64,
}

impl<'a> MovedCopy<'a> {
    /// Copies the source and gives the copy the name of the destination.
    pub(super) fn put(
        from: &'a ResolvedResource,
        to: &'a ResolvedResource,
        existing: Existing,
    ) -> Result<Self, ResourceError> {
        let (parent, from_name) = from.parent()?;
        let copied_at = now_seconds();
        let copied = tree::describe(&parent, from_name).map_err(|error| failed(from, error))?;
        let (to_parent, name) = make_parent(to)?;
        let copy =
            TempTree::copy_of(EntryPlace { parent: &parent, name: from_name }, to_parent, to)?;
        let made = tree::describe(&copy.parent, &copy.name).map_err(|error| failed(to, error))?;
        let put = copy.give_name(name, to, existing)?;
        sync(&copy.parent, to)?;
        Ok(Self {
            from,
            to,
            source: (parent, from_name.to_owned()),
            name: name.to_owned(),
            copy,
            put,
            made,
            copied,
            copied_at,
        })
    }

    /// Removes the source if it is what was copied; otherwise the move did not happen.
    pub(super) fn remove_source(self) -> Result<(), ResourceError> {
        self.remove_source_by(tree::remove)
    }

    fn remove_source_by(
        self,
        remove: impl FnOnce(&OwnedFd, &OsStr) -> Result<(), TreeError>,
    ) -> Result<(), ResourceError> {
        let (parent, name) = &self.source;
        let aside = match self.set_aside() {
            Ok(aside) => Some(aside),
            // Layered disks rename no directory that they have from below: it is compared where it is.
            Err(Errno::XDEV) => None,
            Err(errno) => {
                let why = self.from.failed(errno);
                return Err(self.take_back(why));
            }
        };
        let now = aside.as_deref().unwrap_or(name);
        let path = self.from.display.clone();
        let why = if self.is_unchanged(parent, now) {
            match remove(parent, now) {
                Ok(()) => return sync(parent, self.from),
                // Nothing of it is gone: it can be where it was.
                Err(error) if self.is_unchanged(parent, now) => failed(self.from, error),
                // The copy alone is whole.
                Err(error) => {
                    let aside = now.to_string_lossy().into_owned();
                    let why = failed(self.from, error).to_string();
                    return Err(ResourceError::NotRemoved { path, aside, why });
                }
            }
        } else {
            ResourceError::Changed { path }
        };
        let back = aside.map(|aside| (rename_to_free(parent, &aside, parent, name), aside));
        let why = match back {
            // Somebody made another one of its name in that moment: what was changed is kept under the one it has.
            Some((Err(_), aside)) => ResourceError::LeftAside {
                path: self.from.display.clone(),
                aside: aside.to_string_lossy().into_owned(),
            },
            Some((Ok(()), _)) | None => why,
        };
        Err(self.take_back(why))
    }

    /// Gives the source a name that nobody knows.
    fn set_aside(&self) -> Result<OsString, Errno> {
        let (parent, name) = &self.source;
        let aside = atomic::temp_name()?;
        rename_to_free(parent, name, parent, &aside)?;
        Ok(aside)
    }

    fn is_unchanged(&self, parent: &OwnedFd, aside: &OsStr) -> bool {
        // What cannot be looked at any more is not what it was.
        let is_described = tree::describe(parent, aside).is_ok_and(|now| now == self.copied);
        let since = self.copied_at - CLOCK_SECONDS;
        let source = EntryPlace { parent, name: aside };
        let copy = EntryPlace { parent: &self.copy.parent, name: &self.name };
        is_described && tree::has_same_content(source, copy, since) == Ok(true)
    }

    /// The destination is again what it was, unless somebody else has written to it: that is not ours to remove.
    fn take_back(mut self, why: ResourceError) -> ResourceError {
        match self.put {
            PutInPlace::OfNothing => self.take_away(why),
            PutInPlace::OfAnother => self.exchange_back(why),
        }
    }

    fn take_away(&mut self, why: ResourceError) -> ResourceError {
        let (parent, temporary) = (&self.copy.parent, &self.copy.name);
        match rename_to_free(parent, &self.name, parent, temporary) {
            Ok(()) => {}
            // Somebody removed it.
            Err(Errno::NOENT) => return why,
            Err(errno) => return self.to.failed(errno),
        }
        if self.is_copy(temporary) {
            return why;
        }
        let path = self.to.display.clone();
        match rename_to_free(parent, temporary, parent, &self.name) {
            Ok(()) => ResourceError::DestinationChanged { path },
            Err(_) => {
                let aside = temporary.to_string_lossy().into_owned();
                self.copy.is_kept = true;
                ResourceError::LeftAside { path, aside }
            }
        }
    }

    fn exchange_back(&mut self, why: ResourceError) -> ResourceError {
        let (parent, temporary) = (&self.copy.parent, &self.copy.name);
        let exchange = || {
            let flags = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(parent, temporary, parent, &self.name, flags)
        };
        let path = self.to.display.clone();
        let aside = temporary.to_string_lossy().into_owned();
        match exchange() {
            Ok(()) if self.is_copy(temporary) => why,
            Ok(()) => {
                // Under its name there is now what was to be replaced; whoever wrote to the copy finds theirs there again.
                let kept = match exchange() {
                    Ok(()) => ResourceError::ReplacedAside { path, aside },
                    Err(_) => ResourceError::LeftAside { path, aside },
                };
                self.copy.is_kept = true;
                kept
            }
            Err(Errno::NOENT) => {
                // Somebody removed the copy: what it replaced comes back.
                match rename_to_free(parent, temporary, parent, &self.name) {
                    Ok(()) => why,
                    Err(_) => {
                        self.copy.is_kept = true;
                        ResourceError::ReplacedAside { path, aside }
                    }
                }
            }
            Err(_) => {
                self.copy.is_kept = true;
                ResourceError::ReplacedAside { path, aside }
            }
        }
    }

    /// Whether what has this name beside the destination is the copy, as it was made.
    fn is_copy(&self, name: &OsStr) -> bool {
        tree::describe(&self.copy.parent, name).is_ok_and(|now| now == self.made)
    }
}

fn now_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 lets everything be compared.
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0))
}

#[cfg(test)]
#[path = "move_copy_tests.rs"]
mod tests;
