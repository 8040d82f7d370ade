//! Making a file again what it was: its bytes, its permissions, the directories it needs, or its absence.
//!
//! Promises: a file is restored only if it still is what the caller saw, whole or not at all; nothing is written through a
//! symbolic link, and nothing outside the working directories.
//! Must not know: who wants a file restored, and where its content was kept.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use wire::{Digest, file_uri};

use super::atomic::{self, WriteError};
use super::history::Extent;
use crate::confined::{Links, Stat};
use crate::error::errno_to_file_error;
use crate::read;
use crate::roots::RootUse;
use crate::tree::{LINK, is_link};
use crate::{Cancellation, FileError, Workspace, WorkspacePath};

/// What a file is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNow {
    pub bytes: Vec<u8>,
    pub digest: Digest,
    pub mode: u32,
    stat: Stat,
}

/// What a file is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedFile<'a> {
    /// A regular file, or a link to these bytes if the mode is [`LINK`]. The mode counts if the file has to be created; one that is
    /// there keeps its own, unless `sets_mode`.
    Content { bytes: &'a [u8], mode: Option<u32>, sets_mode: bool },
    /// Not there; nor are the directories that were made for it, so many of them, once they are empty.
    Absent { directories: usize },
}

impl Workspace {
    /// The path that a `file:` URI names.
    pub fn path_of_uri(&self, uri: &str) -> Result<WorkspacePath, FileError> {
        let path = file_uri::path_of(uri).ok_or(FileError::InvalidPath)?;
        let path = PathBuf::from(OsString::from_vec(path));
        let path = path.to_str().ok_or(FileError::InvalidPath)?;
        self.resolve(path)
    }

    /// The same, where a link may be expected: its target is its content.
    pub fn look_at_any(&self, path: &WorkspacePath) -> Result<Option<FileNow>, FileError> {
        match self.look_at(path) {
            Err(FileError::IsLink { path: named }) => {
                self.read_link(path).map(Some).ok_or(FileError::IsLink { path: named })
            }
            other => other,
        }
    }

    /// A link itself; `None` if another one leads to it, or it is none any more.
    fn read_link(&self, path: &WorkspacePath) -> Option<FileNow> {
        let above = path.relative.parent().unwrap_or(Path::new(""));
        let parent = self.root(path).open_directory(above, Links::Refused).ok()?;
        let name = path.relative.file_name()?;
        let stat = Stat::of_entry(&parent, name).ok()?;
        let bytes = rustix::fs::readlinkat(&parent, name, Vec::new()).ok()?.into_bytes();
        Some(FileNow { digest: Digest::of(&bytes), bytes, mode: LINK, stat })
    }

