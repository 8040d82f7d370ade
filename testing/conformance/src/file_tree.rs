//! All files of a directory, to compare before and after.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on ends"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Every file of a directory with its permissions; links with where they lead.
pub fn read_tree(directory: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            if name == ".git" {
                continue;
            }
            if metadata.is_dir() {
                files.insert(format!("{name}/"), (0, Vec::new()));
                pending.push(path);
            } else if metadata.is_symlink() {
                let target = fs::read_link(path).unwrap().to_str().unwrap().as_bytes().to_vec();
                files.insert(name, (0, target));
            } else {
                let mode = metadata.permissions().mode();
                files.insert(name, (mode, fs::read(path).unwrap()));
            }
        }
    }
    files
}
