//! Writing a file: whole, from an offset on, or into its middle (H-253).
//!
//! Promises: what is under the name is the old content or the new, whatever fails; only what was there when the new content was
//! made is replaced. Missing directories are made.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::facts::facts_of;
use super::read::check_regular;
use super::resolved_resource::{LastName, ResolvedResource};
use super::{ResourceAccess, ResourceError, ResourceFiles, ResourceGrant};
use crate::Cancellation;
use crate::confined::{Links, Stat};
use crate::write::atomic::{self, WriteError};

/// Attempts at writing a file that others write meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// Where new bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// What is from this offset on is replaced.
    From(u64),
    /// Before the last so many bytes.
    BeforeLast(u64),
    /// At this offset; what is from there on comes after.
    At(u64),
}

/// What is to be written.
#[derive(Debug, Clone, Copy)]
pub struct WriteRequest<'a> {
    pub uri: &'a str,
    pub bytes: &'a [u8],
    pub placement: Placement,
    /// Nothing may be there yet.
    pub create_only: bool,
    /// What is there must have this tag.
    pub if_match: Option<&'a str>,
}

impl ResourceFiles {
    /// Writes a file.
    pub fn write(
        &self,
        request: &WriteRequest<'_>,
        grants: &[ResourceGrant],
    ) -> Result<(), ResourceError> {
        let _writing = self.writing.lock();
        let mut attempts = 1;
        loop {
            let written = self.try_write(request, grants);
            // What its caller said of the file is judged anew, too.
            match written {
                Err(ResourceError::Changed { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
                written => return written,
            }
        }
    }

    fn try_write(
        &self,
        request: &WriteRequest<'_>,
        grants: &[ResourceGrant],
    ) -> Result<(), ResourceError> {
        let access = ResourceAccess::Write;
        let resource = self.locate(request.uri, LastName::Followed, access, grants)?;
        let path = || resource.display.clone();
        let Some(entry) = resource.entry()? else {
            if request.if_match.is_some() {
                return Err(ResourceError::EtagMismatch { path: path() });
            }
            return create(&resource, request);
        };
        if request.create_only {
            return Err(ResourceError::AlreadyExists { path: path() });
        }
        let stat = resource.stat(&entry)?;
        check_regular(&resource, stat.kind)?;
        let facts = facts_of(&entry).map_err(|errno| resource.failed(errno))?;
        if request.if_match.is_some_and(|tag| tag != facts.etag) {
            return Err(ResourceError::EtagMismatch { path: path() });
        }
        if stat.mode & 0o222 == 0 {
            return Err(ResourceError::PermissionDenied { path: path() });
        }
        match request.placement {
            Placement::BeforeLast(0) => super::append::append(&resource, request.bytes, &stat),
            placement => replace(&resource, request.bytes, placement, &stat),
        }
    }
}

/// Writes a file that is not there.
fn create(resource: &ResolvedResource, request: &WriteRequest<'_>) -> Result<(), ResourceError> {
    resource.name()?;
    let (Placement::From(position) | Placement::BeforeLast(position) | Placement::At(position)) =
        request.placement;
    check_position(resource, position, 0)?;
    let (root, path) = (&resource.root, &resource.relative);
    let created = atomic::create(root, path, request.bytes, None, &Cancellation::default());
    created.map_err(|error| match (error, request.create_only) {
        (WriteError::Changed, true) => {
            ResourceError::AlreadyExists { path: resource.display.clone() }
        }
        (error, _) => failed(resource, error),
    })
}

/// Replaces a file by one with new bytes in it.
fn replace(
    resource: &ResolvedResource,
    bytes: &[u8],
    placement: Placement,
    expected: &Stat,
) -> Result<(), ResourceError> {
    let size = expected.identity.bytes;
    let (kept_before, kept_after) = match placement {
        Placement::From(position) => (position, size),
        Placement::At(position) => (position, position),
        Placement::BeforeLast(back) => {
            check_position(resource, back, size)?;
            (size - back, size - back)
        }
    };
    check_position(resource, kept_before, size)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let before = resource.root.open_path(&resource.relative, flags, Links::Refused);
    let mut before = File::from(before.map_err(|errno| resource.failed(errno))?);
    if resource.stat(&before)?.identity != expected.identity {
        return Err(failed(resource, WriteError::Changed));
    }
    let (parent, name) = resource.parent()?;
    let fill = |file: &mut File| -> io::Result<()> {
        io::copy(&mut (&mut before).take(kept_before), file)?;
        file.write_all(bytes)?;
        before.seek(SeekFrom::Start(kept_after))?;
        io::copy(&mut (&mut before).take(size - kept_after), file)?;
        Ok(())
    };
    let replaced = atomic::replace_with(&parent, name, fill, expected, &Cancellation::default());
    replaced.map_err(|error| failed(resource, error))
}

/// A position beyond the end would leave a hole that nobody asked for.
fn check_position(
    resource: &ResolvedResource,
    position: u64,
    bytes: u64,
) -> Result<(), ResourceError> {
    if position <= bytes {
        Ok(())
    } else {
        Err(ResourceError::BeyondEnd { path: resource.display.clone(), position, bytes })
    }
}

pub(super) fn failed(resource: &ResolvedResource, error: WriteError) -> ResourceError {
    match error {
        WriteError::Changed => ResourceError::Changed { path: resource.display.clone() },
        WriteError::Cancelled => resource.failed(Errno::CANCELED),
        WriteError::System(errno) => resource.failed(errno),
    }
}
