//! Reading a file, and listing a directory.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use super::resolved_resource::{LastName, ResolvedResource};
use super::{ResourceAccess, ResourceError, ResourceFiles, ResourceGrant, ResourceKind};
use crate::confined::{Links, Stat};

/// Entries of a directory that one answer may have.
const ENTRIES_MAX: usize = 50_000;

/// Attempts at reading a file that changes meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceBytes {
    pub bytes: Vec<u8>,
    /// The last part of its name, for telling what kind of text it is.
    pub name: String,
}

/// Something in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceEntry {
    pub name: String,
    /// Of a link what it leads to; a link that leads outside or nowhere stays one.
    pub kind: ResourceKind,
}

impl ResourceFiles {
    /// A file's bytes, if it has at most so many (H-252).
    pub fn read(
        &self,
        uri: &str,
        bytes_max: u64,
        grants: &[ResourceGrant],
    ) -> Result<ResourceBytes, ResourceError> {
        let resource = self.locate(uri, LastName::Followed, ResourceAccess::Read, grants)?;
        let (_, stat) = resource.existing()?;
        check_regular(&resource, stat.kind)?;
        let opened = resource.root.open_any(&resource.relative, Links::Refused);
        let (file, stat) = opened.map_err(|errno| resource.failed(errno))?;
        check_regular(&resource, stat.kind)?; // what it is now
        let bytes = read_bounded(file, &resource, bytes_max)?;
        let name = resource.relative.file_name().unwrap_or_default();
        Ok(ResourceBytes { bytes, name: name.to_string_lossy().into_owned() })
    }

    /// What is in a directory, in the order of the names (H-254).
    pub fn list(
        &self,
        uri: &str,
        grants: &[ResourceGrant],
    ) -> Result<Vec<ResourceEntry>, ResourceError> {
        let resource = self.locate(uri, LastName::Followed, ResourceAccess::Read, grants)?;
        if let (_, stat) = resource.existing()?
            && stat.kind == FileType::Symlink
        {
            return Err(resource.failed(Errno::NOENT)); // it leads nowhere
        }
        let open = resource
            .root
            .open_directory(&resource.relative, Links::Refused)
            .map_err(|errno| resource.failed(errno))?;
        let listed = Dir::read_from(&open).map_err(|errno| resource.failed(errno))?;
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry.map_err(|errno| resource.failed(errno))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if entries.len() == ENTRIES_MAX {
                return Err(ResourceError::TooManyEntries {
                    path: resource.display,
                    most: ENTRIES_MAX,
                });
            }
            entries.extend(self.entry(&resource, &open, entry.file_name())?);
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// An entry as clients see it; `None` for what is the host's own, and for what is gone by now.
    fn entry(
        &self,
        resource: &ResolvedResource,
        directory: &OwnedFd,
        name: &std::ffi::CStr,
    ) -> Result<Option<ResourceEntry>, ResourceError> {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(name.to_bytes());
        let path = resource.real_path().join(name);
        let is_hidden = self.confinement.hides(&path);
        if is_hidden.map_err(|errno| resource.failed(errno))? {
            return Ok(None);
        }
        let Ok(stat) = Stat::of_entry(directory, name) else {
            return Ok(None); // removed since
        };
        let mut kind = ResourceKind::of(stat.kind);
        if kind == ResourceKind::Link {
            let uri = wire::file_uri::uri_of(path.as_os_str().as_bytes());
            let target = self.locate(&uri, LastName::Followed, ResourceAccess::Read, &[]);
            let target = target.and_then(|target| target.existing());
            if let Ok((_, target)) = target {
                kind = ResourceKind::of(target.kind);
            }
        }
        Ok(Some(ResourceEntry { name: name.to_string_lossy().into_owned(), kind }))
    }
}

/// Only regular files have content.
pub(super) fn check_regular(
    resource: &ResolvedResource,
    kind: FileType,
) -> Result<(), ResourceError> {
    let path = resource.display.clone();
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(ResourceError::IsDirectory { path }),
        FileType::Symlink => Err(ResourceError::BrokenLink { path }),
        _ => Err(ResourceError::NotRegular { path }),
    }
}

/// Reads a file whole: as it was at one moment, if it holds still for long enough.
fn read_bounded(
    mut file: File,
    resource: &ResolvedResource,
    bytes_max: u64,
) -> Result<Vec<u8>, ResourceError> {
    let failed = |error: std::io::Error| ResourceError::of_io(&error, &resource.display);
    let mut attempts = 1;
    loop {
        let before = resource.stat(&file)?;
        let too_large = |bytes| ResourceError::TooLarge {
            path: resource.display.clone(),
            bytes,
            most: bytes_max,
        };
        if before.identity.bytes > bytes_max {
            return Err(too_large(before.identity.bytes));
        }
        let mut bytes = Vec::new();
        let mut bounded = (&mut file).take(bytes_max.saturating_add(1));
        bounded.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > bytes_max {
            return Err(too_large(bytes.len() as u64));
        }
        // A log that is written to all the time is read as far as it went.
        if attempts == ATTEMPTS_MAX || resource.stat(&file)? == before {
            return Ok(bytes);
        }
        attempts += 1;
        file.rewind().map_err(failed)?;
    }
}
