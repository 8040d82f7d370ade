//! Copies of plugins that clients brought: files that tools can read and programs can be started from.
//!
//! Promises: nothing is written outside the directory of the copy; one that is not whole is used by nobody.
//! All functions block.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::PluginCopy;

/// A file of a plugin, by its path in it.
pub(crate) struct PluginFile {
    pub path: PathBuf,
    pub body: Vec<u8>,
}

/// Writes the files of a plugin into a directory that is not there yet.
pub(crate) fn copy_files(directory: PathBuf, mut files: Vec<PluginFile>) -> io::Result<PluginCopy> {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let digest = digest_of(&files);
    fs::create_dir_all(&directory)?;
    for file in &files {
        let is_inside = file.path.components().all(|it| matches!(it, Component::Normal(_)));
        if !is_inside {
            return Err(io::Error::other("a file of the plugin has a path that leads out of it"));
        }
        write(&directory.join(&file.path), &file.body)?;
    }
    Ok(PluginCopy {
        directory,
        digest,
        bytes: files.iter().map(|file| file.body.len() as u64).sum(),
    })
}

/// A program of a plugin is started from here, and nobody says which of the files are programs.
fn write(path: &Path, body: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o500).open(path)?;
    file.write_all(body)
}

fn digest_of(files: &[PluginFile]) -> String {
    let mut hasher = Sha256::new();
    for file in files {
        for part in [file.path.as_os_str().as_encoded_bytes(), &file.body] {
            // The length keeps two parts from being read as other two.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hex(&hasher.finalize())
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Removes copies that nothing uses any more.
pub(crate) fn remove_copies(directories: &[PathBuf]) {
    for directory in directories {
        if let Err(error) = remove(directory) {
            tracing::warn!(%error, "a copy of a plugin stays; the next start of the host removes it");
        }
    }
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
