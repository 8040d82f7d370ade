//! Where a path leads: its name without links, beneath the working directory it is in.
//!
//! Promises: links are followed by the operating system, as they are when a file is opened. The answer is a name to judge by;
//! whoever opens the file is confined by itself.

use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::confined::Links;
use crate::error::errno_to_file_error;
use crate::roots::RootUse;
use crate::{FileError, Workspace};

/// A file by its name without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealLocation {
    /// The working directory.
    pub root: PathBuf,
    /// The path beneath it.
    pub relative: PathBuf,
}

impl Workspace {
    /// The working directories without links, the default one first.
    pub fn real_directories(&self) -> Vec<PathBuf> {
        let roots = self.shared.roots.iter();
        let own = roots.filter(|root| root.role == RootUse::Working);
        own.map(|root| root.real_path.clone()).collect()
    }

    /// Where a path leads that a caller gives. Of a file that is not there yet, where it would be made.
    pub fn locate(&self, path: &str) -> Result<RealLocation, FileError> {
        let resolved = self.resolve(path)?;
        let root = self.root(&resolved);
        let display_path = || self.display_path(&resolved);
        for above in resolved.relative.ancestors() {
            match root.open_path(above, OFlags::PATH, Links::Followed) {
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno_to_file_error(errno, &display_path())),
                Ok(found) => {
                    let real = root
                        .real_path_inside(&found)
                        .ok_or_else(|| FileError::Moving { path: display_path() })?;
                    let rest = resolved.relative.strip_prefix(above).unwrap_or(Path::new(""));
                    // Joining nothing would add a slash.
                    let relative = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
                    return Ok(RealLocation { root: root.real_path.clone(), relative });
                }
            }
        }
        Err(errno_to_file_error(Errno::NOENT, &display_path()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::Confinement;

    #[test]
    fn links_are_followed_and_what_is_not_there_has_a_place() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::write(root.join(".git/config"), "").unwrap();
        symlink(".git", root.join("innocent")).unwrap();
        symlink(".git/config", root.join("notes.txt")).unwrap();
        symlink("/etc", root.join("out")).unwrap();
        let uri = format!("file://{}", root.display());
        let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
        for (given, real) in [
            ("notes.txt", ".git/config"),
            ("innocent/config", ".git/config"),
            ("innocent/hooks/pre-commit", ".git/hooks/pre-commit"),
            ("innocent/new/a", ".git/new/a"),
            ("./a/b", "a/b"),
        ] {
            let located = workspace.locate(given).unwrap();
            assert_eq!(located.relative, Path::new(real), "{given}");
            assert_eq!(located.root, root);
        }
        for outside in ["out/passwd", "../x", "a/../../x", "/etc/passwd"] {
            workspace.locate(outside).unwrap_err();
        }
        assert_eq!(workspace.real_directories(), [root]);
    }
}
