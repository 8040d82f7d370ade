//! What is known of a resource without reading it.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use wire::Timestamp;

use super::resolved_resource::LastName;
use super::{ResourceAccess, ResourceError, ResourceFiles, ResourceGrant};

/// What a resource is. Pipes, devices and sockets count as files that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    File,
    Directory,
    Link,
}

/// A resource at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceFacts {
    /// Without links, if they were followed.
    pub uri: String,
    pub kind: ResourceKind,
    /// Absent for directories.
    pub bytes: Option<u64>,
    pub modified: Timestamp,
    /// Where the file system knows it.
    pub created: Option<Timestamp>,
    /// Differs between two contents of a file, and between two files.
    pub etag: String,
}

impl ResourceFiles {
    /// What a URI names (H-256). With links followed that is what they lead to, by its own name.
    pub fn resolve(
        &self,
        uri: &str,
        follow_links: bool,
        grants: &[ResourceGrant],
    ) -> Result<ResourceFacts, ResourceError> {
        let last = if follow_links { LastName::Followed } else { LastName::Itself };
        let resource = self.locate(uri, last, ResourceAccess::Read, grants)?;
        let (entry, stat) = resource.existing()?;
        if follow_links && stat.kind == FileType::Symlink {
            return Err(resource.failed(Errno::NOENT)); // it leads nowhere
        }
        let facts = facts_of(&entry).map_err(|errno| resource.failed(errno))?;
        Ok(ResourceFacts {
            uri: if follow_links { resource.uri() } else { uri.to_owned() },
            ..facts
        })
    }
}

impl ResourceKind {
    pub(super) fn of(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::File,
        }
    }
}

/// What is known of something open, but for its name.
pub(super) fn facts_of(open: &impl AsFd) -> Result<ResourceFacts, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let stat = rustix::fs::statx(open, c"", AtFlags::EMPTY_PATH, wanted)?;
    let kind = ResourceKind::of(FileType::from_raw_mode(u32::from(stat.stx_mode)));
    let created = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let (modified, changed) = (stat.stx_mtime, stat.stx_ctime);
    let etag = format!(
        "{:x}.{:x}-{:x}-{:x}-{:x}.{:x}-{:x}.{:x}",
        stat.stx_dev_major,
        stat.stx_dev_minor,
        stat.stx_ino,
        stat.stx_size,
        modified.tv_sec,
        modified.tv_nsec,
        changed.tv_sec,
        changed.tv_nsec,
    );
    Ok(ResourceFacts {
        uri: String::new(),
        kind,
        bytes: (kind != ResourceKind::Directory).then_some(stat.stx_size),
        modified: moment(modified),
        created: created.then(|| moment(stat.stx_btime)),
        etag,
    })
}

fn moment(at: StatxTimestamp) -> Timestamp {
    let ms = at.tv_sec.saturating_mul(1_000);
    Timestamp(ms.saturating_add(i64::from(at.tv_nsec / 1_000_000)))
}