    /// What is under a path, without following a link anywhere on it; `None` if nothing is there.
    pub fn look_at(&self, path: &WorkspacePath) -> Result<Option<FileNow>, FileError> {
        let display_path = self.display_path(path);
        if path.relative.as_os_str().is_empty() {
            return Err(FileError::IsDirectory { path: display_path });
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let entry = self.root(path).open_path(&path.relative, flags, Links::Refused);
        let is_link = match entry {
            Ok(entry) => Stat::of(&entry).is_ok_and(|stat| stat.kind == FileType::Symlink),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(Errno::LOOP) => true,
            Err(errno) => return Err(errno_to_file_error(errno, &display_path)),
        };
        if is_link {
            return Err(FileError::IsLink { path: display_path });
        }
        let file = match self.open_file(path, Links::Refused) {
            Ok((file, _)) => file,
            Err(FileError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let snapshot = read::take_snapshot(file, &display_path, None)?;
        Ok(Some(FileNow {
            bytes: snapshot.body.to_vec(),
            digest: snapshot.body.digest(),
            mode: snapshot.stat.mode & 0o777,
            stat: snapshot.stat,
        }))
    }

    /// How many directories on the way to a path are not there.
    pub fn missing_directories(&self, path: &WorkspacePath) -> usize {
        let root = self.root(path);
        let above = path.relative.ancestors().skip(1);
        let missing = above.take_while(|above| {
            let open = root.open_path(above, OFlags::PATH, Links::Refused);
            matches!(open, Err(Errno::NOENT))
        });
        missing.count()
    }

    /// Makes a file what is wanted, if it still has the content that was `seen`.
    pub fn restore_file(
        &self,
        path: &WorkspacePath,
        seen: Option<Digest>,
        wanted: WantedFile<'_>,
        cancellation: &Cancellation,
    ) -> Result<(), FileError> {
        let _writing = self.lock_writes();
        cancellation.check()?;
        let display_path = self.display_path(path);
        if self.root(path).role != RootUse::Working {
            return Err(FileError::ReadOnlyRoot { path: display_path });
        }
        let now = self.look_at_any(path)?;
        if now.as_ref().map(|now| now.digest) != seen {
            let path = display_path;
            return Err(match now {
                Some(now) if is_link(now.mode) => FileError::IsLink { path },
                Some(_) | None => FileError::ChangedSinceProposal { path },
            });
        }
        let read_only = now.as_ref().is_some_and(|now| !is_link(now.mode) && now.mode & 0o222 == 0);
        let sets_mode = matches!(wanted, WantedFile::Content { sets_mode, .. } if sets_mode);
        if read_only && !sets_mode {
            return Err(FileError::ReadOnlyFile { path: display_path });
        }
        let restored = self.replace(path, now.as_ref(), wanted, cancellation);
        restored.map_err(|error| match error {
            WriteError::Changed => FileError::ChangedSinceProposal { path: display_path },
            WriteError::Cancelled => FileError::Cancelled,
            WriteError::System(errno) => errno_to_file_error(errno, &display_path),
        })?;
        if let WantedFile::Content { bytes, .. } = wanted {
            let digest = Digest::of(bytes);
            self.history().record_write(path, digest, Extent::Parts);
        }
        Ok(())
    }

    fn replace(
        &self,
        path: &WorkspacePath,
        now: Option<&FileNow>,
        wanted: WantedFile<'_>,
        cancellation: &Cancellation,
    ) -> Result<(), WriteError> {
        let (root, relative) = (self.root(path), path.relative.as_path());
        let above = relative.parent().unwrap_or(Path::new(""));
        let name = relative.file_name().ok_or(Errno::INVAL)?;
        match (now, wanted) {
            (Some(now), WantedFile::Content { bytes, mode, .. }) if wants_link(mode) => {
                let parent = root.open_directory(above, Links::Refused)?;
                atomic::replace_by_link(&parent, name, bytes, &now.stat)
            }
            (Some(now), WantedFile::Content { bytes, mode, sets_mode }) => {
                let parent = root.open_directory(above, Links::Refused)?;
                // A link has no permissions that a file could keep.
                let mode = if is_link(now.mode) {
                    mode.or(Some(0o644))
                } else {
                    mode.filter(|_| sets_mode)
                };
                atomic::replace(&parent, name, bytes, mode, &now.stat, cancellation)
            }
            (None, WantedFile::Content { bytes, mode, .. }) if wants_link(mode) => {
                atomic::create_link(root, relative, bytes)
            }
            (None, WantedFile::Content { bytes, mode, .. }) => {
                atomic::create(root, relative, bytes, mode, cancellation)
            }
            (Some(now), WantedFile::Absent { directories }) => {
                let parent = root.open_directory(above, Links::Refused)?;
                atomic::remove(&parent, name, &now.stat)?;
                atomic::remove_empty_directories(root, above, directories);
                Ok(())
            }
            // A crash may have left the directories.
            (None, WantedFile::Absent { directories }) => {
                atomic::remove_empty_directories(root, above, directories);
                Ok(())
            }
        }
    }
}

fn wants_link(mode: Option<u32>) -> bool {
    mode.is_some_and(is_link)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::Confinement;

    struct Fixture {
        directory: tempfile::TempDir,
        workspace: Workspace,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let uri = file_uri::uri_of(directory.path().as_os_str().as_encoded_bytes());
            let workspace = Workspace::open(&[uri], &Confinement::none()).unwrap();
            Self { directory, workspace }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn restore(
            &self,
            name: &str,
            seen: Option<&[u8]>,
            wanted: WantedFile<'_>,
        ) -> Result<(), FileError> {
            let path = self.workspace.resolve(name).unwrap();
            let seen = seen.map(Digest::of);
            let cancellation = Cancellation::default();
            self.workspace.restore_file(&path, seen, wanted, &cancellation)
        }
    }

    fn content(bytes: &[u8], mode: Option<u32>) -> WantedFile<'_> {
        WantedFile::Content { bytes, mode, sets_mode: false }
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn bytes_and_permissions_come_back_exactly() {
        let fixture = Fixture::new();
        let path = fixture.at("a");
        fs::write(&path, b"new\xff\0").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let wanted = content(b"old\r\n\0\xfe", Some(0o600));
        fixture.restore("a", Some(b"new\xff\0"), wanted).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old\r\n\0\xfe");
        assert_eq!(mode_of(&path), 0o750, "a file that is there keeps its own");

        let path = fixture.workspace.resolve("x/y/b").unwrap();
        assert_eq!(fixture.workspace.missing_directories(&path), 2);
        let wanted = content(b"again", Some(0o741));
        fixture.restore("x/y/b", None, wanted).unwrap();
        assert_eq!(fs::read(fixture.at("x/y/b")).unwrap(), b"again");
        assert_eq!(mode_of(&fixture.at("x/y/b")), 0o741);
        assert_eq!(fixture.workspace.missing_directories(&path), 0);
    }

    #[test]
    fn a_new_file_goes_with_the_directories_that_were_made_for_it() {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.at("kept/x/y")).unwrap();
        fs::write(fixture.at("kept/x/y/a"), "a").unwrap();
        let wanted = WantedFile::Absent { directories: 2 };
        fixture.restore("kept/x/y/a", Some(b"a"), wanted).unwrap();
        assert!(fixture.at("kept").exists() && !fixture.at("kept/x").exists());

        // One that holds something else stays; an interrupted removal is finished.
        fs::create_dir_all(fixture.at("p/q")).unwrap();
        fs::write(fixture.at("p/other"), "o").unwrap();
        fixture.restore("p/q/gone", None, wanted).unwrap();
        assert!(fixture.at("p/other").exists() && !fixture.at("p/q").exists());
    }

    #[test]
    fn what_is_not_what_was_seen_is_left_alone() {
        let fixture = Fixture::new();
        fs::write(fixture.at("a"), "of someone else").unwrap();
        for wanted in [content(b"old", None), WantedFile::Absent { directories: 0 }] {
            let refused = fixture.restore("a", Some(b"new"), wanted).unwrap_err();
            assert!(matches!(refused, FileError::ChangedSinceProposal { .. }));
            let refused = fixture.restore("a", None, wanted).unwrap_err();
            assert!(matches!(refused, FileError::ChangedSinceProposal { .. }));
        }
        assert_eq!(fs::read(fixture.at("a")).unwrap(), b"of someone else");
        let names = fs::read_dir(fixture.directory.path()).unwrap().count();
        assert_eq!(names, 1, "nothing temporary stays");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let fixture = Fixture::new();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("a"), "outside").unwrap();
        fs::write(fixture.at("real"), "inside").unwrap();
        symlink(outside.path(), fixture.at("dir")).unwrap();
        symlink("real", fixture.at("link")).unwrap();
        for (name, seen) in [("dir/a", &b"outside"[..]), ("link", b"inside")] {
            let refused = fixture.restore(name, Some(seen), content(b"x", None));
            assert!(matches!(refused, Err(FileError::IsLink { .. })), "{refused:?}");
            let absent = WantedFile::Absent { directories: 1 };
            assert!(fixture.restore(name, Some(seen), absent).is_err());
        }
        assert_eq!(fs::read(outside.path().join("a")).unwrap(), b"outside");
        assert_eq!(fs::read(fixture.at("real")).unwrap(), b"inside");
        assert!(fixture.workspace.path_of_uri("file:///etc/passwd").is_err());
    }

    #[test]
    fn links_and_permissions_are_restored_where_they_were_recorded() {
        let fixture = Fixture::new();
        let absent = WantedFile::Absent { directories: 0 };
        fixture.restore("l", None, content(b"../away", Some(LINK))).unwrap();
        let target = |name: &str| fs::read_link(fixture.at(name)).unwrap();
        assert_eq!(target("l"), Path::new("../away"));
        // A file by a link, a link by another, a link by a file; none of them follows it.
        fs::write(fixture.at("f"), "file").unwrap();
        fixture.restore("f", Some(b"file"), content(b"x", Some(LINK))).unwrap();
        assert_eq!(target("f"), Path::new("x"));
        fixture.restore("f", Some(b"x"), content(b"y", Some(LINK))).unwrap();
        assert_eq!(target("f"), Path::new("y"));
        fixture.restore("f", Some(b"y"), content(b"again", Some(0o640))).unwrap();
        assert_eq!(fs::read(fixture.at("f")).unwrap(), b"again");
        assert_eq!(mode_of(&fixture.at("f")), 0o640);
        fixture.restore("l", Some(b"../away"), absent).unwrap();
        assert!(fixture.at("l").symlink_metadata().is_err());

        fs::set_permissions(fixture.at("f"), fs::Permissions::from_mode(0o444)).unwrap();
        let wanted = WantedFile::Content { bytes: b"again", mode: Some(0o755), sets_mode: true };
        fixture.restore("f", Some(b"again"), wanted).unwrap();
        assert_eq!(mode_of(&fixture.at("f")), 0o755);
    }

    #[test]
    fn a_read_only_file_and_a_cancelled_restore_change_nothing() {
        let fixture = Fixture::new();
        fs::write(fixture.at("a"), "new").unwrap();
        fs::set_permissions(fixture.at("a"), fs::Permissions::from_mode(0o444)).unwrap();
        let refused = fixture.restore("a", Some(b"new"), content(b"old", None));
        assert!(matches!(refused, Err(FileError::ReadOnlyFile { .. })));
        let cancellation = Cancellation::default();
        cancellation.cancel();
        let path = fixture.workspace.resolve("b").unwrap();
        let wanted = content(b"old", None);
        let cancelled = fixture.workspace.restore_file(&path, None, wanted, &cancellation);
        assert_eq!(cancelled, Err(FileError::Cancelled));
        assert!(!fixture.at("b").exists());
    }
}
