//! A file that is to be written: what is there now, whether it may be replaced, and doing it.
//!
//! Promises: what the model has not read, or what somebody changed since it did, is not overwritten; nor is anything
//! that changed since somebody was asked. A symbolic link is not replaced: the file it leads to is, if that lies
//! inside.
//! Must not know: what is written.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use wire::Digest;

use super::super::stop::Stop;
use super::beneath::{self, Links, Stat};
use super::contents::{self, FILE_BYTES_MAX};
use super::memory::{Extent, Recall};
use super::{Access, Place, ToolError, Workspace, replace};

/// Where something is to be written.
#[derive(Debug)]
pub(in super::super) struct Target {
    /// Without links.
    pub(in super::super) place: Place,
    standing: Standing,
}

#[derive(Debug)]
enum Standing {
    /// Nothing is there, and perhaps not even the directory.
    New,
    File(Existing),
}

#[derive(Debug)]
struct Existing {
    parent: OwnedFd,
    name: OsString,
    stat: Stat,
    bytes: Vec<u8>,
    digest: Digest,
}

impl Target {
    /// What the file holds now, if there is one.
    pub(in super::super) fn before(&self) -> Option<&[u8]> {
        match &self.standing {
            Standing::New => None,
            Standing::File(existing) => Some(&existing.bytes),
        }
    }

    fn digest(&self) -> Option<Digest> {
        match &self.standing {
            Standing::New => None,
            Standing::File(existing) => Some(existing.digest),
        }
    }
}

impl Workspace {
    /// Looks at a place where something is to be written.
    pub(in super::super) fn target(&self, place: &Place) -> Result<Target, ToolError> {
        let shown = self.shown(place);
        if place.path.as_os_str().is_empty() {
            return Err(ToolError(format!("{shown} is a directory")));
        }
        if self.root(place).access == Access::Read {
            return Err(ToolError(format!("{shown} can be read and not changed")));
        }
        match self.entry_kind(place) {
            Err(Errno::NOENT) => self.new_target(place),
            Err(errno) => Err(beneath::told(errno, &shown)),
            Ok(kind) => self.existing_target(place, &shown).map_err(|error| {
                if kind == FileType::Symlink {
                    let why = error.0;
                    ToolError(format!(
                        "{shown} is a symbolic link that cannot be followed: {why}"
                    ))
                } else {
                    error
                }
            }),
        }
    }

