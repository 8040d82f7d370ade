//! A look at a small file, for what an agent is told before it begins. Not remembered as read: the model did not ask for it.

use std::io::Read;
use std::path::Path;

use rustix::fs::FileType;

use super::Workspace;
use super::beneath::{self, Links};

impl Workspace {
    /// The beginning of a regular file beneath the first directory, if it is there and can be read.
    pub(crate) fn glance(&self, path: &Path, bytes_max: usize) -> Option<Vec<u8>> {
        let root = self.shared.roots.first()?;
        let (file, stat) = beneath::open_any(&root.directory, path, Links::Followed).ok()?;
        if stat.kind != FileType::RegularFile {
            return None;
        }
        let mut bytes = Vec::new();
        let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}
