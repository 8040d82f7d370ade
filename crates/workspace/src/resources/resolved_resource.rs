//! Where a URI leads: beneath which root, by a path without links.
//!
//! Promises: links are followed by the operating system, and the resource is judged by what was opened. Whoever opens it again by
//! this path follows no link any more, so that it is the same resource or none.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use wire::file_uri;

use super::{ResourceAccess, ResourceError, ResourceFiles, ResourceGrant};
use crate::confined::{self, Links, Stat};
use crate::roots::Root;

/// What a URI names, resolved.
#[derive(Debug)]
pub(super) struct ResolvedResource {
    pub(super) root: Root,
    /// Beneath the root, without links; the last names may not be there.
    pub(super) relative: PathBuf,
    /// As the client named it.
    pub(super) display: String,
    /// Whether this is the very file or directory that was granted, or a root.
    is_whole_root: bool,
}

/// Whether a link under the last name is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastName {
    Followed,
    Itself,
}

impl ResourceFiles {
    /// Resolves a URI for somebody with these grants.
    pub(super) fn locate(
        &self,
        uri: &str,
        last: LastName,
        access: ResourceAccess,
        grants: &[ResourceGrant],
    ) -> Result<ResolvedResource, ResourceError> {
        let path = path_of(uri)?;
        let display = path.display().to_string();
        let (open, rest) = self.open_nearest(&path, last, &display)?;
        let real =
            confined::real_path(&open).map_err(|errno| ResourceError::of(errno, &display))?;
        // Joining nothing would add a slash.
        let whole = if rest.as_os_str().is_empty() { real.clone() } else { real.join(&rest) };
        let around = self.around(&whole, access, grants, &display)?;
        if !rest.as_os_str().is_empty() {
            let is_directory = Stat::of(&open).is_ok_and(|stat| stat.kind == FileType::Directory);
            if !is_directory {
                return Err(ResourceError::NotADirectory { path: display });
            }
        }
        self.resource(&around, whole, display)
    }

    /// Whether a URI may be used with these grants: `None` if it lies in the roots anyway, else where it lies.
    pub fn find_grant(
        &self,
        uri: &str,
        access: ResourceAccess,
        grants: &[ResourceGrant],
    ) -> Result<Option<PathBuf>, ResourceError> {
        let resource = self.locate(uri, LastName::Followed, access, grants)?;
        let path = resource.real_path();
        Ok(match self.confinement.root_of(&path) {
            Some(_) => None,
            None => Some(path),
        })
    }