    /// What lies under a name; of a link itself.
    fn entry_kind(&self, place: &Place) -> Result<FileType, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let root = &self.root(place).directory;
        let entry = beneath::open(root, &place.path, flags, Links::Followed)?;
        Ok(Stat::of(&entry)?.kind)
    }

    /// Nothing is there: is the nearest directory above it really one?
    fn new_target(&self, place: &Place) -> Result<Target, ToolError> {
        let root = &self.root(place).directory;
        for above in place.path.ancestors().skip(1) {
            match beneath::open(root, above, OFlags::PATH, Links::Followed) {
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(beneath::told(errno, &self.shown(place))),
                Ok(found)
                    if Stat::of(&found).is_ok_and(|stat| stat.kind == FileType::Directory) =>
                {
                    // The same file must have the same name when it is looked for again.
                    let rest = place.path.strip_prefix(above).unwrap_or(Path::new(""));
                    let real = self.root(place).real_inside(&found);
                    let place = real.map_or(place.clone(), |real| place.at(real.join(rest)));
                    let standing = Standing::New;
                    return Ok(Target { place, standing });
                }
                Ok(_) => return Err(beneath::told(Errno::NOTDIR, &self.shown(place))),
            }
        }
        Err(beneath::told(Errno::NOENT, &self.shown(place)))
    }

    fn existing_target(&self, place: &Place, shown: &str) -> Result<Target, ToolError> {
        let (file, stat) = self.open_regular(place, Links::Followed)?;
        if stat.identity.bytes > FILE_BYTES_MAX {
            return Err(ToolError(format!(
                "{shown} is larger than {} MiB; it cannot be changed by this tool",
                FILE_BYTES_MAX / 1_024 / 1_024
            )));
        }
        let snapshot = contents::snapshot(file, shown)?;
        let root = self.root(place);
        let moved = || ToolError(format!("{shown} is being moved about; try again"));
        let real = root.real_inside(&snapshot.file).ok_or_else(moved)?;
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(moved());
        };
        let parent =
            beneath::open_directory(&root.directory, above, Links::Refused).map_err(|_| moved())?;
        let there = Stat::of_entry(&parent, name).map_err(|_| moved())?;
        if there.identity != snapshot.stat.identity {
            return Err(changed(shown));
        }
        Ok(Target {
            place: place.at(real.clone()),
            standing: Standing::File(Existing {
                parent,
                name: name.to_owned(),
                stat: snapshot.stat,
                bytes: snapshot.bytes,
                digest: snapshot.digest,
            }),
        })
    }

    /// Whether the model knows what it is about to replace.
    pub(in super::super) fn judge(&self, target: &Target, extent: Extent) -> Result<(), ToolError> {
        let Standing::File(existing) = &target.standing else {
            return Ok(());
        };
        let shown = self.shown(&target.place);
        if existing.stat.mode & 0o222 == 0 {
            return Err(ToolError(format!(
                "{shown} is read-only; it is left as it is"
            )));
        }
        match (self.memory().recall(&target.place, existing.digest), extent) {
            (Recall::AsRead, _) | (Recall::Unread, Extent::Parts) => Ok(()),
            (Recall::Changed, _) => Err(changed(&shown)),
            (Recall::Unread, Extent::Whole) => Err(ToolError(format!(
                "{shown} is there already and was not read in this session; `read` it before it is replaced, or use \
                 `edit`"
            ))),
        }
    }

    /// Remembers for what a change was proposed, before somebody is asked.
    pub(in super::super) fn propose(&self, change: Digest, target: &Target) {
        self.memory()
            .propose(change, &target.place, target.digest());
    }

    /// Whether the file is still what a change was proposed for. What this session did to it meanwhile does not harm
    /// a change to parts; one to the whole was proposed for exactly what was there.
    pub(in super::super) fn hold_to_proposal(
        &self,
        change: Digest,
        target: &Target,
        extent: Extent,
    ) -> Result<(), ToolError> {
        let mut memory = self.memory();
        let Some(proposal) = memory.take_proposal(change) else {
            return Ok(());
        };
        let (place, now) = (&target.place, target.digest());
        let holds = match extent {
            Extent::Whole => proposal.is_for(now),
            Extent::Parts => memory.descends(place, now, &proposal),
        };
        if holds {
            return Ok(());
        }
        Err(ToolError(format!(
            "{} has changed since this change was proposed; nothing was written. `read` it and propose it again",
            self.shown(place)
        )))
    }

    /// Writes it, all or nothing, and remembers it.
    pub(in super::super) fn put(
        &self,
        target: &Target,
        bytes: &[u8],
        extent: Extent,
        stop: &Stop,
    ) -> Result<(), ToolError> {
        let shown = self.shown(&target.place);
        let root = &self.root(&target.place).directory;
        let done = match &target.standing {
            Standing::New => replace::create(root, &target.place.path, bytes, stop),
            Standing::File(Existing {
                parent, name, stat, ..
            }) => replace::replace(parent, name, bytes, stat, stop),
        };
        match done {
            Ok(()) => {}
            Err(replace::Failed::Changed) => return Err(changed(&shown)),
            Err(replace::Failed::Stopped) => return Err(ToolError::stopped()),
            Err(replace::Failed::System(errno)) => return Err(beneath::told(errno, &shown)),
        }
        let digest = contents::digest_of(bytes);
        self.memory().wrote(&target.place, digest, extent);
        Ok(())
    }
}

fn changed(shown: &str) -> ToolError {
    ToolError(format!(
        "{shown} was changed since it was read, by a command or by someone else; nothing was written. `read` it again \
         first"
    ))
}