    /// Opens a path, or of one that is not there the nearest directory above it; with what is missing.
    fn open_nearest(
        &self,
        path: &Path,
        last: LastName,
        display: &str,
    ) -> Result<(OwnedFd, PathBuf), ResourceError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let skipped = match last {
            LastName::Followed => 0,
            // The root of the file system has nothing above it.
            LastName::Itself => usize::from(path.parent().is_some()),
        };
        let mut failed = Errno::NOENT;
        for above in path.ancestors().skip(skipped) {
            match rustix::fs::openat(CWD, above, flags, Mode::empty()) {
                Ok(open) => {
                    let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
                    return match failed {
                        Errno::NOENT | Errno::NOTDIR => Ok((open, rest.to_owned())),
                        // Where it lies decides what may be said of it.
                        errno => Err(self.failed_beneath(&open, errno, display)),
                    };
                }
                Err(errno @ (Errno::NOENT | Errno::NOTDIR)) => {
                    failed = if is_expected(failed) { errno } else { failed };
                }
                Err(errno) => failed = errno,
            }
        }
        Err(ResourceError::of(failed, display))
    }

    /// The error for a path that cannot be opened, of which this directory is on the way.
    fn failed_beneath(&self, open: &OwnedFd, errno: Errno, display: &str) -> ResourceError {
        let real = confined::real_path(open).unwrap_or_default();
        let path = display.to_owned();
        if self.confinement.root_of(&real).is_none() {
            let needs = ResourceAccess::Read;
            return ResourceError::Outside { path, needs };
        }
        match errno {
            Errno::LOOP => ResourceError::BrokenLink { path },
            errno => ResourceError::of(errno, display),
        }
    }

    /// The root or the grant that a path without links lies in.
    fn around(
        &self,
        whole: &Path,
        access: ResourceAccess,
        grants: &[ResourceGrant],
        display: &str,
    ) -> Result<PathBuf, ResourceError> {
        let path = || display.to_owned();
        let is_hidden = self.confinement.hides(whole);
        if is_hidden.map_err(|errno| ResourceError::of(errno, display))? {
            return Err(ResourceError::HostOwned { path: path() });
        }
        if let Some(root) = self.confinement.root_of(whole) {
            return Ok(root.to_owned());
        }
        let mut grants = grants.iter();
        let granted = grants.find(|grant| {
            whole.starts_with(&grant.path) && (grant.write || access == ResourceAccess::Read)
        });
        match granted {
            Some(grant) => Ok(grant.path.clone()),
            None => Err(ResourceError::Outside { path: path(), needs: access }),
        }
    }

    /// A path without links beneath a root or a grant. Of a granted file its directory is opened.
    fn resource(
        &self,
        around: &Path,
        whole: PathBuf,
        display: String,
    ) -> Result<ResolvedResource, ResourceError> {
        let is_whole_root = whole == around;
        let is_file = is_whole_root && !around.is_dir();
        let root = match (is_file, around.parent()) {
            (true, Some(parent)) => parent,
            (true, None) | (false, _) => around,
        };
        let moving = || ResourceError::Moving { path: display.clone() };
        let root = Root::open_exactly(root, &self.confinement).map_err(|_| moving())?;
        let relative = whole.strip_prefix(&root.real_path).map_err(|_| moving())?;
        Ok(ResolvedResource { relative: relative.to_owned(), root, display, is_whole_root })
    }

    /// What is to be moved, replaced or removed as a whole must be neither a root nor hold what is the host's own.
    pub(super) fn check_removable(&self, resource: &ResolvedResource) -> Result<(), ResourceError> {
        let path = || resource.display.clone();
        if resource.is_whole_root || resource.relative.as_os_str().is_empty() {
            return Err(ResourceError::IsRoot { path: path() });
        }
        if self.confinement.has_root_in(&resource.real_path()) {
            return Err(ResourceError::IsRoot { path: path() });
        }
        self.check_no_hidden(resource)
    }

    /// What is to be used with all that is in it must not hold what is the host's own.
    pub(super) fn check_no_hidden(&self, resource: &ResolvedResource) -> Result<(), ResourceError> {
        let holds = self.confinement.is_around_hidden(&resource.real_path());
        if holds.map_err(|errno| ResourceError::of(errno, &resource.display))? {
            Err(ResourceError::HostOwned { path: resource.display.clone() })
        } else {
            Ok(())
        }
    }
}

fn is_expected(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::NOTDIR)
}

fn path_of(uri: &str) -> Result<PathBuf, ResourceError> {
    let path = file_uri::path_of(uri).ok_or_else(|| ResourceError::NotLocal {
        uri: uri.chars().take(URI_CHARS_MAX).collect(),
    })?;
    Ok(PathBuf::from(OsString::from_vec(path)))
}

/// How much of a URI an error repeats.
const URI_CHARS_MAX: usize = 128;

impl ResolvedResource {
    pub(super) fn real_path(&self) -> PathBuf {
        self.root.real_path.join(&self.relative)
    }

    pub(super) fn uri(&self) -> String {
        file_uri::uri_of(self.real_path().as_os_str().as_bytes())
    }

    pub(super) fn failed(&self, errno: Errno) -> ResourceError {
        ResourceError::of(errno, &self.display)
    }

    /// What is under the name now; of a link itself. `None` if nothing is.
    pub(super) fn entry(&self) -> Result<Option<OwnedFd>, ResourceError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let open = self.root.open_path(&self.relative, flags, Links::Refused);
        match open {
            Ok(open) => Ok(Some(open)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.failed(errno)),
        }
    }

    /// What is under the name now; an error if nothing is.
    pub(super) fn existing(&self) -> Result<(OwnedFd, Stat), ResourceError> {
        let entry = self.entry()?.ok_or_else(|| self.failed(Errno::NOENT))?;
        let stat = self.stat(&entry)?;
        Ok((entry, stat))
    }

    pub(super) fn stat(&self, open: &impl AsFd) -> Result<Stat, ResourceError> {
        Stat::of(open).map_err(|errno| self.failed(errno))
    }

    /// The directory it is in, and its name there.
    pub(super) fn parent(&self) -> Result<(OwnedFd, &OsStr), ResourceError> {
        let name = self.name()?;
        let above = self.relative.parent().unwrap_or(Path::new(""));
        let parent = self.root.open_directory(above, Links::Refused);
        Ok((parent.map_err(|errno| self.failed(errno))?, name))
    }

    pub(super) fn name(&self) -> Result<&OsStr, ResourceError> {
        let name = self.relative.file_name();
        name.ok_or_else(|| ResourceError::IsRoot { path: self.display.clone() })
    }
}
